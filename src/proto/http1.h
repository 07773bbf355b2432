/* HTTP/1.1, bytes to views: a strict pre-scan of the header block, then llhttp. No sockets, no
 * clock. One parser a connection and direction; used for requests (server) and responses
 * (client). Pipelined bytes stay with the caller: feed says how many it used.
 *
 * The header block is collected first (up to max_header_bytes), rejected when it holds a bare
 * CR, a bare LF, a NUL or a continuation line, and only then given to llhttp. A request needs
 * exactly one Host (HTTP/1.1). */
#ifndef TELLTALE_PROTO_HTTP1_H
#define TELLTALE_PROTO_HTTP1_H

#include "base/buf.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

enum http_method {
    HTTP_METHOD_GET, HTTP_METHOD_HEAD, HTTP_METHOD_POST, HTTP_METHOD_OTHER, HTTP_METHOD_PUT
};

enum {
    HTTP_MAX_HEADERS = 100,
    HTTP_BODY_HEADROOM = 16 /* before a body */
};

struct http_limits {
    uint32_t max_header_bytes; /* 65536 at most */
    uint64_t max_body_bytes;
};

struct http_header { struct view name, value; }; /* value without surrounding blanks */

struct http_message {       /* views into the parser's buffers: valid until http_parser_next */
    enum http_method method;
    struct view target;     /* "/v2/models/m/infer?x=1", as sent */
    struct view path;       /* without the query */
    struct view query;
    int status;             /* responses */
    bool keep_alive;
    bool expects_continue;
    struct http_header headers[HTTP_MAX_HEADERS];
    uint32_t header_count;
    /* Whole. At least 64 readable bytes follow it (simdjson's padding), and HTTP_BODY_HEADROOM
     * bytes before it are whoever's who handles the message (a length, say); an empty body has no
     * such room. */
    struct view body;
};

enum http_event {
    HTTP_NEED_MORE,
    HTTP_HEADERS,  /* headers complete, body to come (send 100-continue now where it is expected) */
    HTTP_COMPLETE, /* message complete: handle it, then http_parser_next */
    HTTP_FAILED    /* err says why; status gives the answer's code; the connection must close */
};

struct http_parser;
struct http_parser *http_parser_create(bool is_response, struct http_limits limits);
void http_parser_free(struct http_parser *parser);
/* Feeds bytes; *out_used of them are used (all, unless an event came first). */
enum http_event http_parser_feed(struct http_parser *parser, const char *bytes, size_t size,
                                 size_t *out_used);
/* Where the next body bytes may be read to directly (avoids a copy): NULL when there is no
 * Content-Length body in progress. After reading n bytes there call http_parser_body_filled. */
char *http_parser_body_room(struct http_parser *parser, size_t *out_room);
enum http_event http_parser_body_filled(struct http_parser *parser, size_t size);
/* End of input: a response without a length is complete, everything else failed. */
enum http_event http_parser_eof(struct http_parser *parser);
const struct http_message *http_parser_message(const struct http_parser *parser);
enum status http_parser_status(const struct http_parser *parser, struct err *out_err);
/* True between messages: nothing of a next message has been seen. */
bool http_parser_is_idle(const struct http_parser *parser);
/* Ready for the next message. The body's memory is kept for reuse up to 1 MiB. */
void http_parser_next(struct http_parser *parser);
/* Takes the body's memory out of the parser: the caller frees it with free(). NULL when empty.
 * message->body stays valid as long as that memory, the room before it included. */
char *http_parser_take_body(struct http_parser *parser);

/* Case-insensitive; a view with data NULL when absent. */
struct view http_header(const struct http_message *message, const char *name);
/* "OK", "Too Many Requests" ... */
const char *http_reason(int status);

/* Request for a client: "POST path HTTP/1.1", Host, Content-Length, extra header lines as given
 * (each ending in CRLF), blank line. The body follows separately. */
void http_write_request(struct buf *out, const char *method, const char *path, const char *host,
                        const char *extra_headers, size_t body_size);
/* Status line, Content-Length, Content-Type, Connection: close where !keep_alive, extra lines. */
void http_write_response(struct buf *out, int status, const char *content_type, size_t body_size,
                         bool keep_alive, struct view extra_headers);

#endif

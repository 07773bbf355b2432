/* One client's connection: bytes to the parser, a message to its route, an answer back, the next
 * message. Requests of one connection are answered in order, one at a time. Loop thread only. */
#ifndef TELLTALE_SERVE_HTTP_CONN_H
#define TELLTALE_SERVE_HTTP_CONN_H

#include "proto/http1.h"
#include "serve/server.h"

enum http_conn_state {
    HTTP_CONN_READING,   /* of a message, or waiting for one */
    HTTP_CONN_BUSY,      /* a request is with the engine */
    HTTP_CONN_WRITING,   /* the kernel has not taken the whole answer yet */
    HTTP_CONN_CLOSED     /* or closing; no longer in the server's list */
};

enum http_conn_kind { HTTP_CONN_API, HTTP_CONN_METRICS, HTTP_CONN_REFUSED };

struct http_conn {
    struct server *server;
    struct conn *conn;
    struct http_parser *parser;
    struct http_conn *previous, *next;
    enum http_conn_kind kind;
    enum http_conn_state state;
    struct exchange *exchange; /* the inference request being worked on or answered; or NULL */
    struct buf pending;        /* bytes that came in behind the message in progress */
    size_t pending_used;
    char *room;                /* body memory lent to the reader by http_parser_body_room */
    uint64_t start_ns;         /* first byte of the present message */
    uint64_t free_ns;          /* when the last answer was done: a pipelined message starts then */
    uint64_t deadline_ns;      /* of what it waits for (not a request's own); 0: none */
    size_t unsent_bytes;       /* at the last sweep: a slow reader that still reads is kept */
    bool is_paused;            /* not reading: too much is pending */
    bool is_processing;        /* inside the loop over its bytes */
    bool is_head;              /* no body in the answer */
    bool must_close;           /* after the present answer */
};

/* A new connection from a listener: refused with 503 when there are too many. */
void http_conn_accept(struct server *server, struct conn *conn, enum http_conn_kind kind);
/* Sends server->body as the answer to the present message, with server->extra as further header
 * lines, and goes on to the next message. */
void http_conn_answer(struct http_conn *hc, int status, const char *content_type);
/* The same with another body, which may go when this returns. */
void http_conn_answer_with(struct http_conn *hc, int status, const char *content_type,
                           const struct buf *body);
/* The same with {"error": text}, the status's HTTP code and Retry-After where that is 503. */
void http_conn_fail(struct http_conn *hc, enum status status, const char *text);
/* Closes now; what is in flight is cancelled. */
void http_conn_close(struct http_conn *hc);
/* Nothing of a request has been seen since the last answer. */
bool http_conn_is_idle(const struct http_conn *hc);
/* Acts on a deadline that has passed. */
void http_conn_sweep(struct http_conn *hc, uint64_t now_ns);

#endif

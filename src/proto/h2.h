/* HTTP/2, bytes to streams and back: nghttp2 underneath, no sockets, no clock. One session a
 * connection; a server's, or a client's. Prior knowledge: whoever has negotiated (TLS's ALPN)
 * comes here with the first byte of the preface.
 *
 * In: h2_input gives what came to the events. What a stream receives counts against its window
 * until h2_consume gives it back, so a handler that is slow stops its own client and nobody else
 * (the connection's window is given back at once).
 * Out: h2_output appends what is ready, at most about `limit` bytes; the caller writes it and asks
 * again when the kernel has taken it, so unsent bytes stay with their owners.
 *
 * Limits: streams at once, size of a header list, frames that cost the server and not the client
 * (resets, pings, settings, empty frames, broken ones): more of those than a bucket allows end the
 * connection with GOAWAY and ENHANCE_YOUR_CALM. */
#ifndef TELLTALE_PROTO_H2_H
#define TELLTALE_PROTO_H2_H

#include "base/buf.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

struct h2;

struct h2_header { struct view name, value; };

/* A run of bytes to be sent on a stream as it is, in pieces. The caller's, pieces and bytes
 * included, until on_sent. */
struct h2_message {
    const struct view *pieces;
    uint32_t count;
    uint32_t piece;            /* progress: h2's */
    size_t offset;
    size_t left;
    struct h2_message *next;
};

struct h2_stream {             /* read-only for callers, ctx apart */
    void *ctx;                 /* the caller's */
    struct h2 *session;
    int32_t id;
    uint32_t header_bytes;     /* of the present header list, as RFC 9113 counts them */
    struct h2_message *first, **last; /* to be sent */
    size_t unsent_bytes;       /* of those */
    struct h2_stream *previous, *next; /* open ones, or free ones */

    struct h2_header *trailers;
    uint32_t trailer_count;
    bool has_ended_input;      /* the peer will send no more */
    bool has_responded;        /* headers were given */
    bool has_finished;         /* h2_finish: nothing follows what is queued */
    bool is_deferred;          /* nghttp2 waits for more to send */
    bool ends_early;           /* h2_end_early was called */
    bool is_reset;             /* by h2_reset: nothing of it is told any more but its close */
};

/* All come from within h2_input and h2_output, and may call any function below but those two and
 * h2_free. */
struct h2_events {
    /* A peer's request begins (server only); sets stream->ctx. False: refused. */
    bool (*on_open)(void *ctx, struct h2_stream *stream);
    /* A header of a request, an answer or a trailer; pseudo-headers too. Valid during the call. */
    void (*on_header)(void *ctx, struct h2_stream *stream, struct view name, struct view value);
    /* The list is over. is_trailer: it came after data. is_too_large: h2_limits.header_bytes was
     * not enough, and the rest was left out. */
    void (*on_headers)(void *ctx, struct h2_stream *stream, bool is_trailer, bool is_too_large);
    /* To be given back by h2_consume, now or later. */
    void (*on_data)(void *ctx, struct h2_stream *stream, const char *bytes, size_t size);
    void (*on_end)(void *ctx, struct h2_stream *stream); /* the peer's END_STREAM */
    /* The last byte of the message is in h2_output's buffer. */
    void (*on_sent)(void *ctx, struct h2_stream *stream, struct h2_message *message);
    /* The stream is over; what was not sent comes through on_unsent first. error_code: 0, or that
     * of the RST_STREAM. The stream is freed when this returns. */
    void (*on_close)(void *ctx, struct h2_stream *stream, uint32_t error_code);
    void (*on_unsent)(void *ctx, struct h2_stream *stream, struct h2_message *message);
};

struct h2_limits {
    uint32_t streams;        /* at once */
    uint32_t header_bytes;   /* of a list, each header with 32 bytes more */
    uint32_t stream_window;  /* bytes that a peer may send ahead of h2_consume */
    uint32_t connection_window;
    uint32_t frame_bytes;    /* largest frame taken: 16 KiB to 16 MiB - 1 */
    uint32_t resets_per_second;   /* RST_STREAM and broken streams; twice that at once */
    uint32_t controls_per_second; /* PING, SETTINGS, PRIORITY, empty DATA; twice that at once */
};

/* NULL: no memory. events and what they point to must outlive the session. The preface is in the
 * first output. */
struct h2 *h2_create(bool is_client, const struct h2_limits *limits, const struct h2_events *events,
                     void *ctx);
void h2_free(struct h2 *session); /* on_unsent and on_close for what is open; NULL allowed */

/* All bytes are used. A failure ends the connection: send what h2_output gives, then close.
 * ST_INVALID: the peer broke the protocol; ST_OVERLOADED: it was too lively; ST_NO_MEMORY. A
 * breach that HTTP/2 answers with GOAWAY is no failure: h2_is_over tells. now_ns: any monotonic
 * clock. */
MUST_CHECK enum status h2_input(struct h2 *session, const char *bytes, size_t size, uint64_t now_ns,
                                struct err *err);
MUST_CHECK enum status h2_output(struct h2 *session, struct buf *out, size_t limit);
/* Has h2_output anything to give? Data that waits for a window does not count. */
bool h2_wants_output(const struct h2 *session);
/* Neither side has anything left to say: close the connection. */
bool h2_is_over(const struct h2 *session);
uint32_t h2_stream_count(const struct h2 *session); /* open ones */

/* The answer's (a client: the request's) headers. is_end: nothing follows. */
MUST_CHECK enum status h2_respond(struct h2_stream *stream, const struct h2_header *headers,
                                  uint32_t count, bool is_end);
/* Queues behind what is queued; h2_respond came before. The message's pieces and count are set. */
void h2_send(struct h2_stream *stream, struct h2_message *message);
/* Nothing follows but these trailers (copied; count 0: none). False: no memory for them, the
 * stream is reset. */
bool h2_finish(struct h2_stream *stream, const struct h2_header *trailers, uint32_t count);
/* RST_STREAM; on_close follows. error_code as in RFC 9113 section 7: 0 NO_ERROR, 8 CANCEL ... */
void h2_reset(struct h2_stream *stream, uint32_t error_code);
/* Once the answer's last frame is out: RST_STREAM with NO_ERROR, where the peer has not ended its
 * side by then. What it sends until then is dropped. (A reset that is submitted beside the answer
 * takes the answer with it.) */
void h2_end_early(struct h2_stream *stream);
void h2_consume(struct h2_stream *stream, size_t size);

/* A client's request; NULL: no memory, or too many streams. is_end: without a body. */
struct h2_stream *h2_request(struct h2 *session, const struct h2_header *headers, uint32_t count,
                             bool is_end, void *stream_ctx);

/* "No new streams soon": a notice, streams that come all the same are served. Then h2_goaway. */
void h2_shutdown_notice(struct h2 *session);
/* The last word on new streams; open ones go on. */
void h2_goaway(struct h2 *session, uint32_t error_code);
void h2_ping(struct h2 *session);

enum { H2_NO_ERROR = 0, H2_INTERNAL_ERROR = 2, H2_REFUSED_STREAM = 7, H2_CANCEL = 8,
       H2_ENHANCE_YOUR_CALM = 11 };

#endif

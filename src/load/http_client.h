/* One keep-alive HTTP/1.1 connection of a client: one request at a time, one answer each. Loop
 * thread. */
#ifndef TELLTALE_LOAD_HTTP_CLIENT_H
#define TELLTALE_LOAD_HTTP_CLIENT_H

#include "net/conn.h"
#include "proto/http1.h"

struct http_client;
struct http_answer {
    const struct http_message *message; /* valid during the call */
    uint64_t first_byte_ns;
};
struct http_client_events {
    /* Connected: a request may be sent. */
    void (*on_ready)(void *ctx);
    /* The answer to the request sent. is_reusable: another request may follow, even at once;
     * otherwise the client is closed. */
    void (*on_answer)(void *ctx, const struct http_answer *answer, bool is_reusable);
    /* Could not connect, or the connection ended: in the middle of a request or idle. The client
     * is closed. detail: for a person. */
    void (*on_failed)(void *ctx, const char *detail, uint64_t first_byte_ns);
};

/* tls: a client's, NULL: plain HTTP. on_ready or on_failed follows, on the loop. tls, host and
 * events must outlive the client. */
MUST_CHECK enum status http_client_connect(struct loop *loop, struct tls *tls, const char *host,
                                           uint16_t port,
                                           const struct http_client_events *events, void *ctx,
                                           struct http_client **out, struct err *err);
/* head: request line to blank line, and the first bytes of the body if wanted; tail: the rest.
 * Only after on_ready and when no answer is awaited. */
void http_client_send(struct http_client *client, struct view head, struct view tail);
/* No event follows; memory goes when the loop has let go of it. NULL allowed. Not after an event
 * that said that the client is closed. */
void http_client_close(struct http_client *client);

#endif

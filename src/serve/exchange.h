/* One inference request as the server sees it: the engine's request, the connection that waits
 * for its answer, its deadline. Pooled: a tiny request allocates nothing. Loop thread only. */
#ifndef TELLTALE_SERVE_EXCHANGE_H
#define TELLTALE_SERVE_EXCHANGE_H

#include "engine/request.h"
#include "proto/infer_json.h"

struct server;
struct http_conn;
struct loop_timer;

struct exchange {
    struct request request;
    struct server *server;
    struct exchange *next_free;
    /* Who waits for the answer; NULL: nobody any more (the client left, or has had its 504).
     * The engine may still work on the request then. */
    struct http_conn *conn;
    bool is_submitted;         /* with the engine: on_done is still to come */
    char *body;                /* the request's body once conn let go of it; freed on release */
    uint64_t left_ns;          /* when conn let go */
    enum status left_status;   /* why: ST_TIMEOUT, ST_CANCELLED */
    struct loop_timer *timer;  /* of the deadline; NULL until first needed, then kept */
    struct view id;            /* the client's; empty: none */
    const struct requested_output *wanted; /* NULL: all outputs */
    bool wants_binary;         /* where wanted is NULL */
};

/* NULL when memory is out. Ready for a new request. */
struct exchange *exchange_take(struct server *server);
void exchange_release(struct exchange *exchange);
void exchange_pool_done(struct server *server);

/* Calls on_expired (always the same one) at the request's deadline_ns, unless disarmed before. */
MUST_CHECK enum status exchange_arm(struct exchange *exchange, void (*on_expired)(void *exchange));
void exchange_disarm(struct exchange *exchange);

/* Ends the record of a request that was let go at left_ns: what the engine stamped later did not
 * happen as far as the client is concerned, and the stage that was under way gets the time up to
 * left_ns. Stamps AT_SENT. */
void exchange_cut_trace(struct trace_record *record, uint64_t left_ns);

#endif

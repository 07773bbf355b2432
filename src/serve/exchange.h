/* One inference request as the server sees it: the engine's request, who waits for its answer (a
 * connection of HTTP/1, a stream of gRPC) by way of its front, its deadline. Pooled: a tiny request allocates nothing. The loop's, but for the
 * fields said to be an engine thread's while the engine has the request. */
#ifndef TELLTALE_SERVE_EXCHANGE_H
#define TELLTALE_SERVE_EXCHANGE_H

#include "engine/request.h"
#include "proto/infer_json.h"
#include "serve/infer_decode.h"

struct server;
struct infer_pb_gap;
struct infer_front;
struct loop_timer;

/* What an engine thread tells the loop of an exchange, by way of server->notes: oldest first, so
 * that nothing follows NOTE_DONE. */
enum note_kind {
    NOTE_DEADLINE, /* the body names a timeout that is earlier than the timer: body_deadline_ns */
    NOTE_DONE,     /* the request is the loop's again */
    NOTE_COUNT
};
struct note {
    struct mpsc_node node;
    struct exchange *exchange;
    enum note_kind kind;
};

/* What the gRPC front alone needs. */
struct exchange_grpc {
    bool is_streamed;          /* a message of ModelStreamInfer */
    bool is_final_marked;      /* the answer says triton_final_response */
    int compression;           /* level of gzip; 0: none */
    struct infer_pb_gap *gaps; /* outputs that the answer's bytes leave out */
    uint32_t gap_count;
};

struct exchange {
    struct request request;
    struct server *server;
    struct exchange *next_free;
    const struct infer_front *front; /* the protocol's: infer_run.h */
    /* Who waits for the answer, the front's; NULL: nobody any more (the client left, or has had its
     * 504). The engine may still work on the request then. */
    void *waiter;
    bool is_submitted;         /* with the engine: on_done is still to come */
    char *body;                /* the request's body once the waiter let go of it; freed on release */
    uint64_t left_ns;          /* when the waiter let go */
    enum status left_status;   /* why: ST_TIMEOUT, ST_CANCELLED */
    struct loop_timer *timer;  /* of the deadline; NULL until first needed, then kept */
    uint64_t client_deadline_ns; /* that the protocol itself names (grpc-timeout); 0: none */
    uint64_t armed_ns;         /* what the timer stands at; 0: nothing */

    /* Whoever decodes: the loop, or a worker. */
    struct infer_body incoming;
    struct view id;            /* the client's; empty: none */
    const struct requested_output *wanted; /* NULL: all outputs */
    struct tensor *inputs;     /* the request's, while those in shared memory are fetched */
    const struct shared_place *shared_inputs; /* by input; NULL: none is shared */
    bool wants_binary;         /* where wanted is NULL */
    uint64_t body_deadline_ns; /* by the body's own timeout */

    /* Whoever encodes: the loop, or a worker. */
    struct buf answer;         /* a worker's; empty: not encoded yet, or failed */
    size_t answer_json_size;
    bool is_encoded;
    struct exchange_grpc grpc; /* set by that front before anything else */

    struct note notes[NOTE_COUNT];
};

/* NULL when memory is out. Ready for a new request. */
struct exchange *exchange_take(struct server *server);
void exchange_release(struct exchange *exchange);
void exchange_pool_done(struct server *server);

/* Calls on_expired (always the same one) at at_ns, unless disarmed before; 0: not yet. */
MUST_CHECK enum status exchange_arm(struct exchange *exchange, uint64_t at_ns,
                                    void (*on_expired)(void *exchange));
/* The same at another instant; exchange_arm came before. */
void exchange_rearm(struct exchange *exchange, uint64_t at_ns);
void exchange_disarm(struct exchange *exchange);
/* Any thread: pushes the note; the loop gets it in infer_run_note. */
void exchange_tell(struct exchange *exchange, enum note_kind kind);

/* Ends the record of a request that was let go at left_ns: what the engine stamped later did not
 * happen as far as the client is concerned, and the stage that was under way gets the time up to
 * left_ns. Stamps AT_SENT. */
void exchange_cut_trace(struct trace_record *record, uint64_t left_ns);

#endif

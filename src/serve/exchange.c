/* The pool of exchanges. Loop thread only, exchange_tell apart.
 *
 * Invariant: an exchange in the pool holds no body, no connection and no timer that is set.
 * Read next: infer_run.c. */
#include "serve/exchange.h"

#include "serve/server.h"
#include <stdlib.h>

enum { KEEP_ANSWER_BYTES = 64 * 1024 };

struct exchange *exchange_take(struct server *server) {
    struct exchange *exchange = server->free_exchanges;
    if (exchange) {
        server->free_exchanges = exchange->next_free;
    } else {
        exchange = calloc(1, sizeof *exchange);
        if (!exchange)
            return NULL;
        request_init(&exchange->request);
        exchange->server = server;
        buf_init(&exchange->answer);
        for (int i = 0; i < NOTE_COUNT; i++)
            exchange->notes[i] = (struct note){.exchange = exchange, .kind = (enum note_kind)i};
    }
    server->in_flight++;
    return exchange;
}

void exchange_release(struct exchange *exchange) {
    struct server *server = exchange->server;
    exchange_disarm(exchange);
    free(exchange->body);
    exchange->body = NULL;
    exchange->front = NULL;
    exchange->waiter = NULL;
    exchange->client_deadline_ns = 0;
    exchange->is_submitted = false;
    exchange->left_ns = 0;
    exchange->left_status = ST_OK;
    exchange->id = (struct view){.data = NULL};
    exchange->incoming = (struct infer_body){.json_size = 0};
    exchange->wanted = NULL;
    exchange->inputs = NULL;
    exchange->shared_inputs = NULL;
    exchange->wants_binary = false;
    exchange->body_deadline_ns = 0;
    exchange->answer_json_size = 0;
    exchange->is_encoded = false;
    if (exchange->answer.capacity > KEEP_ANSWER_BYTES) {
        buf_done(&exchange->answer);
        buf_init(&exchange->answer);
    }
    buf_clear(&exchange->answer);
    request_clear(&exchange->request);
    exchange->next_free = server->free_exchanges;
    server->free_exchanges = exchange;
    server->in_flight--;
}

void exchange_pool_done(struct server *server) {
    while (server->free_exchanges) {
        struct exchange *exchange = server->free_exchanges;
        server->free_exchanges = exchange->next_free;
        request_done(&exchange->request);
        buf_done(&exchange->answer);
        loop_timer_close(exchange->timer);
        free(exchange);
    }
}

enum status exchange_arm(struct exchange *exchange, uint64_t at_ns,
                         void (*on_expired)(void *exchange)) {
    if (!exchange->timer)
        exchange->timer = loop_timer_create(exchange->server->loop, on_expired, exchange);
    if (!exchange->timer)
        return err_set(&exchange->request.err, ST_NO_MEMORY, "no memory for the request's timeout");
    exchange_rearm(exchange, at_ns);
    return ST_OK;
}

void exchange_rearm(struct exchange *exchange, uint64_t at_ns) {
    exchange->armed_ns = at_ns;
    loop_timer_set(exchange->timer, at_ns);
}

void exchange_disarm(struct exchange *exchange) {
    exchange->armed_ns = 0;
    if (exchange->timer)
        loop_timer_set(exchange->timer, 0);
}

void exchange_tell(struct exchange *exchange, enum note_kind kind) {
    struct server *server = exchange->server;
    if (mpsc_push(&server->notes, &exchange->notes[kind].node))
        loop_wake_send(server->wake);
}

void exchange_cut_trace(struct trace_record *record, uint64_t left_ns) {
    int last = AT_START;
    int cut = -1;
    for (int at = AT_START; at <= AT_POSTPROCESS_END; at++) {
        if (record->at[at] > left_ns) {
            if (cut < 0)
                cut = at;
            record->at[at] = 0;
        } else if (record->at[at] != 0) {
            last = at;
        }
    }
    /* Dropped from the queue: nothing was stamped after AT_ENQUEUED, and it waited for an
     * instance until the end. */
    if (cut < 0 && last == AT_ENQUEUED)
        cut = AT_INSTANCE_FREE;
    if (cut < 0 && last == AT_RECEIVED) /* likewise in the workers' queue, a large body */
        cut = AT_DECODE_START;
    if (cut < 0 && last == AT_DECODED) /* or a decoded one */
        cut = AT_PREPROCESS_START;
    if (cut >= 0)
        record->at[cut] = left_ns;
    record->at[AT_ENCODE_START] = left_ns;
    record->at[AT_ENCODED] = left_ns;
    record->at[AT_SENT] = left_ns;
}

/* The pool of exchanges. Loop thread only.
 *
 * Invariant: an exchange in the pool holds no body, no connection and no timer that is set.
 * Read next: infer_route.c. */
#include "serve/exchange.h"

#include "serve/server.h"
#include <stdlib.h>

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
    }
    server->in_flight++;
    return exchange;
}

void exchange_release(struct exchange *exchange) {
    struct server *server = exchange->server;
    exchange_disarm(exchange);
    free(exchange->body);
    exchange->body = NULL;
    exchange->conn = NULL;
    exchange->is_submitted = false;
    exchange->left_ns = 0;
    exchange->left_status = ST_OK;
    exchange->id = (struct view){.data = NULL};
    exchange->wanted = NULL;
    exchange->wants_binary = false;
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
        loop_timer_close(exchange->timer);
        free(exchange);
    }
}

enum status exchange_arm(struct exchange *exchange, void (*on_expired)(void *exchange)) {
    if (!exchange->timer)
        exchange->timer = loop_timer_create(exchange->server->loop, on_expired, exchange);
    if (!exchange->timer)
        return err_set(&exchange->request.err, ST_NO_MEMORY, "no memory for the request's timeout");
    loop_timer_set(exchange->timer, exchange->request.deadline_ns);
    return ST_OK;
}

void exchange_disarm(struct exchange *exchange) {
    if (exchange->timer)
        loop_timer_set(exchange->timer, 0);
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
    if (cut < 0 && last == AT_DECODED) /* likewise in the workers' queue */
        cut = AT_PREPROCESS_START;
    if (cut >= 0)
        record->at[cut] = left_ns;
    record->at[AT_ENCODE_START] = left_ns;
    record->at[AT_ENCODED] = left_ns;
    record->at[AT_SENT] = left_ns;
}

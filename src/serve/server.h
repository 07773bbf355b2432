/* The server: listeners, connections, requests in flight, counts. Everything here belongs to
 * the loop's thread except `notes`, into which the engine's threads push what they have done.
 *
 * Invariant: an exchange has at most one waiter (a connection, a stream), a waiter at most one
 * exchange; whoever ends first clears both pointers. Read next: http_conn.c, infer_run.c, drain.c. */
#ifndef TELLTALE_SERVE_SERVER_H
#define TELLTALE_SERVE_SERVER_H

#include "base/buf.h"
#include "base/log.h"
#include "engine/engine.h"
#include "measure/histogram.h"
#include "net/conn.h"
#include "net/loop.h"
#include "serve/tls_ports.h"
#include "serve/shared_memory.h"

struct serve_config {
    struct engine_config engine;
    const char *host;
    uint64_t http_port, metrics_port;          /* 0: any free one */
    const char *grpc_port;                     /* a number, or "none" */
    uint64_t grpc_max_message, grpc_memory;    /* bytes: one, and all being received or worked on */
    uint64_t grpc_max_streams;                 /* calls at once, a connection */
    int grpc_compression;                      /* level of gzip of answers; 0: none */
    uint64_t max_body, max_header;             /* bytes */
    uint64_t max_connections;
    uint64_t max_shared_regions;               /* 0: shared memory is off */
    uint64_t request_timeout_ms;               /* 0: none */
    uint64_t read_timeout_ns, idle_timeout_ns; /* 0: none */
    uint64_t slow_ms;                          /* 0: no slow log */
    uint64_t drain_delay_ns, drain_timeout_ns;
    struct tls_options tls;
    int log_level;
    const char *port_file;                     /* NULL: none */
};

enum {
    METRICS_CONNECTIONS = 64, /* of the metrics port, beside max_connections */
    REFUSED_CONNECTIONS = 256 /* that still wait to be told 503; more are closed unanswered */
};

struct server_counts {
    uint64_t accepted;
    uint64_t refused;      /* over the connection limit: 503 */
    uint64_t vanished;     /* clients that left with a request in flight or half answered */
    uint64_t malformed;    /* rejected by the HTTP parser */
    uint64_t read_timeouts, idle_timeouts, write_timeouts;
    uint64_t by_http[600]; /* answers by HTTP status */
};

struct http_conn;
struct grpc_server;
struct exchange;

struct server {
    const struct serve_config *config;
    struct engine *engine;
    struct trace_ring *ring; /* the loop's */
    struct shared_memory *shared_memory; /* any thread's */
    struct loop *loop;
    struct loop_wake *wake;
    struct loop_timer *sweep_timer, *drain_timer;
    struct loop_signal *on_term, *on_int, *on_hup;
    struct tls_ports tls;
    struct listener *http, *metrics;
    struct grpc_server *grpc; /* NULL: off */

    struct mpsc notes; /* of exchanges: pushed by the engine's threads, taken by the loop */
    struct mpsc_node *notes_left; /* taken, and left for the next turn */

    struct http_conn *connections; /* list */
    uint64_t http_count, metrics_count; /* in the list */
    uint64_t refused_count;             /* told 503, not yet closed */
    uint64_t open_count;                /* all whose socket is open, those that linger too */

    struct exchange *free_exchanges;
    uint64_t in_flight;      /* exchanges taken and not released */
    uint64_t request_number; /* for the ids of requests without one */

    /* The answer being written: conn_write copies what the kernel does not take at once. */
    struct buf head, extra, body;

    struct log_limit slow_limit, failure_limit, shed_limit;
    uint64_t told_shed; /* of loop_shed: the log has them */
    struct server_counts counts;
    struct histogram turn_ns, turn_cpu_ns; /* of the loop, without its waiting */
    uint64_t start_wall_ns;

    bool is_draining;        /* a signal came: ready is false, answers say Connection: close */
    bool has_stopped_listening;
    bool has_told_trace_end; /* writing the trace failed and the log says so */
    bool is_finished;        /* nothing is left: the loop was told to stop */
};

/* Creates the loop, binds both ports. On failure err says which port and why; server_done is to
 * be called in either case, after engine_free: an engine thread may still be on its way out of
 * the call that handed over the last request. */
MUST_CHECK enum status server_init(struct server *server, const struct serve_config *config,
                                   struct engine *engine, struct err *err);
void server_run(struct server *server); /* until drained */
void server_done(struct server *server);

#endif

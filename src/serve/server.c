/* The loop and what hangs on it: listeners, the queue of finished requests, timers.
 *
 * Thread: the loop's. Invariant: only `notes` is touched by other threads.
 * Read next: http_conn.c, drain.c, cmd_serve.c. */
#include "serve/server.h"

#include "base/clock.h"
#include "serve/drain.h"
#include "serve/exchange.h"
#include "serve/grpc_server.h"
#include "serve/http_conn.h"
#include "serve/infer_run.h"
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

enum { SCRATCH_KEEP = 1024 * 1024 };
static const uint64_t LONGEST_TURN_NS = 60000000000;

static void on_accept(void *ctx, struct conn *conn) {
    http_conn_accept(ctx, conn, HTTP_CONN_API);
}

static void on_accept_metrics(void *ctx, struct conn *conn) {
    http_conn_accept(ctx, conn, HTTP_CONN_METRICS);
}

/* The oldest note; NULL: there is none. */
static struct note *take_note(struct server *server) {
    if (!server->notes_left)
        server->notes_left = mpsc_take_all(&server->notes);
    struct mpsc_node *node = server->notes_left;
    if (!node)
        return NULL;
    server->notes_left = node->next; /* before its exchange goes back to the pool */
    return (struct note *)(void *)((char *)node - offsetof(struct note, node));
}

/* As many as a turn has time for: some hundred answers can be ready at once. */
static void on_wake(void *ctx) {
    struct server *server = ctx;
    assert_role(ROLE_LOOP);
    const uint64_t begin_ns = mono_ns();
    uint64_t now_ns = begin_ns;
    struct note *note = take_note(server);
    while (note) {
        now_ns = infer_run_note(note, now_ns);
        if (now_ns - begin_ns >= LOOP_SHARE_NS) {
            /* Those left are nobody else's to wake us for, nor those that the wake which brought
             * us here was for. */
            loop_wake_send(server->wake);
            break;
        }
        note = take_note(server);
    }
    drain_check(server);
}

static void on_turn_over(void *ctx, uint64_t busy_ns, uint64_t cpu_ns) {
    struct server *server = ctx;
    histogram_record(&server->turn_ns, busy_ns);
    histogram_record(&server->turn_cpu_ns, cpu_ns);
}

static void shrink(struct buf *buf) {
    if (buf->capacity > SCRATCH_KEEP) {
        buf_done(buf);
        buf_init(buf);
    }
}

static void on_turn_end(void *ctx) {
    struct server *server = ctx;
    engine_flush(server->engine);
    grpc_server_flush(server->grpc);
    shrink(&server->body);
}

/* How often the connections' own timeouts are looked at: an eighth of the shorter one. */
static uint64_t sweep_interval_ns(const struct serve_config *config) {
    uint64_t shortest_ns = 8000000000;
    if (config->read_timeout_ns && config->read_timeout_ns < shortest_ns)
        shortest_ns = config->read_timeout_ns;
    if (config->idle_timeout_ns && config->idle_timeout_ns < shortest_ns)
        shortest_ns = config->idle_timeout_ns;
    return shortest_ns / 8 < 5000000 ? 5000000 : shortest_ns / 8;
}

/* Serving goes on without the trace, which nobody would notice before reading it. */
static void look_at_trace(struct server *server) {
    struct err err;
    if (server->has_told_trace_end ||
        tracer_write_status(engine_tracer(server->engine), &err) == ST_OK)
        return;
    server->has_told_trace_end = true;
    log_line(LOG_ERROR, "%s; requests are served on: free space there and restart to trace again",
             err.text);
}

/* Clients whom nobody could answer, for want of a descriptor. */
static void look_at_shed(struct server *server) {
    uint64_t held_back = 0;
    const uint64_t shed = loop_shed(server->loop);
    if (shed == server->told_shed || !log_limit_pass(&server->shed_limit, mono_ns(), &held_back))
        return;
    log_line(LOG_ERROR, "%" PRIu64 " clients were closed unanswered: no file descriptors or no "
             "memory were left; raise the limit (ulimit -n) or lower --max-connections",
             shed - server->told_shed);
    server->told_shed = shed;
}

static void on_sweep(void *ctx) {
    struct server *server = ctx;
    look_at_trace(server);
    look_at_shed(server);
    const uint64_t now_ns = mono_ns();
    struct http_conn *next = NULL;
    for (struct http_conn *hc = server->connections; hc; hc = next) {
        next = hc->next;
        http_conn_sweep(hc, now_ns);
    }
    grpc_server_sweep(server->grpc, now_ns);
    loop_timer_set(server->sweep_timer, now_ns + sweep_interval_ns(server->config));
}

static enum status create_handles(struct server *server, struct err *err) {
    server->wake = loop_wake_create(server->loop, on_wake, server);
    server->sweep_timer = loop_timer_create(server->loop, on_sweep, server);
    server->drain_timer = loop_timer_create(server->loop, drain_on_timer, server);
    server->on_term = loop_signal_create(server->loop, SIGTERM, drain_on_signal, server);
    server->on_int = loop_signal_create(server->loop, SIGINT, drain_on_signal, server);
    server->on_hup = loop_signal_create(server->loop, SIGHUP, tls_ports_on_signal, &server->tls);
    if (!server->wake || !server->sweep_timer || !server->drain_timer || !server->on_term ||
        !server->on_int || !server->on_hup)
        return err_set(err, ST_NO_MEMORY, "no memory or descriptors for the event loop");
    loop_on_turn_end(server->loop, on_turn_end, server);
    loop_on_turn_over(server->loop, on_turn_over, server);
    return ST_OK;
}

enum status server_init(struct server *server, const struct serve_config *config,
                        struct engine *engine, struct err *err) {
    *server = (struct server){.config = config,
                              .engine = engine,
                              .slow_limit = {.per_second = 5},
                              .failure_limit = {.per_second = 5},
                              .shed_limit = {.per_second = 0.1},
                              .start_wall_ns = wall_ns()};
    mpsc_init(&server->notes);
    server->shared_memory = shared_memory_create(config->max_shared_regions);
    if (!server->shared_memory)
        return err_set(err, ST_NO_MEMORY, "no memory for the table of shared memory regions");
    buf_init(&server->head);
    buf_init(&server->extra);
    buf_init(&server->body);
    role_set(ROLE_LOOP, 0);
    server->ring = tracer_ring(engine_tracer(engine));
    if (!server->ring)
        return err_set(err, ST_NO_MEMORY, "no memory for the loop's trace ring");
    if (!histogram_init(&server->turn_ns, 3, LONGEST_TURN_NS) ||
        !histogram_init(&server->turn_cpu_ns, 3, LONGEST_TURN_NS))
        return err_set(err, ST_NO_MEMORY, "no memory for the loop's histogram");
    tracer_set_loop_turns(engine_tracer(engine), &server->turn_ns, &server->turn_cpu_ns);
    enum status status =
        tls_ports_init(&server->tls, &config->tls, config->read_timeout_ns, err);
    if (status == ST_OK)
        status = loop_create(&server->loop, err);
    if (status == ST_OK)
        status = create_handles(server, err);
    if (status == ST_OK)
        status = listener_create(server->loop, config->host, (uint16_t)config->http_port, on_accept,
                                 server, &server->http, err);
    if (status == ST_OK)
        status = listener_create(server->loop, config->host, (uint16_t)config->metrics_port,
                                 on_accept_metrics, server, &server->metrics, err);
    if (status == ST_OK)
        status = grpc_server_open(server, err);
    if (status == ST_OK) {
        listener_use_tls(server->http, server->tls.http);
        listener_use_tls(server->metrics, server->tls.metrics);
    }
    return status;
}

void server_run(struct server *server) {
    loop_timer_set(server->sweep_timer, mono_ns() + sweep_interval_ns(server->config));
    loop_run(server->loop);
    look_at_trace(server);
}

static void close_handles(struct server *server) {
    if (server->http)
        listener_close(server->http);
    if (server->metrics)
        listener_close(server->metrics);
    grpc_server_close(server->grpc);
    loop_wake_close(server->wake);
    loop_timer_close(server->sweep_timer);
    loop_timer_close(server->drain_timer);
    loop_signal_close(server->on_term);
    loop_signal_close(server->on_int);
    loop_signal_close(server->on_hup);
}

void server_done(struct server *server) {
    close_handles(server);
    exchange_pool_done(server); /* their timers are the loop's */
    loop_free(server->loop);
    grpc_server_free(server->grpc);
    tls_ports_done(&server->tls);
    shared_memory_free(server->shared_memory);
    buf_done(&server->head);
    buf_done(&server->extra);
    buf_done(&server->body);
    histogram_done(&server->turn_ns);
    histogram_done(&server->turn_cpu_ns);
}

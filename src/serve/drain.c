/* Shutdown in three steps. Loop thread only.
 *
 * 1. The signal: ready turns false, answers say Connection: close, nothing is held for company.
 *    The ports stay open for --drain-delay: a client whose request is already on its way gets its
 *    answer, where closing the port or an idle connection under it would be a reset.
 * 2. The ports close, and so do idle connections.
 * 3. The last connection and the last request end: the loop stops.
 *
 * Invariant: a connection with a request on it is closed only by its answer, its client, or the
 * end of --drain-timeout.
 * Read next: http_conn.c. */
#include "serve/drain.h"

#include "base/clock.h"
#include "serve/grpc_server.h"
#include "serve/http_conn.h"
#include "serve/notify.h"
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

static const uint64_t FIRST_REQUEST_NS = 200000000;

static void give_up(struct server *server, const char *why) {
    log_line(LOG_ERROR, "%s: leaving at once with %" PRIu64 " requests in flight and %" PRIu64
             " connections open", why, server->in_flight, server->http_count);
    _exit(1); /* not exit(): the engine's threads are still at work */
}

/* One that has not had its first request yet is given a moment: the request may be on its way. */
static void close_idle(struct server *server, uint64_t now_ns) {
    struct http_conn *next = NULL;
    for (struct http_conn *hc = server->connections; hc; hc = next) {
        next = hc->next;
        if (!http_conn_is_idle(hc))
            continue;
        if (hc->free_ns)
            http_conn_close(hc);
        else
            hc->deadline_ns = now_ns + FIRST_REQUEST_NS;
    }
    loop_timer_set(server->sweep_timer, now_ns + FIRST_REQUEST_NS);
}

static void stop_listening(struct server *server) {
    server->has_stopped_listening = true;
    listener_accept_waiting(server->http);
    listener_accept_waiting(server->metrics);
    listener_close(server->http);
    listener_close(server->metrics);
    server->http = NULL;
    server->metrics = NULL;
    grpc_server_stop_listening(server->grpc);
    close_idle(server, mono_ns());
}

void drain_on_signal(void *ctx, int signum) {
    struct server *server = ctx;
    const char *name = signum == SIGINT ? "SIGINT" : "SIGTERM";
    if (server->is_draining) {
        give_up(server, "second signal");
        return;
    }
    server->is_draining = true;
    log_line(LOG_INFO, "%s: draining %" PRIu64 " requests in flight, %" PRIu64 " connections; "
             "a second signal stops at once", name, server->in_flight, server->http_count);
    (void)notify_service_manager("STOPPING=1");
    engine_drain(server->engine);
    grpc_server_tell_health(server->grpc);
    loop_timer_set(server->drain_timer, mono_ns() + server->config->drain_delay_ns + 1);
}

void drain_on_timer(void *ctx) {
    struct server *server = ctx;
    if (server->has_stopped_listening) {
        give_up(server, "drain timeout");
        return;
    }
    stop_listening(server);
    loop_timer_set(server->drain_timer, mono_ns() + server->config->drain_timeout_ns + 1);
    drain_check(server);
}

void drain_check(struct server *server) {
    if (!server->has_stopped_listening || server->is_finished || server->open_count ||
        server->in_flight)
        return;
    server->is_finished = true;
    loop_stop(server->loop);
    log_line(LOG_INFO, "drained: every request was answered");
}

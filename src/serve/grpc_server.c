/* The gRPC port: what its connections share. Loop thread only.
 *
 * Invariant: a connection is in `dirty` and in `waiting` once at most, and in neither once it is
 * closed.
 * Read next: grpc_conn.c. */
#include "serve/grpc_server.h"

#include "base/clock.h"
#include "base/number.h"
#include "serve/drain.h"
#include "serve/grpc_conn.h"
#include "serve/grpc_control.h"
#include "serve/grpc_stream.h"
#include <stdlib.h>

static void on_accept(void *ctx, struct conn *conn) { grpc_conn_accept(ctx, conn); }

/* Another turn for what was left: of connections that sent more than a turn has time for. */
static void on_wake(void *ctx) {
    struct grpc_server *grpc = ctx;
    grpc_control_collect(grpc);
    struct grpc_conn *gc = grpc->waiting;
    grpc->waiting = NULL;
    while (gc) {
        struct grpc_conn *next = gc->next_waiting;
        gc->is_waiting = false;
        grpc_conn_go_on(gc);
        gc = next;
    }
    drain_check(grpc->server);
}

/* -1: none. */
static enum status parse_port(const char *text, int *out, struct err *err) {
    uint64_t port = 0;
    struct err why = {.text = ""};
    *out = -1;
    if (strcmp(text, "none") == 0 || strcmp(text, "off") == 0)
        return ST_OK;
    if (number_uint(view_of(text), &port, &why) != ST_OK || port > UINT16_MAX)
        return err_set(err, ST_INVALID, "--grpc-port %s: a port from 0 to 65535, or none", text);
    *out = (int)port;
    return ST_OK;
}

enum status grpc_port_check(const struct serve_config *config, struct err *err) {
    int port = 0;
    const enum status status = parse_port(config->grpc_port, &port, err);
    if (status != ST_OK || port <= 0)
        return status;
    if ((uint64_t)port == config->http_port || (uint64_t)port == config->metrics_port)
        return err_set(err, ST_INVALID, "--grpc-port %d is the port of %s too: give another one, "
                       "or none", port,
                       (uint64_t)port == config->http_port ? "--http-port" : "--metrics-port");
    return ST_OK;
}

enum status grpc_server_open(struct server *server, struct err *err) {
    int port = 0;
    const enum status parsed = parse_port(server->config->grpc_port, &port, err);
    if (parsed != ST_OK || port < 0)
        return parsed;
    struct grpc_server *grpc = aligned_alloc(64, sizeof *grpc); /* mpsc wants it so */
    if (!grpc)
        return err_set(err, ST_NO_MEMORY, "no memory for the gRPC server");
    *grpc = (struct grpc_server){.server = server};
    grpc->quota.limit_bytes = server->config->grpc_memory;
    mpsc_init(&grpc->done);
    buf_init(&grpc->text);
    server->grpc = grpc;
    grpc->wake = loop_wake_create(server->loop, on_wake, grpc);
    if (!grpc->wake)
        return err_set(err, ST_NO_MEMORY, "no memory or descriptors for the gRPC server");
    const enum status status = listener_create(server->loop, server->config->host, (uint16_t)port,
                                               on_accept, grpc, &grpc->listener, err);
    if (status == ST_OK)
        listener_use_tls(grpc->listener, server->tls.grpc);
    return status;
}

void grpc_server_close(struct grpc_server *grpc) {
    if (!grpc)
        return;
    if (grpc->listener)
        listener_close(grpc->listener);
    grpc->listener = NULL;
    loop_wake_close(grpc->wake);
    grpc->wake = NULL;
}

void grpc_server_free(struct grpc_server *grpc) {
    if (!grpc)
        return;
    grpc_control_collect(grpc); /* those that were done after the loop */
    while (grpc->free_calls) {
        struct grpc_call *call = grpc->free_calls;
        grpc->free_calls = call->next;
        buf_done(&call->bytes);
        free(call);
    }
    buf_done(&grpc->text);
    free(grpc);
}

uint16_t grpc_server_port(const struct grpc_server *grpc) {
    return grpc && grpc->listener ? listener_port(grpc->listener) : 0;
}

void grpc_server_flush(struct grpc_server *grpc) {
    if (!grpc)
        return;
    struct grpc_conn *gc = grpc->dirty;
    grpc->dirty = NULL;
    while (gc) {
        struct grpc_conn *next = gc->next_dirty;
        gc->is_dirty = false;
        grpc_conn_flush(gc);
        gc = next;
    }
    if (grpc->dirty) /* those that have more to say than a turn has time for */
        loop_wake_send(grpc->wake);
}

void grpc_server_sweep(struct grpc_server *grpc, uint64_t now_ns) {
    struct grpc_conn *next = NULL;
    for (struct grpc_conn *gc = grpc ? grpc->connections : NULL; gc; gc = next) {
        next = gc->next;
        grpc_conn_sweep(gc, now_ns);
    }
}

void grpc_server_tell_health(struct grpc_server *grpc) {
    for (struct grpc_conn *gc = grpc ? grpc->connections : NULL; gc; gc = gc->next)
        for (struct grpc_stream *stream = gc->streams; stream; stream = stream->next)
            if (stream->is_watching)
                grpc_health_tell(stream);
}

void grpc_server_stop_listening(struct grpc_server *grpc) {
    if (!grpc || !grpc->listener)
        return;
    listener_accept_waiting(grpc->listener);
    listener_close(grpc->listener);
    grpc->listener = NULL;
    const uint64_t now_ns = mono_ns();
    struct grpc_conn *next = NULL;
    for (struct grpc_conn *gc = grpc->connections; gc; gc = next) {
        next = gc->next;
        grpc_conn_drain(gc, now_ns);
    }
}

/* Outgoing connections: resolves, then tries the addresses one after another, each with a fresh
 * handle, on the loop's thread.
 *
 * Invariant: on_connected is called once, from the loop, unless conn_close comes first. */
#include "net/address.h"
#include "net/conn_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct connecting {
    struct addrinfo *addresses, *next;
    uv_connect_t request;
    void (*on_connected)(struct conn *conn, void *ctx, enum status status, const char *detail);
    void *ctx;
    struct tls *tls;        /* NULL: plain */
    int error;              /* of the last attempt */
    bool handle_is_closing; /* between two attempts */
    bool handle_is_closed;  /* after the last */
    char host[256];         /* what a certificate must be for */
    char target[300];       /* "host:port" for the error's sentence */
};

static void try_next(struct conn *conn);

void connecting_free(struct connecting *connecting) {
    if (!connecting)
        return;
    freeaddrinfo(connecting->addresses);
    free(connecting);
}

bool connecting_abort(struct conn *conn) {
    if (conn->connecting->handle_is_closed)
        conn_release(conn);
    else if (!conn->connecting->handle_is_closing)
        return false;
    return true; /* released, or on_attempt_closed will do it */
}

static void report(struct conn *conn) {
    struct connecting *connecting = conn->connecting;
    char detail[400];
    snprintf(detail, sizeof detail, "cannot connect to %s: %s", connecting->target,
             uv_strerror(connecting->error));
    connecting->handle_is_closed = true;
    connecting->on_connected(conn, connecting->ctx, ST_IO, detail); /* may release conn */
}

static void on_attempt_closed(uv_handle_t *handle) {
    struct conn *conn = handle->data;
    struct connecting *connecting = conn->connecting;
    loop_enter(conn->loop);
    connecting->handle_is_closing = false;
    if (conn->is_closing) {
        conn_release(conn);
        return;
    }
    if (connecting->next) {
        const int failed = uv_tcp_init(&conn->loop->uv, &conn->tcp);
        if (failed == 0) {
            conn->tcp.data = conn;
            try_next(conn);
            return;
        }
        connecting->error = failed;
    }
    report(conn);
}

static void attempt_failed(struct conn *conn, int error) {
    conn->connecting->error = error;
    conn->connecting->handle_is_closing = true;
    uv_close((uv_handle_t *)&conn->tcp, on_attempt_closed);
}

void connecting_done(struct conn *conn) {
    struct connecting *connecting = conn->connecting;
    void (*const on_connected)(struct conn *, void *, enum status, const char *) =
        connecting->on_connected;
    void *const ctx = connecting->ctx;
    conn->connecting = NULL;
    connecting_free(connecting);
    on_connected(conn, ctx, ST_OK, "");
}

void connecting_failed(struct conn *conn, const char *sentence) {
    struct connecting *connecting = conn->connecting;
    char detail[600];
    snprintf(detail, sizeof detail, "cannot connect to %s: %s", connecting->target, sentence);
    connecting->on_connected(conn, connecting->ctx, ST_IO, detail);
}

static void on_attempt(uv_connect_t *request, int status) {
    struct conn *conn = request->data;
    struct connecting *connecting = conn->connecting;
    loop_enter(conn->loop);
    if (conn->is_closing || connecting->handle_is_closing)
        return;
    if (status < 0) {
        attempt_failed(conn, status);
        return;
    }
    (void)uv_tcp_nodelay(&conn->tcp, 1);
    if (!connecting->tls)
        connecting_done(conn);
    else if (!conn_tls_connect(conn, connecting->tls, connecting->host))
        connecting_failed(conn, "no memory for TLS");
}

static void try_next(struct conn *conn) {
    struct connecting *connecting = conn->connecting;
    const struct addrinfo *address = connecting->next;
    connecting->next = address->ai_next;
    connecting->request.data = conn;
    const int failed =
        uv_tcp_connect(&connecting->request, &conn->tcp, address->ai_addr, on_attempt);
    if (failed)
        attempt_failed(conn, failed);
}

enum status conn_connect(struct loop *loop, const char *host, uint16_t port,
                         void (*on_connected)(struct conn *conn, void *ctx, enum status status,
                                              const char *detail),
                         void *ctx, struct conn **out, struct err *err) {
    return conn_connect_tls(loop, NULL, host, port, on_connected, ctx, out, err);
}

enum status conn_connect_tls(struct loop *loop, struct tls *tls, const char *host, uint16_t port,
                             void (*on_connected)(struct conn *conn, void *ctx,
                                                  enum status status, const char *detail),
                             void *ctx, struct conn **out, struct err *err) {
    struct connecting *connecting = calloc(1, sizeof *connecting);
    if (!connecting)
        return err_set(err, ST_NO_MEMORY, "no memory for a connection to %s:%u", host, port);
    const enum status status = address_resolve(host, port, &connecting->addresses, err);
    if (status != ST_OK) {
        free(connecting);
        return status;
    }
    struct conn *conn = conn_new(loop);
    if (!conn) {
        connecting_free(connecting);
        return err_set(err, ST_NO_MEMORY, "no memory for a connection to %s:%u", host, port);
    }
    snprintf(connecting->target, sizeof connecting->target, "%s:%u", host, port);
    snprintf(connecting->host, sizeof connecting->host, "%s", host);
    connecting->tls = tls;
    connecting->next = connecting->addresses;
    connecting->on_connected = on_connected;
    connecting->ctx = ctx;
    conn->connecting = connecting;
    try_next(conn);
    *out = conn;
    return ST_OK;
}

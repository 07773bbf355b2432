/* Listening sockets, on the loop's thread.
 *
 * Why not libuv's own: on an error of accept() other than missing descriptors, libuv 1.44 calls
 * accept() again until there is none, which with ENOBUFS may be never.
 *
 * Invariant: whatever accept() says, the loop neither spins nor stops accepting. Without
 * descriptors, those who come are closed at once by means of a descriptor kept in reserve; without
 * anything else the listener rests for REST_NS, and the kernel keeps those who come. */
#include "base/clock.h"
#include "net/address.h"
#include "net/conn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* the kernel takes net.core.somaxconn where that is less */
    REST_NS = 100000000
};

struct listener {
    uv_poll_t poll;
    struct loop *loop;
    void (*on_accept)(void *ctx, struct conn *conn);
    void *ctx;
    struct tls *tls; /* NULL: plain */
    struct loop_timer *rest;
    int fd, reserve; /* reserve: -1: none */
    uint16_t port;
    bool is_closing;
};

enum accepted { ACCEPT_DONE, ACCEPT_FAILED, ACCEPT_NONE_LEFT, ACCEPT_MUST_REST };

static void on_ready(uv_poll_t *poll, int status, int events);

static void set_reserve(struct listener *listener) {
    if (listener->reserve < 0)
        listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* fd has been accepted. */
static void pass_on(struct listener *listener, int fd) {
    struct conn *conn = conn_new(listener->loop);
    if (!conn || uv_tcp_open(&conn->tcp, fd) != 0) {
        (void)close(fd);
        listener->loop->shed++;
        if (conn)
            conn_close(conn);
        return;
    }
    (void)uv_tcp_nodelay(&conn->tcp, 1);
    if (!listener->tls || conn_tls_accept(conn, listener->tls)) {
        listener->on_accept(listener->ctx, conn);
        return;
    }
    listener->loop->shed++;
    conn_close(conn); /* no memory */
}

/* No descriptor is left: the one in reserve takes the client, to be closed. */
static enum accepted shed_one(struct listener *listener) {
    if (listener->reserve < 0)
        return ACCEPT_MUST_REST;
    (void)close(listener->reserve);
    listener->reserve = -1;
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd);
        listener->loop->shed++;
    }
    set_reserve(listener);
    if (fd >= 0)
        return ACCEPT_DONE;
    return error == EAGAIN ? ACCEPT_NONE_LEFT : ACCEPT_MUST_REST;
}

static enum accepted accept_one(struct listener *listener) {
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        pass_on(listener, fd);
        return ACCEPT_DONE;
    }
    switch (errno) {
    case EAGAIN:
        return ACCEPT_NONE_LEFT;
    case EMFILE:
    case ENFILE:
        return shed_one(listener);
    case ENOBUFS:
    case ENOMEM:
        return ACCEPT_MUST_REST;
    default: /* that one is gone already, or what had gone wrong with its network is told here */
        return ACCEPT_FAILED;
    }
}

static void listen_again(struct listener *listener) {
    set_reserve(listener);
    (void)uv_poll_start(&listener->poll, UV_READABLE, on_ready); /* cannot fail on an open handle */
}

static void on_rested(void *ctx) { listen_again(ctx); }

/* Many clients that connect at once would make one long turn: those left are reported again in
 * the next. */
static void on_ready(uv_poll_t *poll, int status, int events) {
    struct listener *listener = poll->data;
    (void)status;
    (void)events;
    loop_enter(listener->loop);
    int failed = 0;
    for (int i = 0; i < LOOP_ACCEPTS && !listener->is_closing; i++) {
        const enum accepted accepted = accept_one(listener);
        if (accepted == ACCEPT_NONE_LEFT)
            return;
        failed += accepted == ACCEPT_FAILED;
        if (accepted != ACCEPT_MUST_REST && failed < LOOP_ACCEPTS)
            continue;
        (void)uv_poll_stop(&listener->poll);
        loop_timer_set(listener->rest, mono_ns() + REST_NS);
        return;
    }
}

void listener_accept_waiting(struct listener *listener) {
    /* No more than can have waited: new ones keep coming. */
    for (int i = 0; i < BACKLOG && !listener->is_closing; i++)
        if (accept_one(listener) > ACCEPT_FAILED)
            return;
}

/* "localhost" may name ::1 first; 127.0.0.1 is what people mean and what tools try. */
static const struct addrinfo *choose(const struct addrinfo *list) {
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET)
            return a;
    return list;
}

/* A negative error of libuv's, or 0. */
static int listen_on(struct listener *listener, const struct addrinfo *address) {
    const int yes = 1;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    listener->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 ||
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listener->fd, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(listener->fd, BACKLOG) != 0 ||
        getsockname(listener->fd, (struct sockaddr *)&bound, &size) != 0)
        return uv_translate_sys_error(errno);
    listener->port = bound.ss_family == AF_INET6
                         ? ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port)
                         : ntohs(((const struct sockaddr_in *)&bound)->sin_port);
    set_reserve(listener);
    return listener->reserve < 0 ? uv_translate_sys_error(errno) : 0;
}

static const char *remedy(int error) {
    switch (error) {
    case UV_EADDRINUSE: return " (another program listens there: stop it or choose another port)";
    case UV_EACCES: return " (ports below 1024 need privileges: choose a higher one)";
    case UV_EADDRNOTAVAIL: return " (this machine has no such address)";
    default: return "";
    }
}

static void release(struct listener *listener) {
    if (listener->fd >= 0)
        (void)close(listener->fd);
    if (listener->reserve >= 0)
        (void)close(listener->reserve);
    loop_timer_close(listener->rest);
    free(listener);
}

enum status listener_create(struct loop *loop, const char *host, uint16_t port,
                            void (*on_accept)(void *ctx, struct conn *conn), void *ctx,
                            struct listener **out, struct err *err) {
    struct addrinfo *addresses = NULL;
    const enum status status = address_resolve(host, port, &addresses, err);
    if (status != ST_OK)
        return status;
    struct listener *listener = malloc(sizeof *listener);
    if (listener) {
        *listener = (struct listener){.loop = loop, .on_accept = on_accept, .ctx = ctx, .fd = -1,
                                      .reserve = -1};
        listener->rest = loop_timer_create(loop, on_rested, listener);
    }
    if (!listener || !listener->rest) {
        freeaddrinfo(addresses);
        free(listener);
        return err_set(err, ST_NO_MEMORY, "no memory to listen on %s:%u", host, port);
    }
    int failed = listen_on(listener, choose(addresses));
    freeaddrinfo(addresses);
    if (!failed)
        failed = uv_poll_init(&loop->uv, &listener->poll, listener->fd);
    if (failed) {
        release(listener);
        return err_set(err, failed == UV_ENOMEM ? ST_NO_MEMORY : ST_IO,
                       "cannot listen on %s:%u: %s%s", host, port, uv_strerror(failed),
                       remedy(failed));
    }
    listener->poll.data = listener;
    listen_again(listener);
    *out = listener;
    return ST_OK;
}

void listener_use_tls(struct listener *listener, struct tls *tls) { listener->tls = tls; }

uint16_t listener_port(const struct listener *listener) { return listener->port; }

static void on_closed(uv_handle_t *handle) { free(handle->data); }

/* The port is free at once: who connects from now on is refused. */
void listener_close(struct listener *listener) {
    if (!listener || listener->is_closing)
        return;
    listener->is_closing = true;
    loop_timer_close(listener->rest);
    (void)uv_poll_stop(&listener->poll);
    (void)close(listener->fd);
    if (listener->reserve >= 0)
        (void)close(listener->reserve);
    uv_close((uv_handle_t *)&listener->poll, on_closed);
}

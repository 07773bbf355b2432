/* Listening sockets, on the loop's thread.
 *
 * Invariant: a connection that has no memory is accepted and closed all the same; libuv would
 * stop accepting for good if one were left lying. */
#include "net/address.h"
#include "net/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 }; /* the kernel takes net.core.somaxconn where that is less */

struct listener {
    uv_tcp_t tcp;
    struct loop *loop;
    void (*on_accept)(void *ctx, struct conn *conn);
    void *ctx;
    struct tls *tls; /* NULL: plain */
    uint16_t port;
    uint64_t turn;         /* of the loop, that `accepted` is counted in */
    unsigned accepted;
    bool is_waiting;       /* in loop->accepting: libuv holds a connection for the next turn */
    struct listener *accepting_next;
    uv_tcp_t refused; /* takes connections when memory is out, one at a time */
    bool refused_is_open;
    bool is_closing, is_closed;
};

static void accept_one(struct listener *listener);

static void release_when_done(struct listener *listener) {
    if (listener->is_closed && !listener->refused_is_open)
        free(listener);
}

static void on_refused_closed(uv_handle_t *handle) {
    struct listener *listener = handle->data;
    listener->refused_is_open = false;
    if (listener->is_closing)
        release_when_done(listener);
    else
        accept_one(listener); /* another may have come meanwhile */
}

static void refuse_one(struct listener *listener) {
    if (listener->refused_is_open || uv_tcp_init(&listener->loop->uv, &listener->refused) != 0)
        return;
    listener->refused.data = listener;
    listener->refused_is_open = true;
    (void)uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&listener->refused);
    uv_close((uv_handle_t *)&listener->refused, on_refused_closed);
}

/* conn has been accepted. */
static void pass_on(struct listener *listener, struct conn *conn) {
    (void)uv_tcp_nodelay(&conn->tcp, 1);
    if (listener->tls && !conn_tls_accept(conn, listener->tls))
        conn_close(conn); /* no memory */
    else
        listener->on_accept(listener->ctx, conn);
}

static void accept_one(struct listener *listener) {
    struct conn *conn = conn_new(listener->loop);
    if (!conn) {
        refuse_one(listener);
        return;
    }
    if (uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&conn->tcp) != 0) {
        conn_close(conn);
        return;
    }
    pass_on(listener, conn);
}

/* Takes it out of the list of those that go on in the next turn. */
static void stop_waiting(struct listener *listener) {
    struct listener **at = &listener->loop->accepting;
    while (*at && *at != listener)
        at = &(*at)->accepting_next;
    if (*at)
        *at = listener->accepting_next;
    listener->is_waiting = false;
}

void listener_accept_waiting(struct listener *listener) {
    uv_os_fd_t fd = -1;
    if (listener->is_closing || uv_fileno((const uv_handle_t *)&listener->tcp, &fd) != 0)
        return;
    if (listener->is_waiting) {
        stop_waiting(listener);
        accept_one(listener);
    }
    for (int i = 0; i < BACKLOG; i++) { /* no more than can have waited: new ones keep coming */
        const int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue; /* that one is gone already */
        if (accepted < 0)
            return;
        struct conn *conn = conn_new(listener->loop);
        if (!conn || uv_tcp_open(&conn->tcp, accepted) != 0) {
            (void)close(accepted);
            if (conn)
                conn_close(conn);
            return;
        }
        pass_on(listener, conn);
    }
}

/* Many clients that connect at once would make one long turn: the rest is left with libuv, which
 * does not look at the socket again before it was taken. */
static bool is_enough(struct listener *listener) {
    struct loop *loop = listener->loop;
    if (listener->turn != loop->turn_number) {
        listener->turn = loop->turn_number;
        listener->accepted = 0;
    }
    return ++listener->accepted > LOOP_ACCEPTS;
}

static void wait_a_turn(struct listener *listener) {
    struct loop *loop = listener->loop;
    listener->is_waiting = true;
    listener->accepting_next = loop->accepting;
    loop->accepting = listener;
    loop_again(loop, true);
}

void listener_go_on(struct loop *loop) {
    struct listener *listener = loop->accepting;
    loop->accepting = NULL;
    loop_again(loop, false);
    while (listener) {
        struct listener *next = listener->accepting_next;
        if (listener->turn == loop->turn_number) { /* it was put off in this very turn */
            wait_a_turn(listener);
        } else {
            loop_enter(loop);
            listener->is_waiting = false;
            (void)is_enough(listener);
            accept_one(listener);
        }
        listener = next;
    }
}

static void on_connection(uv_stream_t *server, int status) {
    struct listener *listener = server->data;
    loop_enter(listener->loop);
    if (status != 0) /* it went away again, or descriptors are out: libuv sheds it */
        return;
    if (is_enough(listener))
        wait_a_turn(listener);
    else
        accept_one(listener);
}

/* "localhost" may name ::1 first; 127.0.0.1 is what people mean and what tools try. */
static const struct addrinfo *choose(const struct addrinfo *list) {
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET)
            return a;
    return list;
}

static int listen_on(struct listener *listener, const struct addrinfo *address) {
    int failed = uv_tcp_bind(&listener->tcp, address->ai_addr, 0); /* sets SO_REUSEADDR */
    if (!failed)
        failed = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    struct sockaddr_storage bound = {0};
    int size = sizeof bound;
    if (!failed)
        failed = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&bound, &size);
    if (failed)
        return failed;
    listener->port = bound.ss_family == AF_INET6
                         ? ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port)
                         : ntohs(((const struct sockaddr_in *)&bound)->sin_port);
    return 0;
}

static const char *remedy(int error) {
    switch (error) {
    case UV_EADDRINUSE: return " (another program listens there: stop it or choose another port)";
    case UV_EACCES: return " (ports below 1024 need privileges: choose a higher one)";
    case UV_EADDRNOTAVAIL: return " (this machine has no such address)";
    default: return "";
    }
}

enum status listener_create(struct loop *loop, const char *host, uint16_t port,
                            void (*on_accept)(void *ctx, struct conn *conn), void *ctx,
                            struct listener **out, struct err *err) {
    struct addrinfo *addresses = NULL;
    const enum status status = address_resolve(host, port, &addresses, err);
    if (status != ST_OK)
        return status;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener || uv_tcp_init(&loop->uv, &listener->tcp) != 0) {
        freeaddrinfo(addresses);
        free(listener);
        return err_set(err, ST_NO_MEMORY, "no memory to listen on %s:%u", host, port);
    }
    listener->tcp.data = listener;
    listener->loop = loop;
    listener->on_accept = on_accept;
    listener->ctx = ctx;
    const int failed = listen_on(listener, choose(addresses));
    freeaddrinfo(addresses);
    if (failed) {
        listener_close(listener);
        return err_set(err, ST_IO, "cannot listen on %s:%u: %s%s", host, port,
                       uv_strerror(failed), remedy(failed));
    }
    *out = listener;
    return ST_OK;
}

void listener_use_tls(struct listener *listener, struct tls *tls) { listener->tls = tls; }

uint16_t listener_port(const struct listener *listener) { return listener->port; }

static void on_listener_closed(uv_handle_t *handle) {
    struct listener *listener = handle->data;
    listener->is_closed = true;
    release_when_done(listener);
}

void listener_close(struct listener *listener) {
    if (!listener || listener->is_closing)
        return;
    listener->is_closing = true;
    if (listener->is_waiting) /* libuv closes the connection that it holds */
        stop_waiting(listener);
    uv_close((uv_handle_t *)&listener->tcp, on_listener_closed);
}

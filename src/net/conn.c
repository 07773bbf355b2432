/* A TCP connection: reads into its owner's memory or the loop's, writes at once where the kernel
 * takes it and queues the rest. The loop's thread only.
 *
 * Invariant: the owner hears of the connection's end exactly once, and never from within a call
 * of its own: a failed write puts the connection on the loop's list of failures, which is worked
 * off at the end of the turn (conn_report_failures).
 *
 * Read next: connect.c (client), listener.c (server), conn_tls.c. */
#include "base/clock.h"
#include "net/conn_internal.h"

#include <assert.h>
#include <stdlib.h>

/* What the kernel did not take of one conn_write. */
struct send {
    uv_write_t request;
    struct conn *conn;
    char bytes[];
};

static void list_failure(struct conn *conn) {
    if (conn->is_listed || conn->is_closing || !conn->events)
        return;
    conn->is_listed = true;
    conn->failed_previous = NULL;
    conn->failed_next = conn->loop->failed;
    if (conn->failed_next)
        conn->failed_next->failed_previous = conn;
    conn->loop->failed = conn;
}

static void unlist_failure(struct conn *conn) {
    if (!conn->is_listed)
        return;
    conn->is_listed = false;
    if (conn->failed_previous)
        conn->failed_previous->failed_next = conn->failed_next;
    else
        conn->loop->failed = conn->failed_next;
    if (conn->failed_next)
        conn->failed_next->failed_previous = conn->failed_previous;
}

void conn_break(struct conn *conn) {
    if (conn->is_broken)
        return;
    conn->is_broken = true;
    (void)uv_read_stop((uv_stream_t *)&conn->tcp);
    if (conn->connecting)
        conn_tls_broke(conn); /* nobody else writes while connecting */
    else
        list_failure(conn);
}

void conn_tell_end(struct conn *conn) {
    conn->has_ended = true;
    if (conn->events && conn->events->on_end)
        conn->events->on_end(conn, conn->ctx);
}

void conn_tell_drained(struct conn *conn) {
    if (conn->events && conn->events->on_drained)
        conn->events->on_drained(conn, conn->ctx, mono_ns());
}

void conn_report_failures(struct loop *loop) {
    while (loop->failed) {
        struct conn *conn = loop->failed;
        unlist_failure(conn);
        loop_enter(loop);
        if (conn->is_finishing)
            conn_close(conn);
        else if (!conn->has_ended)
            conn_tell_end(conn);
        else
            conn_tell_drained(conn); /* the owner may be waiting for that to close */
    }
}

struct conn *conn_new(struct loop *loop) {
    struct conn *conn = malloc(sizeof *conn);
    if (!conn)
        return NULL;
    *conn = (struct conn){.loop = loop};
    if (uv_tcp_init(&loop->uv, &conn->tcp) != 0) {
        free(conn);
        return NULL;
    }
    conn->tcp.data = conn;
    return conn;
}

void conn_release(struct conn *conn) {
    loop_enter(conn->loop);
    connecting_free(conn->connecting);
    conn_tls_free(conn->tls);
    if (conn->events && conn->events->on_closed)
        conn->events->on_closed(conn->ctx);
    free(conn);
}

/* One read a round for each. Rounds and not turns: epoll reports who stays readable in the same
 * order again, and the first ones would use up every turn's share. */
static bool is_put_off(struct conn *conn) {
    struct loop *loop = conn->loop;
    const bool had_its_read = conn->round == loop->round;
    if (!had_its_read && mono_ns() - loop->turn_ns >= LOOP_SHARE_NS)
        loop->has_put_off = true;
    if (had_its_read || loop->has_put_off) {
        if (conn->put_off_ns == 0)
            conn->put_off_ns = loop->turn_ns;
        return true;
    }
    conn->round = loop->round;
    conn->readable_ns = conn->put_off_ns ? conn->put_off_ns : loop->turn_ns;
    conn->put_off_ns = 0;
    return false;
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out) {
    (void)suggested;
    struct conn *conn = handle->data;
    loop_enter(conn->loop);
    if (is_put_off(conn)) { /* libuv then says UV_ENOBUFS and lets it be until the next turn */
        *out = (uv_buf_t){.base = NULL, .len = 0};
        return;
    }
    size_t room = 0;
    char *to = NULL;
    if (!conn->tls && conn->events->read_room && !conn->is_finishing)
        to = conn->events->read_room(conn, conn->ctx, &room);
    if (!to || room == 0) {
        to = conn->loop->read_bytes;
        room = sizeof conn->loop->read_bytes;
    }
    if (room > LOOP_READ_MAX)
        room = LOOP_READ_MAX;
    *out = (uv_buf_t){.base = to, .len = room};
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room) {
    struct conn *conn = stream->data;
    loop_enter(conn->loop);
    if (size > 0) {
        if (conn->tls)
            conn_tls_received(conn, (struct view){.data = room->base, .size = (size_t)size});
        else if (!conn->is_finishing)
            conn->events->on_data(conn, conn->ctx, room->base, (size_t)size);
        return;
    }
    if (size == 0 || size == UV_ENOBUFS) /* nothing to read after all, or not now */
        return;
    (void)uv_read_stop(stream);
    if (conn->tls && conn_tls_ended(conn))
        return;
    if (size != UV_EOF)
        conn->is_broken = true;
    unlist_failure(conn);
    if (!conn->is_finishing)
        conn_tell_end(conn);
    else
        conn_close(conn); /* all that was written has been acknowledged, or never will be */
}

int conn_read_start(struct conn *conn) {
    const int failed = uv_read_start((uv_stream_t *)&conn->tcp, give_room, on_read);
    return failed == UV_EALREADY ? 0 : failed; /* reads already: no harm */
}

void conn_start(struct conn *conn, const struct conn_events *events, void *ctx) {
    assert(!conn->events && events->on_data);
    conn->events = events;
    conn->ctx = ctx;
    if (conn_read_start(conn) != 0)
        conn->is_broken = true;
    if (conn->is_broken) /* perhaps by a write before this */
        list_failure(conn);
}

uint64_t conn_readable_ns(const struct conn *conn) { return conn->readable_ns; }

void conn_pause_reading(struct conn *conn) { (void)uv_read_stop((uv_stream_t *)&conn->tcp); }

void conn_resume_reading(struct conn *conn) {
    if (conn->has_ended || conn->is_broken || conn->is_closing)
        return;
    (void)conn_read_start(conn);
}

static void on_written(uv_write_t *request, int status) {
    struct send *send = request->data;
    struct conn *conn = send->conn;
    free(send);
    loop_enter(conn->loop);
    conn->writes_pending--;
    if (conn->is_closing)
        return;
    if (status < 0)
        conn_break(conn);
    else if (conn->tls)
        conn_tls_written(conn);
    else if (conn->writes_pending == 0 && !conn->is_finishing && !conn->is_broken)
        conn_tell_drained(conn);
}

/* The first sent bytes of head and body together are with the kernel. */
static void queue_rest(struct conn *conn, struct view head, struct view body, size_t sent) {
    const size_t head_sent = sent < head.size ? sent : head.size;
    const size_t head_left = head.size - head_sent;
    const size_t body_left = body.size - (sent - head_sent);
    struct send *send = malloc(sizeof *send + head_left + body_left);
    if (!send) {
        conn_break(conn); /* a message without its end is worth nothing */
        return;
    }
    if (head_left > 0)
        memcpy(send->bytes, head.data + head_sent, head_left);
    if (body_left > 0)
        memcpy(send->bytes + head_left, body.data + (sent - head_sent), body_left);
    send->conn = conn;
    send->request.data = send;
    const uv_buf_t rest = {.base = send->bytes, .len = head_left + body_left};
    if (uv_write(&send->request, (uv_stream_t *)&conn->tcp, &rest, 1, on_written) != 0) {
        free(send);
        conn_break(conn);
        return;
    }
    conn->writes_pending++;
}

static bool send_parts(struct conn *conn, struct view head, struct view body, bool wait) {
    const size_t size = head.size + body.size;
    size_t sent = 0;
    if (conn->writes_pending == 0 && !wait) {
        /* The casts: uv_buf_t has no const, and writing does not write to it. */
        const uv_buf_t parts[2] = {{.base = (char *)head.data, .len = head.size},
                                   {.base = (char *)body.data, .len = body.size}};
        const unsigned first = head.size > 0 ? 0 : 1;
        const unsigned count = (head.size > 0 ? 1u : 0u) + (body.size > 0 ? 1u : 0u);
        const int result = uv_try_write((uv_stream_t *)&conn->tcp, parts + first, count);
        if (result < 0 && result != UV_EAGAIN) {
            conn_break(conn);
            return true;
        }
        sent = result > 0 ? (size_t)result : 0;
        if (sent == size)
            return true;
    }
    queue_rest(conn, head, body, sent);
    return conn->is_broken;
}

bool conn_send(struct conn *conn, struct view bytes, bool wait) {
    return send_parts(conn, bytes, (struct view){.data = NULL}, wait);
}

bool conn_write(struct conn *conn, struct view head, struct view body) {
    if (head.size + body.size == 0 || !conn_can_write(conn))
        return true;
    if (conn->tls)
        return conn_tls_write(conn, head, body);
    return send_parts(conn, head, body, false);
}

bool conn_can_write(const struct conn *conn) {
    return !conn->is_broken && !conn->is_closing && !conn->is_finishing;
}

bool conn_is_drained(const struct conn *conn) {
    return (conn->writes_pending == 0 && !(conn->tls && conn_tls_waiting_bytes(conn) > 0)) ||
           conn->is_broken;
}

size_t conn_unsent_bytes(const struct conn *conn) {
    return conn->is_broken ? 0
                           : uv_stream_get_write_queue_size((const uv_stream_t *)&conn->tcp) +
                                 (conn->tls ? conn_tls_waiting_bytes(conn) : 0);
}

static void on_handle_closed(uv_handle_t *handle) { conn_release(handle->data); }

void conn_close(struct conn *conn) {
    if (conn->is_closing)
        return;
    if (conn->tls)
        conn_tls_closing(conn); /* may list it as failed */
    unlist_failure(conn);
    conn->is_closing = true;
    loop_timer_close(conn->linger);
    conn->linger = NULL;
    if (!conn->connecting || !connecting_abort(conn))
        uv_close((uv_handle_t *)&conn->tcp, on_handle_closed);
}

static void on_linger_over(void *ctx) { conn_close(ctx); }

static void on_shut(uv_shutdown_t *request, int status) {
    struct conn *conn = request->data;
    loop_enter(conn->loop);
    if (!conn->is_closing && (status < 0 || conn->has_ended))
        conn_close(conn);
}

void conn_shut(struct conn *conn) {
    conn->shutdown.data = conn;
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut) != 0)
        conn_close(conn);
}

void conn_finish(struct conn *conn, uint64_t linger_ns) {
    if (conn->is_closing || conn->is_finishing)
        return;
    conn->linger = loop_timer_create(conn->loop, on_linger_over, conn);
    if (conn->is_broken || !conn->linger || !conn->events) {
        conn_close(conn);
        return;
    }
    loop_timer_set(conn->linger, mono_ns() + linger_ns);
    conn_resume_reading(conn);
    conn->is_finishing = true;
    if (conn->tls)
        conn_tls_finish(conn); /* shuts when what was written has been encrypted */
    else
        conn_shut(conn);
}

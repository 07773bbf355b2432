/* The life of a gRPC connection: bytes to its HTTP/2 session, the session's output to the kernel.
 * Loop thread only.
 *
 * The session's events (grpc_stream.c) come from within h2_input and h2_output, where nothing may
 * be closed: they only mark the connection. Output is gathered once a turn, for all the answers
 * that became ready in it, and no more than the kernel takes: what waits stays where it is.
 *
 * Invariant: h2 is NULL exactly when the connection is in no list any more.
 * Read next: grpc_stream.c. */
#include "serve/grpc_conn.h"

#include "base/clock.h"
#include "serve/drain.h"
#include "serve/grpc_stream.h"
#include <stdlib.h>

enum {
    OUTPUT_BYTES = 128 * 1024, /* a write: about what a socket takes at once */
    OUTPUT_TURN_BYTES = 1024 * 1024, /* a connection, a turn */
    INPUT_SLICE_BYTES = 8 * 1024, /* between two looks at the clock */
    /* What a client may send before it is read. Tensors of this size come without a wait; a stream
     * that is not read holds this much of our memory. */
    STREAM_WINDOW = 1024 * 1024,
    CONNECTION_WINDOW = 16 * 1024 * 1024,
    FRAME_BYTES = 64 * 1024,
    /* A client whose deadlines all expire resets as many streams as it opens. */
    RESETS_PER_SECOND = 2000,
    CONTROLS_PER_SECOND = 2000
};

static const uint64_t LINGER_NS = 500000000;
static const uint64_t NOTICE_NS = 200000000;  /* between the notice and the last word on streams */
static const uint64_t SILENCE_NS = 60000000000; /* with open streams: then a ping */

uint64_t grpc_conn_input_ns(const struct grpc_conn *gc) { return conn_readable_ns(gc->conn); }

static void list_waiting(struct grpc_conn *gc) {
    if (gc->is_waiting)
        return;
    gc->is_waiting = true;
    gc->next_waiting = gc->grpc->waiting;
    gc->grpc->waiting = gc;
    loop_wake_send(gc->grpc->wake);
}

void grpc_conn_touch(struct grpc_conn *gc) {
    if (gc->is_dirty || !gc->h2)
        return;
    gc->is_dirty = true;
    gc->next_dirty = gc->grpc->dirty;
    gc->grpc->dirty = gc;
}

static void unlist_dirty(struct grpc_conn *gc) {
    struct grpc_conn **at = &gc->grpc->dirty;
    while (gc->is_dirty && *at && *at != gc)
        at = &(*at)->next_dirty;
    if (gc->is_dirty && *at)
        *at = gc->next_dirty;
    gc->is_dirty = false;
    at = &gc->grpc->waiting;
    while (gc->is_waiting && *at && *at != gc)
        at = &(*at)->next_waiting;
    if (gc->is_waiting && *at)
        *at = gc->next_waiting;
    gc->is_waiting = false;
}

/* The kernel has what was written: the answers in it are sent. */
static void settle(struct grpc_conn *gc, uint64_t at_ns) {
    struct grpc_call *call = gc->sending;
    gc->sending = NULL;
    while (call) {
        struct grpc_call *next = call->next;
        struct exchange *exchange = call->exchange;
        if (exchange) {
            call->exchange = NULL;
            infer_run_sent(exchange, at_ns);
        }
        grpc_call_release(call);
        call = next;
    }
}

/* Out of every list; what is in flight on it is cancelled. */
static void leave(struct grpc_conn *gc) {
    struct grpc_server *grpc = gc->grpc;
    struct h2 *h2 = gc->h2;
    unlist_dirty(gc);
    h2_free(h2); /* ends its streams */
    gc->h2 = NULL;
    while (gc->sending) { /* written, but for all we know never read */
        struct grpc_call *call = gc->sending;
        gc->sending = call->next;
        if (call->exchange)
            infer_run_abandon(call->exchange);
        grpc_call_release(call);
    }
    if (gc->previous)
        gc->previous->next = gc->next;
    else
        grpc->connections = gc->next;
    if (gc->next)
        gc->next->previous = gc->previous;
    grpc->connection_count--;
}

void grpc_conn_close(struct grpc_conn *gc) {
    if (!gc->h2)
        return;
    leave(gc);
    conn_close(gc->conn);
}

static void finish(struct grpc_conn *gc) {
    settle(gc, mono_ns());
    leave(gc);
    conn_finish(gc->conn, LINGER_NS);
}

static void on_closed(void *ctx) {
    struct grpc_conn *gc = ctx;
    struct server *server = gc->grpc->server;
    buf_done(&gc->pending);
    buf_done(&gc->out);
    free(gc);
    server->open_count--;
    drain_check(server);
}

/* ---- output ---- */

/* False: the kernel has not taken all of it, or the connection is gone. */
static bool write_some(struct grpc_conn *gc) {
    buf_clear(&gc->out);
    if (h2_output(gc->h2, &gc->out, OUTPUT_BYTES) != ST_OK) {
        log_line(LOG_ERROR, "out of memory while writing a gRPC answer: closing the connection");
        grpc_conn_close(gc);
        return false;
    }
    const struct view nothing = {.data = NULL};
    if (!conn_write(gc->conn, buf_view(&gc->out), nothing)) {
        gc->unsent_bytes = conn_unsent_bytes(gc->conn);
        gc->stalled_ns = mono_ns();
        return false;
    }
    if (!conn_can_write(gc->conn)) { /* the client is gone; on_end follows */
        grpc_conn_close(gc);
        return false;
    }
    settle(gc, mono_ns());
    return true;
}

void grpc_conn_flush(struct grpc_conn *gc) {
    if (!gc->h2 || !conn_is_drained(gc->conn))
        return; /* on_drained goes on */
    size_t written = 0;
    while (h2_wants_output(gc->h2)) {
        if (written >= OUTPUT_TURN_BYTES) {
            grpc_conn_touch(gc);
            return;
        }
        if (!write_some(gc))
            return;
        if (gc->out.size == 0)
            break;
        written += gc->out.size;
    }
    if (gc->out.capacity > 4 * OUTPUT_BYTES || gc->grpc->connection_count > 64) {
        buf_done(&gc->out); /* idle connections should cost little */
        buf_init(&gc->out);
    }
    settle(gc, mono_ns());
    if (h2_is_over(gc->h2))
        finish(gc);
}

static void on_drained(struct conn *conn, void *ctx, uint64_t at_ns) {
    (void)conn;
    struct grpc_conn *gc = ctx;
    if (!gc->h2)
        return;
    gc->stalled_ns = 0;
    settle(gc, at_ns);
    grpc_conn_touch(gc);
}

/* ---- input ---- */

static bool is_http1(const char *bytes, size_t size) {
    static const char *const METHODS[] = {"GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC"};
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++)
        if (size >= 4 && memcmp(bytes, METHODS[i], 4) == 0)
            return true;
    return false;
}

static void refuse_http1(struct grpc_conn *gc) {
    static const char ANSWER[] =
        "HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 78\r\n\r\n"
        "{\"error\":\"this port speaks gRPC (HTTP/2); HTTP/1.1 is served at another port\"}";
    const struct view nothing = {.data = NULL};
    (void)conn_write(gc->conn, view_of(ANSWER), nothing);
    leave(gc);
    conn_finish(gc->conn, LINGER_NS);
}

/* The session cannot go on: its last words, then the end. */
static void input_failed(struct grpc_conn *gc, enum status status, const char *text) {
    struct grpc_counts *counts = &gc->grpc->counts;
    if (status == ST_OVERLOADED)
        counts->too_lively++;
    else
        counts->broken++;
    log_line(LOG_DEBUG, "gRPC connection ended: %s", text);
    buf_clear(&gc->out);
    const struct view nothing = {.data = NULL};
    if (conn_is_drained(gc->conn) && h2_output(gc->h2, &gc->out, OUTPUT_BYTES) == ST_OK)
        (void)conn_write(gc->conn, buf_view(&gc->out), nothing);
    leave(gc);
    conn_finish(gc->conn, LINGER_NS);
}

/* Feeds the session as long as the turn has time; returns the bytes used. */
static size_t process(struct grpc_conn *gc, const char *bytes, size_t size) {
    uint64_t now_ns = mono_ns();
    size_t done = 0;
    const uint64_t begin_ns = now_ns;
    while (done < size && gc->h2) {
        const size_t part = size - done < INPUT_SLICE_BYTES ? size - done : INPUT_SLICE_BYTES;
        struct err err = {.text = ""};
        const bool is_first = gc->heard_ns == 0;
        gc->heard_ns = now_ns;
        const enum status status = h2_input(gc->h2, bytes + done, part, now_ns, &err);
        if (status != ST_OK) {
            if (is_first && is_http1(bytes + done, part))
                refuse_http1(gc);
            else
                input_failed(gc, status, err.text);
            return size;
        }
        done += part;
        now_ns = mono_ns();
        if (done < size && now_ns - begin_ns >= LOOP_SHARE_NS)
            break;
    }
    gc->has_pinged = false;
    grpc_conn_touch(gc);
    return done;
}

static void keep_pending(struct grpc_conn *gc, const char *bytes, size_t size) {
    buf_append(&gc->pending, bytes, size);
    if (gc->pending.failed) {
        grpc_conn_close(gc);
        return;
    }
    conn_pause_reading(gc->conn);
    list_waiting(gc);
}

void grpc_conn_go_on(struct grpc_conn *gc) {
    if (!gc->h2)
        return;
    gc->pending_used += process(gc, gc->pending.data + gc->pending_used,
                                gc->pending.size - gc->pending_used);
    if (!gc->h2)
        return;
    if (gc->pending_used < gc->pending.size) {
        list_waiting(gc);
        return;
    }
    buf_done(&gc->pending);
    buf_init(&gc->pending);
    gc->pending_used = 0;
    conn_resume_reading(gc->conn);
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    (void)conn;
    struct grpc_conn *gc = ctx;
    assert_role(ROLE_LOOP);
    if (!gc->h2)
        return;
    const size_t used = gc->pending.size ? 0 : process(gc, bytes, size);
    if (used < size && gc->h2)
        keep_pending(gc, bytes + used, size - used);
}

static void on_end(struct conn *conn, void *ctx) {
    (void)conn;
    grpc_conn_close(ctx);
}

/* ---- time ---- */

void grpc_conn_drain(struct grpc_conn *gc, uint64_t now_ns) {
    if (!gc->h2 || gc->goaway_ns)
        return;
    gc->goaway_ns = now_ns + NOTICE_NS;
    h2_shutdown_notice(gc->h2);
    grpc_conn_touch(gc);
}

static void say_goaway(struct grpc_conn *gc) {
    gc->has_said_goaway = true;
    h2_goaway(gc->h2, H2_NO_ERROR);
    for (struct grpc_stream *stream = gc->streams; stream; stream = stream->next)
        grpc_stream_drain(stream);
    grpc_conn_touch(gc);
}

/* The kernel takes nothing of what was written. */
static bool is_stalled(struct grpc_conn *gc, uint64_t now_ns, uint64_t timeout_ns) {
    if (!gc->stalled_ns || !timeout_ns)
        return false;
    const size_t unsent = conn_unsent_bytes(gc->conn);
    if (unsent < gc->unsent_bytes) {
        gc->unsent_bytes = unsent;
        gc->stalled_ns = now_ns;
    }
    return now_ns - gc->stalled_ns >= timeout_ns;
}

/* Silent with a call open: is there still somebody? A ping, and the end where that has no answer. */
static bool is_dead(struct grpc_conn *gc, uint64_t now_ns) {
    if (gc->idle_ns || now_ns < gc->heard_ns + SILENCE_NS)
        return false;
    if (!gc->has_pinged) {
        gc->has_pinged = true;
        h2_ping(gc->h2);
        grpc_conn_touch(gc);
    }
    return now_ns >= gc->heard_ns + SILENCE_NS + SILENCE_NS / 3;
}

void grpc_conn_sweep(struct grpc_conn *gc, uint64_t now_ns) {
    const struct serve_config *config = gc->grpc->server->config;
    if (is_stalled(gc, now_ns, config->read_timeout_ns) || is_dead(gc, now_ns)) {
        gc->grpc->counts.timeouts++;
        grpc_conn_close(gc);
        return;
    }
    struct grpc_stream *next = NULL;
    for (struct grpc_stream *stream = gc->streams; stream; stream = next) {
        next = stream->next;
        grpc_stream_sweep(stream, now_ns);
    }
    if (gc->goaway_ns && !gc->has_said_goaway && now_ns >= gc->goaway_ns)
        say_goaway(gc);
    if (gc->idle_ns && config->idle_timeout_ns && !gc->goaway_ns &&
        now_ns - gc->idle_ns >= config->idle_timeout_ns) {
        gc->grpc->counts.timeouts++;
        grpc_conn_drain(gc, now_ns);
    }
}

/* ---- the beginning ---- */

static struct grpc_conn *create(struct grpc_server *grpc, struct conn *conn) {
    const struct h2_limits limits = {.streams = (uint32_t)grpc->server->config->grpc_max_streams,
                                     .header_bytes = (uint32_t)grpc->server->config->max_header,
                                     .stream_window = STREAM_WINDOW,
                                     .connection_window = CONNECTION_WINDOW,
                                     .frame_bytes = FRAME_BYTES,
                                     .resets_per_second = RESETS_PER_SECOND,
                                     .controls_per_second = CONTROLS_PER_SECOND};
    struct grpc_conn *gc = calloc(1, sizeof *gc);
    if (!gc)
        return NULL;
    gc->h2 = h2_create(false, &limits, &GRPC_STREAM_EVENTS, gc);
    if (!gc->h2) {
        free(gc);
        return NULL;
    }
    gc->grpc = grpc;
    gc->conn = conn;
    gc->idle_ns = loop_turn_ns(grpc->server->loop);
    buf_init(&gc->pending);
    buf_init(&gc->out);
    gc->next = grpc->connections;
    if (gc->next)
        gc->next->previous = gc;
    grpc->connections = gc;
    grpc->connection_count++;
    grpc->server->open_count++;
    return gc;
}

void grpc_conn_accept(struct grpc_server *grpc, struct conn *conn) {
    static const struct conn_events EVENTS = {.on_data = on_data,
                                              .on_end = on_end,
                                              .on_drained = on_drained,
                                              .on_closed = on_closed};
    const bool is_full = grpc->connection_count >= grpc->server->config->max_connections;
    struct grpc_conn *gc = is_full ? NULL : create(grpc, conn);
    if (!gc) {
        grpc->counts.refused++;
        conn_close(conn);
        return;
    }
    grpc->counts.accepted++;
    conn_start(conn, &EVENTS, gc); /* our SETTINGS go with the answer to the client's preface */
}

/* TLS between a connection and its socket: what libuv reads is decrypted before it is told, what
 * is written is encrypted before libuv gets it. The loop's thread.
 *
 * A turn stays short: one read is at most 64 KiB to decrypt, and a large write is encrypted in
 * pieces of TLS_PIECE_BYTES, the next one when the kernel has taken the one before; until then it
 * waits as plain text.
 *
 * Invariant: the loop's wire buffer is empty between any two calls: whoever makes OpenSSL write
 * to it sends it. `waiting` holds bytes in the order in which they were written.
 *
 * Read next: tls_session.c, conn.c. */
#include "base/clock.h"
#include "net/conn_internal.h"
#include "net/tls_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TLS_RECORD_BYTES = 16384,
    TLS_PIECE_BYTES = 256 * 1024 /* some 100 us to encrypt */
};

struct tls_scratch {
    struct buf wire;
    char read[TLS_RECORD_BYTES];   /* plain text on its way to on_data */
    char gather[TLS_RECORD_BYTES]; /* head and body of a small message, to be one record */
};

/* Plain text that waits to be encrypted. */
struct waiting {
    struct waiting *next;
    size_t size, used;
    char bytes[];
};

struct conn_tls {
    struct tls *tls;
    struct tls_session *session;
    struct loop_timer *timer; /* until the handshake is over */
    struct waiting *first, *last;
    size_t waiting_bytes;
    bool is_established;
    bool owes_drained; /* conn_write gave false, and on_drained has not come since */
    bool has_said_end;
    bool has_failed; /* and told so */
    char fault[200];
};

static struct tls_scratch *scratch_of(struct conn *conn) { return conn->loop->tls_scratch; }

void conn_tls_scratch_free(struct tls_scratch *scratch) {
    if (!scratch)
        return;
    buf_done(&scratch->wire);
    free(scratch);
}

/* ---- the end ---- */

/* Tells why; a server's owner hears of the end later, like of any failed connection. */
static void fail(struct conn *conn, const char *sentence) {
    struct conn_tls *state = conn->tls;
    if (state->has_failed)
        return;
    state->has_failed = true;
    snprintf(state->fault, sizeof state->fault, "%s", sentence);
    loop_timer_close(state->timer);
    state->timer = NULL;
    if (state->tls->on_failure)
        state->tls->on_failure(state->tls->failure_ctx, sentence);
    if (conn->connecting) {
        conn->is_broken = true;
        (void)uv_read_stop((uv_stream_t *)&conn->tcp);
        connecting_failed(conn, sentence);
    } else {
        conn_break(conn);
    }
}

void conn_tls_broke(struct conn *conn) {
    fail(conn, "the connection broke within the TLS handshake");
}

static void on_handshake_timeout(void *ctx) {
    struct conn *conn = ctx;
    conn->tls->tls->counts.timeouts++;
    fail(conn, "the TLS handshake took too long");
}

/* Sends what is on the wire. wait: through libuv's queue even if the kernel would take it at once,
 * so that conn_tls_written comes in a later turn. True when the kernel has all of it. */
static bool send_wire(struct conn *conn, bool wait) {
    struct buf *wire = &scratch_of(conn)->wire;
    bool is_sent = true;
    if (wire->failed)
        conn_break(conn);
    else if (wire->size > 0 && !conn->is_broken && !conn->is_closing)
        is_sent = conn_send(conn, buf_view(wire), wait);
    buf_clear(wire);
    if (wire->capacity > 2 * TLS_PIECE_BYTES) { /* something grew it once */
        buf_done(wire);
        buf_init(wire);
    }
    return is_sent;
}

static void take_failure(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    (void)send_wire(conn, false); /* the alert: the peer may want to know */
    struct tls_counts *counts = &state->tls->counts;
    if (!state->is_established)
        (*(tls_session_is_plain(state->session) ? &counts->plain : &counts->failed))++;
    fail(conn, tls_session_fault(state->session));
}

/* ---- writing ---- */

static bool wait_with(struct conn *conn, struct view head, struct view body) {
    struct conn_tls *state = conn->tls;
    const size_t size = head.size + body.size;
    struct waiting *waiting = malloc(sizeof *waiting + size);
    if (!waiting) {
        conn_break(conn); /* a message without its end is worth nothing */
        return true;
    }
    *waiting = (struct waiting){.size = size};
    if (head.size > 0)
        memcpy(waiting->bytes, head.data, head.size);
    if (body.size > 0)
        memcpy(waiting->bytes + head.size, body.data, body.size);
    if (state->last)
        state->last->next = waiting;
    else
        state->first = waiting;
    state->last = waiting;
    state->waiting_bytes += size;
    state->owes_drained = true;
    return false;
}

static void drop_first(struct conn_tls *state) {
    struct waiting *first = state->first;
    state->first = first->next;
    if (!state->first)
        state->last = NULL;
    free(first);
}

static struct view take(struct view *bytes, size_t most) {
    const struct view taken = {.data = bytes->data,
                               .size = bytes->size < most ? bytes->size : most};
    bytes->data += taken.size;
    bytes->size -= taken.size;
    return taken;
}

/* False: the connection has failed. */
static bool encrypt(struct conn *conn, struct view bytes) {
    if (tls_session_write(conn->tls->session, bytes) == TLS_DONE)
        return true;
    take_failure(conn);
    return false;
}

/* As one record where it fits into one. Leaves in head and body what is left. */
static bool encrypt_message(struct conn *conn, struct view *head, struct view *body) {
    if (head->size > 0 && body->size > 0 && head->size + body->size <= TLS_RECORD_BYTES) {
        char *gather = scratch_of(conn)->gather;
        memcpy(gather, head->data, head->size);
        memcpy(gather + head->size, body->data, body->size);
        const struct view whole = {.data = gather, .size = head->size + body->size};
        head->size = body->size = 0;
        return encrypt(conn, whole);
    }
    const size_t head_size = head->size < TLS_PIECE_BYTES ? head->size : TLS_PIECE_BYTES;
    return encrypt(conn, take(head, head_size)) &&
           (head->size > 0 || encrypt(conn, take(body, TLS_PIECE_BYTES - head_size)));
}

bool conn_tls_write(struct conn *conn, struct view head, struct view body) {
    struct conn_tls *state = conn->tls;
    if (!state->is_established || state->first || conn->writes_pending > 0)
        return wait_with(conn, head, body);
    if (!encrypt_message(conn, &head, &body))
        return true;
    const bool is_all = head.size + body.size == 0;
    if (!is_all && wait_with(conn, head, body))
        return true;
    if (send_wire(conn, !is_all))
        return true;
    state->owes_drained = true;
    return conn->is_broken;
}

/* Says that nothing follows, once. */
static void say_end(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    if (state->has_said_end || !state->is_established || conn->is_broken)
        return;
    state->has_said_end = true;
    tls_session_end(state->session);
    (void)send_wire(conn, false);
}

/* Encrypts what waits, a piece, when the kernel has all that came before. */
static void go_on_writing(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    while (state->first && conn->writes_pending == 0 && !conn->is_broken && !conn->is_closing) {
        size_t left = TLS_PIECE_BYTES;
        while (state->first && left > 0) {
            struct waiting *first = state->first;
            struct view bytes = {.data = first->bytes + first->used,
                                 .size = first->size - first->used};
            const struct view piece = take(&bytes, left);
            if (!encrypt(conn, piece))
                return;
            first->used += piece.size;
            state->waiting_bytes -= piece.size;
            left -= piece.size;
            if (first->used == first->size)
                drop_first(state);
        }
        (void)send_wire(conn, state->first != NULL);
    }
    if (state->first || conn->writes_pending > 0 || conn->is_broken || conn->is_closing)
        return;
    if (conn->is_finishing) {
        if (!state->has_said_end) {
            say_end(conn);
            conn_shut(conn);
        }
    } else if (state->owes_drained) {
        state->owes_drained = false;
        conn_tell_drained(conn);
    }
}

void conn_tls_written(struct conn *conn) {
    if (conn->writes_pending == 0 && conn->tls->is_established)
        go_on_writing(conn);
}

void conn_tls_finish(struct conn *conn) { conn_tls_written(conn); }

void conn_tls_closing(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    loop_timer_close(state->timer);
    state->timer = NULL;
    if (!state->first && conn->writes_pending == 0)
        say_end(conn);
}

/* ---- reading ---- */

/* True: data may follow now. */
static bool shake_hands(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    switch (tls_session_handshake(state->session)) {
    case TLS_WANTS_INPUT:
        (void)send_wire(conn, false);
        return false;
    case TLS_ENDED:
    case TLS_FAILED:
        take_failure(conn);
        return false;
    case TLS_DONE:
        break;
    }
    loop_timer_close(state->timer);
    state->timer = NULL;
    state->is_established = true;
    state->tls->counts.handshakes++;
    state->tls->counts.resumed += tls_session_was_resumed(state->session);
    (void)send_wire(conn, false);
    if (conn->connecting && !conn->is_broken)
        connecting_done(conn);
    if (conn->is_closing || conn->is_broken)
        return false;
    go_on_writing(conn);
    return !conn->is_closing && conn->events;
}

static enum tls_result read_some(struct conn *conn, char **out_to, size_t *out_size) {
    struct tls_scratch *scratch = scratch_of(conn);
    size_t room = 0;
    char *to = conn->events->read_room ? conn->events->read_room(conn, conn->ctx, &room) : NULL;
    if (!to || room == 0) {
        to = scratch->read;
        room = sizeof scratch->read;
    }
    *out_to = to;
    const enum tls_result result = tls_session_read(conn->tls->session, to, room, out_size);
    (void)send_wire(conn, false); /* key updates want an answer */
    return result;
}

static void read_all(struct conn *conn) {
    while (!conn->is_closing && !conn->is_broken && !conn->is_finishing) {
        char *to = NULL;
        size_t size = 0;
        switch (read_some(conn, &to, &size)) {
        case TLS_DONE:
            conn->events->on_data(conn, conn->ctx, to, size);
            break;
        case TLS_WANTS_INPUT:
            return;
        case TLS_ENDED:
            (void)uv_read_stop((uv_stream_t *)&conn->tcp);
            conn_tell_end(conn);
            return;
        case TLS_FAILED:
            take_failure(conn);
            return;
        }
    }
}

void conn_tls_received(struct conn *conn, struct view bytes) {
    struct conn_tls *state = conn->tls;
    if (state->is_established && conn->is_finishing)
        return; /* read over, as of a plain connection */
    tls_session_feed(state->session, bytes);
    if (state->is_established || shake_hands(conn))
        read_all(conn);
    tls_session_feed(state->session, (struct view){.data = NULL}); /* bytes go away now */
}

bool conn_tls_ended(struct conn *conn) {
    struct conn_tls *state = conn->tls;
    if (!state->is_established && !conn->is_broken) {
        state->tls->counts.failed++;
        fail(conn, "the connection ended within the TLS handshake");
        return true;
    }
    /* Without the peer's word that nothing follows it may have been cut: that is a failure. */
    conn->is_broken = true;
    return false;
}

/* ---- the beginning ---- */

static bool begin(struct conn *conn, struct tls *tls, const char *host) {
    struct loop *loop = conn->loop;
    if (!loop->tls_scratch) {
        loop->tls_scratch = malloc(sizeof *loop->tls_scratch);
        if (!loop->tls_scratch)
            return false;
        buf_init(&loop->tls_scratch->wire);
    }
    struct conn_tls *state = calloc(1, sizeof *state);
    if (!state)
        return false;
    state->tls = tls;
    state->session = tls_session_create(tls, host, &loop->tls_scratch->wire);
    state->timer = loop_timer_create(loop, on_handshake_timeout, conn);
    if (!state->session || !state->timer) {
        tls_session_free(state->session);
        loop_timer_close(state->timer);
        free(state);
        return false;
    }
    const uint64_t timeout_ns =
        host ? tls->client.handshake_timeout_ns : tls->server.handshake_timeout_ns;
    if (timeout_ns > 0)
        loop_timer_set(state->timer, mono_ns() + timeout_ns);
    conn->tls = state;
    return true;
}

bool conn_tls_accept(struct conn *conn, struct tls *tls) { return begin(conn, tls, NULL); }

bool conn_tls_connect(struct conn *conn, struct tls *tls, const char *host) {
    if (!begin(conn, tls, host))
        return false;
    if (conn_read_start(conn) != 0)
        return false;
    (void)shake_hands(conn); /* the first message goes out; data cannot follow yet */
    return true;
}

void conn_tls_free(struct conn_tls *state) {
    if (!state)
        return;
    loop_timer_close(state->timer);
    tls_session_free(state->session);
    while (state->first)
        drop_first(state);
    free(state);
}

size_t conn_tls_waiting_bytes(const struct conn *conn) { return conn->tls->waiting_bytes; }

struct view conn_alpn(const struct conn *conn) {
    return conn->tls ? tls_session_alpn(conn->tls->session) : (struct view){.data = NULL};
}

bool conn_is_tls(const struct conn *conn) { return conn->tls != NULL; }

const char *conn_fault(const struct conn *conn) { return conn->tls ? conn->tls->fault : ""; }

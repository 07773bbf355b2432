/* The life of a connection. Loop thread only.
 *
 * Invariant: the parser is fed in HTTP_CONN_READING only, so a message and its body stay valid
 * until the answer is out; what arrives meanwhile waits in `pending`, at most PENDING_LIMIT and
 * one read more.
 * Read next: routes.c (what a message leads to), infer_route.c. */
#include "serve/http_conn.h"

#include "base/clock.h"
#include "serve/drain.h"
#include "serve/infer_run.h"
#include "serve/routes.h"
#include <stdlib.h>

enum { PENDING_LIMIT = 64 * 1024 };

static const uint64_t LINGER_NS = 500000000;

static uint64_t deadline_after(uint64_t now_ns, uint64_t timeout_ns) {
    return timeout_ns ? now_ns + timeout_ns : 0;
}

bool http_conn_is_idle(const struct http_conn *hc) {
    return hc->state == HTTP_CONN_READING && http_parser_is_idle(hc->parser) &&
           hc->pending.size == hc->pending_used;
}

/* Takes it out of the list and the counts; what is in flight on it is cancelled. */
static void leave(struct http_conn *hc) {
    struct server *server = hc->server;
    hc->state = HTTP_CONN_CLOSED;
    if (hc->exchange) {
        server->counts.vanished++;
        infer_run_abandon(hc->exchange);
    }
    if (hc->previous)
        hc->previous->next = hc->next;
    else
        server->connections = hc->next;
    if (hc->next)
        hc->next->previous = hc->previous;
    if (hc->kind == HTTP_CONN_API)
        server->http_count--;
    else if (hc->kind == HTTP_CONN_METRICS)
        server->metrics_count--;
}

void http_conn_close(struct http_conn *hc) {
    if (hc->state == HTTP_CONN_CLOSED)
        return;
    leave(hc);
    conn_close(hc->conn);
}

/* The answer is out and the connection ends, so that the client gets to read the answer even if
 * it is still sending. */
static void close_after_answer(struct http_conn *hc) {
    leave(hc);
    conn_finish(hc->conn, LINGER_NS);
}

static void on_closed(void *ctx) {
    struct http_conn *hc = ctx;
    struct server *server = hc->server;
    if (hc->kind == HTTP_CONN_REFUSED)
        server->refused_count--;
    server->open_count--;
    http_parser_free(hc->parser);
    buf_done(&hc->pending);
    free(hc);
    drain_check(server);
}

static void process_pending(struct http_conn *hc);

/* Everything of the answer has been handed to the kernel. at_ns: when. */
static void answered(struct http_conn *hc, uint64_t at_ns) {
    if (hc->exchange) {
        struct exchange *exchange = hc->exchange;
        hc->exchange = NULL;
        infer_run_sent(exchange, at_ns);
    }
    hc->free_ns = at_ns;
    if (hc->must_close) {
        close_after_answer(hc);
        return;
    }
    http_parser_next(hc->parser);
    hc->state = HTTP_CONN_READING;
    hc->deadline_ns = deadline_after(at_ns, hc->server->config->idle_timeout_ns);
    if (!hc->is_processing)
        process_pending(hc);
}

void http_conn_answer(struct http_conn *hc, int status, const char *content_type) {
    http_conn_answer_with(hc, status, content_type, &hc->server->body);
}

void http_conn_answer_with(struct http_conn *hc, int status, const char *content_type,
                           const struct buf *body) {
    struct server *server = hc->server;
    hc->must_close |= server->is_draining;
    if (status >= 100 && status < 600)
        server->counts.by_http[status]++;
    buf_clear(&server->head);
    http_write_response(&server->head, status, content_type, body->size, !hc->must_close,
                        buf_view(&server->extra));
    if (server->head.failed || server->extra.failed || body->failed) {
        log_line(LOG_ERROR, "out of memory while writing an answer of %zu bytes: closing",
                 body->size);
        http_conn_close(hc);
        return;
    }
    const struct view nothing = {.data = NULL};
    hc->state = HTTP_CONN_WRITING;
    if (conn_write(hc->conn, buf_view(&server->head),
                   hc->is_head ? nothing : buf_view(body))) {
        if (conn_can_write(hc->conn))
            answered(hc, mono_ns());
        else
            http_conn_close(hc); /* the client is gone */
        return;
    }
    hc->unsent_bytes = conn_unsent_bytes(hc->conn);
    hc->deadline_ns = deadline_after(mono_ns(), server->config->read_timeout_ns);
}

void http_conn_fail(struct http_conn *hc, enum status status, const char *text) {
    struct server *server = hc->server;
    buf_clear(&server->body);
    buf_text(&server->body, "{\"error\":");
    buf_json_string(&server->body, view_of(text[0] ? text : status_sentence(status)));
    buf_char(&server->body, '}');
    if (status_http(status) == 503)
        buf_text(&server->extra, "Retry-After: 1\r\n");
    http_conn_answer(hc, status_http(status), "application/json");
}

static void handle_message(struct http_conn *hc) {
    const struct http_message *message = http_parser_message(hc->parser);
    hc->is_head = message->method == HTTP_METHOD_HEAD;
    hc->must_close = !message->keep_alive;
    hc->deadline_ns = 0;
    hc->state = HTTP_CONN_BUSY;
    buf_clear(&hc->server->extra);
    buf_clear(&hc->server->body);
    routes_dispatch(hc, message);
}

static void handle_malformed(struct http_conn *hc) {
    struct err err = {.text = ""};
    const enum status status = http_parser_status(hc->parser, &err);
    hc->server->counts.malformed++;
    hc->is_head = false;
    hc->must_close = true;
    buf_clear(&hc->server->extra);
    http_conn_fail(hc, status, err.text);
}

static void handle_event(struct http_conn *hc, enum http_event event) {
    static const char CONTINUE[] = "HTTP/1.1 100 Continue\r\n\r\n";
    switch (event) {
    case HTTP_NEED_MORE:
        return;
    case HTTP_HEADERS:
        if (http_parser_message(hc->parser)->expects_continue) /* queued or not is the same here */
            (void)conn_write(hc->conn, view_of(CONTINUE), (struct view){.data = NULL});
        return;
    case HTTP_COMPLETE:
        handle_message(hc);
        return;
    case HTTP_FAILED:
        handle_malformed(hc);
        return;
    }
}

/* Feeds the parser while the connection is free for a message; returns the bytes used. */
static size_t process(struct http_conn *hc, const char *bytes, size_t size, uint64_t now_ns) {
    size_t done = 0;
    hc->is_processing = true;
    while (done < size && hc->state == HTTP_CONN_READING) {
        if (http_parser_is_idle(hc->parser)) {
            hc->start_ns = now_ns > hc->free_ns ? now_ns : hc->free_ns;
            hc->deadline_ns = deadline_after(hc->start_ns, hc->server->config->read_timeout_ns);
        }
        size_t used = 0;
        const enum http_event event =
            http_parser_feed(hc->parser, bytes + done, size - done, &used);
        done += used;
        handle_event(hc, event);
    }
    hc->is_processing = false;
    return done;
}

static void process_pending(struct http_conn *hc) {
    if (hc->pending.size > hc->pending_used)
        hc->pending_used += process(hc, hc->pending.data + hc->pending_used,
                                    hc->pending.size - hc->pending_used,
                                    loop_turn_ns(hc->server->loop));
    if (hc->pending.size == hc->pending_used) {
        buf_clear(&hc->pending);
        hc->pending_used = 0;
    }
    if (hc->is_paused && hc->state != HTTP_CONN_CLOSED &&
        hc->pending.size - hc->pending_used <= PENDING_LIMIT) {
        hc->is_paused = false;
        conn_resume_reading(hc->conn);
    }
}

static void keep_pending(struct http_conn *hc, const char *bytes, size_t size) {
    if (hc->pending_used) { /* move what is left to the front: the used part is never reused */
        hc->pending.size -= hc->pending_used;
        memmove(hc->pending.data, hc->pending.data + hc->pending_used, hc->pending.size);
        hc->pending_used = 0;
    }
    buf_append(&hc->pending, bytes, size);
    if (hc->pending.failed) {
        http_conn_close(hc);
        return;
    }
    if (hc->pending.size > PENDING_LIMIT && !hc->is_paused) {
        hc->is_paused = true;
        conn_pause_reading(hc->conn);
    }
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct http_conn *hc = ctx;
    assert_role(ROLE_LOOP);
    if (hc->state == HTTP_CONN_CLOSED)
        return;
    if (hc->room && bytes == hc->room) {
        hc->room = NULL;
        hc->is_processing = true;
        handle_event(hc, http_parser_body_filled(hc->parser, size));
        hc->is_processing = false;
        return;
    }
    if (hc->state == HTTP_CONN_READING && hc->pending.size == hc->pending_used) {
        const size_t used = process(hc, bytes, size, conn_readable_ns(conn));
        bytes += used;
        size -= used;
    }
    if (size && hc->state != HTTP_CONN_CLOSED)
        keep_pending(hc, bytes, size);
}

static char *read_room(struct conn *conn, void *ctx, size_t *out_room) {
    (void)conn;
    struct http_conn *hc = ctx;
    hc->room = NULL;
    if (hc->state == HTTP_CONN_READING && hc->pending.size == hc->pending_used)
        hc->room = http_parser_body_room(hc->parser, out_room);
    return hc->room;
}

static void on_drained(struct conn *conn, void *ctx, uint64_t at_ns) {
    (void)conn;
    struct http_conn *hc = ctx;
    if (hc->state == HTTP_CONN_WRITING)
        answered(hc, at_ns);
}

/* A client that closes its sending side with a request in flight is taken for one that left: no
 * HTTP client in use does that and still reads, and a request for nobody would hold its place in
 * the queue. An answer that is on its way goes on. */
static void on_end(struct conn *conn, void *ctx) {
    struct http_conn *hc = ctx;
    if (hc->state == HTTP_CONN_WRITING && conn_can_write(conn))
        hc->must_close = true;
    else
        http_conn_close(hc);
}

void http_conn_sweep(struct http_conn *hc, uint64_t now_ns) {
    if (hc->deadline_ns == 0 || now_ns < hc->deadline_ns)
        return;
    struct server_counts *counts = &hc->server->counts;
    switch (hc->state) {
    case HTTP_CONN_READING:
        if (http_conn_is_idle(hc)) {
            counts->idle_timeouts++;
            http_conn_close(hc);
            return;
        }
        counts->read_timeouts++;
        hc->is_head = false;
        hc->must_close = true;
        buf_clear(&hc->server->extra);
        http_conn_fail(hc, ST_REQUEST_TIMEOUT,
                       "the request did not arrive whole within the read timeout");
        return;
    case HTTP_CONN_WRITING:
        if (conn_unsent_bytes(hc->conn) < hc->unsent_bytes) {
            hc->unsent_bytes = conn_unsent_bytes(hc->conn);
            hc->deadline_ns = deadline_after(now_ns, hc->server->config->read_timeout_ns);
            return;
        }
        counts->write_timeouts++;
        http_conn_close(hc);
        return;
    case HTTP_CONN_BUSY:
    case HTTP_CONN_CLOSED:
        return;
    }
}

static struct http_conn *create(struct server *server, struct conn *conn,
                                enum http_conn_kind kind) {
    struct http_conn *hc = calloc(1, sizeof *hc);
    if (!hc)
        return NULL;
    const struct http_limits limits = {.max_header_bytes = (uint32_t)server->config->max_header,
                                       .max_body_bytes = server->config->max_body};
    hc->parser = http_parser_create(false, limits);
    if (!hc->parser) {
        free(hc);
        return NULL;
    }
    hc->server = server;
    hc->conn = conn;
    hc->kind = kind;
    buf_init(&hc->pending);
    hc->deadline_ns = deadline_after(loop_turn_ns(server->loop), server->config->idle_timeout_ns);
    hc->next = server->connections;
    if (hc->next)
        hc->next->previous = hc;
    server->connections = hc;
    server->open_count++;
    if (kind == HTTP_CONN_API)
        server->http_count++;
    else if (kind == HTTP_CONN_METRICS)
        server->metrics_count++;
    else
        server->refused_count++;
    return hc;
}

void http_conn_accept(struct server *server, struct conn *conn, enum http_conn_kind kind) {
    static const struct conn_events EVENTS = {.on_data = on_data,
                                              .on_end = on_end,
                                              .on_drained = on_drained,
                                              .read_room = read_room,
                                              .on_closed = on_closed};
    const uint64_t count = kind == HTTP_CONN_API ? server->http_count : server->metrics_count;
    const uint64_t limit =
        kind == HTTP_CONN_API ? server->config->max_connections : METRICS_CONNECTIONS;
    server->counts.accepted++;
    if (count >= limit) {
        server->counts.refused++;
        kind = HTTP_CONN_REFUSED;
    }
    struct http_conn *hc = kind == HTTP_CONN_REFUSED && server->refused_count >= REFUSED_CONNECTIONS
                               ? NULL
                               : create(server, conn, kind);
    if (!hc) {
        conn_close(conn);
        return;
    }
    conn_start(conn, &EVENTS, hc);
    if (kind == HTTP_CONN_REFUSED) {
        hc->must_close = true;
        buf_clear(&server->extra);
        http_conn_fail(hc, ST_OVERLOADED, "too many connections: raise --max-connections");
    }
}

/* A client's connection. Loop thread. Invariant: after an event that ends the client, or
 * http_client_close, no event follows; the struct lives until the connection's handle is closed.
 * Users: target_http.c (many, pooled), fetch.c (one). */
#include "load/http_client.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { CLIENT_MAX_HEADER = 65536 };
#define CLIENT_MAX_BODY (1ull << 31)

struct http_client {
    struct conn *conn;
    struct http_parser *parser;
    const struct http_client_events *events;
    void *ctx;
    uint64_t first_byte_ns; /* of the answer being read; 0: none yet */
    bool is_waiting;        /* for an answer */
    bool is_closed;         /* no event any more */
    bool is_started;        /* conn has our events: on_closed will come */
};

static void client_delete(struct http_client *client) {
    http_parser_free(client->parser);
    free(client);
}

static void on_closed(void *ctx) { client_delete(ctx); }

void http_client_close(struct http_client *client) {
    if (client == NULL || client->is_closed) return;
    client->is_closed = true;
    const bool is_started = client->is_started; /* then on_closed deletes it */
    conn_close(client->conn);
    if (!is_started) client_delete(client);
}

static void fail(struct http_client *client, const char *detail) {
    if (client->is_closed) return;
    const struct http_client_events *events = client->events;
    void *ctx = client->ctx;
    uint64_t first_byte_ns = client->first_byte_ns;
    http_client_close(client);
    events->on_failed(ctx, detail, first_byte_ns);
}

static void answer(struct http_client *client, bool has_more_bytes) {
    const struct http_message *message = http_parser_message(client->parser);
    struct http_answer complete = {.message = message, .first_byte_ns = client->first_byte_ns};
    bool is_reusable = message->keep_alive && !has_more_bytes;
    client->is_waiting = false;
    client->first_byte_ns = 0;
    if (!is_reusable) {
        http_client_close(client); /* the parser and its views live on until on_closed */
        client->events->on_answer(client->ctx, &complete, false);
        return;
    }
    client->events->on_answer(client->ctx, &complete, true);
}

static void handle(struct http_client *client, enum http_event event, bool has_more_bytes) {
    if (event == HTTP_FAILED) {
        struct err err = {0};
        char detail[600];
        (void)http_parser_status(client->parser, &err);
        snprintf(detail, sizeof detail, "the answer is not valid HTTP: %s", err.text);
        fail(client, detail);
    } else if (event == HTTP_COMPLETE) {
        int status = http_parser_message(client->parser)->status;
        if (status >= 100 && status < 200) http_parser_next(client->parser); /* interim */
        else answer(client, has_more_bytes);
    }
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    (void)conn;
    struct http_client *client = ctx;
    if (client->is_closed) return;
    if (!client->is_waiting) {
        fail(client, "the server sent bytes that nobody asked for");
        return;
    }
    if (client->first_byte_ns == 0) client->first_byte_ns = mono_ns();
    size_t room;
    if (bytes == http_parser_body_room(client->parser, &room)) {
        handle(client, http_parser_body_filled(client->parser, size), false);
        return;
    }
    while (size > 0 && !client->is_closed && client->is_waiting) {
        size_t used = 0;
        enum http_event event = http_parser_feed(client->parser, bytes, size, &used);
        bytes += used;
        size -= used;
        handle(client, event, size > 0);
        if (event == HTTP_NEED_MORE) return;
    }
}

static char *read_room(struct conn *conn, void *ctx, size_t *out_room) {
    (void)conn;
    struct http_client *client = ctx;
    return client->is_closed ? NULL : http_parser_body_room(client->parser, out_room);
}

static void on_end(struct conn *conn, void *ctx) {
    struct http_client *client = ctx;
    if (client->is_closed) return;
    /* An answer that lasts until the connection ends is whole only if that end was meant. */
    if (client->is_waiting && client->first_byte_ns != 0 && conn_can_write(conn) &&
        http_parser_eof(client->parser) == HTTP_COMPLETE) {
        answer(client, true);
        return;
    }
    const char *what = client->first_byte_ns != 0
                           ? "the server closed the connection in the middle of an answer"
                           : "the server closed the connection without an answer";
    char detail[400];
    snprintf(detail, sizeof detail, "%s%s%s", what, conn_fault(conn)[0] != 0 ? ": " : "",
             conn_fault(conn));
    fail(client, detail);
}

static void on_drained(struct conn *conn, void *ctx, uint64_t at_ns) {
    (void)conn;
    (void)ctx;
    (void)at_ns;
}

static void on_connected(struct conn *conn, void *ctx, enum status status, const char *detail) {
    static const struct conn_events EVENTS = {
        .on_data = on_data,
        .on_end = on_end,
        .on_drained = on_drained,
        .read_room = read_room,
        .on_closed = on_closed,
    };
    struct http_client *client = ctx;
    if (status != ST_OK) {
        char text[600];
        snprintf(text, sizeof text, "%s", detail);
        fail(client, text);
        return;
    }
    client->is_started = true;
    conn_start(conn, &EVENTS, client);
    client->events->on_ready(client->ctx);
}

enum status http_client_connect(struct loop *loop, struct tls *tls, const char *host,
                                uint16_t port,
                                const struct http_client_events *events, void *ctx,
                                struct http_client **out, struct err *err) {
    struct http_client *client = calloc(1, sizeof *client);
    if (client == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for a connection");
    client->events = events;
    client->ctx = ctx;
    client->parser =
        http_parser_create(true, (struct http_limits){.max_header_bytes = CLIENT_MAX_HEADER,
                                                      .max_body_bytes = CLIENT_MAX_BODY});
    enum status status = ST_NO_MEMORY;
    if (client->parser == NULL) (void)err_set(err, status, "out of memory for a connection");
    else
        status = conn_connect_tls(loop, tls, host, port, on_connected, client, &client->conn, err);
    if (status != ST_OK) {
        client_delete(client);
        return status;
    }
    *out = client;
    return ST_OK;
}

void http_client_send(struct http_client *client, struct view head, struct view tail) {
    http_parser_next(client->parser);
    client->is_waiting = true;
    client->first_byte_ns = 0;
    (void)conn_write(client->conn, head, tail);
}

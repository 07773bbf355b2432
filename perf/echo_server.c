/* The floor that perf/request_cpu compares with: a server of the same event loop, connections and
 * HTTP parser that answers every request with 64 bytes, head and all as large as an inference
 * answer's. What it costs a request is the kernel's loopback and the bytes' way through net/ and
 * proto/; what the server costs more is inference.
 *
 *     perf_echo_server --port-file FILE
 *
 * One thread. Runs until SIGTERM. */
#include "net/conn.h"
#include "net/loop.h"
#include "proto/http1.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_BYTES = 150 }; /* JSON part and 64 bytes of floats */

struct server {
    struct loop *loop;
    struct listener *listener;
    struct loop_signal *on_term;
    struct peer *peers;
    struct buf head;
    char body[BODY_BYTES];
};

struct peer {
    struct server *server;
    struct conn *conn;
    struct http_parser *parser;
    struct peer *previous, *next;
};

static const char EXTRA[] =
    "Inference-Header-Content-Length: 86\r\n"
    "Server-Timing: total;dur=0.345, receive;dur=0.012, decode;dur=0.003, instance_wait;dur=0.200, "
    "dispatch;dur=0.010, input_copy;dur=0.002, execute;dur=0.005, other;dur=0.101\r\n";

static void close_peer(struct peer *peer) {
    if (peer->previous != NULL) peer->previous->next = peer->next;
    else peer->server->peers = peer->next;
    if (peer->next != NULL) peer->next->previous = peer->previous;
    conn_close(peer->conn);
}

static void answer(struct peer *peer) {
    struct server *server = peer->server;
    buf_clear(&server->head);
    http_write_response(&server->head, 200, "application/octet-stream", sizeof server->body, true,
                        view_of(EXTRA));
    conn_write(peer->conn, buf_view(&server->head),
               (struct view){.data = server->body, .size = sizeof server->body});
    http_parser_next(peer->parser);
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    (void)conn;
    struct peer *peer = ctx;
    while (size > 0) {
        size_t used = 0;
        const enum http_event event = http_parser_feed(peer->parser, bytes, size, &used);
        bytes += used;
        size -= used;
        if (event == HTTP_COMPLETE) {
            answer(peer);
        } else if (event == HTTP_FAILED) {
            close_peer(peer);
            return;
        }
    }
}

static void on_end(struct conn *conn, void *ctx) {
    (void)conn;
    close_peer(ctx);
}

static void on_closed(void *ctx) {
    struct peer *peer = ctx;
    http_parser_free(peer->parser);
    free(peer);
}

static void on_accept(void *ctx, struct conn *conn) {
    static const struct conn_events EVENTS = {
        .on_data = on_data, .on_end = on_end, .on_closed = on_closed};
    struct server *server = ctx;
    struct peer *peer = malloc(sizeof *peer);
    struct http_parser *parser =
        http_parser_create(false, (struct http_limits){.max_header_bytes = 16384,
                                                       .max_body_bytes = 1 << 20});
    if (peer == NULL || parser == NULL) {
        free(peer);
        http_parser_free(parser);
        conn_close(conn);
        return;
    }
    *peer = (struct peer){
        .server = server, .conn = conn, .parser = parser, .next = server->peers};
    if (peer->next != NULL) peer->next->previous = peer;
    server->peers = peer;
    conn_start(conn, &EVENTS, peer);
}

static void on_term(void *ctx, int signum) {
    (void)signum;
    struct server *server = ctx;
    while (server->peers != NULL) close_peer(server->peers);
    listener_close(server->listener);
    loop_signal_close(server->on_term);
}

static int fail(const char *what) {
    fprintf(stderr, "perf_echo_server: %s\n", what);
    return 1;
}

/* Whole or not at all, as telltale serve does it. */
static int write_port_file(const char *path, unsigned port) {
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "w");
    if (file == NULL) return fail("cannot write the port file");
    fprintf(file, "http %u\n", port);
    if (fclose(file) != 0 || rename(temporary, path) != 0)
        return fail("cannot write the port file");
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "--port-file") != 0) return fail("usage: --port-file FILE");
    struct server server = {0};
    struct err err = {""};
    buf_init(&server.head);
    memset(server.body, 'x', sizeof server.body);
    if (loop_create(&server.loop, &err) != ST_OK ||
        listener_create(server.loop, "127.0.0.1", 0, on_accept, &server, &server.listener, &err) !=
            ST_OK)
        return fail(err.text);
    server.on_term = loop_signal_create(server.loop, SIGTERM, on_term, &server);
    if (server.on_term == NULL) return fail("no memory");
    if (write_port_file(argv[2], listener_port(server.listener)) != 0) return 1;
    loop_run(server.loop);
    buf_done(&server.head);
    loop_free(server.loop);
    return 0;
}

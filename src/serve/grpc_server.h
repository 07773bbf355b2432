/* The gRPC port: its connections, streams and calls. Loop thread only.
 *
 * A connection (grpc_conn.c) is an HTTP/2 session; a stream (grpc_stream.c) is one call of a
 * method; a message of it that is an inference request becomes a grpc_call (grpc_infer.c) with an
 * exchange; other methods answer at once (grpc_routes.c).
 *
 * Invariant: memory of messages that are being received or worked on is counted in `quota`. */
#ifndef TELLTALE_SERVE_GRPC_SERVER_H
#define TELLTALE_SERVE_GRPC_SERVER_H

#include "proto/grpc.h"
#include "proto/h2.h"
#include "serve/server.h"
#include "sync/mpsc.h"

struct grpc_stream;
struct grpc_call;
struct grpc_conn;
struct grpc_control;

struct grpc_counts {
    uint64_t accepted, refused;
    uint64_t by_code[GRPC_CODE_COUNT]; /* streams answered */
    uint64_t stream_messages;          /* answers inside ModelStreamInfer */
    uint64_t cancelled;                /* streams that their client gave up */
    uint64_t broken;                   /* connections that broke HTTP/2 */
    uint64_t too_lively;               /* told ENHANCE_YOUR_CALM */
    uint64_t timeouts;                 /* of idle, silent and stalled ones */
};

struct grpc_server {
    struct server *server;
    struct listener *listener;     /* NULL: closed */
    struct loop_wake *wake;        /* work was left for another turn, or a control is done */
    struct mpsc done;              /* of struct grpc_control, pushed by the engine's loaders */
    struct grpc_conn *connections; /* list */
    uint64_t connection_count;
    uint64_t stream_count;
    struct grpc_conn *dirty;       /* have something to send: at the end of the turn */
    struct grpc_conn *waiting;     /* have input left for another turn */
    struct grpc_call *free_calls;
    uint32_t free_call_count;
    struct grpc_quota quota;
    struct grpc_counts counts;
    struct buf text;               /* scratch */
};

/* --grpc-port: a number that no other port has, or "none". */
MUST_CHECK enum status grpc_port_check(const struct serve_config *config, struct err *err);
/* Binds the port and sets server->grpc, unless it is none. */
MUST_CHECK enum status grpc_server_open(struct server *server, struct err *err);
/* After engine_free and the loop. NULL allowed. */
void grpc_server_free(struct grpc_server *grpc);
/* Closes the wake and the listener: before the loop is freed. NULL allowed. */
void grpc_server_close(struct grpc_server *grpc);
uint16_t grpc_server_port(const struct grpc_server *grpc);

/* The end of a turn: sends what became ready. NULL allowed, here and below. */
void grpc_server_flush(struct grpc_server *grpc);
/* Acts on deadlines of connections. */
void grpc_server_sweep(struct grpc_server *grpc, uint64_t now_ns);
/* Readiness has changed: those that watch are told. */
void grpc_server_tell_health(struct grpc_server *grpc);
/* No new connections, and a notice to those there are. */
void grpc_server_stop_listening(struct grpc_server *grpc);
/* Families of /metrics into server->body. */
void grpc_server_write_metrics(const struct grpc_server *grpc, struct buf *out);

#endif

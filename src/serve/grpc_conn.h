/* One gRPC client's connection. Loop thread only. */
#ifndef TELLTALE_SERVE_GRPC_CONN_H
#define TELLTALE_SERVE_GRPC_CONN_H

#include "serve/grpc_server.h"

struct grpc_conn {
    struct grpc_server *grpc;
    struct conn *conn;
    struct h2 *h2;               /* NULL: closed, or closing */
    struct grpc_conn *previous, *next;
    struct grpc_conn *next_dirty, *next_waiting;
    struct grpc_stream *streams; /* open ones */
    struct grpc_call *sending;   /* their answers' last bytes are written, not yet with the kernel */
    struct buf pending;          /* input left for another turn */
    size_t pending_used;
    struct buf out;
    uint64_t heard_ns;           /* the last input */
    uint64_t idle_ns;            /* since when there has been no stream; 0: there is one */
    uint64_t stalled_ns;         /* since when the kernel has taken nothing; 0: it takes */
    size_t unsent_bytes;         /* at that time */
    uint64_t goaway_ns;          /* the notice's last word comes then; 0: no notice */
    bool is_dirty, is_waiting;
    bool has_pinged;             /* since it was heard last */
    bool has_said_goaway;
};

void grpc_conn_accept(struct grpc_server *grpc, struct conn *conn);
/* Something was given to its session: it will be sent at the end of the turn. */
void grpc_conn_touch(struct grpc_conn *gc);
void grpc_conn_flush(struct grpc_conn *gc);
/* Goes on with the input that was left. */
void grpc_conn_go_on(struct grpc_conn *gc);
void grpc_conn_sweep(struct grpc_conn *gc, uint64_t now_ns);
/* The notice that it will end; the last word follows. */
void grpc_conn_drain(struct grpc_conn *gc, uint64_t now_ns);
void grpc_conn_close(struct grpc_conn *gc);
/* When the bytes that are being worked on were seen to be there. */
uint64_t grpc_conn_input_ns(const struct grpc_conn *gc);

#endif

/* A connection's fields, for conn.c, connect.c and listener.c. */
#ifndef TELLTALE_NET_CONN_INTERNAL_H
#define TELLTALE_NET_CONN_INTERNAL_H

#include "net/conn.h"
#include "net/loop_internal.h"
#include "net/tls.h"

struct connecting;  /* connect.c */
struct conn_tls;    /* conn_tls.c */

struct conn {
    uv_tcp_t tcp; /* data: the conn */
    struct loop *loop;
    const struct conn_events *events; /* NULL before conn_start */
    void *ctx;
    uint64_t round;       /* of the loop, in which it was read last */
    uint64_t put_off_ns;  /* since when it is readable and has not been read; 0: not so */
    uint64_t readable_ns; /* of the last read */
    uint32_t writes_pending;
    bool has_ended;    /* the peer closed its side, or on_end was called */
    bool is_broken;    /* nothing can be written any more */
    bool is_closing;   /* conn_close was called */
    bool is_finishing; /* conn_finish was called */
    bool is_listed;    /* in loop->failed */
    struct conn *failed_next, *failed_previous;
    struct connecting *connecting; /* client, until connected */
    struct loop_timer *linger;     /* with is_finishing */
    uv_shutdown_t shutdown;        /* with is_finishing */
    struct conn_tls *tls;          /* NULL: plain */
};

/* NULL when memory is out; its handle is initialised and owned by the loop until conn_close. */
struct conn *conn_new(struct loop *loop);
/* The handle has closed: tells the owner, frees. */
void conn_release(struct conn *conn);
/* connect.c: true when it takes care of the closing itself. */
bool connecting_abort(struct conn *conn);
void connecting_free(struct connecting *connecting); /* NULL allowed */
/* connect.c, for conn_tls.c: the handshake is over. Either may close conn. */
void connecting_done(struct conn *conn);
void connecting_failed(struct conn *conn, const char *sentence);

/* conn.c, for conn_tls.c. */
int conn_read_start(struct conn *conn);
/* Bytes as they are to the kernel, what it does not take to libuv's queue. wait: all to that queue.
 * True when the kernel has all of it or the connection broke. */
bool conn_send(struct conn *conn, struct view bytes, bool wait);
void conn_break(struct conn *conn); /* nothing can be sent any more: on_end follows */
void conn_shut(struct conn *conn);  /* with is_finishing: ends the sending side */
void conn_tell_end(struct conn *conn);
void conn_tell_drained(struct conn *conn);

/* conn_tls.c, for conn.c, connect.c and listener.c. False: no memory. */
bool conn_tls_accept(struct conn *conn, struct tls *tls);
bool conn_tls_connect(struct conn *conn, struct tls *tls, const char *host);
void conn_tls_received(struct conn *conn, struct view bytes);
/* The socket's input has ended. True: it has been told; otherwise the caller goes on. */
bool conn_tls_ended(struct conn *conn);
void conn_tls_broke(struct conn *conn); /* while it is connecting */
bool conn_tls_write(struct conn *conn, struct view head, struct view body); /* as conn_write */
void conn_tls_written(struct conn *conn); /* the kernel took something of the queue */
void conn_tls_finish(struct conn *conn);  /* is_finishing has been set */
void conn_tls_closing(struct conn *conn); /* the handle is about to be closed */
size_t conn_tls_waiting_bytes(const struct conn *conn);
void conn_tls_free(struct conn_tls *state); /* NULL allowed */

#endif

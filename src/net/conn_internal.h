/* A connection's fields, for conn.c, connect.c and listener.c. */
#ifndef TELLTALE_NET_CONN_INTERNAL_H
#define TELLTALE_NET_CONN_INTERNAL_H

#include "net/conn.h"
#include "net/loop_internal.h"

struct connecting; /* connect.c */

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
};

/* NULL when memory is out; its handle is initialised and owned by the loop until conn_close. */
struct conn *conn_new(struct loop *loop);
/* The handle has closed: tells the owner, frees. */
void conn_release(struct conn *conn);
/* connect.c: true when it takes care of the closing itself. */
bool connecting_abort(struct conn *conn);
void connecting_free(struct connecting *connecting); /* NULL allowed */

#endif

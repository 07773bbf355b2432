/* What the files of net/ share about a loop. For them alone. */
#ifndef TELLTALE_NET_LOOP_INTERNAL_H
#define TELLTALE_NET_LOOP_INTERNAL_H

#include "net/loop.h"

#include <uv.h>

enum { LOOP_READ_BYTES = 65536 };

struct conn;
struct timer_heap;
struct tls_scratch; /* conn_tls.c */

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare; /* before the loop waits */
    uv_check_t check;     /* after it waited and ran the callbacks */
    bool turn_is_stamped;
    bool turn_is_dirty; /* a callback ran since turn_end was last called */
    uint64_t turn_ns, turn_number;
    void (*turn_end)(void *ctx);
    void *turn_end_ctx;
    uint64_t cpu_ns; /* of the thread, when the turn before was over */
    void (*turn_over)(void *ctx, uint64_t busy_ns, uint64_t cpu_ns);
    void *turn_over_ctx;
    /* Every readable connection is read once a round; a round is a turn, or as many as it takes. */
    uint64_t round;
    bool has_put_off;    /* somebody's turn to be read has not come in this round */
    uint64_t shed;
    struct conn *failed; /* connections that owe an on_end, see conn.c */
    struct timer_heap *timers;
    struct tls_scratch *tls_scratch; /* NULL until there is a TLS connection */
    char read_bytes[LOOP_READ_BYTES]; /* shared by the connections, one read at a time */
};

/* First thing in every callback that libuv makes: stamps the turn, and sees to turn_end. */
void loop_enter(struct loop *loop);

/* timer.c */
enum status timers_open(struct loop *loop, struct err *err);
void timers_close(struct loop *loop);      /* begins closing its handle */
void timers_free(struct timer_heap *heap); /* after the handle has closed */
void timers_arm(struct loop *loop);        /* before the loop waits */

/* conn.c */
void conn_report_failures(struct loop *loop);
/* conn_tls.c; NULL allowed */
void conn_tls_scratch_free(struct tls_scratch *scratch);

/* "cannot VERB: reason (-98)" in one form; uv_error is negative. */
enum status net_fail(struct err *err, int uv_error, const char *verb);

#endif

/* One event loop, one thread (libuv underneath; no other folder includes uv.h but serve/ and
 * load/ for their timers and signals through this header's wrappers). Knows no protocol.
 *
 * A turn of the loop: readable connections are read first, then on_turn_end runs once, so that
 * whoever queues work during the turn can wake its consumer once.
 *
 * Turns are kept short, since whatever becomes ready meanwhile waits for the next one: each
 * connection is read once, at most LOOP_READ_MAX bytes, and when reading has taken LOOP_SHARE_NS
 * the others come in the next turn, before those that have had theirs; so do connections to be
 * accepted beyond LOOP_ACCEPTS. Who works off a list of his own in a turn does likewise. */
#ifndef TELLTALE_NET_LOOP_H
#define TELLTALE_NET_LOOP_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
enum {
    LOOP_SHARE_NS = 500000,     /* what reading may take of a turn, and any other kind of work */
    LOOP_READ_MAX = 256 * 1024, /* some 50 us to copy */
    LOOP_ACCEPTS = 16           /* some 20 us each */
};
/* The creators of wakes, timers and signals give NULL when memory or descriptors are out. */
MUST_CHECK enum status loop_create(struct loop **out, struct err *err);
void loop_free(struct loop *loop); /* everything on it must be closed; NULL allowed */
/* Until loop_stop or nothing is left. Signals do not count as something; wakes, listeners,
 * connections and timers that are set do. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* mono_ns taken when this turn's events came in. */
uint64_t loop_turn_ns(const struct loop *loop);
/* How many connections its listeners closed unanswered, because no descriptor or no memory was
 * left for them. */
uint64_t loop_shed(const struct loop *loop);
/* Called after the I/O callbacks of each turn that had any, and once more before the loop waits
 * when others ran meanwhile (connections that closed, say): work queued by any callback is
 * followed by a call. */
void loop_on_turn_end(struct loop *loop, void (*fn)(void *ctx), void *ctx);

/* Called before the loop waits, with the time since the turn's first callback (how long something
 * that became ready meanwhile may have waited) and the thread's processor time in it, waiting's
 * system call included: where that is much less, others had the processor. For counting. */
void loop_on_turn_over(struct loop *loop,
                       void (*fn)(void *ctx, uint64_t busy_ns, uint64_t cpu_ns), void *ctx);

/* Wakes the loop from any thread and runs fn on it; several wakes may become one call. The write
 * to the eventfd is skipped while a wake is pending. */
struct loop_wake;
struct loop_wake *loop_wake_create(struct loop *loop, void (*fn)(void *ctx), void *ctx);
void loop_wake_send(struct loop_wake *wake);
void loop_wake_close(struct loop_wake *wake); /* no thread may send any more; NULL allowed */

/* Timers on timerfd precision (1 ns argument, fires within some 60 us), one-shot, never early; in
 * order of their instants, equal ones in order of setting. Setting and clearing cost no system
 * call: one timer a request is fine. */
struct loop_timer;
struct loop_timer *loop_timer_create(struct loop *loop, void (*fn)(void *ctx), void *ctx);
void loop_timer_set(struct loop_timer *timer, uint64_t at_ns); /* mono_ns; replaces; 0 disarms */
void loop_timer_close(struct loop_timer *timer); /* also from within any fn; NULL allowed */

/* SIGINT, SIGTERM and the like, delivered on the loop. (SIGPIPE is set to be ignored by
 * loop_create, unless the program handles it.) */
struct loop_signal;
struct loop_signal *loop_signal_create(struct loop *loop, int signum,
                                       void (*fn)(void *ctx, int signum), void *ctx);
void loop_signal_close(struct loop_signal *signal);

#endif

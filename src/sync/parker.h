/* An event count: lets one kind of thread sleep until there is something to do, while those
 * who make work pay a system call only when somebody sleeps.
 *
 * Sleeper:                                   Waker:
 *     uint32_t key = parker_prepare(p);          publish the work (any store or CAS);
 *     if (work is there) parker_cancel(p);       parker_wake(p, n);
 *     else parker_wait(p, key, deadline_ns);
 *
 * A wake between prepare and wait is never lost. Wake after every publication: who leaves that
 * to another waker waits for it when it is preempted before its wake. Futex underneath
 * (private). */
#ifndef TELLTALE_SYNC_PARKER_H
#define TELLTALE_SYNC_PARKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct parker {
    _Alignas(64) _Atomic uint32_t epoch; /* futex word; written by wakers */
    _Atomic uint32_t sleepers;           /* written by sleepers */
    _Atomic uint64_t wake_calls;         /* system calls made to wake, relaxed count */
};

void parker_init(struct parker *parker);
uint32_t parker_prepare(struct parker *parker);
void parker_cancel(struct parker *parker);
/* Returns when woken, at deadline_ns (mono_ns; UINT64_MAX: never) or spuriously. Calls cancel
 * itself. True when woken, false at the deadline. */
bool parker_wait(struct parker *parker, uint32_t key, uint64_t deadline_ns);
/* Wakes up to count sleepers. No system call when nobody sleeps. True when it made one. */
bool parker_wake(struct parker *parker, uint32_t count);
uint64_t parker_wake_calls(const struct parker *parker); /* so far; relaxed */

#endif

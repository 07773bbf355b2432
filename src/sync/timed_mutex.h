/* A mutex that records who waited for it and who held it, for how long: the control that the
 * lock-free queue is compared with. A pthread mutex and condition variable underneath; the
 * clock is read only when trylock fails and around the hold. */
#ifndef TELLTALE_SYNC_TIMED_MUTEX_H
#define TELLTALE_SYNC_TIMED_MUTEX_H

#include "sync/role.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LOCK_BUCKETS = 32 }; /* bucket i counts durations in [2^i, 2^(i+1)) ns; 0 too in bucket 0 */

struct lock_stats {
    uint64_t acquisitions; /* holds; coming back from timed_mutex_wait begins another */
    uint64_t contended; /* trylock failed */
    uint64_t wait_ns, wait_max_ns;
    uint64_t hold_ns, hold_max_ns;
    uint64_t wait_buckets[LOCK_BUCKETS]; /* contended acquisitions only */
    uint64_t hold_buckets[LOCK_BUCKETS];
};

struct timed_mutex {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* CLOCK_MONOTONIC */
    uint64_t held_since_ns;
    _Atomic unsigned holder; /* enum role, present or last; written under the mutex */
    struct lock_stats by_role[ROLE_COUNT]; /* written under the mutex */
};

int timed_mutex_init(struct timed_mutex *lock); /* errno value, 0 on success */
void timed_mutex_done(struct timed_mutex *lock);
/* out_wait_ns: time spent waiting, 0 when it was free. out_blocker: role of the holder that
 * was waited for (only meaningful when the wait is not 0). Either may be NULL. */
void timed_mutex_lock(struct timed_mutex *lock, uint64_t *out_wait_ns, enum role *out_blocker);
void timed_mutex_unlock(struct timed_mutex *lock);
/* Waits on the condition; the wait is not counted as hold, nor is the time to get the mutex
 * back counted as a wait for it. False at deadline_ns (UINT64_MAX: never). May return true
 * without a signal, as any condition does. */
bool timed_mutex_wait(struct timed_mutex *lock, uint64_t deadline_ns);
void timed_mutex_signal(struct timed_mutex *lock);
/* Consistent copy of the statistics of all roles (array of ROLE_COUNT). */
void timed_mutex_stats(struct timed_mutex *lock, struct lock_stats *out_by_role);

#endif

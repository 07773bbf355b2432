/* A mutex that keeps accounts. Any thread. Invariant: all accounts are written under the mutex;
 * acquisitions equals the number of holds that have ended, but for the one that goes on. */
#include "sync/timed_mutex.h"

#include "base/clock.h"
#include <assert.h>
#include <string.h>
#include <time.h>

static unsigned bucket_of(uint64_t ns) {
    const unsigned bucket = ns == 0 ? 0 : 63u - (unsigned)__builtin_clzll(ns);
    return bucket < LOCK_BUCKETS ? bucket : LOCK_BUCKETS - 1;
}

static struct lock_stats *stats_of(struct timed_mutex *lock) { return &lock->by_role[role_get()]; }

static void begin_hold(struct timed_mutex *lock, uint64_t now_ns) {
    lock->held_since_ns = now_ns;
    /* Relaxed: a waiter that reads it names whom it saw, and takes nothing else from it. */
    atomic_store_explicit(&lock->holder, role_get(), memory_order_relaxed);
    stats_of(lock)->acquisitions++;
}

static void end_hold(struct timed_mutex *lock) {
    struct lock_stats *stats = stats_of(lock);
    const uint64_t held_ns = mono_ns() - lock->held_since_ns;
    stats->hold_ns += held_ns;
    stats->hold_max_ns = held_ns > stats->hold_max_ns ? held_ns : stats->hold_max_ns;
    stats->hold_buckets[bucket_of(held_ns)]++;
}

int timed_mutex_init(struct timed_mutex *lock) {
    pthread_condattr_t attributes;
    *lock = (struct timed_mutex){.held_since_ns = 0};
    int rc = pthread_condattr_init(&attributes);
    if (rc != 0) {
        return rc;
    }
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    rc = rc == 0 ? pthread_cond_init(&lock->cond, &attributes) : rc;
    pthread_condattr_destroy(&attributes);
    if (rc != 0) {
        return rc;
    }
    rc = pthread_mutex_init(&lock->mutex, NULL);
    if (rc != 0) {
        pthread_cond_destroy(&lock->cond);
    }
    return rc;
}

void timed_mutex_done(struct timed_mutex *lock) {
    pthread_cond_destroy(&lock->cond);
    pthread_mutex_destroy(&lock->mutex);
}

/* A default mutex fails only when it is misused, which is our bug. */
static void lock_plainly(struct timed_mutex *lock) {
    const int rc = pthread_mutex_lock(&lock->mutex);
    assert(rc == 0);
    (void)rc;
}

void timed_mutex_lock(struct timed_mutex *lock, uint64_t *out_wait_ns, enum role *out_blocker) {
    uint64_t wait_ns = 0;
    enum role blocker = ROLE_OTHER;
    if (pthread_mutex_trylock(&lock->mutex) == 0) {
        begin_hold(lock, mono_ns());
    } else {
        const uint64_t asked_ns = mono_ns();
        /* Relaxed: see begin_hold. */
        blocker = (enum role)atomic_load_explicit(&lock->holder, memory_order_relaxed);
        lock_plainly(lock);
        const uint64_t now_ns = mono_ns();
        wait_ns = now_ns > asked_ns ? now_ns - asked_ns : 1; /* 0 would say that it was free */
        begin_hold(lock, now_ns);
        struct lock_stats *stats = stats_of(lock);
        stats->contended++;
        stats->wait_ns += wait_ns;
        stats->wait_max_ns = wait_ns > stats->wait_max_ns ? wait_ns : stats->wait_max_ns;
        stats->wait_buckets[bucket_of(wait_ns)]++;
    }
    if (out_wait_ns != NULL) {
        *out_wait_ns = wait_ns;
    }
    if (out_blocker != NULL) {
        *out_blocker = blocker;
    }
}

void timed_mutex_unlock(struct timed_mutex *lock) {
    end_hold(lock);
    pthread_mutex_unlock(&lock->mutex);
}

bool timed_mutex_wait(struct timed_mutex *lock, uint64_t deadline_ns) {
    int rc = 0;
    end_hold(lock);
    if (deadline_ns == UINT64_MAX) {
        rc = pthread_cond_wait(&lock->cond, &lock->mutex);
    } else {
        const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                          .tv_nsec = (long)(deadline_ns % 1000000000u)};
        rc = pthread_cond_timedwait(&lock->cond, &lock->mutex, &deadline);
    }
    begin_hold(lock, mono_ns());
    return rc == 0;
}

void timed_mutex_signal(struct timed_mutex *lock) { pthread_cond_signal(&lock->cond); }

void timed_mutex_stats(struct timed_mutex *lock, struct lock_stats *out_by_role) {
    /* Not in the accounts: to look is not to use. A thread that waits for it blames us, though,
     * and rightly. */
    lock_plainly(lock);
    atomic_store_explicit(&lock->holder, role_get(), memory_order_relaxed); /* as in begin_hold */
    memcpy(out_by_role, lock->by_role, sizeof(lock->by_role));
    pthread_mutex_unlock(&lock->mutex);
}

/* Event count over a futex. Threads: any, as sleeper or waker. Invariant: either the waker sees
 * the sleeper counted, or the sleeper sees the work (F1 and F2); and a sleeper that was counted
 * sleeps only while epoch still is the key it read before it looked for work (R1 and A1).
 *
 * Who ends a sleep uncounts the sleeper: the waker whose system call took it off the kernel's
 * list (the wait then returns 0), or the sleeper itself in every other case. So wakers make no
 * further calls for a sleeper that was woken and has not run yet. Uncounting before the call
 * would save a few more, but would let one waker, preempted in between, keep the work of all
 * others waiting. */
#include "sync/parker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(time_t) == sizeof(long), "SYS_futex takes the kernel's long timespec");

/* Store-to-load ordering, which no acquire or release gives: a counted sleeper against
 * published work. GCC says that ThreadSanitizer does not model fences: it need not, because
 * what the work consists of is published by the queue's own release and acquire. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static void fence(void) { atomic_thread_fence(memory_order_seq_cst); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

void parker_init(struct parker *parker) {
    /* Relaxed: whoever hands the parker to other threads publishes this too. */
    atomic_store_explicit(&parker->epoch, 0, memory_order_relaxed);
    atomic_store_explicit(&parker->sleepers, 0, memory_order_relaxed);
    atomic_store_explicit(&parker->wake_calls, 0, memory_order_relaxed);
}

uint32_t parker_prepare(struct parker *parker) {
    /* Relaxed: F1 orders it before the caller's look for work. */
    atomic_fetch_add_explicit(&parker->sleepers, 1, memory_order_relaxed);
    fence(); /* F1: pairs with F2 in parker_wake */
    /* A1: a key from after a wake shows the work that was published before it; pairs with R1. */
    return atomic_load_explicit(&parker->epoch, memory_order_acquire);
}

void parker_cancel(struct parker *parker) {
    /* Relaxed: a waker that still counts this sleeper makes a system call too many. */
    atomic_fetch_sub_explicit(&parker->sleepers, 1, memory_order_relaxed);
}

static long futex(struct parker *parker, int operation, uint32_t value,
                  const struct timespec *deadline) {
    return syscall(SYS_futex, &parker->epoch, operation | FUTEX_PRIVATE_FLAG, value, deadline,
                   NULL, FUTEX_BITSET_MATCH_ANY);
}

bool parker_wait(struct parker *parker, uint32_t key, uint64_t deadline_ns) {
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                      .tv_nsec = (long)(deadline_ns % 1000000000u)};
    /* The kernel compares epoch with key under its own lock. WAIT_BITSET because its time is
     * an instant of CLOCK_MONOTONIC, not a length that a late start would stretch. */
    const long rc = futex(parker, FUTEX_WAIT_BITSET, key,
                          deadline_ns == UINT64_MAX ? NULL : &deadline);
    const bool is_late = rc != 0 && errno == ETIMEDOUT;
    if (rc != 0) parker_cancel(parker); /* else the waker has uncounted us, or is about to */
    /* A2: as A1, for a wake that came together with the deadline. */
    return !is_late || atomic_load_explicit(&parker->epoch, memory_order_acquire) != key;
}

bool parker_wake(struct parker *parker, uint32_t count) {
    fence(); /* F2: the caller's publication before the look at sleepers; pairs with F1 */
    /* Relaxed: ordered by F2. */
    if (atomic_load_explicit(&parker->sleepers, memory_order_relaxed) == 0) {
        return false;
    }
    /* R1: publishes the work to sleepers that read their key from now on; pairs with A1, A2.
     * The key wraps after 2^32 wakes between one prepare and its wait: not in this world. */
    atomic_fetch_add_explicit(&parker->epoch, 1, memory_order_release);
    const long woken = futex(parker, FUTEX_WAKE, count > INT_MAX ? INT_MAX : count, NULL);
    /* Relaxed: too high for a moment costs others a call; it is never too low. */
    if (woken > 0)
        atomic_fetch_sub_explicit(&parker->sleepers, (uint32_t)woken, memory_order_relaxed);
    /* Relaxed: a statistic. */
    atomic_fetch_add_explicit(&parker->wake_calls, 1, memory_order_relaxed);
    return true;
}

uint64_t parker_wake_calls(const struct parker *parker) {
    return atomic_load_explicit(&parker->wake_calls, memory_order_relaxed); /* relaxed: a count */
}

/* See alarm.h. Invariant: at_ns is lowered, never raised, between a prepare and the end of its
 * wait. Read next: parker.c, which sleeps. */
#include "sync/alarm.h"

/* As in parker.c, and for the same reason nothing that ThreadSanitizer has to model. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static void fence(void) { atomic_thread_fence(memory_order_seq_cst); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

void alarm_init(struct alarm *alarm) {
    parker_init(&alarm->parker);
    /* Relaxed: whoever hands the alarm to other threads publishes this too. 0: awake. */
    atomic_store_explicit(&alarm->at_ns, 0, memory_order_relaxed);
}

uint32_t alarm_prepare(struct alarm *alarm, uint64_t latest_ns) {
    /* Relaxed: ordered before the look at what is published by the fence F1 in parker_prepare,
     * which pairs with F3. */
    atomic_store_explicit(&alarm->at_ns, latest_ns, memory_order_relaxed);
    return parker_prepare(&alarm->parker);
}

void alarm_wait(struct alarm *alarm, uint32_t key, uint64_t until_ns) {
    /* Relaxed: who still sees the later instant makes a call too many. */
    atomic_store_explicit(&alarm->at_ns, until_ns, memory_order_relaxed);
    (void)parker_wait(&alarm->parker, key, until_ns);
}

void alarm_bring_forward(struct alarm *alarm, uint64_t due_ns) {
    fence(); /* F3: the publication before the look at the sleep's end; pairs with F1 */
    /* Relaxed: ordered by F3. */
    if (due_ns < atomic_load_explicit(&alarm->at_ns, memory_order_relaxed))
        (void)parker_wake(&alarm->parker, 1);
}

void alarm_ring(struct alarm *alarm) { (void)parker_wake(&alarm->parker, 1); }

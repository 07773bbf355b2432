/* See pending.h. Invariant: between two clears exactly one set gives true. */
#include "sync/pending.h"

/* P1: publishes the speaker's work; pairs with P2. A read-modify-write even when the flag is set
 * already: a plain load could be done before the work is visible, and the wake be lost. */
bool pending_set(struct pending *pending) {
    return !atomic_exchange_explicit(&pending->is_set, true, memory_order_acq_rel);
}

/* P2: sees the work of every P1 that came before it; one that comes after finds the flag clear. */
void pending_clear(struct pending *pending) {
    (void)atomic_exchange_explicit(&pending->is_set, false, memory_order_acq_rel);
}

bool pending_is_set(const struct pending *pending) {
    /* Relaxed: what was published is seen by P2, which comes next. */
    return atomic_load_explicit(&pending->is_set, memory_order_relaxed);
}

/* See lifetime.h. Invariant: the state is 0 exactly when it is over, and once it is, only begin
 * changes it. */
#include "sync/lifetime.h"

static const uint64_t OPEN = (uint64_t)1 << 63;

void lifetime_begin(struct lifetime *lifetime) {
    /* L1: publishes what the owner has set up; pairs with L2. */
    atomic_store_explicit(&lifetime->state, OPEN, memory_order_release);
}

static bool hold(struct lifetime *lifetime, uint64_t wanted) {
    /* Acquire also where nothing is taken (L3): who finds it ended sees what its end was
     * preceded by, such as the beginning of its successor. */
    uint64_t state = atomic_load_explicit(&lifetime->state, memory_order_acquire);
    do {
        if ((state & wanted) == 0) return false;
        /* L2: sees what the owner set up; pairs with L1. */
    } while (!atomic_compare_exchange_weak_explicit(&lifetime->state, &state, state + 1,
                                                    memory_order_acquire, memory_order_acquire));
    return true;
}

bool lifetime_take(struct lifetime *lifetime) { return hold(lifetime, OPEN); }

bool lifetime_share(struct lifetime *lifetime) { return hold(lifetime, UINT64_MAX); }

bool lifetime_release(struct lifetime *lifetime) {
    /* L4: the last holder has seen what all before it did, and hands it to who takes the thing
     * away; pairs with itself and with L5. */
    return atomic_fetch_sub_explicit(&lifetime->state, 1, memory_order_acq_rel) == 1;
}

bool lifetime_end(struct lifetime *lifetime) {
    /* Release: pairs with L3. Acquire: as L4. */
    return atomic_fetch_and_explicit(&lifetime->state, ~OPEN, memory_order_acq_rel) == OPEN;
}

bool lifetime_is_over(const struct lifetime *lifetime) {
    /* L5: pairs with L4. */
    return atomic_load_explicit(&lifetime->state, memory_order_acquire) == 0;
}

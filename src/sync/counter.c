/* Atomic counts and flags: see counter.h. */
#include "sync/counter.h"

int64_t counter_add(struct counter *counter, int64_t delta) {
    /* relaxed: a count orders nothing; readers only want a recent value */
    return atomic_fetch_add_explicit(&counter->value, delta, memory_order_relaxed) + delta;
}

void counter_set(struct counter *counter, int64_t value) {
    atomic_store_explicit(&counter->value, value, memory_order_relaxed); /* relaxed: as above */
}

int64_t counter_get(const struct counter *counter) {
    return atomic_load_explicit(&counter->value, memory_order_relaxed); /* relaxed: as above */
}

/* C1: publishes what was written before; pairs with C2. */
int64_t counter_add_release(struct counter *counter, int64_t delta) {
    return atomic_fetch_add_explicit(&counter->value, delta, memory_order_release) + delta;
}

/* C2: pairs with C1; and what is read later is not read before. */
int64_t counter_get_acquire(const struct counter *counter) {
    return atomic_load_explicit(&counter->value, memory_order_acquire);
}

/* F1: publishes what the raiser wrote; pairs with F2. */
void flag_raise(struct flag *flag) {
    atomic_store_explicit(&flag->value, true, memory_order_release);
}

/* F2: pairs with F1. */
bool flag_is_up(const struct flag *flag) {
    return atomic_load_explicit(&flag->value, memory_order_acquire);
}

void flag_lower(struct flag *flag) {
    atomic_store_explicit(&flag->value, false, memory_order_release);
}

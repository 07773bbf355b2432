/* See growing.h. Invariant: what a reader has reached never changes or goes away. */
#include "sync/growing.h"

void growing_add(struct growing *list, struct growing_node *node) {
    /* Relaxed: the only writer reads its own store. */
    node->next = atomic_load_explicit(&list->first, memory_order_relaxed);
    /* G1: publishes the node and what hangs on it; pairs with G2. */
    atomic_store_explicit(&list->first, node, memory_order_release);
}

struct growing_node *growing_first(const struct growing *list) {
    /* G2: sees the node, and through its next all older ones; pairs with G1. */
    return atomic_load_explicit(&list->first, memory_order_acquire);
}

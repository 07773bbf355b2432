/* Many producers, one taker: a stack that is emptied whole. Threads: mpsc.h. Invariant: from
 * head every node's next is an older node or NULL, at every instant, so a producer preempted
 * between its two stores has changed nothing that anybody can see.
 *
 * No ABA: a push whose head was taken and pushed again in between links to that same node,
 * which is the head, so the list is right; and the taker never compares. */
#include "sync/mpsc.h"

void mpsc_init(struct mpsc *queue) {
    /* Relaxed: whoever hands the queue to other threads publishes this too. */
    atomic_store_explicit(&queue->head, NULL, memory_order_relaxed);
}

bool mpsc_push(struct mpsc *queue, struct mpsc_node *node) {
    /* Relaxed: the head is only linked to, never looked into. */
    struct mpsc_node *head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    do {
        node->next = head;
        /* R1: publishes node->next and what the caller wrote; pairs with A1 in take_all. A
         * later push continues the release sequence, so A1 sees every node below it too. */
    } while (!atomic_compare_exchange_weak_explicit(&queue->head, &head, node,
                                                    memory_order_release, memory_order_relaxed));
    return head == NULL;
}

struct mpsc_node *mpsc_take_all(struct mpsc *queue) {
    /* A1: takes over all nodes; pairs with R1 in mpsc_push. */
    struct mpsc_node *newest = atomic_exchange_explicit(&queue->head, NULL, memory_order_acquire);
    struct mpsc_node *oldest = NULL;
    while (newest != NULL) {
        struct mpsc_node *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

bool mpsc_is_empty(struct mpsc *queue) {
    /* A2: a taker that saw a node here may count on it; pairs with R1. */
    return atomic_load_explicit(&queue->head, memory_order_acquire) == NULL;
}

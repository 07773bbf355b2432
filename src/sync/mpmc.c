/* Michael and Scott's queue over an array of nodes. Threads: any. Invariant: the list from
 * head to tail is never broken; head is a node whose item is already taken (the dummy), and the
 * node after it holds the oldest item.
 *
 * A reference is one 64-bit word: the node's index and a tag that grows with every change of
 * that word. A thread that slept through a node's life and rebirth fails its compare-and-swap
 * because the tag is another. It may still read the node meanwhile, so node fields are atomic,
 * and what it read is thrown away. 40 bits of tag last a day at 10 million changes a second,
 * and to be fooled a thread must sleep for exactly a whole number of those days. */
#include "sync/mpmc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* Where a thread may be preempted to the most harm. The stress test gives up the processor
 * there now and then; otherwise nothing. */
#ifndef MPMC_PAUSE
#define MPMC_PAUSE() ((void)0)
#endif

enum { INDEX_BITS = 24 };
static const uint64_t INDEX_MASK = (1u << INDEX_BITS) - 1;
static const uint64_t NIL = (1u << INDEX_BITS) - 1; /* no node has this index */

struct node {
    _Atomic uint64_t next;      /* reference; written by whoever appends behind this node */
    _Atomic uint64_t free_next; /* index, while the node is free; written by whoever frees it */
    _Atomic(void *) item;       /* written by its producer before the node is linked */
};

struct mpmc {
    size_t capacity; /* constant */
    _Alignas(64) _Atomic uint64_t head; /* reference; written by consumers */
    _Alignas(64) _Atomic uint64_t tail; /* reference, at most one behind; written by all */
    _Alignas(64) _Atomic uint64_t free; /* reference: stack of free nodes; written by all */
    _Alignas(64) struct node nodes[];   /* capacity and one for the dummy */
};

static uint64_t index_of(uint64_t reference) { return reference & INDEX_MASK; }

/* A reference to index that replaces old. */
static uint64_t successor(uint64_t old, uint64_t index) {
    return ((old >> INDEX_BITS) + 1) << INDEX_BITS | index;
}

struct mpmc *mpmc_create(size_t capacity) {
    if (capacity == 0 || capacity >= NIL) {
        return NULL;
    }
    const size_t bytes = sizeof(struct mpmc) + (capacity + 1) * sizeof(struct node);
    struct mpmc *queue = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (queue == NULL) {
        return NULL;
    }
    *queue = (struct mpmc){.capacity = capacity};
    /* All relaxed: whoever hands the queue to other threads publishes this too. Node 0 is the
     * first dummy; the others are free. */
    for (size_t i = 0; i <= capacity; i++) {
        struct node *node = &queue->nodes[i];
        atomic_store_explicit(&node->next, NIL, memory_order_relaxed);
        atomic_store_explicit(&node->free_next, i < capacity ? i + 1 : NIL, memory_order_relaxed);
        atomic_store_explicit(&node->item, NULL, memory_order_relaxed);
    }
    atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->tail, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->free, 1, memory_order_relaxed);
    return queue;
}

void mpmc_free(struct mpmc *queue) { free(queue); }

/* Index of a node that is ours now, NIL when there is none. */
static uint64_t take_free(struct mpmc *queue) {
    /* A1: sees the node's free_next; pairs with R1. */
    uint64_t top = atomic_load_explicit(&queue->free, memory_order_acquire);
    while (index_of(top) != NIL) {
        /* Relaxed: A1 published it. When the node was taken meanwhile this is stale, and top's
         * tag makes the exchange fail. */
        const uint64_t below = atomic_load_explicit(&queue->nodes[index_of(top)].free_next,
                                                    memory_order_relaxed);
        MPMC_PAUSE();
        if (atomic_compare_exchange_weak_explicit(&queue->free, &top, successor(top, below),
                                                  memory_order_acquire, memory_order_acquire)) {
            return index_of(top);
        }
    }
    return NIL;
}

static void give_free(struct mpmc *queue, uint64_t index) {
    /* Relaxed: only ever used after A1. */
    uint64_t top = atomic_load_explicit(&queue->free, memory_order_relaxed);
    do {
        atomic_store_explicit(&queue->nodes[index].free_next, index_of(top), memory_order_relaxed);
        MPMC_PAUSE();
        /* R1: publishes free_next, and that we no longer look at the node; pairs with A1. */
    } while (!atomic_compare_exchange_weak_explicit(&queue->free, &top, successor(top, index),
                                                    memory_order_release, memory_order_relaxed));
}

/* Moves tail from what it was to index. Failure is as good: somebody else did. */
static void advance_tail(struct mpmc *queue, uint64_t tail, uint64_t index) {
    /* R3: passes on the node that its appender published by R2; pairs with A3. */
    atomic_compare_exchange_strong_explicit(&queue->tail, &tail, successor(tail, index),
                                            memory_order_release, memory_order_relaxed);
}

bool mpmc_push(struct mpmc *queue, void *item) {
    const uint64_t index = take_free(queue);
    if (index == NIL) {
        return false;
    }
    struct node *node = &queue->nodes[index];
    /* Relaxed: R2 publishes the item. */
    atomic_store_explicit(&node->item, item, memory_order_relaxed);
    /* The tag of next goes on growing through all the node's lives, so that an appender from an
     * earlier one cannot succeed. R5: who still reads this node as it was in its last life
     * finds, when it checks, that head and tail have left it; pairs with A2. */
    const uint64_t old = atomic_load_explicit(&node->next, memory_order_relaxed);
    atomic_store_explicit(&node->next, successor(old, NIL), memory_order_release);
    for (;;) {
        /* A3: sees the last node's fields; pairs with R3. */
        const uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_acquire);
        struct node *last = &queue->nodes[index_of(tail)];
        /* A2: the next node is whole; pairs with R2 and R5. */
        uint64_t next = atomic_load_explicit(&last->next, memory_order_acquire);
        MPMC_PAUSE();
        /* Relaxed: after A2. Unchanged, tag and all, means that next was read while last was
         * the tail, and not in a later life of the node. */
        if (tail != atomic_load_explicit(&queue->tail, memory_order_relaxed)) {
            continue;
        }
        if (index_of(next) != NIL) {
            advance_tail(queue, tail, index_of(next)); /* for a producer that was preempted */
            continue;
        }
        MPMC_PAUSE();
        /* R2: publishes the item, and what the caller wrote before; pairs with A2. */
        if (atomic_compare_exchange_weak_explicit(&last->next, &next, successor(next, index),
                                                  memory_order_release, memory_order_relaxed)) {
            MPMC_PAUSE();
            advance_tail(queue, tail, index);
            return true;
        }
    }
}

void *mpmc_pop(struct mpmc *queue) {
    for (;;) {
        /* A4: sees the dummy's fields; pairs with R4. */
        uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
        const uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_acquire); /* A3 */
        MPMC_PAUSE();
        const uint64_t next = atomic_load_explicit(&queue->nodes[index_of(head)].next,
                                                   memory_order_acquire); /* A2 */
        MPMC_PAUSE();
        /* Relaxed: after A2. Unchanged means that tail and next belong to this head. */
        if (head != atomic_load_explicit(&queue->head, memory_order_relaxed)) {
            continue;
        }
        if (index_of(head) == index_of(tail)) {
            if (index_of(next) == NIL) {
                return NULL;
            }
            advance_tail(queue, tail, index_of(next)); /* head must not overtake tail */
            continue;
        }
        /* Relaxed: A2 published it. Read before the exchange, since afterwards the node may be
         * popped as a dummy and used again by others. */
        void *item = atomic_load_explicit(&queue->nodes[index_of(next)].item, memory_order_relaxed);
        MPMC_PAUSE();
        /* R4: passes on what A2 saw of the new dummy; pairs with A4. */
        if (atomic_compare_exchange_weak_explicit(&queue->head, &head,
                                                  successor(head, index_of(next)),
                                                  memory_order_release, memory_order_relaxed)) {
            MPMC_PAUSE();
            give_free(queue, index_of(head));
            return item;
        }
    }
}

size_t mpmc_size_hint(struct mpmc *queue) {
    /* Relaxed: a hint. The tags count the pops and the pushes, so no counter is needed; the
     * difference wraps as they do. */
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    const uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    const uint64_t mask = UINT64_MAX >> INDEX_BITS;
    const uint64_t size = ((tail >> INDEX_BITS) - (head >> INDEX_BITS)) & mask;
    if (size > mask / 2) {
        return 0; /* tail was read too early */
    }
    return size > queue->capacity ? queue->capacity : (size_t)size;
}

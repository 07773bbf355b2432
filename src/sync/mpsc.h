/* Lock-free hand-over from many threads to one: push by compare-and-swap, take everything by
 * one exchange, given back in arrival order. Intrusive; unbounded (callers count).
 *
 * Callers: mpsc_push from any thread at any time; mpsc_take_all from one thread at a time.
 * Progress: push is lock-free (a preempted producer stops nobody, in either direction);
 * take_all is wait-free but for the reversal, which is linear in what it took.
 * Order: FIFO among pushes that happened one after another. */
#ifndef TELLTALE_SYNC_MPSC_H
#define TELLTALE_SYNC_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_node {
    struct mpsc_node *next;
};

struct mpsc {
    _Alignas(64) _Atomic(struct mpsc_node *) head; /* newest; written by producers and the taker */
};

void mpsc_init(struct mpsc *queue);
/* True when the queue was empty before: the pusher may have to wake the taker. Publishes what
 * the caller wrote before (release). */
bool mpsc_push(struct mpsc *queue, struct mpsc_node *node);
/* Oldest first, linked by next, last one's next NULL; NULL when empty (acquire). */
struct mpsc_node *mpsc_take_all(struct mpsc *queue);
bool mpsc_is_empty(struct mpsc *queue);

#endif

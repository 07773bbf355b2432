/* A ring's room by ticket: see tickets.h. Threads: any. A ticket is a place counted on for ever,
 * ticket % capacity the place itself; head is the next ticket to give out, tail the first that is
 * not free again. Invariant: tail <= head <= tail + capacity.
 *
 * Runs are released in any order, so each leaves word at its first place, "free up to this
 * ticket", and tail moves over such words as far as they reach. Tickets are never used twice:
 * a word from an earlier lap is at most tail and says nothing, and no exchange can be fooled.
 * Read next: test/stress/sync_tickets_test.c. */
#include "sync/tickets.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Where a thread may be preempted to the most harm: see mpmc.c. */
#ifndef TICKETS_PAUSE
#define TICKETS_PAUSE() ((void)0)
#endif

struct tickets {
    uint32_t capacity; /* constant */
    _Alignas(64) _Atomic uint64_t head;      /* written by who reserves */
    _Alignas(64) _Atomic uint64_t tail;      /* written by who releases */
    _Alignas(64) _Atomic uint64_t free_to[]; /* by place; written by who releases the run there */
};

struct tickets *tickets_create(uint32_t capacity) {
    const size_t bytes = sizeof(struct tickets) + capacity * sizeof(_Atomic uint64_t);
    struct tickets *tickets = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (tickets == NULL) return NULL;
    *tickets = (struct tickets){.capacity = capacity};
    /* All relaxed: whoever hands the ring to other threads publishes this too. */
    atomic_store_explicit(&tickets->head, 0, memory_order_relaxed);
    atomic_store_explicit(&tickets->tail, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < capacity; i++)
        atomic_store_explicit(&tickets->free_to[i], 0, memory_order_relaxed);
    return tickets;
}

void tickets_free(struct tickets *tickets) { free(tickets); }

uint32_t tickets_place(const struct tickets *tickets, uint64_t ticket) {
    return (uint32_t)(ticket % tickets->capacity);
}

/* Moves tail over what is free. Whoever stops here has seen that the run at tail is not free, and
 * whoever frees that run later comes by after it. Hence sequential consistency throughout: each
 * of two threads leaves a word, then looks at the other's (S1 and S2), and with less both might
 * miss the other's and leave free places behind for ever. */
static void advance(struct tickets *tickets) {
    uint64_t tail = atomic_load_explicit(&tickets->tail, memory_order_seq_cst);
    for (;;) {
        TICKETS_PAUSE();
        /* S2, acquire: what was done with the run is over; pairs with S1. */
        const uint64_t to = atomic_load_explicit(
            &tickets->free_to[tickets_place(tickets, tail)], memory_order_seq_cst);
        if (to <= tail) return;
        TICKETS_PAUSE();
        /* R1, release: passes that on to the next user; pairs with A1. On failure somebody else
         * has moved it, and tail is read anew. */
        if (atomic_compare_exchange_strong_explicit(&tickets->tail, &tail, to, memory_order_seq_cst,
                                                    memory_order_seq_cst))
            tail = to;
    }
}

void tickets_release(struct tickets *tickets, uint64_t ticket, uint32_t count) {
    /* S1, release: we are through with the run; pairs with S2. */
    atomic_store_explicit(&tickets->free_to[tickets_place(tickets, ticket)], ticket + count,
                          memory_order_seq_cst);
    advance(tickets);
}

/* Places to leave out before a run of count: those up to the ring's end, where it would wrap, or
 * where nobody has any: an idle ring begins at its beginning again, so that few requests touch
 * little memory. */
static uint32_t places_to_skip(const struct tickets *tickets, uint64_t head, uint64_t tail,
                               uint32_t count) {
    const uint32_t place = tickets_place(tickets, head);
    const bool wraps = count > tickets->capacity - place;
    const bool is_idle = head == tail && place >= count;
    return wraps || is_idle ? tickets->capacity - place : 0;
}

bool tickets_reserve(struct tickets *tickets, uint32_t count, uint64_t *out_ticket) {
    /* Relaxed: tickets order nothing, tail does. */
    uint64_t head = atomic_load_explicit(&tickets->head, memory_order_relaxed);
    for (;;) {
        /* A1: the users before are through with what lies before tail; pairs with R1. */
        const uint64_t tail = atomic_load_explicit(&tickets->tail, memory_order_acquire);
        TICKETS_PAUSE();
        if (tail > head) { /* head is of old */
            head = atomic_load_explicit(&tickets->head, memory_order_relaxed); /* as above */
            continue;
        }
        const uint32_t skip = places_to_skip(tickets, head, tail, count);
        if (head - tail + skip + count > tickets->capacity) return false;
        /* Relaxed: as above. */
        if (!atomic_compare_exchange_weak_explicit(&tickets->head, &head, head + skip + count,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        if (skip > 0) tickets_release(tickets, head, skip);
        *out_ticket = head + skip;
        return true;
    }
}

uint64_t tickets_taken_hint(const struct tickets *tickets) {
    /* Relaxed: a hint. Tail first: head only grows. */
    const uint64_t tail = atomic_load_explicit(&tickets->tail, memory_order_relaxed);
    const uint64_t head = atomic_load_explicit(&tickets->head, memory_order_relaxed);
    return head > tail ? head - tail : 0;
}

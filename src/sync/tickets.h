/* Room in a ring, given out in runs and given back in any order, lock-free. It counts places
 * only; what lies in them is the caller's. A run never wraps: its places lie side by side, and a
 * run that is reserved after another follows it wherever the ring's end is not between them.
 *
 * Callers: any thread, any function but create and free at any time.
 * Progress: every call is lock-free (a preempted thread stops nobody; what it has reserved stays
 * reserved meanwhile, and the ring fills up behind it).
 * Full: reserve returns false. Half of the capacity always fits into an empty ring.
 * Order: whoever reserves places sees what those wrote before who had and released them. */
#ifndef TELLTALE_SYNC_TICKETS_H
#define TELLTALE_SYNC_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

struct tickets;
struct tickets *tickets_create(uint32_t capacity); /* places, >= 1; NULL: no memory */
void tickets_free(struct tickets *tickets);        /* NULL allowed */
/* count (>= 1) places. *out_ticket grows from run to run; a run that lies right behind another
 * has that one's ticket + count. */
bool tickets_reserve(struct tickets *tickets, uint32_t count, uint64_t *out_ticket);
/* The first place of the run, 0 to capacity - 1. */
uint32_t tickets_place(const struct tickets *tickets, uint64_t ticket);
/* Once a run, as it was reserved. */
void tickets_release(struct tickets *tickets, uint64_t ticket, uint32_t count);
/* Reserved and not yet free again; may be out of date. */
uint64_t tickets_taken_hint(const struct tickets *tickets);

#endif

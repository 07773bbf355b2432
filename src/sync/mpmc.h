/* Bounded first-in-first-out queue of pointers for many producers and many consumers, lock-free
 * in the strict sense: a linked queue (Michael and Scott) over a fixed array of nodes that are
 * named by index and carry a tag against reuse, so that no thread ever waits for another.
 *
 * Callers: any. Full means push returns false; empty means pop returns NULL. A consumer that is
 * preempted inside mpmc_pop keeps one node meanwhile, so push may find the queue full with as
 * many items fewer in it.
 * Order: first in, first out among pushes that happened one after another. */
#ifndef TELLTALE_SYNC_MPMC_H
#define TELLTALE_SYNC_MPMC_H

#include <stdbool.h>
#include <stddef.h>

struct mpmc;
struct mpmc *mpmc_create(size_t capacity); /* 1..2^24 - 2; NULL beyond, or when memory is out */
void mpmc_free(struct mpmc *queue);
bool mpmc_push(struct mpmc *queue, void *item); /* item not NULL */
void *mpmc_pop(struct mpmc *queue);
size_t mpmc_size_hint(struct mpmc *queue); /* may be out of date */

#endif

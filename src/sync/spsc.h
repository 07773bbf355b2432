/* Ring of fixed-size records from one thread to one other: trace records. Wait-free on both
 * sides; full means the record is dropped and counted, never that the writer waits. */
#ifndef TELLTALE_SYNC_SPSC_H
#define TELLTALE_SYNC_SPSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spsc;
struct spsc *spsc_create(size_t capacity, size_t record_size); /* capacity rounded up to 2^k */
void spsc_free(struct spsc *ring);
/* Writer: the slot to fill (NULL when full: counted as dropped), then publish it. */
void *spsc_reserve(struct spsc *ring);
void spsc_commit(struct spsc *ring);
/* Reader: the oldest record (NULL when empty), then release it. */
const void *spsc_peek(struct spsc *ring);
void spsc_release(struct spsc *ring);
uint64_t spsc_dropped(const struct spsc *ring);

#endif

/* "There is something to do", said by many threads and heard by one: whoever finds it unsaid has
 * to wake the hearer, all others need not.
 *
 * Speaker:                               Hearer, woken:
 *     publish the work;                      pending_clear(p);
 *     if (pending_set(p)) wake the hearer;   take all the work;
 *
 * Work published before pending_set is either taken by the hearer or causes a wake. Callers:
 * pending_set from any thread, pending_clear from one. Both are wait-free. */
#ifndef TELLTALE_SYNC_PENDING_H
#define TELLTALE_SYNC_PENDING_H

#include <stdatomic.h>
#include <stdbool.h>

struct pending { /* zeroed: clear */
    _Alignas(64) _Atomic bool is_set; /* written by both sides */
};

bool pending_set(struct pending *pending); /* true when it was clear: wake the hearer */
void pending_clear(struct pending *pending);
/* Is there something to do? Only a hint: to be looked at before pending_clear. */
bool pending_is_set(const struct pending *pending);

#endif

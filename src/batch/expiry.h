/* Jobs that wait, by the instant at which they are to leave the queue: a heap, so that the earliest
 * is at hand and any of them can be taken out. Jobs of one and the same timeout come in order, which
 * costs nothing to keep. Under the collector's mutex. */
#ifndef TELLTALE_BATCH_EXPIRY_H
#define TELLTALE_BATCH_EXPIRY_H

#include "batch/batcher.h"

struct expiry { /* zeroed: empty */
    struct job **items; /* items[0] is the earliest; items[i] no earlier than items[(i - 1) / 2] */
    uint32_t count, capacity;
};

void expiry_done(struct expiry *expiry);
/* By job->expires_ns, which must not change before it is removed. False: no memory. */
MUST_CHECK bool expiry_put(struct expiry *expiry, struct job *job);
void expiry_remove(struct expiry *expiry, struct job *job); /* nothing where it is not in it */
struct job *expiry_first(const struct expiry *expiry);      /* NULL: empty */

#endif

/* Who still needs a thing that its owner may take away: a count of holders and whether new ones
 * may come. The memory of the lifetime itself must never go away while anybody can find it; what
 * it stands for may, once it is over, and may be begun anew.
 *
 * Callers: begin and end by the owner; take, share, release from any thread.
 * Progress: lock-free. Exactly one call, of end or of release, says that it was the last. */
#ifndef TELLTALE_SYNC_LIFETIME_H
#define TELLTALE_SYNC_LIFETIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lifetime { /* zeroed: over */
    _Atomic uint64_t state; /* bit 63: open to new holders; below: holders. Written by all */
};

/* Publishes what the owner has set up. The lifetime must be over. */
void lifetime_begin(struct lifetime *lifetime);
/* One more holder; false when it is no longer open. */
bool lifetime_take(struct lifetime *lifetime);
/* One more holder while it is open or somebody holds it, so that it is still there. */
bool lifetime_share(struct lifetime *lifetime);
/* One holder fewer. True: it was the last one of a lifetime that has ended. */
bool lifetime_release(struct lifetime *lifetime);
/* No new holders. True: nobody holds it, so it is over already. */
bool lifetime_end(struct lifetime *lifetime);
bool lifetime_is_over(const struct lifetime *lifetime);

#endif

/* Who is served before whom, how long a request may wait and how many may: priority levels and
 * the policy of each, as Triton's dynamic_batching has them. Pure: plain data, no clock, no lock.
 *
 * Levels are 1 (highest) to `levels`; all that waits in a level is served before anything of the
 * next, first in first out. A level that is always busy starves those below it.
 *
 * Where this is exact and Triton is not: a timeout ends at its instant also while every instance
 * is busy, and a request's own timeout counts also where the level has none. Read next: buckets.h,
 * which keeps the order; timekeeper.c, which keeps the instants. */
#ifndef TELLTALE_BATCH_QUEUE_POLICY_H
#define TELLTALE_BATCH_QUEUE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum timeout_action {
    TIMEOUT_REJECT, /* answered with ST_EXPIRED when its timeout is over */
    TIMEOUT_DELAY,  /* served from then on only after all of its level that are in time */
    TIMEOUT_ACTION_COUNT
};
#define TIMEOUT_ACTION_CHOICES "reject|delay"

struct queue_policy {
    enum timeout_action action;
    uint64_t default_timeout_ns; /* in the queue; 0: none */
    bool allows_override;        /* a request's own timeout counts where it is the shorter one */
    uint32_t max_size;           /* jobs of the level that may wait; 0: any number */
};

struct level_policy {
    uint32_t level; /* 1 to levels */
    struct queue_policy policy;
};

enum { PRIORITY_LEVELS_MAX = 1024 };

struct queue_policies {
    uint32_t levels;                  /* 0: as 1; at most PRIORITY_LEVELS_MAX */
    uint32_t default_level;           /* of requests that name none; 0: the lowest */
    struct queue_policy usual;        /* of levels that are not named below */
    const struct level_policy *named;
    uint32_t named_count;
};

/* The level of a request's priority, 1 to levels: its own where there is such a level, else the
 * default one. */
uint32_t queue_policy_level(const struct queue_policies *policies, uint64_t priority);
const struct queue_policy *queue_policy_of(const struct queue_policies *policies, uint32_t level);
/* How long a request with such a timeout of its own (0: none) may wait; 0: as long as it takes. */
uint64_t queue_policy_timeout_ns(const struct queue_policy *policy, uint64_t own_ns);

#endif

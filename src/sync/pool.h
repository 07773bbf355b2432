/* Worker threads that run jobs in arrival order, those that are to come first before the others.
 * The queues are mpmc.h; idle workers park.
 *
 * Callers: pool_submit from any thread. Progress: lock-free. */
#ifndef TELLTALE_SYNC_POOL_H
#define TELLTALE_SYNC_POOL_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>

struct pool;
struct pool_job {
    void (*run)(struct pool_job *job, unsigned worker); /* worker: 0..workers-1 */
};

/* Starts the threads (ROLE_WORKER). capacity: jobs that may wait, and as many to come first. */
MUST_CHECK enum status pool_create(unsigned workers, size_t capacity, struct pool **out_pool,
                                   struct err *err);
/* Runs what was submitted, then stops and joins the threads. NULL allowed. */
void pool_free(struct pool *pool);
/* False when the queue is full. The job must live until its run returns. */
bool pool_submit(struct pool *pool, struct pool_job *job);
/* Before all that wait otherwise: the last work on a request that has been worked on already. In
 * arrival order such jobs would wait behind the first work on every request that came since, and
 * what these hold would be held longer. */
bool pool_submit_first(struct pool *pool, struct pool_job *job);
size_t pool_waiting(struct pool *pool); /* of both kinds; may be out of date */
unsigned pool_workers(const struct pool *pool);

#endif

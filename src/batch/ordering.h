/* Answers in the order of arrival (preserve_ordering): jobs that are through wait here until all
 * that came before them are. Exists only where that is asked for; costs a mutex once a batch then.
 *
 * Jobs are numbered 0, 1, 2 ... as they come into the queue (job->order). One that was dropped is
 * answered at once, out of order, and passed over here. Callers: any thread. Answers are given out
 * by one thread at a time, outside the mutex. */
#ifndef TELLTALE_BATCH_ORDERING_H
#define TELLTALE_BATCH_ORDERING_H

#include "batch/batcher.h"

struct ordering;
/* jobs: how many there can be from the oldest that is not answered to the newest. */
MUST_CHECK enum status ordering_create(uint32_t jobs, void (*on_done)(struct job *list, void *ctx),
                                       void *ctx, struct ordering **out, struct err *err);
void ordering_free(struct ordering *ordering); /* NULL allowed */
/* Room for one more; false: so many are there. Given back when it is answered, passed over, or by
 * ordering_leave when it was not numbered. */
bool ordering_enter(struct ordering *ordering);
void ordering_leave(struct ordering *ordering);
uint64_t ordering_number(struct ordering *ordering); /* under the collector's mutex */
/* A list through next, any mixture. */
void ordering_complete(struct ordering *ordering, struct job *list);
/* Numbered jobs, through next, that are answered elsewhere, later. */
void ordering_pass(struct ordering *ordering, const struct job *list);

#endif

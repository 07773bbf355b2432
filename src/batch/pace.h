/* How fast a full queue empties, learned from the batches that were taken out of one; and from that,
 * whether a request that comes now can be in time. Pure: time is a parameter.
 *
 * Only stretches count in which a whole batch was waiting from one take to the next, so that a hold
 * or an idle instance never passes for slowness. Everything here errs towards letting a request in:
 * by the learned error, and by as much as is not known. Read next: batcher.c, which refuses. */
#ifndef TELLTALE_BATCH_PACE_H
#define TELLTALE_BATCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* The collector's. Zeroed at start. */
struct pace {
    double interval_ns; /* moving average of the time between two takes */
    double error_ns;    /* of an interval's distance from it */
    double jobs;        /* of the jobs taken */
    uint32_t samples;
    uint64_t taken_ns;  /* the last take; 0: none yet */
    bool was_full;      /* a whole batch waited when it was over */
};

/* A batch of so many jobs was taken at now_ns; is_full: as many as a batch has room for;
 * leaves_full: a further one of that size waits. */
void pace_learn(struct pace *pace, uint64_t now_ns, uint32_t jobs, bool is_full, bool leaves_full);

/* What is needed to judge, as whole numbers, so that other threads can be told. */
struct pace_facts {
    uint64_t interval_ns, error_ns;
    uint64_t jobs_x16;  /* sixteenths of a job; 0: nothing learned yet */
    uint64_t taken_ns;
    uint64_t exec_ns;   /* the shortest time that an execution may be expected to take */
};
void pace_tell(const struct pace *pace, struct pace_facts *out); /* all but exec_ns */
/* The least time that a job has to wait behind `ahead` others; 0 while nothing is known. */
uint64_t pace_wait_ns(const struct pace_facts *facts, uint64_t ahead, uint64_t now_ns);

#endif

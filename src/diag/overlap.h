/* What the instances were doing during an interval: the timeline of the written batches,
 * intersected with it. Pure. */
#ifndef TELLTALE_DIAG_OVERLAP_H
#define TELLTALE_DIAG_OVERLAP_H

#include "diag/run.h"

#define ACTIVITY_TABLE(X)                                                                      \
    X(IDLE,       "idle",       "free, nothing taken")                                        \
    X(TOKENIZING, "tokenizing", "preprocessing inside the instance's thread")                 \
    X(COPYING,    "copying",    "gathering and padding inputs, scattering outputs")           \
    X(EXECUTING,  "executing",  "running the model")                                          \
    X(ANSWERING,  "answering",  "handing answers out")                                        \
    X(UNKNOWN,    "unknown",    "busy with batches that the trace does not hold")

enum activity {
#define X(name, text, help) ACTIVITY_##name,
    ACTIVITY_TABLE(X)
#undef X
    ACTIVITY_COUNT
};
const char *activity_name(enum activity activity);

enum { TIMELINE_INSTANCES_MAX = 256 };
struct timeline {
    const struct run *run;
    uint32_t *order;     /* batches, instance by instance, in time */
    uint32_t begin[TIMELINE_INSTANCES_MAX + 1];
    uint32_t instances;
};
/* After run_finish. ST_NO_MEMORY leaves nothing to free. */
MUST_CHECK enum status timeline_create(const struct run *run, struct timeline *out,
                                       struct err *err);
void timeline_done(struct timeline *timeline);
/* Mean over the instances, in ns: out[ACTIVITY_COUNT] adds up to to_ns - from_ns. */
void timeline_overlap(const struct timeline *timeline, uint64_t from_ns, uint64_t to_ns,
                      double *out);
/* The batch that this instance was busy with at that instant; NULL: none, or not written. */
const struct run_batch *timeline_busy_with(const struct timeline *timeline, uint32_t instance,
                                           uint64_t at_ns);

#endif

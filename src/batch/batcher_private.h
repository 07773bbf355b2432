/* What the batcher's own files share: batcher.c (life cycle), admission.c (push, cancel),
 * waiting.c (what waits, and what leaves it otherwise than in a batch), collector.c (who takes which
 * batch when), timekeeper.c (looks at what waits while nobody collects), instance.c (running it). */
#ifndef TELLTALE_BATCH_BATCHER_PRIVATE_H
#define TELLTALE_BATCH_BATCHER_PRIVATE_H

#include "batch/batcher.h"
#include "batch/buckets.h"
#include "batch/expiry.h"
#include "batch/gather.h"
#include "batch/ordering.h"
#include "batch/pace.h"
#include "batch/queue.h"
#include "batch/staging.h"
#include "sync/alarm.h"
#include "sync/pending.h"

#include <pthread.h>

struct batch {
    struct job *first;   /* list through job->next; NULL: none */
    uint32_t jobs, rows; /* rows 0: the model is not batched */
    uint32_t length;     /* longest on the padded axis */
    uint32_t waiting;    /* left in the queue when it was taken */
    uint32_t limit;      /* rows that it could have had */
    enum reason reason;
    bool failed;
    uint64_t id;
    uint64_t free_ns, ready_ns, taken_ns, inputs_ready_ns, executed_ns, outputs_ready_ns;
    uint64_t inline_preprocess_ns, cpu_ns, run_delay_ns;
    uint64_t real_elements, padded_elements;
};

struct instance {
    struct batcher *batcher;
    uint32_t index;
    pthread_t thread;
    bool is_started;
    struct slot *slot;
    struct trace_ring *ring;
    struct gather_buffer buffers[MODEL_MAX_IO];
    struct tensor inputs[MODEL_MAX_IO];
    struct tensor outputs[MODEL_MAX_IO];
    uint64_t free_ns;        /* since when it has had nothing to run */
    uint64_t learned_exec_ns; /* of the last batch, for the policy; 0: already told */
    double learned_elements;
    uint64_t last_exec_ns;   /* of the batch before: is sampling worth its cost? */
    int schedstat_fd;        /* -1: not available */
    struct counter executing_since; /* mono_ns; 0: it runs nothing */
};

/* A priority's. Level 1 is levels[0]. */
struct level {
    struct queue_policy policy;
    struct counter waiting; /* counted only where is_counted */
};

struct batcher {
    const struct model *model;
    struct batcher_config config;
    uint32_t max_rows;       /* of a batch; 1 when not batched */
    struct queue queue;
    struct counter waiting;  /* jobs pushed and not yet taken */
    struct counter refused, refused_hopeless;
    struct counter expired, delayed, timed_out, cancelled;
    struct counter busy;     /* instances with a batch */
    struct counter batches_in_place, batches_copied, copied_bytes;
    struct staging *staging; /* NULL: nothing to stage */
    struct ordering *ordering; /* NULL: answers in any order */
    struct flag is_draining, is_stopping;

    struct level *levels;    /* config.queue_policies.levels of them */
    bool is_counted;         /* there are several, or one with a limit of its own */
    struct pending cancels;  /* somebody's flag was raised since the last look */
    struct alarm alarm;      /* the timekeeper's */
    pthread_t timekeeper;
    bool is_timed;           /* it was started */
    struct flag is_over;     /* it is to end */

    /* What producers judge by; written under collector. */
    struct counter pace_interval_ns, pace_error_ns, pace_jobs_x16, pace_taken_ns, pace_exec_ns;

    /* Only one free instance collects at a time. Taken once a batch by instances, and by the
     * timekeeper when something is due; never by a producer: a preempted producer stops nobody. */
    pthread_mutex_t collector;
    struct buckets buckets;      /* under collector */
    struct expiry expiry;        /* under collector: of the same jobs, those that expire */
    struct policy_state policy;  /* under collector */
    struct pace pace;            /* under collector */
    uint64_t absorbed;           /* under collector: jobs put into buckets so far */
    uint64_t swept_ns, sweep_ns; /* under collector: end and length of the last look at all jobs */

    uint32_t instance_count;
    struct instance *instances;
};

/* ---- waiting.c: all of it under collector ---- */

/* Queue to buckets. */
void waiting_absorb(struct batcher *batcher);
/* Those whose time is over, or whom nobody waits for any more, leave: a list through next, with
 * their status, for waiting_end. NULL, and cheap, where there is none. */
struct job *waiting_leave(struct batcher *batcher, uint64_t now_ns);
/* When waiting_leave has something to do next; UINT64_MAX: when somebody comes. */
uint64_t waiting_due_ns(const struct batcher *batcher);
/* Of what buckets_take gave: list goes into a batch, and whatever else knows of it forgets it; those
 * that were dropped are answered. How many jobs wait now. */
int64_t waiting_taken(struct batcher *batcher, struct job *list, struct job *dropped);
/* Answers jobs that were dropped. Not under collector, or under it. */
void waiting_end(struct batcher *batcher, struct job *list);

/* Jobs that are through, in the order in which they may be answered. Any thread. */
void batcher_deliver(struct batcher *batcher, struct job *list);

MUST_CHECK enum status timekeeper_start(struct batcher *batcher, struct err *err);
void timekeeper_stop(struct batcher *batcher);

/* Blocks until the policy gives a batch. False: the batcher is stopping and nothing is left. */
bool collector_next(struct instance *instance, struct batch *out);
/* A full batch that waits already, without blocking. */
bool collector_take_full(struct instance *instance, struct batch *out);

void *instance_main(void *instance);
MUST_CHECK enum status instance_open(struct instance *instance, struct err *err);
void instance_done(struct instance *instance);

#endif

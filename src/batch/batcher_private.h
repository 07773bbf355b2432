/* What the batcher's own files share: batcher.c (life cycle, push), collector.c (who takes which
 * batch when), instance.c (running it). */
#ifndef TELLTALE_BATCH_BATCHER_PRIVATE_H
#define TELLTALE_BATCH_BATCHER_PRIVATE_H

#include "batch/batcher.h"
#include "batch/buckets.h"
#include "batch/gather.h"
#include "batch/queue.h"
#include "batch/staging.h"

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
};

struct batcher {
    const struct model *model;
    struct batcher_config config;
    uint32_t max_rows;       /* of a batch; 1 when not batched */
    struct queue queue;
    struct counter waiting;  /* jobs pushed and not yet taken */
    struct counter refused;
    struct counter busy;     /* instances with a batch */
    struct counter batches_in_place, batches_copied, copied_bytes;
    struct staging *staging; /* NULL: nothing to stage */
    struct flag is_draining, is_stopping;

    /* Only one free instance collects at a time. Taken once a batch by instances, never by a
     * producer: a preempted producer stops nobody. */
    pthread_mutex_t collector;
    struct buckets buckets;      /* under collector */
    struct policy_state policy;  /* under collector */

    uint32_t instance_count;
    struct instance *instances;
};

/* Blocks until the policy gives a batch. False: the batcher is stopping and nothing is left. */
bool collector_next(struct instance *instance, struct batch *out);
/* A full batch that waits already, without blocking. */
bool collector_take_full(struct instance *instance, struct batch *out);

void *instance_main(void *instance);
MUST_CHECK enum status instance_open(struct instance *instance, struct err *err);
void instance_done(struct instance *instance);

#endif

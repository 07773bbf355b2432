/* Life cycle of a batcher and the producers' side. Read next: queue.c, collector.c, instance.c. */
#include "batch/batcher_private.h"

#include <stdlib.h>

enum status batcher_push(struct batcher *batcher, struct job *job, bool wake) {
    if (counter_add(&batcher->waiting, 1) > (int64_t)batcher->config.queue_limit) {
        counter_add(&batcher->waiting, -1);
        counter_add(&batcher->refused, 1);
        staging_release(job);
        return err_set(&job->err, ST_OVERLOADED,
                       "model %s: %u requests wait already (--queue-limit)", batcher->model->name,
                       batcher->config.queue_limit);
    }
    job->status = ST_OK;
    queue_push(&batcher->queue, job, wake);
    return ST_OK;
}

void batcher_kick(struct batcher *batcher) { queue_kick(&batcher->queue); }

void batcher_cancel(struct batcher *batcher, struct job *job) {
    (void)batcher;
    flag_raise(&job->is_cancelled);
}

bool batcher_takes_timeout(const struct batcher *batcher, uint64_t priority) {
    const struct queue_policies *policies = &batcher->config.queue_policies;
    return queue_policy_of(policies, queue_policy_level(policies, priority))->allows_override;
}

void batcher_drain(struct batcher *batcher) {
    flag_raise(&batcher->is_draining);
    queue_signal(&batcher->queue);
}

static enum status start_instances(struct batcher *batcher, struct err *err) {
    for (uint32_t i = 0; i < batcher->instance_count; i++) {
        struct instance *instance = &batcher->instances[i];
        if (batcher->config.tracer != NULL) {
            instance->ring = tracer_ring(batcher->config.tracer);
            if (instance->ring == NULL) /* a run whose trace lacks an instance would mislead */
                return err_set(err, ST_NO_MEMORY, "model %s: no memory for the trace of instance %u",
                               batcher->model->name, i);
        }
        const enum status status = instance_open(instance, err);
        if (status != ST_OK) return status;
        if (pthread_create(&instance->thread, NULL, instance_main, instance) != 0)
            return err_set(err, ST_NO_MEMORY, "model %s: cannot start instance %u",
                           batcher->model->name, i);
        instance->is_started = true;
    }
    return ST_OK;
}

/* Rows to stage: a few of the largest batches, for those that run, wait and are being written; more
 * where rows are small, since requests that find no room are slower; fewer where they are large.
 * What is never written takes no memory. */
enum { STAGED_BATCHES = 4, STAGED_ROWS_MAX = 16384 };
static const size_t STAGED_BYTES_USUAL = 64 << 20, STAGED_BYTES_MAX = 256 << 20;

static uint32_t staging_room(const struct batcher *batcher) {
    size_t row_bytes = 0;
    for (uint32_t i = 0; i < batcher->config.input_count; i++)
        row_bytes += batcher->config.staged_row_bytes[i];
    if (row_bytes == 0 || batcher->config.staged_rows > 0) return batcher->config.staged_rows;
    size_t rows = (size_t)STAGED_BATCHES * batcher->max_rows;
    if (rows < STAGED_BYTES_USUAL / row_bytes) rows = STAGED_BYTES_USUAL / row_bytes;
    if (rows > STAGED_BYTES_MAX / row_bytes) rows = STAGED_BYTES_MAX / row_bytes;
    if (rows > STAGED_ROWS_MAX) rows = STAGED_ROWS_MAX;
    return (uint32_t)rows;
}

static enum status create_staging(struct batcher *batcher, struct err *err) {
    const uint32_t rows = staging_room(batcher);
    if (rows < 2) return ST_OK; /* nothing to gain */
    return staging_create(batcher->config.staged_row_bytes, batcher->config.input_count, rows,
                          &batcher->staging, err);
}

struct staging *batcher_staging(struct batcher *batcher) {
    return batcher != NULL ? batcher->staging : NULL;
}

enum status batcher_create(const struct model *model, const struct batcher_config *config,
                           struct batcher **out, struct err *err) {
    struct batcher *batcher = aligned_alloc(64, (sizeof *batcher + 63) / 64 * 64);
    if (batcher == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a batcher");
    *batcher = (struct batcher){
        .model = model, .config = *config, .instance_count = config->instances};
    batcher->config.input_count = model->signature->input_count;
    batcher->max_rows = config->is_batched ? config->policy.max_batch : 1;
    batcher->config.policy.max_batch = batcher->max_rows;
    pthread_mutex_init(&batcher->collector, NULL);
    buckets_init(&batcher->buckets);
    enum status status = queue_init(&batcher->queue, config->queue, err);
    if (status == ST_OK) status = create_staging(batcher, err);
    if (status == ST_OK) {
        batcher->instances = calloc(config->instances, sizeof *batcher->instances);
        for (uint32_t i = 0; batcher->instances != NULL && i < config->instances; i++)
            batcher->instances[i] =
                (struct instance){.batcher = batcher, .index = i, .schedstat_fd = -1};
        status = batcher->instances == NULL ? err_set(err, ST_NO_MEMORY, "no memory for instances")
                                            : start_instances(batcher, err);
    }
    if (status != ST_OK) {
        batcher_free(batcher);
        return status;
    }
    *out = batcher;
    return ST_OK;
}

void batcher_stop(struct batcher *batcher) {
    if (batcher == NULL) return;
    flag_raise(&batcher->is_stopping);
    for (uint32_t i = 0; batcher->instances != NULL && i < batcher->instance_count; i++)
        queue_signal(&batcher->queue);
    for (uint32_t i = 0; batcher->instances != NULL && i < batcher->instance_count; i++) {
        struct instance *instance = &batcher->instances[i];
        if (instance->is_started) pthread_join(instance->thread, NULL);
        instance->is_started = false;
    }
}

void batcher_free(struct batcher *batcher) {
    if (batcher == NULL) return;
    batcher_stop(batcher);
    for (uint32_t i = 0; batcher->instances != NULL && i < batcher->instance_count; i++)
        instance_done(&batcher->instances[i]);
    free(batcher->instances);
    staging_free(batcher->staging);
    queue_done(&batcher->queue);
    buckets_done(&batcher->buckets);
    pthread_mutex_destroy(&batcher->collector);
    free(batcher);
}

void batcher_stats(struct batcher *batcher, struct batcher_stats *out) {
    const struct model *model = batcher->model;
    *out = (struct batcher_stats){
        .waiting = (uint64_t)counter_get(&batcher->waiting),
        .refused = (uint64_t)counter_get(&batcher->refused),
        .instances = batcher->instance_count,
        .busy_instances = (uint64_t)counter_get(&batcher->busy),
        .wake_calls = parker_wake_calls(&batcher->queue.parker),
        .device_busy_ns = model->backend->device_busy_ns(model->session),
        .batches_in_place = (uint64_t)counter_get(&batcher->batches_in_place),
        .batches_copied = (uint64_t)counter_get(&batcher->batches_copied),
        .copied_bytes = (uint64_t)counter_get(&batcher->copied_bytes),
        .has_lock = batcher->queue.kind == QUEUE_MUTEX,
    };
    if (batcher->staging != NULL) {
        out->staging_refused = staging_refused(batcher->staging);
        out->staging_bytes = staging_bytes(batcher->staging);
        out->staging_rows = staging_taken(batcher->staging);
    }
    if (out->has_lock) timed_mutex_stats(&batcher->queue.lock, out->lock);
}

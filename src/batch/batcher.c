/* Life cycle of a batcher. Read next: admission.c, waiting.c, collector.c, instance.c. */
#include "batch/batcher_private.h"

#include <stdlib.h>

void batcher_deliver(struct batcher *batcher, struct job *list) {
    if (list == NULL) return;
    if (batcher->ordering != NULL) ordering_complete(batcher->ordering, list);
    else batcher->config.on_done(list, batcher->config.ctx);
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

static enum status create_levels(struct batcher *batcher, struct err *err) {
    struct queue_policies *policies = &batcher->config.queue_policies;
    if (policies->levels == 0) policies->levels = 1;
    if (policies->levels > PRIORITY_LEVELS_MAX)
        return err_set(err, ST_INVALID, "model %s: %u priority levels, at most %d are possible",
                       batcher->model->name, policies->levels, PRIORITY_LEVELS_MAX);
    batcher->levels = calloc(policies->levels, sizeof *batcher->levels);
    if (batcher->levels == NULL) return err_set(err, ST_NO_MEMORY, "no memory for priority levels");
    batcher->is_counted = policies->levels > 1;
    for (uint32_t i = 0; i < policies->levels; i++) {
        batcher->levels[i].policy = *queue_policy_of(policies, i + 1);
        if (batcher->levels[i].policy.max_size > 0) batcher->is_counted = true;
    }
    policies->named = NULL; /* the caller's */
    policies->named_count = 0;
    return ST_OK;
}

/* Those that wait, those that run, and as many again of those that are through and wait for them. */
static enum status create_ordering(struct batcher *batcher, struct err *err) {
    if (!batcher->config.preserve_ordering) return ST_OK;
    const uint64_t jobs = 2 * ((uint64_t)batcher->config.queue_limit +
                               (uint64_t)batcher->max_rows * (batcher->instance_count + 1));
    return ordering_create(jobs < UINT32_MAX / 2 ? (uint32_t)jobs : UINT32_MAX / 2,
                           batcher->config.on_done, batcher->config.ctx, &batcher->ordering, err);
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
    alarm_init(&batcher->alarm);
    if (status == ST_OK) status = create_levels(batcher, err);
    if (status == ST_OK) status = create_ordering(batcher, err);
    if (status == ST_OK) status = create_staging(batcher, err);
    if (status == ST_OK) status = timekeeper_start(batcher, err);
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
    timekeeper_stop(batcher);
}

void batcher_free(struct batcher *batcher) {
    if (batcher == NULL) return;
    batcher_stop(batcher);
    for (uint32_t i = 0; batcher->instances != NULL && i < batcher->instance_count; i++)
        instance_done(&batcher->instances[i]);
    free(batcher->instances);
    free(batcher->levels);
    ordering_free(batcher->ordering);
    expiry_done(&batcher->expiry);
    staging_free(batcher->staging);
    queue_done(&batcher->queue);
    buckets_done(&batcher->buckets);
    pthread_mutex_destroy(&batcher->collector);
    free(batcher);
}

/* Since when the instance that has been longest at its execution is at it; 0: none is. */
static uint64_t executing_since_ns(const struct batcher *batcher) {
    uint64_t earliest = 0;
    for (uint32_t i = 0; i < batcher->instance_count; i++) {
        const uint64_t since = (uint64_t)counter_get(&batcher->instances[i].executing_since);
        if (since != 0 && (earliest == 0 || since < earliest)) earliest = since;
    }
    return earliest;
}

void batcher_stats(struct batcher *batcher, struct batcher_stats *out) {
    const struct model *model = batcher->model;
    *out = (struct batcher_stats){
        .waiting = (uint64_t)counter_get(&batcher->waiting),
        .refused = (uint64_t)counter_get(&batcher->refused),
        .refused_hopeless = (uint64_t)counter_get(&batcher->refused_hopeless),
        .expired = (uint64_t)counter_get(&batcher->expired),
        .delayed = (uint64_t)counter_get(&batcher->delayed),
        .timed_out = (uint64_t)counter_get(&batcher->timed_out),
        .cancelled = (uint64_t)counter_get(&batcher->cancelled),
        .executing_since_ns = executing_since_ns(batcher),
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

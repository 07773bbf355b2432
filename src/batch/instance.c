/* One instance: a thread that takes a batch, runs it, gives the answers out, and sleeps only when
 * there is nothing to do. Stamps every stage from taken to outputs ready.
 *
 * With a back end that works beside the processor (is_async) and a full batch already waiting,
 * the next batch is started before the last one is answered; otherwise answers go out first, so
 * that those who wait for them can come back in time for the next batch. */
#include "batch/batcher_private.h"

#include "base/clock.h"
#include "sync/role.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reading a thread's processor time and run-queue wait costs some microseconds: only where an
 * execution is long enough not to notice. */
#define CPU_SAMPLE_MIN_NS 500000

enum status instance_open(struct instance *instance, struct err *err) {
    const struct model *model = instance->batcher->model;
    return model->backend->slot_open(model->session, &instance->slot, err);
}

void instance_done(struct instance *instance) {
    if (instance->slot != NULL) instance->batcher->model->backend->slot_close(instance->slot);
    for (uint32_t i = 0; i < MODEL_MAX_IO; i++) gather_buffer_done(&instance->buffers[i]);
    if (instance->schedstat_fd >= 0) close(instance->schedstat_fd);
}

/* Time this thread has waited for a processor, from the kernel; 0 when unknown. */
static uint64_t run_delay_ns(const struct instance *instance) {
    char text[96];
    if (instance->schedstat_fd < 0) return 0;
    const ssize_t size = pread(instance->schedstat_fd, text, sizeof text - 1, 0);
    if (size <= 0) return 0;
    text[size] = 0;
    char *end = NULL;
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

static void stamp(const struct batch *batch, enum at at, uint64_t now_ns) {
    for (struct job *job = batch->first; job != NULL; job = job->next)
        job->trace->at[at] = now_ns;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high) {
    return value < low ? low : value > high ? high : value;
}

static void stamp_queue(const struct batch *batch, uint32_t instance) {
    for (struct job *job = batch->first; job != NULL; job = job->next) {
        uint64_t *at = job->trace->at;
        at[AT_INSTANCE_FREE] = clamp(batch->free_ns, at[AT_ENQUEUED], batch->taken_ns);
        at[AT_BATCH_READY] = clamp(batch->ready_ns, at[AT_INSTANCE_FREE], batch->taken_ns);
        at[AT_TAKEN] = batch->taken_ns;
        job->trace->batch = batch->id;
        job->trace->batch_size = batch->jobs;
        job->trace->reason = (uint8_t)batch->reason;
        job->trace->instance = (uint8_t)instance;
    }
}

/* --preprocess inline: the experiment's fault, tokenizing on this thread. Jobs that fail leave
 * the batch for the list at *failed. */
static void prepare_inline(struct instance *instance, struct batch *batch, struct job **failed) {
    const struct batcher_config *config = &instance->batcher->config;
    const uint64_t began = mono_ns();
    uint64_t now_ns = began;
    struct job **link = &batch->first;
    batch->length = 0;
    while (*link != NULL) {
        struct job *job = *link;
        job->trace->at[AT_INLINE_START] = now_ns;
        job->status = config->prepare(job, config->ctx);
        now_ns = mono_ns();
        job->trace->at[AT_INLINE_END] = now_ns;
        if (job->status != ST_OK) {
            *link = job->next;
            batch->jobs--;
            batch->rows -= job->rows;
            job->next = *failed;
            *failed = job;
            continue;
        }
        if (job->length > batch->length) batch->length = job->length;
        link = &job->next;
    }
    stamp(batch, AT_INPUTS_START, now_ns);
    batch->inline_preprocess_ns = now_ns - began;
}

static void count_elements(struct batch *batch) {
    for (const struct job *job = batch->first; job != NULL; job = job->next) {
        batch->real_elements += job->trace->tokens != 0 ? job->trace->tokens
                                                        : (uint64_t)job->rows * job->length;
        batch->padded_elements += (uint64_t)job->rows * batch->length;
        job->trace->padded = batch->length;
    }
}

static void count_copies(const struct instance *instance) {
    struct batcher *batcher = instance->batcher;
    int64_t copied = 0;
    for (uint32_t i = 0; i < batcher->config.input_count; i++)
        if (instance->inputs[i].data == instance->buffers[i].data)
            copied += (int64_t)instance->inputs[i].size;
    counter_add(copied == 0 ? &batcher->batches_in_place : &batcher->batches_copied, 1);
    if (copied > 0) counter_add(&batcher->copied_bytes, copied);
}

static enum status start(struct instance *instance, struct batch *batch, struct err *err) {
    struct batcher *batcher = instance->batcher;
    const struct batcher_config *config = &batcher->config;
    for (uint32_t i = 0; i < config->input_count; i++) {
        const struct padding padding = {.axis = config->pad_axis[i], .length = batch->length,
                                        .value = config->pad_value[i], .is_left = config->pads_left};
        const enum status status = gather_input(batch->first, i, &padding, &instance->buffers[i],
                                                &instance->inputs[i], err);
        if (status != ST_OK) return status;
    }
    count_copies(instance);
    const enum status status = batcher->model->backend->start(
        instance->slot, instance->inputs, batch->rows > 0 ? batch->rows : 1, err);
    batch->inputs_ready_ns = mono_ns();
    return status;
}

static enum status finish(struct instance *instance, struct batch *batch, struct err *err) {
    struct batcher *batcher = instance->batcher;
    const bool is_sampled = instance->last_exec_ns > CPU_SAMPLE_MIN_NS;
    const uint64_t cpu = is_sampled ? thread_cpu_ns() : 0;
    const uint64_t delay = is_sampled ? run_delay_ns(instance) : 0;
    enum status status = batcher->model->backend->finish(instance->slot, instance->outputs, err);
    batch->executed_ns = mono_ns();
    if (is_sampled) {
        batch->cpu_ns = thread_cpu_ns() - cpu;
        batch->run_delay_ns = run_delay_ns(instance) - delay;
    }
    const uint32_t outputs = batcher->model->signature->output_count;
    for (uint32_t i = 0; i < outputs && status == ST_OK; i++) {
        const struct padding padding = {.axis = batcher->config.output_pad_axis[i],
                                        .length = batch->length,
                                        .is_left = batcher->config.pads_left};
        status = scatter_output(batch->first, i, &instance->outputs[i], batch->rows, &padding, err);
    }
    batch->outputs_ready_ns = mono_ns();
    instance->last_exec_ns = batch->executed_ns - batch->inputs_ready_ns;
    return status;
}

static void stamp_run(const struct batch *batch) {
    stamp(batch, AT_INPUTS_READY, batch->inputs_ready_ns);
    stamp(batch, AT_EXECUTED, batch->executed_ns);
    stamp(batch, AT_OUTPUTS_READY, batch->outputs_ready_ns);
}

static void record(const struct instance *instance, const struct batch *batch) {
    const struct batcher *batcher = instance->batcher;
    if (instance->ring == NULL) return;
    const struct batch_record entry = {
        .batch = batch->id,
        .free_ns = batch->free_ns,
        .ready_ns = batch->ready_ns,
        .taken_ns = batch->taken_ns,
        .inputs_ready_ns = batch->inputs_ready_ns,
        .executed_ns = batch->executed_ns,
        .outputs_ready_ns = batch->outputs_ready_ns,
        .inline_preprocess_ns = batch->inline_preprocess_ns,
        .real_elements = batch->real_elements,
        .padded_elements = batch->padded_elements,
        .cpu_ns = batch->cpu_ns,
        .run_delay_ns = batch->run_delay_ns,
        .requests = batch->jobs,
        .rows = batch->rows,
        .max_batch = batch->limit,
        .waiting = batch->waiting,
        .model = batcher->config.trace_model,
        .instance = (uint8_t)instance->index,
        .reason = (uint8_t)batch->reason,
        .failed = batch->failed,
        .simulated = batcher->model->backend->is_simulated,
    };
    trace_batch(instance->ring, &entry);
}

/* A batch failed: each job runs on its own, so that the good ones are answered and the bad ones
 * get the error that is theirs. */
static void run_alone(struct instance *instance, struct batch *batch, enum status status,
                      const struct err *err) {
    batch->failed = true;
    if (batch->inputs_ready_ns == 0) batch->inputs_ready_ns = mono_ns();
    if (batch->executed_ns == 0) batch->executed_ns = mono_ns();
    if (batch->outputs_ready_ns == 0) batch->outputs_ready_ns = mono_ns();
    record(instance, batch);
    if (batch->jobs == 1) {
        batch->first->status = status;
        batch->first->err = *err;
        stamp_run(batch);
        return;
    }
    for (struct job *job = batch->first; job != NULL; job = job->next) {
        struct job *following = job->next;
        job->next = NULL;
        struct batch alone = {.first = job, .jobs = 1, .rows = job->rows, .length = job->length,
                              .limit = 1, .reason = REASON_ALONE, .free_ns = batch->executed_ns,
                              .ready_ns = batch->executed_ns, .taken_ns = mono_ns(),
                              .id = (uint64_t)counter_add(instance->batcher->config.batch_ids, 1)};
        counter_set(&instance->executing_since, (int64_t)alone.taken_ns);
        job->status = job->outputs == NULL ? err_set(&job->err, ST_NO_MEMORY, "no memory for outputs")
                                           : start(instance, &alone, &job->err);
        if (job->status == ST_OK) job->status = finish(instance, &alone, &job->err);
        else alone.executed_ns = alone.outputs_ready_ns = mono_ns();
        alone.failed = job->status != ST_OK;
        count_elements(&alone);
        stamp_run(&alone);
        job->trace->batch = alone.id;
        job->trace->batch_size = 1;
        job->trace->reason = REASON_ALONE;
        record(instance, &alone);
        job->next = following;
    }
}

static void deliver(const struct instance *instance, struct job *list) {
    staging_release_list(list); /* of those that never ran */
    batcher_deliver(instance->batcher, list);
}

/* Runs the batch; answers of the batch before (may be NULL) go out once this one has started. */
static void run(struct instance *instance, struct batch *batch, struct job *previous) {
    struct batcher *batcher = instance->batcher;
    const uint32_t outputs = batcher->model->signature->output_count;
    struct job *failed = NULL;
    struct err err = {""};
    stamp_queue(batch, instance->index);
    if (batcher->config.prepare != NULL) prepare_inline(instance, batch, &failed);
    batch->first = staging_sort(batch->first); /* the order in which it may run where it lies */
    enum status status = ST_OK;
    for (struct job *job = batch->first; job != NULL; job = job->next) {
        job->status = ST_OK;
        job->outputs = arena_array(job->arena, outputs, sizeof *job->outputs);
        if (job->outputs == NULL) /* the lone run below finds whose */
            status = err_set(&err, ST_NO_MEMORY, "no memory for outputs");
    }
    if (batch->first != NULL && status == ST_OK) status = start(instance, batch, &err);
    deliver(instance, previous);
    deliver(instance, failed);
    if (batch->first == NULL) return;
    if (status == ST_OK) status = finish(instance, batch, &err);
    if (status != ST_OK) run_alone(instance, batch, status, &err);
    staging_release_list(batch->first); /* at once: an answer may be given out much later */
    if (status != ST_OK) return;
    count_elements(batch);
    stamp_run(batch);
    record(instance, batch);
    instance->learned_exec_ns = batch->outputs_ready_ns - batch->taken_ns;
    instance->learned_elements =
        batch->padded_elements != 0 ? (double)batch->padded_elements : (double)batch->jobs;
}

void *instance_main(void *argument) {
    struct instance *instance = argument;
    struct batcher *batcher = instance->batcher;
    role_set(ROLE_INSTANCE, instance->index);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
    instance->schedstat_fd = open(path, O_RDONLY | O_CLOEXEC);
    instance->free_ns = mono_ns();
    struct batch batch;
    struct job *unanswered = NULL;
    bool has_batch = collector_next(instance, &batch);
    while (has_batch) {
        counter_add(&batcher->busy, 1);
        counter_set(&instance->executing_since, (int64_t)batch.taken_ns);
        run(instance, &batch, unanswered);
        counter_set(&instance->executing_since, 0);
        counter_add(&batcher->busy, -1);
        instance->free_ns = mono_ns();
        unanswered = batch.first;
        has_batch = batcher->model->backend->is_async && collector_take_full(instance, &batch);
        if (has_batch) continue; /* answered once the next has started */
        deliver(instance, unanswered);
        unanswered = NULL;
        has_batch = collector_next(instance, &batch);
    }
    return NULL;
}

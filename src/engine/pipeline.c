/* The journey of a request, in order; its stages are enum stage (measure/stage.h):
 *
 *   engine_submit       checks                                          caller's thread
 *   -> run_preprocess   text to token tensors                           a worker
 *   -> batcher_push     queue, policy, gather, execute, scatter         an instance
 *   -> pipeline_batch_done
 *   -> run_postprocess  logits to label and score (where asked for)     a worker
 *   -> complete         the outputs wanted; request->on_done            that same thread
 *
 * A model that takes tensors goes from submit to push at once. One invariant: a request is owned
 * by exactly one of these at any time; after on_done it is its owner's again. */
#include "engine/engine_private.h"

#include "base/clock.h"
#include "engine/check.h"

static struct engine_model *model_of(const struct request *request) {
    return (struct engine_model *)(uintptr_t)request->model;
}

static struct request *request_of_job(struct job *job) {
    return (struct request *)((char *)job - offsetof(struct request, job));
}

static struct request *request_of_pool_job(struct pool_job *job) {
    return (struct request *)((char *)job - offsetof(struct request, pool_job));
}

static void complete(struct request *request) {
    struct engine *engine = request->engine; /* on_done gives the request away */
    request->trace.status = (uint8_t)request->status;
    request->on_done(request);
    if (counter_add(&engine->outstanding, -1) == 0) parker_wake(&engine->idle, 1);
}

static void fail(struct request *request, enum status status) {
    request->status = status;
    request->output_count = 0;
    complete(request);
}

/* ---- preprocess ---- */

static bool is_given_up(const struct request *request) { return flag_is_up(&request->job.is_cancelled); }

static enum status encode(struct request *request) {
    struct engine_model *model = model_of(request);
    struct tensor *inputs;
    const enum status status = text_model_encode(
        &model->text, model->served.model->signature, &request->inputs[0], &request->arena, &inputs,
        &request->job.length, &request->trace.tokens, &request->err);
    if (status == ST_OK) request->job.inputs = inputs;
    return status;
}

enum status pipeline_prepare(struct job *job, void *ctx) {
    (void)ctx;
    struct request *request = request_of_job(job);
    return job->inputs != NULL ? ST_OK : encode(request); /* ids sent as tensors need nothing */
}

static enum status enqueue(struct request *request, bool wake) {
    struct engine_model *model = model_of(request);
    const enum status status = batcher_push(model->batcher, &request->job, wake);
    if (status != ST_OK) request->err = request->job.err;
    return status;
}

static void run_preprocess(struct pool_job *pool_job, unsigned worker) {
    (void)worker;
    struct request *request = request_of_pool_job(pool_job);
    request->trace.at[AT_PREPROCESS_START] = mono_ns();
    if (is_given_up(request)) {
        fail(request, ST_CANCELLED);
        return;
    }
    enum status status = encode(request);
    request->trace.at[AT_PREPROCESS_END] = mono_ns();
    if (status == ST_OK) status = enqueue(request, true);
    if (status != ST_OK) fail(request, status);
}

/* ---- submit ---- */

static enum status submit_text(struct engine *engine, struct request *request) {
    struct engine_model *model = model_of(request);
    if (request->input_count > 1)
        return err_set(&request->err, ST_INVALID, "model %s takes TEXT alone or its tensors, not both",
                       model->served.model->name);
    const enum status status = check_text(&request->inputs[0], model->served.model->name,
                                          model->max_rows, &request->job.rows, &request->err);
    if (status != ST_OK) return status;
    request->trace.rows = request->job.rows;
    if (engine->config->preprocess == PREPROCESS_INLINE) return enqueue(request, true);
    request->pool_job.run = run_preprocess;
    if (!pool_submit(engine->pool, &request->pool_job))
        return err_set(&request->err, ST_OVERLOADED, "model %s: too many texts wait for a worker",
                       model->served.model->name);
    return ST_OK;
}

/* Length of the padded axis of a text model's own tensors, which must be the same in all. */
static enum status tensor_length(const struct engine_model *model, struct request *request) {
    const struct signature *signature = model->served.model->signature;
    for (uint32_t i = 0; i < signature->input_count; i++) {
        const int64_t length = request->job.inputs[i].shape[1];
        if (length < 1 || length > UINT32_MAX)
            return err_set(&request->err, ST_INVALID, "model %s, input %s: the sequence is empty",
                           model->served.model->name, signature->inputs[i].name);
        if (i > 0 && (uint32_t)length != request->job.length)
            return err_set(&request->err, ST_INVALID,
                           "model %s, input %s: %lld tokens, in %s there are %u",
                           model->served.model->name, signature->inputs[i].name, (long long)length,
                           signature->inputs[0].name, request->job.length);
        request->job.length = (uint32_t)length;
    }
    request->trace.tokens = request->job.length * request->job.rows;
    return ST_OK;
}

static bool is_own_input(const struct signature *signature, struct view name) {
    for (uint32_t i = 0; i < signature->input_count; i++)
        if (view_is(name, signature->inputs[i].name)) return true;
    return false;
}

static enum status submit_tensors(struct request *request) {
    struct engine_model *model = model_of(request);
    for (uint32_t i = 0; model->served.is_text && i < request->input_count; i++)
        if (!is_own_input(model->served.model->signature, request->inputs[i].name))
            return err_set(&request->err, ST_INVALID,
                           "model %s has no input %.*s; it takes TEXT, or its own tensors, %s first",
                           model->served.model->name, VIEW_ARGS(request->inputs[i].name),
                           model->served.model->signature->inputs[0].name);
    enum status status =
        check_inputs(model->served.model->signature, model->served.model->name, request->inputs,
                     request->input_count, model->is_batched, model->max_rows, &request->arena,
                     &request->job.inputs, &request->job.rows, &request->err);
    if (status == ST_OK && model->served.is_text) status = tensor_length(model, request);
    if (status != ST_OK) return status;
    request->trace.rows = request->job.rows;
    status = enqueue(request, false);
    if (status == ST_OK) flag_raise(&model->needs_kick);
    return status;
}

static bool wants_label(const struct engine_model *model, const struct request *request) {
    const uint32_t first = model->served.model->signature->output_count;
    for (uint32_t i = 0; i < request->wanted_index_count; i++)
        if (request->wanted_indices[i] >= first) return true;
    return false;
}

/* Does it bring a text? Its own tensors are taken too (ids from the client). */
static bool has_text(const struct engine_model *model, const struct request *request) {
    for (uint32_t i = 0; i < request->input_count; i++)
        if (model->served.is_text && view_is(request->inputs[i].name, "TEXT")) return true;
    return false;
}

enum status engine_submit(struct engine *engine, struct request *request) {
    struct engine_model *model = model_of(request);
    request->engine = engine;
    request->trace.model = model->served.trace_model;
    request->trace.status = ST_OK;
    request->job.arena = &request->arena;
    request->job.trace = &request->trace;
    request->job.deadline_ns = request->deadline_ns;
    enum status status = check_wanted(&model->served.shown, model->served.model->name,
                                      request->wanted, request->wanted_count, &request->arena,
                                      &request->wanted_indices, &request->wanted_index_count,
                                      &request->err);
    if (status == ST_OK) {
        request->wants_label = model->served.has_labels && wants_label(model, request);
        counter_add(&engine->outstanding, 1);
        status = has_text(model, request) ? submit_text(engine, request) : submit_tensors(request);
        if (status != ST_OK) counter_add(&engine->outstanding, -1);
    }
    /* On success the request may be answered, even freed, by now. */
    if (status == ST_OK) return ST_OK;
    request->status = status;
    request->trace.status = (uint8_t)status;
    return status;
}

void engine_flush(struct engine *engine) {
    for (size_t i = 0; i < engine->model_count; i++) {
        struct engine_model *model = &engine->models[i];
        if (!flag_is_up(&model->needs_kick)) continue;
        flag_lower(&model->needs_kick);
        batcher_kick(model->batcher);
    }
}

void request_cancel(struct request *request) { flag_raise(&request->job.is_cancelled); }

void request_trace(struct request *request, struct trace_ring *ring) {
    if (ring != NULL) trace_request(ring, &request->trace);
}

/* ---- postprocess and completion ---- */

static enum status select_outputs(struct request *request, const struct tensor *label,
                                  const struct tensor *score) {
    const uint32_t own = request->model->model->signature->output_count;
    request->outputs = arena_array(&request->arena, request->wanted_index_count, sizeof *request->outputs);
    if (request->outputs == NULL)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the answer");
    for (uint32_t i = 0; i < request->wanted_index_count; i++) {
        const uint32_t index = request->wanted_indices[i];
        request->outputs[i] = index < own ? request->job.outputs[index] : index == own ? *label : *score;
    }
    request->output_count = request->wanted_index_count;
    return ST_OK;
}

/* out_now_ns: stamped as the end of postprocessing; NULL where there was none. */
static void finish(struct request *request, uint64_t *out_now_ns) {
    struct engine_model *model = model_of(request);
    struct tensor label = {0}, score = {0};
    enum status status = ST_OK;
    if (request->wants_label) {
        const struct tensor *logits = &request->job.outputs[model->text.logits];
        if (logits->rank != 2 || logits->shape[1] != (int64_t)model->text.labels.count)
            status = err_set(&request->err, ST_INTERNAL,
                             "model %s gives %lld scores a row, its labels file has %zu labels",
                             model->served.model->name,
                             (long long)(logits->rank == 2 ? logits->shape[1] : -1),
                             model->text.labels.count);
        else {
            status = text_model_label(&model->text, logits, &request->arena, &label, &score);
            if (status != ST_OK) (void)err_set(&request->err, status, "no memory for the labels");
        }
    }
    if (status == ST_OK) status = select_outputs(request, &label, &score);
    if (out_now_ns != NULL) request->trace.at[AT_POSTPROCESS_END] = *out_now_ns = mono_ns();
    if (status != ST_OK) {
        fail(request, status);
        return;
    }
    request->status = ST_OK;
    complete(request);
}

/* One job for all of a batch's requests that need it: chained by batch_next. */
static void run_postprocess(struct pool_job *pool_job, unsigned worker) {
    (void)worker;
    struct request *request = request_of_pool_job(pool_job);
    uint64_t now_ns = mono_ns();
    while (request != NULL) {
        struct request *next = request->batch_next; /* finish gives the request away */
        request->trace.at[AT_POSTPROCESS_START] = now_ns;
        finish(request, &now_ns);
        request = next;
    }
}

void pipeline_batch_done(struct job *list, void *ctx) {
    struct engine_model *model = ctx;
    struct request *chain = NULL, **tail = &chain;
    while (list != NULL) {
        struct request *request = request_of_job(list);
        list = list->next; /* completing gives the request away */
        if (request->job.status != ST_OK) {
            if (request->err.text[0] == 0) request->err = request->job.err;
            fail(request, request->job.status);
        } else if (request->wants_label && !is_given_up(request)) {
            request->batch_next = NULL;
            *tail = request;
            tail = &request->batch_next;
        } else {
            if (request->wants_label) fail(request, ST_CANCELLED);
            else finish(request, NULL);
        }
    }
    if (chain == NULL) return;
    chain->pool_job.run = run_postprocess;
    if (!pool_submit(model->engine->pool, &chain->pool_job)) run_postprocess(&chain->pool_job, 0);
}

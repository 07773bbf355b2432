/* The journey of a request, in order; its stages are enum stage (measure/stage.h):
 *
 *   engine_submit       checks                                          caller's thread
 *   -> run_decode       a large body to tensors, then as below          a worker
 *   -> run_preprocess   texts and pictures to the model's tensors       a worker
 *   -> batcher_push     queue, policy, gather, execute, scatter         an instance
 *   -> pipeline_batch_done
 *   -> run_postprocess  what the pipeline makes of the model's outputs  a worker
 *   -> complete         the outputs wanted; request->on_done            that same thread
 *
 * A request of tensors goes from submit to push at once. One invariant: a request is owned by
 * exactly one of these at any time; after on_done it is its owner's again. The steps of a pipeline
 * are in preprocess.c and postprocess.c. */
#include "engine/engine_private.h"

#include "base/clock.h"
#include "engine/check.h"
#include "engine/postprocess.h"
#include "engine/preprocess.h"

#include <assert.h>

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

static bool is_given_up(const struct request *request) { return flag_is_up(&request->job.is_cancelled); }

/* A worker keeps its buffers, up to what one large photograph needs. */
enum { SCRATCH_KEPT_BYTES = 16 << 20 };

static struct scratch *scratch_of(struct engine *engine, unsigned worker) {
    return &engine->scratches[worker];
}

/* ---- preprocess ---- */

/* --preprocess inline: an instance has no buffers to keep, which is part of what it shows. */
enum status pipeline_prepare(struct job *job, void *ctx) {
    struct request *request = request_of_job(job);
    struct scratch scratch = {0};
    if (request->prepared_rows == 0) return ST_OK; /* sent as tensors: nothing to do */
    const enum status status = preprocess_run(ctx, request, &scratch);
    scratch_done(&scratch);
    return status;
}

/* Once pushed the request may be answered and cleared at any time: the batcher has to outlive our
 * way out of it, and the wake that is owed. */
static enum status enqueue(struct request *request, bool wake) {
    struct engine_model *model = model_of(request);
    struct model_slot *slot = model->slot;
    struct engine *engine = model->engine;
    const bool is_held = lifetime_share(&slot->lifetime);
    assert(is_held);
    const enum status status = batcher_push(model->batcher, &request->job, wake);
    if (status != ST_OK) request->err = request->job.err;
    else if (!wake && pending_set(&slot->to_kick)) mpsc_push(&engine->kicks, &slot->kick_node);
    if (is_held) engine_release(&model->served);
    return status;
}

/* On a worker: prepares and pushes. */
static void prepare(struct request *request, unsigned worker) {
    struct engine_model *model = model_of(request);
    request->trace.at[AT_PREPROCESS_START] = mono_ns();
    struct scratch *scratch = scratch_of(request->engine, worker);
    enum status status = preprocess_run(model, request, scratch);
    scratch_trim(scratch, SCRATCH_KEPT_BYTES);
    request->trace.at[AT_PREPROCESS_END] = mono_ns();
    if (status == ST_OK) status = enqueue(request, true);
    if (status != ST_OK) fail(request, status);
}

/* Nobody can be served in time who has less left than the work takes: a worker's time goes to
 * those who can. While nobody else waits there is nothing to save, and the average is learned
 * anew. */
static bool is_too_late(struct request *request, uint64_t now_ns) {
    struct engine_model *model = model_of(request);
    if (request->deadline_ns == 0) return false;
    const bool others_wait = pool_waiting(request->engine->pool) > 0;
    const uint64_t needed_ns = others_wait ? (uint64_t)counter_get(&model->work_ns) : 0;
    if (now_ns + needed_ns <= request->deadline_ns) return false;
    const uint64_t waited_ns = now_ns - request->trace.at[AT_RECEIVED];
    (void)err_set(&request->err, ST_TIMEOUT,
                  "it waited %.1f ms for a worker; the %.1f ms of work that are left would not end within its "
                  "timeout", (double)waited_ns / 1e6, (double)needed_ns / 1e6);
    return true;
}

/* Learns from a request that went all the way: an eighth of each. */
static void learn_work(struct engine_model *model, const struct request *request) {
    const uint64_t *at = request->trace.at;
    if (at[AT_PREPROCESS_START] == 0 || at[AT_TAKEN] == 0) return;
    const int64_t took = (int64_t)(at[AT_PREPROCESS_END] - at[AT_PREPROCESS_START] + at[AT_OUTPUTS_READY] - at[AT_TAKEN]);
    counter_add(&model->work_ns, (took - counter_get(&model->work_ns)) / 8);
}

static void run_preprocess(struct pool_job *pool_job, unsigned worker) {
    struct request *request = request_of_pool_job(pool_job);
    const uint64_t now_ns = mono_ns();
    if (is_given_up(request) || is_too_late(request, now_ns)) {
        request->trace.at[AT_PREPROCESS_START] = now_ns;
        fail(request, is_given_up(request) ? ST_CANCELLED : ST_TIMEOUT);
        return;
    }
    prepare(request, worker);
}

/* ---- submit ---- */

static enum status to_worker(struct request *request, void (*run)(struct pool_job *, unsigned)) {
    request->pool_job.run = run;
    if (pool_submit(request->engine->pool, &request->pool_job)) return ST_OK;
    return err_set(&request->err, ST_OVERLOADED, "model %s: too many requests wait for a worker",
                   model_of(request)->served.model->name);
}

/* Length of the padded axis of a text model's own tensors, which must be the same in all. */
static enum status tensor_length(const struct engine_model *model, struct request *request) {
    const struct signature *signature = model->served.model->signature;
    const struct bound_text *text = binding_text(&model->binding);
    int first = NOT_FED;
    for (int feed = 0; feed < FEED_COUNT; feed++) {
        const int i = text->feeds[feed];
        if (i == NOT_FED) continue;
        const int64_t length = request->job.inputs[i].shape[1];
        if (length < 1 || length > UINT32_MAX)
            return err_set(&request->err, ST_INVALID, "model %s, input %s: the sequence is empty",
                           model->served.model->name, signature->inputs[i].name);
        if (first != NOT_FED && (uint32_t)length != request->job.length)
            return err_set(&request->err, ST_INVALID,
                           "model %s, input %s: %lld tokens, in %s there are %u",
                           model->served.model->name, signature->inputs[i].name, (long long)length,
                           signature->inputs[first].name, request->job.length);
        if (first == NOT_FED) first = i;
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
    const struct binding *binding = &model->binding;
    for (uint32_t i = 0; binding->input_count > 0 && i < request->input_count; i++)
        if (!is_own_input(model->served.model->signature, request->inputs[i].name))
            return err_set(&request->err, ST_INVALID,
                           "model %s has no input %.*s; it takes %s, or its own tensors, %s first",
                           model->served.model->name, VIEW_ARGS(request->inputs[i].name),
                           binding->inputs[0].spec->name, model->served.model->signature->inputs[0].name);
    enum status status =
        check_inputs(model->served.model->signature, model->served.model->name, request->inputs,
                     request->input_count, model->is_batched, model->max_rows, &request->arena,
                     &request->job.inputs, &request->job.rows, &request->err);
    if (status == ST_OK && model->served.is_text) status = tensor_length(model, request);
    if (status != ST_OK) return status;
    request->trace.rows = request->job.rows;
    return ST_OK;
}

/* Checks, and what comes next. worker: the one that this runs on, or NO_WORKER. */
enum { NO_WORKER = -1 };
static enum status start(struct request *request, int worker) {
    struct engine_model *model = model_of(request);
    struct engine *engine = request->engine;
    request->job.deadline_ns = request->deadline_ns;
    enum status status = check_wanted(&model->served.shown, model->served.model->name,
                                      request->wanted, request->wanted_count, &request->arena,
                                      &request->wanted_indices, &request->wanted_index_count,
                                      &request->err);
    if (status != ST_OK) return status;
    const bool has_steps = preprocess_applies(model, request);
    status = has_steps ? preprocess_check(model, request) : submit_tensors(request);
    if (status != ST_OK) return status;
    const bool is_inline = engine->config->preprocess == PREPROCESS_INLINE;
    if (has_steps && !is_inline && worker == NO_WORKER) return to_worker(request, run_preprocess);
    if (has_steps && !is_inline) {
        prepare(request, (unsigned)worker);
        return ST_OK;
    }
    const bool wakes = has_steps || worker != NO_WORKER;
    status = enqueue(request, wakes);
    return status;
}

/* A large body: decoded where it keeps nobody waiting, then on as if it had come decoded. */
static void run_decode(struct pool_job *pool_job, unsigned worker) {
    struct request *request = request_of_pool_job(pool_job);
    request->trace.at[AT_DECODE_START] = mono_ns();
    enum status status = is_given_up(request)                                      ? ST_CANCELLED
                         : is_too_late(request, request->trace.at[AT_DECODE_START]) ? ST_TIMEOUT
                                                                                    : request->decode(request);
    request->trace.at[AT_DECODED] = mono_ns();
    if (status == ST_OK) status = start(request, (int)worker);
    if (status != ST_OK) fail(request, status);
}

enum status engine_submit(struct engine *engine, struct request *request) {
    struct engine_model *model = model_of(request);
    request->engine = engine;
    request->trace.model = model->served.trace_model;
    request->trace.status = ST_OK;
    request->job.arena = &request->arena;
    request->job.trace = &request->trace;
    counter_add(&engine->outstanding, 1);
    const enum status status =
        request->decode != NULL ? to_worker(request, run_decode) : start(request, NO_WORKER);
    /* On success the request may be answered, even freed, by now. */
    if (status == ST_OK) return ST_OK;
    counter_add(&engine->outstanding, -1);
    request->status = status;
    request->trace.status = (uint8_t)status;
    return status;
}

void engine_flush(struct engine *engine) {
    if (mpsc_is_empty(&engine->kicks)) return;
    struct mpsc_node *node = mpsc_take_all(&engine->kicks);
    while (node != NULL) {
        struct model_slot *slot =
            (struct model_slot *)((char *)node - offsetof(struct model_slot, kick_node));
        node = node->next; /* once cleared, the slot may be put into the list again */
        pending_clear(&slot->to_kick);
        if (!lifetime_share(&slot->lifetime)) continue; /* all its requests have been answered */
        batcher_kick(slot->model->batcher);
        engine_release(&slot->model->served);
    }
}

void request_cancel(struct request *request) {
    batcher_cancel(model_of(request)->batcher, &request->job);
}

void request_trace(struct request *request, struct trace_ring *ring) {
    if (ring != NULL) trace_request(ring, &request->trace);
}

/* ---- postprocess and completion ---- */

static void finish(struct request *request, struct scratch *scratch) {
    const enum status status = postprocess_run(model_of(request), request, scratch);
    if (scratch != NULL) request->trace.at[AT_POSTPROCESS_END] = mono_ns();
    if (status != ST_OK) {
        fail(request, status);
        return;
    }
    request->status = ST_OK;
    complete(request);
}

/* One job for those of a batch's requests that are chained by batch_next. */
static void run_chain(struct request *request, struct scratch *scratch) {
    while (request != NULL) {
        struct request *next = request->batch_next; /* finish gives the request away */
        request->trace.at[AT_POSTPROCESS_START] = mono_ns();
        finish(request, scratch);
        request = next;
    }
}

static void run_postprocess(struct pool_job *pool_job, unsigned worker) {
    struct request *request = request_of_pool_job(pool_job);
    struct scratch *scratch = scratch_of(request->engine, worker);
    run_chain(request, scratch);
    scratch_trim(scratch, SCRATCH_KEPT_BYTES);
}

/* To a worker, before those requests that have only begun; where too many wait for one, here and
 * now. */
static void postprocess(struct engine *engine, struct request *chain) {
    chain->pool_job.run = run_postprocess;
    if (pool_submit_first(engine->pool, &chain->pool_job)) return;
    struct scratch scratch = {0};
    run_chain(chain, &scratch);
    scratch_done(&scratch);
}

void pipeline_batch_done(struct job *list, void *ctx) {
    struct engine_model *model = ctx;
    struct request *chain = NULL, **tail = &chain;
    while (list != NULL) {
        struct request *request = request_of_job(list);
        list = list->next; /* completing gives the request away */
        if (request->job.status == ST_OK) learn_work(model, request);
        if (request->job.status != ST_OK) {
            if (request->err.text[0] == 0) request->err = request->job.err;
            fail(request, request->job.status);
        } else if (!postprocess_applies(model, request)) {
            finish(request, NULL);
        } else if (is_given_up(request)) {
            fail(request, ST_CANCELLED);
        } else {
            request->batch_next = NULL;
            if (model->binding.is_heavy) { /* a worker each, as many as are free */
                postprocess(model->engine, request);
                continue;
            }
            *tail = request;
            tail = &request->batch_next;
        }
    }
    if (chain != NULL) postprocess(model->engine, chain);
}

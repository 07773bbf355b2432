/* include/telltale.h: the engine for other C programs. A thin face: an answer is a request whose
 * owner is this file; its memory is the request's arena. Read next: pipeline.c. */
#include "engine/engine.h"

#include "../../include/telltale.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(TELLTALE_MAX_RANK == TENSOR_MAX_RANK, "the public rank is the engine's");

struct telltale {
    struct engine_config config;
    struct engine *engine;
    struct trace_ring *ring;    /* written under trace_lock: answers come on several threads */
    pthread_mutex_t trace_lock;
    char **arguments;         /* the options as "--name=value"; config points into them */
    int argument_count;
};

static const struct option_spec OPTIONS[] = {ENGINE_OPTIONS(struct telltale, config)};
static const struct command_spec COMMAND = {.name = "library", .options = OPTIONS,
                                            .option_count = sizeof OPTIONS / sizeof *OPTIONS};

struct telltale_answer {
    struct request request; /* first: a request is its answer */
    struct telltale *owner;
    void (*done)(struct telltale_answer *answer, void *ctx);
    void *ctx;
    struct telltale_tensor *outputs; /* in the request's arena */
    int code;
    uint64_t stages[STAGE_COUNT], total_ns;
};

const char *telltale_version(void) { return TELLTALE_VERSION; }

/* ---- opening ---- */

static void free_arguments(struct telltale *engine) {
    for (int i = 0; i < engine->argument_count; i++) free(engine->arguments[i]);
    free(engine->arguments);
}

static bool copy_arguments(struct telltale *engine, const char *const *options) {
    size_t count = 0;
    while (options[count] != NULL) count++;
    engine->arguments = calloc(count + 2, sizeof *engine->arguments);
    if (engine->arguments == NULL) return false;
    for (size_t i = 0; i <= count; i++) {
        if (asprintf(&engine->arguments[i], i == 0 ? "library" : "--%s", i == 0 ? "" : options[i - 1]) < 0) {
            engine->arguments[i] = NULL;
            return false;
        }
        engine->argument_count++;
    }
    return true;
}

static enum status open_engine(struct telltale *engine, const char *const *options, struct err *err) {
    if (!copy_arguments(engine, options)) return err_set(err, ST_NO_MEMORY, "out of memory");
    if (options_read(&COMMAND, engine->argument_count, engine->arguments, engine, NULL, NULL, err) !=
        OPTIONS_RUN)
        return ST_INVALID;
    const enum status status = engine_create(&engine->config, &engine->engine, err);
    if (status != ST_OK) return status;
    engine->ring = tracer_ring(engine_tracer(engine->engine));
    return engine->ring != NULL ? ST_OK : err_set(err, ST_NO_MEMORY, "out of memory");
}

int telltale_open(const char *const *options, struct telltale **out, char *error,
                  size_t error_size) {
    struct err err = {""};
    struct telltale *engine = calloc(1, sizeof *engine);
    if (engine != NULL) pthread_mutex_init(&engine->trace_lock, NULL);
    const enum status status = engine == NULL ? err_set(&err, ST_NO_MEMORY, "out of memory")
                                              : open_engine(engine, options, &err);
    if (status == ST_OK) {
        *out = engine;
        return 0;
    }
    if (error != NULL) snprintf(error, error_size, "%s", err.text);
    telltale_close(engine);
    return status_http(status);
}

void telltale_close(struct telltale *engine) {
    if (engine == NULL) return;
    if (engine->engine != NULL) engine_drain(engine->engine);
    engine_free(engine->engine);
    options_free(&COMMAND, engine, NULL);
    free_arguments(engine);
    pthread_mutex_destroy(&engine->trace_lock);
    free(engine);
}

/* ---- a request ---- */

static void show_output(struct telltale_tensor *out, const struct tensor *tensor, struct arena *arena) {
    *out = (struct telltale_tensor){.name = arena_copy(arena, tensor->name),
                                    .datatype = dtype_name(tensor->dtype), .rank = tensor->rank,
                                    .data = tensor->data, .size = tensor->size};
    memcpy(out->shape, tensor->shape, sizeof out->shape);
}

static void answer(struct request *request) {
    struct telltale_answer *answer = (struct telltale_answer *)request;
    request->trace.at[AT_SENT] = mono_ns();
    answer->total_ns = trace_durations(&request->trace, answer->stages);
    if (request->status == ST_OK) {
        answer->outputs = arena_array(&request->arena, request->output_count, sizeof *answer->outputs);
        if (answer->outputs == NULL) request->status = ST_NO_MEMORY;
        for (uint32_t i = 0; request->status == ST_OK && i < request->output_count; i++) {
            show_output(&answer->outputs[i], &request->outputs[i], &request->arena);
            if (answer->outputs[i].name == NULL) request->status = ST_NO_MEMORY;
        }
    }
    if (request->status != ST_OK) {
        answer->code = status_http(request->status);
        request->output_count = 0;
        if (request->err.text[0] == 0)
            (void)err_set(&request->err, request->status, "%s", status_sentence(request->status));
    }
    request->trace.status = (uint8_t)request->status;
    request->trace.status_http = (uint16_t)status_http(request->status);
    struct telltale *owner = answer->owner;
    if (request->model != NULL) {
        pthread_mutex_lock(&owner->trace_lock);
        request_trace(request, owner->ring);
        pthread_mutex_unlock(&owner->trace_lock);
        engine_release(request->model); /* an answer may be freed after the engine */
        request->model = NULL;
    }
    answer->done(answer, answer->ctx);
}

static enum status read_inputs(struct request *request, const struct telltale_tensor *inputs,
                               uint32_t count) {
    struct tensor *own = arena_array(&request->arena, count, sizeof *own);
    if (own == NULL) return err_set(&request->err, ST_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i].name == NULL || inputs[i].datatype == NULL || inputs[i].rank > TENSOR_MAX_RANK)
            return err_set(&request->err, ST_INVALID,
                           "inputs[%u]: name, datatype and a rank of at most %d are needed", i,
                           TENSOR_MAX_RANK);
        const char *name = arena_copy(&request->arena, view_of(inputs[i].name));
        if (name == NULL) return err_set(&request->err, ST_NO_MEMORY, "out of memory");
        own[i] = (struct tensor){.name = view_of(name), .rank = inputs[i].rank,
                                 .data = inputs[i].data, .size = inputs[i].size};
        memcpy(own[i].shape, inputs[i].shape, sizeof own[i].shape);
        if (!dtype_parse(view_of(inputs[i].datatype), &own[i].dtype))
            return err_set(&request->err, ST_INVALID, "input %s: no datatype %s", name,
                           inputs[i].datatype);
    }
    request->inputs = own;
    request->input_count = count;
    return ST_OK;
}

static enum status submit(struct telltale_answer *answer, const char *model,
                          const struct telltale_tensor *inputs, uint32_t input_count) {
    struct request *request = &answer->request;
    struct engine *engine = answer->owner->engine;
    request->model = model != NULL ? engine_find(engine, view_of(model), (struct view){"", 0})
                                   : engine_only(engine);
    if (request->model == NULL)
        return err_set(&request->err, ST_NOT_FOUND,
                       model != NULL ? "there is no model %s" : "there are several models: name one%s",
                       model != NULL ? model : "");
    enum status status = read_inputs(request, inputs, input_count);
    if (status != ST_OK) return status;
    request->trace.at[AT_DECODED] = mono_ns();
    status = engine_submit(engine, request);
    if (status == ST_OK) engine_flush(engine);
    return status;
}

/* Allocates and starts; NULL when memory is out. */
static struct telltale_answer *start(struct telltale *engine, const char *model,
                                     const struct telltale_tensor *inputs, uint32_t input_count,
                                     void (*done)(struct telltale_answer *, void *), void *ctx) {
    struct telltale_answer *one = aligned_alloc(64, (sizeof *one + 63) / 64 * 64);
    if (one == NULL) return NULL;
    *one = (struct telltale_answer){.owner = engine, .done = done, .ctx = ctx};
    request_init(&one->request);
    one->request.on_done = answer;
    one->request.trace.at[AT_START] = one->request.trace.at[AT_RECEIVED] = mono_ns();
    const enum status status = submit(one, model, inputs, input_count);
    if (status == ST_OK) return one; /* may have been answered and freed already */
    one->request.status = status;
    answer(&one->request);
    return one;
}

void telltale_submit(struct telltale *engine, const char *model,
                     const struct telltale_tensor *inputs, uint32_t input_count,
                     void (*done)(struct telltale_answer *answer, void *ctx), void *ctx) {
    static struct telltale_answer out_of_memory = {.code = 503};
    if (start(engine, model, inputs, input_count, done, ctx) == NULL) done(&out_of_memory, ctx);
}

struct rendezvous {
    pthread_mutex_t lock; /* and not a parker: meet may still touch it when the waiter has seen */
    pthread_cond_t cond;
    struct telltale_answer *answer;
};

static void meet(struct telltale_answer *answer, void *ctx) {
    struct rendezvous *rendezvous = ctx;
    pthread_mutex_lock(&rendezvous->lock);
    rendezvous->answer = answer;
    pthread_cond_signal(&rendezvous->cond);
    pthread_mutex_unlock(&rendezvous->lock);
}

int telltale_infer(struct telltale *engine, const char *model,
                   const struct telltale_tensor *inputs, uint32_t input_count,
                   struct telltale_answer **out) {
    struct rendezvous rendezvous = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    *out = NULL;
    if (start(engine, model, inputs, input_count, meet, &rendezvous) == NULL) return 503;
    pthread_mutex_lock(&rendezvous.lock);
    while (rendezvous.answer == NULL) pthread_cond_wait(&rendezvous.cond, &rendezvous.lock);
    pthread_mutex_unlock(&rendezvous.lock);
    pthread_cond_destroy(&rendezvous.cond);
    pthread_mutex_destroy(&rendezvous.lock);
    *out = rendezvous.answer;
    return telltale_answer_code(rendezvous.answer);
}

/* ---- asking an answer ---- */

int telltale_answer_code(const struct telltale_answer *answer) { return answer->code; }

const char *telltale_answer_error(const struct telltale_answer *answer) {
    return answer->request.err.text;
}

uint32_t telltale_answer_output_count(const struct telltale_answer *answer) {
    return answer->request.output_count;
}

const struct telltale_tensor *telltale_answer_output(const struct telltale_answer *answer,
                                                     uint32_t index) {
    return &answer->outputs[index];
}

uint64_t telltale_answer_stage_ns(const struct telltale_answer *answer, const char *stage) {
    if (strcmp(stage, "total") == 0) return answer->total_ns;
    for (int i = 0; i < STAGE_COUNT; i++)
        if (strcmp(stage, stage_name((enum stage)i)) == 0) return answer->stages[i];
    return 0;
}

void telltale_answer_free(struct telltale_answer *answer) {
    if (answer == NULL || answer->owner == NULL) return; /* the one that says "out of memory" */
    request_done(&answer->request);
    free(answer);
}

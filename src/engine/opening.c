/* See opening.h. Read next: binding.h, which fits a pipeline to a model; batch/batcher.h. */
#include "engine/opening.h"

#include "engine/loader.h"

#include <stdlib.h>

/* ---- the pipeline ---- */

/* From the command line, from beside the model, or what is obvious. */
static enum status find_pipeline(struct engine_model *model, const struct engine_config *config,
                                 const struct binding_files *files, struct err *err) {
    const struct model *own = model->served.model;
    const bool is_off = config->pipeline != NULL && strcmp(config->pipeline, "none") == 0;
    const char *path = is_off ? NULL : config->pipeline != NULL ? config->pipeline : own->pipeline_path;
    struct pipeline_file *file = &model->binding.file;
    if (path != NULL) return pipeline_load(path, &model->arena, file, err);
    *file = (struct pipeline_file){.path = "", .shows_model_outputs = true};
    if (is_off && config->tokenizer == NULL) return ST_OK;
    struct err reason;
    if (binding_infer(own, files, file, &reason)) return ST_OK;
    if (config->tokenizer != NULL)
        return err_set(err, ST_INVALID, "--tokenizer does not fit the model: %s", reason.text);
    model->served.note = arena_copy(&model->arena, view_of(reason.text));
    return model->served.note != NULL ? ST_OK
                                      : err_set(err, ST_NO_MEMORY, "no memory for model %s", own->name);
}

static enum status open_pipeline(struct engine_model *model, const struct engine_config *config,
                                 struct err *err) {
    const struct binding_files files = {.tokenizer = config->tokenizer, .labels = config->labels,
                                        .max_tokens = (uint32_t)config->max_tokens};
    struct binding *binding = &model->binding;
    enum status status = find_pipeline(model, config, &files, err);
    if (status == ST_OK)
        status = binding_make(binding, model->served.model, &files, &model->arena, &model->served.shown, err);
    if (status != ST_OK) return status;
    model->served.has_pipeline = binding->input_count > 0 || binding->output_count > 0;
    for (uint32_t i = 0; i < binding->input_count; i++) {
        if (binding->inputs[i].spec->kind != PIPELINE_TEXT) continue;
        model->served.is_text = true;
        model->served.max_tokens = binding->inputs[i].text.max_tokens;
    }
    return ST_OK;
}

/* ---- opening a model ---- */

/* Is the output's axis 1 that of the tokens? */
static bool is_along(const struct io_spec *output, const char *symbol) {
    return symbol != NULL && output->rank >= 2 && output->dim_names[1] != NULL &&
           strcmp(output->dim_names[1], symbol) == 0;
}

/* What is filled up on the left moves a text's own places: an output that is open along axis 1 but
 * cannot be told to be along the tokens would be read in the wrong places. */
static bool can_cut_all(const struct signature *signature, const char *symbol) {
    for (uint32_t i = 0; i < signature->output_count; i++) {
        const struct io_spec *output = &signature->outputs[i];
        const bool is_open = output->is_any_shape || (output->rank >= 2 && output->shape[1] == -1);
        if (is_open && !is_along(output, symbol)) return false;
    }
    return true;
}

/* Which axes may be filled up: those of token inputs. The same axis is cut back in outputs that
 * name it by the same symbol. */
static void set_padding(const struct engine_model *model, struct batcher_config *config) {
    const struct signature *signature = model->served.model->signature;
    for (uint32_t i = 0; i < MODEL_MAX_IO; i++) config->pad_axis[i] = config->output_pad_axis[i] = -1;
    const struct bound_text *text = binding_text(&model->binding);
    if (text == NULL) return;
    const struct io_spec *ids = &signature->inputs[text->feeds[FEED_IDS]];
    const char *symbol = ids->dim_names[1];
    config->pads_left = text->padding.is_left;
    if (text->padding.is_left && !can_cut_all(signature, symbol)) return;
    for (int feed = 0; feed < FEED_COUNT; feed++) {
        const int index = text->feeds[feed];
        if (index == NOT_FED || signature->inputs[index].shape[1] != -1) continue;
        config->pad_axis[index] = 1;
        config->pad_value[index] = feed == FEED_IDS     ? text->padding.id
                                   : feed == FEED_TYPES ? text->padding.type_id
                                                        : 0;
    }
    for (uint32_t i = 0; i < signature->output_count; i++)
        if (is_along(&signature->outputs[i], symbol)) config->output_pad_axis[i] = 1;
}

/* Rows of pictures that are all of one size are written where the batch will run them. */
static void set_staging(const struct engine_model *model, struct batcher_config *config) {
    for (uint32_t i = 0; i < model->binding.input_count; i++) {
        const struct bound_input *input = &model->binding.inputs[i];
        if (input->spec->kind == PIPELINE_IMAGE)
            config->staged_row_bytes[input->image.to] = input->image.fixed_row_bytes;
    }
}

static enum status open_batcher(struct engine_model *model, struct err *err) {
    struct engine *engine = model->engine;
    const struct engine_config *config = engine->config;
    struct batcher_config batcher = {
        .queue = (enum queue_kind)config->queue,
        .policy = {.kind = (enum policy_kind)config->policy,
                   .max_batch = model->max_rows,
                   .max_delay_ns = config->max_delay_us * 1000},
        .is_batched = model->is_batched,
        .instances = engine->instances,
        .queue_limit = (uint32_t)config->queue_limit,
        .on_done = pipeline_batch_done,
        .ctx = model,
        .tracer = engine->tracer,
        .trace_model = model->served.trace_model,
        .batch_ids = &engine->batch_ids,
    };
    set_padding(model, &batcher);
    set_staging(model, &batcher);
    if (model->binding.input_count > 0 && config->preprocess == PREPROCESS_INLINE)
        batcher.prepare = pipeline_prepare;
    return batcher_create(model->served.model, &batcher, &model->batcher, err);
}

/* ---- opening ---- */

struct session_call {
    struct model *model;
    const struct backend *backend;
    const struct session_config *config;
    enum status status;
    struct err *err;
};

static void open_session(void *argument) {
    struct session_call *call = argument;
    call->status = model_open(call->model, call->backend, call->config, call->err);
}

/* ONNX Runtime's own threads are like the one that opens the session: where it starts some, that
 * one is the keeper, whose priority is everybody's. */
static enum status open_own(struct engine_model *model, struct err *err) {
    struct engine *engine = model->engine;
    const struct engine_config *config = engine->config;
    struct model *own = model->served.model;
    const struct session_config session = {
        .model_path = own->path,
        .onnxruntime_path = config->onnxruntime,
        .intra_op_threads = (uint32_t)config->intra_op_threads,
        .allow_spinning = config->allow_spinning,
        .denormal_as_zero = config->denormal_as_zero,
        .simulate = config->simulate,
        .simulate_text = config->tokenizer != NULL || own->tokenizer_path != NULL,
    };
    struct session_call call = {.model = own, .config = &session, .err = err,
                                .backend = config->simulate != NULL ? &backend_sim : &backend_ort};
    if (session.intra_op_threads > 1) loader_call(engine->loader, open_session, &call);
    else open_session(&call);
    return call.status;
}

enum status opening_open(struct engine *engine, struct model *found, struct engine_model **out,
                         struct err *err) {
    struct engine_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        const enum status status = err_set(err, ST_NO_MEMORY, "no memory for model %s", found->name);
        model_free(found);
        return status;
    }
    model->served.model = found;
    model->engine = engine;
    model->version = strtoull(found->version, NULL, 10);
    arena_init(&model->arena);
    enum status status = open_own(model, err);
    if (status == ST_OK) status = open_pipeline(model, engine->config, err);
    if (status != ST_OK) {
        opening_close(model);
        return status;
    }
    model->is_batched = found->can_batch && engine->config->max_batch > 0;
    model->max_rows = model->is_batched ? (uint32_t)engine->config->max_batch : 1;
    *out = model;
    return ST_OK;
}

enum status opening_start(struct engine_model *model, const char *trace_name, struct err *err) {
    model->served.trace_model = tracer_model(model->engine->tracer, trace_name);
    if (model->served.trace_model == TRACE_MODEL_MAX)
        return err_set(err, ST_NO_MEMORY, "model %s: no memory for its trace",
                       model->served.model->name);
    return open_batcher(model, err);
}

void opening_close(struct engine_model *model) {
    if (model == NULL) return;
    batcher_free(model->batcher);
    binding_done(&model->binding);
    model_free(model->served.model);
    arena_done(&model->arena);
    free(model);
}

/* Life cycle of the engine: models, pipelines, workers, batchers, tracer. Read next: pipeline.c. */
#include "engine/engine_private.h"

#include "base/buf.h"
#include "base/cpus.h"
#include "infer/repository.h"

#include <stdio.h>
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

static enum status open_model(struct engine_model *model, struct err *err) {
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
    const struct backend *backend = config->simulate != NULL ? &backend_sim : &backend_ort;
    enum status status = model_open(own, backend, &session, err);
    if (status == ST_OK) status = open_pipeline(model, config, err);
    if (status != ST_OK) return status;
    model->is_batched = own->can_batch && config->max_batch > 0;
    model->max_rows = model->is_batched ? (uint32_t)config->max_batch : 1;
    model->served.trace_model = tracer_model(engine->tracer, own->name);
    if (model->served.trace_model == TRACE_MODEL_MAX)
        return err_set(err, ST_NO_MEMORY, "model %s: no memory for its trace", own->name);
    return open_batcher(model, err);
}

/* ---- finding models ---- */

/* The highest version of each. */
static enum status scan(const char *repository, struct model ***out_models, size_t *out_count,
                        struct err *err) {
    struct names names;
    enum status status = repository_names(repository, &names, err);
    if (status != ST_OK) return status;
    if (names.count == 0)
        status = err_set(err, ST_INVALID, "model repository %s holds no models: want "
                                          "NAME/VERSION/model.onnx in it", repository);
    struct model **models = calloc(names.count + 1, sizeof *models);
    if (models == NULL) status = err_set(err, ST_NO_MEMORY, "no memory for models");
    for (size_t i = 0; i < names.count && status == ST_OK; i++) {
        struct versions versions = {.items = NULL};
        status = repository_versions(repository, names.items[i], &versions, err);
        if (status == ST_OK && versions.count == 0)
            status = err_set(err, ST_INVALID, "model repository %s: no <number>/model.onnx in %s",
                             repository, names.items[i]);
        if (status == ST_OK)
            status = model_in_repository(repository, names.items[i],
                                         versions.items[versions.count - 1], NULL, &models[i], err);
        versions_free(&versions);
    }
    for (size_t i = 0; i < names.count && models != NULL && status != ST_OK; i++) model_free(models[i]);
    if (status != ST_OK) free(models);
    else *out_models = models, *out_count = names.count;
    names_free(&names);
    return status;
}

static enum status find_models(struct engine *engine, struct model ***out_models, size_t *out_count,
                               struct err *err) {
    const struct engine_config *config = engine->config;
    if (config->model_repository != NULL && config->model != NULL)
        return err_set(err, ST_INVALID, "give --model or --model-repository, not both");
    if (config->model_repository != NULL) {
        if (config->model_name != NULL || config->tokenizer != NULL || config->labels != NULL || config->pipeline != NULL)
            return err_set(err, ST_INVALID,
                           "--model-name, --tokenizer, --labels and --pipeline go with --model; a repository "
                           "has them in its directories");
        return scan(config->model_repository, out_models, out_count, err);
    }
    if (config->model == NULL && config->simulate == NULL)
        return err_set(err, ST_INVALID, "no model: give --model FILE.onnx, --model-repository DIR or "
                                        "--simulate 'a=4ms,b=0.05ms'");
    struct model **models = calloc(1, sizeof *models);
    if (models == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a model");
    const enum status status = config->model != NULL
                                   ? model_from_file(config->model, config->model_name, models, err)
                                   : model_simulated(config->model_name, models, err);
    if (status != ST_OK) {
        free(models);
        return status;
    }
    *out_models = models;
    *out_count = 1;
    return ST_OK;
}

static enum status open_models(struct engine *engine, struct err *err) {
    struct model **found = NULL;
    size_t count = 0;
    enum status status = find_models(engine, &found, &count, err);
    if (status != ST_OK) return status;
    engine->models = calloc(count, sizeof *engine->models);
    for (size_t i = 0; i < count; i++) {
        if (engine->models == NULL) {
            model_free(found[i]);
            continue;
        }
        engine->models[i].served.model = found[i];
        engine->models[i].engine = engine;
        arena_init(&engine->models[i].arena);
        engine->model_count++;
    }
    free(found);
    if (engine->models == NULL) return err_set(err, ST_NO_MEMORY, "no memory for models");
    for (size_t i = 0; i < count && status == ST_OK; i++) status = open_model(&engine->models[i], err);
    return status; /* the error names the model or the file */
}

/* ---- life cycle ---- */

static enum status attach_config(struct engine *engine, struct err *err) {
    if (engine->config->trace == NULL) return ST_OK;
    struct buf text;
    buf_init(&text);
    engine_describe(engine, &text);
    const enum status status = text.failed
                                   ? err_set(err, ST_NO_MEMORY, "no memory for config.json")
                                   : tracer_attach(engine->tracer, "config.json", buf_view(&text), err);
    buf_done(&text);
    return status;
}

static void wait_until_idle(struct engine *engine) {
    engine_flush(engine);
    while (counter_get(&engine->outstanding) > 0) {
        const uint32_t key = parker_prepare(&engine->idle);
        if (counter_get(&engine->outstanding) > 0) parker_wait(&engine->idle, key, UINT64_MAX);
        else parker_cancel(&engine->idle);
    }
}

static void close_engine(struct engine *engine, void (*end_trace)(struct tracer *tracer)) {
    /* Workers push to batchers and instances to the pool, and each wakes the other after that,
     * perhaps when the request has long been answered: all threads end before anything is freed. */
    wait_until_idle(engine);
    for (size_t i = 0; i < engine->model_count; i++) batcher_stop(engine->models[i].batcher);
    pool_free(engine->pool);
    for (size_t i = 0; i < engine->model_count; i++) batcher_free(engine->models[i].batcher);
    for (size_t i = 0; i < engine->model_count; i++) {
        binding_done(&engine->models[i].binding);
        model_free(engine->models[i].served.model);
        arena_done(&engine->models[i].arena);
    }
    free(engine->models);
    for (unsigned i = 0; i < engine->workers && engine->scratches != NULL; i++)
        scratch_done(&engine->scratches[i]);
    free(engine->scratches);
    end_trace(engine->tracer);
    free(engine);
}

void engine_free(struct engine *engine) {
    if (engine != NULL) close_engine(engine, tracer_free);
}

enum status engine_create(const struct engine_config *config, struct engine **out, struct err *err) {
    struct engine *engine = aligned_alloc(64, (sizeof *engine + 63) / 64 * 64);
    if (engine == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the engine");
    *engine = (struct engine){.config = config};
    parker_init(&engine->idle);
    engine->processors = cpus_available();
    engine->workers = config->workers != 0 ? (unsigned)config->workers
                                           : (engine->processors > 1 ? engine->processors / 2 : 1);
    engine->instances = config->instances != 0   ? (unsigned)config->instances
                        : config->simulate != NULL ? 1
                                                   : engine->processors;
    const struct tracer_config tracer = {
        .directory = config->trace,
        .all = config->trace_all,
        .uniform_share = config->trace_sample,
        .slow_share = 0.01,
        .window_ns = 1000000000,
        .is_off = config->no_trace,
    };
    enum status status = tracer_create(&tracer, &engine->tracer, err);
    if (status == ST_OK)
        engine->scratches = calloc(engine->workers, sizeof *engine->scratches);
    if (status == ST_OK && engine->scratches == NULL)
        status = err_set(err, ST_NO_MEMORY, "no memory for %u workers", engine->workers);
    if (status == ST_OK)
        status = pool_create(engine->workers, (size_t)config->queue_limit + 64, &engine->pool, err);
    if (status == ST_OK) status = open_models(engine, err);
    if (status == ST_OK) status = attach_config(engine, err);
    if (status != ST_OK) {
        close_engine(engine, tracer_discard); /* the next try may use the same directory */
        return status;
    }
    *out = engine;
    return ST_OK;
}

void engine_drain(struct engine *engine) {
    for (size_t i = 0; i < engine->model_count; i++) batcher_drain(engine->models[i].batcher);
}

/* ---- asking ---- */

size_t engine_model_count(const struct engine *engine) { return engine->model_count; }

const struct served_model *engine_model(const struct engine *engine, size_t index) {
    return &engine->models[index].served;
}

const struct served_model *engine_find(const struct engine *engine, struct view name,
                                       struct view version) {
    for (size_t i = 0; i < engine->model_count; i++) {
        const struct model *model = engine->models[i].served.model;
        if (view_is(name, model->name) && (version.size == 0 || view_is(version, model->version)))
            return &engine->models[i].served;
    }
    return NULL;
}

const struct served_model *engine_only(struct engine *engine) {
    return engine->model_count == 1 ? &engine->models[0].served : NULL;
}

/* Models live as long as the engine: nothing is counted. */
void engine_release(const struct served_model *served) { (void)served; }

enum status engine_models_get(struct engine *engine, struct engine_models *out, struct err *err) {
    const struct served_model **items = calloc(engine->model_count + 1, sizeof *items);
    if (items == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a list of models");
    for (size_t i = 0; i < engine->model_count; i++) items[i] = &engine->models[i].served;
    *out = (struct engine_models){.items = items, .count = engine->model_count};
    return ST_OK;
}

void engine_models_done(struct engine_models *models) {
    free(models->items);
    *models = (struct engine_models){.items = NULL};
}

struct tracer *engine_tracer(struct engine *engine) { return engine->tracer; }

void engine_stats(struct engine *engine, size_t index, struct batcher_stats *out) {
    batcher_stats(engine->models[index].batcher, out);
}

size_t engine_workers_waiting(struct engine *engine) { return pool_waiting(engine->pool); }

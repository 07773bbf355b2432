/* Who asks for models to come and go: the start, and the calls of control.h. See change.h for what
 * is done then, poll.c for the third who asks. */
#include "engine/change.h"

#include "base/clock.h"
#include "infer/repository.h"

#include <stdlib.h>

static bool is_off(int setting) { return setting == SETTING_NO || setting == SETTING_FALSE; }

const char *model_state_name(enum model_state state) {
    static const char *const NAMES[MODEL_STATE_COUNT] = {"UNKNOWN", "READY", "UNAVAILABLE",
                                                         "LOADING", "UNLOADING"};
    return NAMES[state];
}

const char *control_repository(const struct engine *engine, const char *name) {
    const struct option_strings *repositories = &engine->config->model_repositories;
    for (size_t i = 0; i < repositories->count; i++)
        if (repository_has(repositories->items[i], name)) return repositories->items[i];
    return NULL;
}

enum status change_add(struct engine *engine, enum change_kind kind, struct model_name *name,
                       enum change_origin origin, control_done_fn on_done, void *ctx,
                       struct err *err) {
    struct change *change = calloc(1, sizeof *change);
    if (change == NULL) return err_set(err, ST_NO_MEMORY, "no memory for model %s", name->text);
    *change = (struct change){
        .task = {.key = name, .work = kind == CHANGE_LOAD ? change_load_work : NULL,
                 .finish = kind == CHANGE_LOAD ? change_load_finish : change_unload_finish,
                 .release = change_free},
        .engine = engine, .name = name, .origin = origin, .on_done = on_done, .ctx = ctx,
        .begun_ns = mono_ns()};
    loader_add(engine->loader, &change->task);
    return ST_OK;
}

/* ---- on request ---- */

static enum status check_asked(struct engine *engine, struct view name, struct err *err) {
    if (engine->config->control_mode != CONTROL_EXPLICIT)
        return err_set(err, ST_UNAVAILABLE, "models are loaded and unloaded on request only with "
                                            "--model-control-mode explicit");
    if (!model_name_is_valid(name))
        return err_set(err, ST_INVALID, "\"%.*s\" is no name of a model: one part of a path, of 1 to "
                                        "255 bytes", (int)(name.size < 200 ? name.size : 200), name.data);
    return ST_OK;
}

enum status engine_load(struct engine *engine, struct view name,
                        const struct model_overrides *overrides, control_done_fn on_done, void *ctx,
                        struct err *err) {
    enum status status = check_asked(engine, name, err);
    if (status != ST_OK) return status;
    if (overrides != NULL)
        return err_set(err, ST_UNSUPPORTED, "model %.*s: a configuration or files in the request are "
                                            "not supported", VIEW_ARGS(name));
    char text[256];
    snprintf(text, sizeof text, "%.*s", VIEW_ARGS(name));
    const char *single = engine->control->single_name;
    if (control_repository(engine, text) == NULL && (single == NULL || strcmp(single, text) != 0))
        return err_set(err, ST_NOT_FOUND, "no model repository has a model %s", text);
    struct model_name *known = table_name(&engine->table, name);
    if (known == NULL) return err_set(err, ST_NO_MEMORY, "no memory for model %s", text);
    return change_add(engine, CHANGE_LOAD, known, ORIGIN_REQUEST, on_done, ctx, err);
}

enum status engine_unload(struct engine *engine, struct view name, bool with_dependents,
                          control_done_fn on_done, void *ctx, struct err *err) {
    (void)with_dependents;
    enum status status = check_asked(engine, name, err);
    if (status != ST_OK) return status;
    struct model_name *known = table_find(&engine->table, name);
    if (known == NULL)
        return err_set(err, ST_NOT_FOUND, "model %.*s is not loaded", VIEW_ARGS(name));
    return change_add(engine, CHANGE_UNLOAD, known, ORIGIN_REQUEST, on_done, ctx, err);
}

bool engine_is_ready(const struct engine *engine) {
    const struct control *control = engine->control;
    if (!flag_is_up(&control->is_started)) return false;
    return is_off(engine->config->strict_readiness) || flag_is_up(&control->is_ready);
}

bool engine_has_repository(const struct engine *engine, struct view name) {
    const struct option_strings *repositories = &engine->config->model_repositories;
    for (size_t i = 0; i < repositories->count; i++) {
        const char *path = repositories->items[i];
        size_t size = strlen(path);
        while (size > 1 && path[size - 1] == '/') size--;
        const char *slash = memrchr(path, '/', size);
        const char *last = slash != NULL && size > 1 ? slash + 1 : path;
        if (view_is(name, path) || view_eq(name, (struct view){last, size - (size_t)(last - path)}))
            return true;
    }
    return false;
}

/* ---- the start ---- */

static enum status want(struct engine *engine, const char *text, struct err *err) {
    struct control *control = engine->control;
    struct model_name *name = table_name(&engine->table, view_of(text));
    if (name == NULL) return err_set(err, ST_NO_MEMORY, "no memory for model %s", text);
    if (name->is_wanted) return ST_OK; /* --load-model twice */
    name->is_wanted = true;
    pthread_mutex_lock(&control->lock);
    control->start_left++;
    control->start_count++;
    pthread_mutex_unlock(&control->lock);
    const enum status status = change_add(engine, CHANGE_LOAD, name, ORIGIN_START, NULL, NULL, err);
    if (status != ST_OK) {
        pthread_mutex_lock(&control->lock);
        control->start_left--;
        pthread_mutex_unlock(&control->lock);
    }
    return status;
}

static enum status want_repository(struct engine *engine, size_t index, struct err *err) {
    const char *repository = engine->config->model_repositories.items[index];
    struct names names;
    enum status status = repository_names(repository, &names, err);
    if (status != ST_OK) return status;
    if (names.count == 0 && engine->config->control_mode == CONTROL_NONE)
        status = err_set(err, ST_INVALID, "model repository %s holds no models: want "
                                          "NAME/VERSION/model.onnx in it", repository);
    for (size_t i = 0; i < names.count && status == ST_OK; i++) {
        const char *first = control_repository(engine, names.items[i]);
        if (first != NULL && first != repository)
            status = err_set(err, ST_INVALID, "model %s is in two repositories: %s and %s",
                             names.items[i], first, repository);
        else status = want(engine, names.items[i], err);
    }
    names_free(&names);
    return status;
}

/* explicit: those named, "*" for all. */
static enum status want_named(struct engine *engine, struct err *err) {
    const struct option_strings *named = &engine->config->load_models;
    enum status status = ST_OK;
    for (size_t i = 0; i < named->count && status == ST_OK; i++) {
        const char *name = named->items[i];
        if (strcmp(name, "*") == 0) {
            for (size_t k = 0; k < engine->config->model_repositories.count && status == ST_OK; k++)
                status = want_repository(engine, k, err);
        } else if (!model_name_is_valid(view_of(name))) {
            status = err_set(err, ST_INVALID, "--load-model \"%s\" is no name of a model", name);
        } else {
            status = want(engine, name, err);
        }
    }
    return status;
}

/* The name is that of the file, or what the user says: found out here, before it is opened. */
static enum status want_single(struct engine *engine, struct err *err) {
    const struct engine_config *config = engine->config;
    struct model *found = NULL;
    const enum status status = config->model != NULL
                                   ? model_from_file(config->model, config->model_name, &found, err)
                                   : model_simulated(config->model_name, &found, err);
    if (status != ST_OK) return status;
    engine->control->single_name = arena_copy(&engine->control->arena, view_of(found->name));
    model_free(found);
    return engine->control->single_name != NULL ? want(engine, engine->control->single_name, err)
                                                : err_set(err, ST_NO_MEMORY, "no memory for a model");
}

static enum status want_all(struct engine *engine, struct err *err) {
    const struct engine_config *config = engine->config;
    if (config->model_repositories.count == 0) return want_single(engine, err);
    if (config->control_mode == CONTROL_EXPLICIT) return want_named(engine, err);
    enum status status = ST_OK;
    for (size_t i = 0; i < config->model_repositories.count && status == ST_OK; i++)
        status = want_repository(engine, i, err);
    return status;
}

static enum status check_config(const struct engine_config *config, struct err *err) {
    const bool has_repository = config->model_repositories.count > 0;
    if (has_repository && config->model != NULL)
        return err_set(err, ST_INVALID, "give --model or --model-repository, not both");
    if (has_repository && (config->model_name != NULL || config->tokenizer != NULL ||
                           config->labels != NULL || config->pipeline != NULL))
        return err_set(err, ST_INVALID,
                       "--model-name, --tokenizer, --labels and --pipeline go with --model; a repository "
                       "has them in its directories");
    if (!has_repository && config->model == NULL && config->simulate == NULL)
        return err_set(err, ST_INVALID, "no model: give --model FILE.onnx, --model-repository DIR or "
                                        "--simulate 'a=4ms,b=0.05ms'");
    if (!has_repository && config->control_mode == CONTROL_POLL)
        return err_set(err, ST_INVALID, "--model-control-mode poll needs a --model-repository");
    if (config->load_models.count > 0 && config->control_mode != CONTROL_EXPLICIT)
        return err_set(err, ST_INVALID, "--load-model goes with --model-control-mode explicit: "
                                        "otherwise all models are loaded");
    return ST_OK;
}

static void wait_for_start(struct control *control) {
    pthread_mutex_lock(&control->lock);
    while (control->start_left > 0) pthread_cond_wait(&control->changed, &control->lock);
    pthread_mutex_unlock(&control->lock);
}

/* One that failed speaks for itself; several are named, and the first one's reason is told. */
static enum status start_error(struct control *control, struct err *err) {
    if (control->start_failed == 1) *err = control->start_err;
    else
        (void)err_set(err, control->start_status, "%zu of %zu models cannot be loaded (%.*s): %.200s",
                      control->start_failed, control->start_count,
                      (int)(control->start_names.size < 200 ? control->start_names.size : 200),
                      control->start_names.failed ? "" : control->start_names.data,
                      control->start_err.text);
    return control->start_status;
}

static uint64_t on_turn(void *ctx) {
    struct control *control = ctx;
    if (!flag_is_up(&control->is_started)) return UINT64_MAX;
    struct engine *engine = control->engine;
    change_close_ended(control);
    if (engine->config->control_mode != CONTROL_POLL || loader_is_stopping(engine->loader))
        return UINT64_MAX;
    const uint64_t now_ns = mono_ns();
    if (!control->is_polling && now_ns >= control->next_poll_ns) {
        control->is_polling = poll_begin(engine);
        const uint64_t seconds = engine->config->poll_secs != 0 ? engine->config->poll_secs : 15;
        control->next_poll_ns = now_ns + seconds * 1000000000;
    }
    return control->next_poll_ns;
}

static unsigned thread_count(const struct engine *engine) {
    if (engine->config->load_threads != 0) return (unsigned)engine->config->load_threads;
    return engine->processors < 4 ? engine->processors : 4;
}

enum status control_start(struct engine *engine, struct err *err) {
    enum status status = check_config(engine->config, err);
    if (status != ST_OK) return status;
    struct control *control = calloc(1, sizeof *control);
    if (control == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the loader");
    control->engine = engine;
    engine->control = control;
    arena_init(&control->arena);
    buf_init(&control->start_names);
    pthread_mutex_init(&control->lock, NULL);
    pthread_cond_init(&control->changed, NULL);
    const struct loader_config loader = {.threads = thread_count(engine), .on_turn = on_turn,
                                         .ctx = control};
    status = loader_create(&loader, &engine->loader, err);
    if (status != ST_OK) return status;
    status = want_all(engine, err);
    wait_for_start(control);
    if (status == ST_OK && control->start_failed > 0 && !is_off(engine->config->exit_on_error))
        status = start_error(control, err);
    if (status != ST_OK) return status;
    loader_calm(engine->loader);
    change_count_ready(control);
    flag_raise(&control->is_started);
    loader_wake(engine->loader);
    return ST_OK;
}

void control_free(struct engine *engine) {
    struct control *control = engine->control;
    if (control == NULL) return;
    loader_free(engine->loader);
    buf_done(&control->start_names);
    arena_done(&control->arena);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->lock);
    free(control);
}

/* Loading a model, all versions of it that its policy wants, whole or not at all. Read next:
 * opening.c. */
#include "engine/change.h"

#include "base/clock.h"
#include "engine/opening.h"
#include "infer/repository.h"

#include <stdlib.h>

static struct change *change_of(struct loader_task *task) { return (struct change *)task; }

/* ---- the work ---- */

static enum status open_one(struct change *change, struct model *found) {
    struct engine *engine = change->engine;
    struct engine_model *model = NULL;
    const uint64_t version = strtoull(found->version, NULL, 10);
    pthread_mutex_lock(&engine->table.lock);
    const struct version_state *state = table_state(change->name, version);
    const bool is_served = state != NULL && state->state == MODEL_READY;
    const bool has_memory = is_served || table_set_state(change->name, version, MODEL_LOADING, NULL);
    pthread_mutex_unlock(&engine->table.lock);
    if (!has_memory) {
        model_free(found);
        return err_set(&change->err, ST_NO_MEMORY, "no memory for model %s", change->name->text);
    }
    const enum status status = opening_open(engine, found, &model, &change->err);
    if (status == ST_OK) change->models[change->count++] = model;
    else {
        pthread_mutex_lock(&engine->table.lock);
        if (!is_served)
            (void)table_set_state(change->name, version, MODEL_UNAVAILABLE, change->err.text);
        pthread_mutex_unlock(&engine->table.lock);
    }
    return status;
}

/* The highest version that has a model in it. */
static enum status open_latest(struct change *change, const char *repository,
                               const struct versions *versions) {
    const char *name = change->name->text;
    for (size_t i = versions->count; i > 0; i--) {
        struct model *found = NULL;
        const enum status status = model_in_repository(repository, name, versions->items[i - 1], NULL,
                                                       &found, &change->err);
        if (status == ST_NOT_FOUND) continue;
        return status == ST_OK ? open_one(change, found) : status;
    }
    return err_set(&change->err, ST_INVALID, "model %s: no <number>/model.onnx in %s/%s", name,
                   repository, name);
}

static enum status open_from_repository(struct change *change, const char *repository) {
    struct engine *engine = change->engine;
    struct versions versions = {.items = NULL};
    enum status status = repository_stamp(repository, change->name->text, &change->stamp, &change->err);
    if (status != ST_OK) return status;
    change->is_stamped = true;
    pthread_mutex_lock(&engine->table.lock);
    change->is_unchanged = change->name->is_stamped && change->name->loaded_stamp == change->stamp &&
                           counter_get(&change->name->served) > 0;
    pthread_mutex_unlock(&engine->table.lock);
    if (change->is_unchanged) return ST_OK;
    status = repository_versions(repository, change->name->text, &versions, &change->err);
    if (status != ST_OK) return status;
    change->models = calloc(versions.count + 1, sizeof *change->models);
    status = change->models == NULL
                 ? err_set(&change->err, ST_NO_MEMORY, "no memory for model %s", change->name->text)
                 : open_latest(change, repository, &versions);
    versions_free(&versions);
    return status;
}

static enum status open_single(struct change *change) {
    const struct engine_config *config = change->engine->config;
    struct model *found = NULL;
    change->models = calloc(1, sizeof *change->models);
    if (change->models == NULL)
        return err_set(&change->err, ST_NO_MEMORY, "no memory for model %s", change->name->text);
    const enum status status =
        config->model != NULL ? model_from_file(config->model, config->model_name, &found, &change->err)
                              : model_simulated(config->model_name, &found, &change->err);
    return status == ST_OK ? open_one(change, found) : status;
}

void change_load_work(struct loader_task *task) {
    struct change *change = change_of(task);
    struct engine *engine = change->engine;
    const char *name = change->name->text;
    const char *single = engine->control->single_name;
    const char *repository = control_repository(engine, name);
    change->begun_ns = mono_ns();
    if (loader_is_stopping(engine->loader))
        change->status = err_set(&change->err, ST_UNAVAILABLE, "model %s: the server stops", name);
    else if (repository != NULL)
        change->status = open_from_repository(change, repository);
    else if (single != NULL && strcmp(single, name) == 0)
        change->status = open_single(change);
    else
        change->status = err_set(&change->err, ST_NOT_FOUND, "no model repository has a model %s", name);
}

/* ---- on the keeper ---- */

/* The first version ever served is known to the trace by the model's name alone. */
static enum status start_one(struct engine_model *model, struct model_name *name, struct err *err) {
    struct engine *engine = model->engine;
    struct buf text;
    pthread_mutex_lock(&engine->table.lock);
    if (name->first_version == 0) name->first_version = model->version;
    const bool is_first = name->first_version == model->version;
    pthread_mutex_unlock(&engine->table.lock);
    buf_init(&text);
    if (is_first) buf_text(&text, name->text);
    else buf_printf(&text, "%s/%s", name->text, model->served.model->version);
    buf_char(&text, '\0');
    enum status status = text.failed ? err_set(err, ST_NO_MEMORY, "no memory for model %s", name->text)
                                     : opening_start(model, text.data, err);
    buf_done(&text);
    if (status == ST_OK && flag_is_up(&engine->is_draining)) batcher_drain(model->batcher);
    return status;
}

static void set_states(struct change *change) {
    struct model_name *name = change->name;
    for (size_t i = 0; i < change->count; i++)
        (void)table_set_state(name, change->models[i]->version, MODEL_READY, NULL); /* it is there */
    for (struct version_state *state = name->versions; state != NULL; state = state->next) {
        bool is_new = false;
        for (size_t i = 0; i < change->count; i++) is_new |= change->models[i]->version == state->version;
        if (is_new) continue;
        if (state->state == MODEL_READY) state->state = MODEL_UNLOADING;
    }
}

static enum status serve(struct change *change) {
    struct table *table = &change->engine->table;
    struct model_slot **slots = calloc(change->count, sizeof(struct model_slot *));
    enum status status = slots != NULL ? ST_OK
                                       : err_set(&change->err, ST_NO_MEMORY, "no memory for model %s",
                                                 change->name->text);
    for (size_t i = 0; i < change->count && status == ST_OK; i++) {
        slots[i] = table_slot(change->name);
        status = slots[i] == NULL ? err_set(&change->err, ST_NO_MEMORY, "no memory for model %s",
                                            change->name->text)
                                  : start_one(change->models[i], change->name, &change->err);
        if (slots[i] == NULL) continue;
        slots[i]->model = change->models[i];
        change->models[i]->slot = slots[i];
    }
    if (status == ST_OK) {
        pthread_mutex_lock(&table->lock);
        set_states(change);
        pthread_mutex_unlock(&table->lock);
        table_publish(table, change->name, slots, change->count, &change->engine->control->closing);
        change->count = 0; /* they are the table's */
    }
    for (size_t i = 0; slots != NULL && status != ST_OK && i < change->count; i++)
        if (slots[i] != NULL) table_vacate(slots[i]);
    free(slots);
    return status;
}

/* Nothing of the model is served anew; what was served goes on. */
static void drop(struct change *change) {
    struct model_name *name = change->name;
    pthread_mutex_lock(&change->engine->table.lock);
    bool is_said = false;
    for (struct version_state *state = name->versions; state != NULL; state = state->next) {
        if (state->state == MODEL_LOADING)
            (void)table_set_state(name, state->version, MODEL_UNAVAILABLE, change->err.text);
        is_said |= state->state == MODEL_UNAVAILABLE;
    }
    if (!is_said && counter_get(&name->served) == 0) /* it did not come as far as a version */
        (void)table_set_state(name, 0, MODEL_UNAVAILABLE, change->err.text);
    pthread_mutex_unlock(&change->engine->table.lock);
    for (size_t i = 0; i < change->count; i++) opening_close(change->models[i]);
    change->count = 0;
}

void change_load_finish(struct loader_task *task) {
    struct change *change = change_of(task);
    struct model_name *name = change->name;
    if (change->status == ST_OK && !change->is_unchanged) change->status = serve(change);
    if (change->status != ST_OK) drop(change);
    pthread_mutex_lock(&change->engine->table.lock);
    if (change->is_stamped) {
        name->loaded_stamp = change->stamp;
        name->is_stamped = true;
    }
    if (change->origin != ORIGIN_REQUEST || change->status == ST_OK) name->is_wanted = true;
    pthread_mutex_unlock(&change->engine->table.lock);
    change_end(change, change->is_unchanged          ? ENGINE_EVENT_NONE
                       : change->status == ST_OK     ? ENGINE_EVENT_LOADED
                                                     : ENGINE_EVENT_LOAD_FAILED);
}

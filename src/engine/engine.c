/* Life cycle of the engine: workers, tracer, and the table of models that others fill. Read next:
 * control.c for the models, pipeline.c for the requests. */
#include "engine/opening.h"

#include "base/buf.h"
#include "base/cpus.h"
#include "engine/loader.h"

#include <assert.h>
#include <stdlib.h>

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

static struct model_slot *next_slot(struct model_name **name, struct growing_node **node) {
    while (*name != NULL) {
        *node = *node == NULL ? growing_first(&(*name)->slots) : (*node)->next;
        if (*node != NULL) return (struct model_slot *)((char *)*node - offsetof(struct model_slot, node));
        *name = table_next(*name);
    }
    return NULL;
}

static void close_engine(struct engine *engine, void (*end_trace)(struct tracer *tracer)) {
    /* Workers push to batchers and instances to the pool, and each wakes the other after that,
     * perhaps when the request has long been answered: all threads end before anything is freed. */
    wait_until_idle(engine);
    loader_stop(engine->loader);
    struct model_name *name = table_first(&engine->table);
    struct growing_node *node = NULL;
    for (struct model_slot *slot; (slot = next_slot(&name, &node)) != NULL;)
        if (slot->model != NULL) batcher_stop(slot->model->batcher);
    pool_free(engine->pool);
    name = table_first(&engine->table);
    for (struct model_slot *slot; (slot = next_slot(&name, &node)) != NULL;) opening_close(slot->model);
    control_free(engine);
    table_done(&engine->table);
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
    mpsc_init(&engine->kicks);
    table_init(&engine->table);
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
    if (status == ST_OK) status = control_start(engine, err);
    if (status == ST_OK) status = attach_config(engine, err);
    if (status != ST_OK) {
        close_engine(engine, tracer_discard); /* the next try may use the same directory */
        return status;
    }
    *out = engine;
    return ST_OK;
}

/* ---- asking ---- */

static struct engine_model *model_of(const struct served_model *served) {
    return (struct engine_model *)(uintptr_t)served;
}

size_t engine_model_count(const struct engine *engine) {
    return (size_t)counter_get(&engine->table.served);
}

const struct served_model *engine_find(const struct engine *engine, struct view name,
                                       struct view version) {
    const struct model_slot *slot = table_take(&engine->table, name, version);
    return slot != NULL ? &slot->model->served : NULL;
}

void engine_release(const struct served_model *served) {
    const struct engine_model *model = served != NULL ? model_of(served) : NULL;
    if (model == NULL || model->slot == NULL) return; /* a test's, in no table */
    struct loader *loader = model->engine->loader;
    if (lifetime_release(&model->slot->lifetime)) loader_wake(loader);
}

const struct served_model *engine_share(const struct served_model *served) {
    const struct engine_model *model = served != NULL ? model_of(served) : NULL;
    if (model != NULL && model->slot != NULL) {
        const bool is_held = lifetime_share(&model->slot->lifetime);
        assert(is_held);
        (void)is_held;
    }
    return served;
}

static int compare(const void *a, const void *b) {
    const struct engine_model *one = model_of(*(const struct served_model *const *)a);
    const struct engine_model *other = model_of(*(const struct served_model *const *)b);
    const int by_name = strcmp(one->served.model->name, other->served.model->name);
    return by_name != 0 ? by_name : one->version < other->version ? -1 : one->version > other->version;
}

enum status engine_models_get(struct engine *engine, struct engine_models *out, struct err *err) {
    struct engine_models models = {.items = NULL};
    struct model_name *name = table_first(&engine->table);
    struct growing_node *node = NULL;
    size_t room = 0;
    for (struct model_slot *slot; (slot = next_slot(&name, &node)) != NULL;) {
        if (models.count == room) {
            room = room == 0 ? 16 : room * 2;
            const struct served_model **items = realloc(models.items, room * sizeof *items);
            if (items == NULL) {
                engine_models_done(&models);
                return err_set(err, ST_NO_MEMORY, "no memory for a list of models");
            }
            models.items = items;
        }
        if (lifetime_take(&slot->lifetime)) models.items[models.count++] = &slot->model->served;
    }
    if (models.count > 1) qsort(models.items, models.count, sizeof *models.items, compare);
    *out = models;
    return ST_OK;
}

void engine_models_done(struct engine_models *models) {
    for (size_t i = 0; i < models->count; i++) engine_release(models->items[i]);
    free(models->items);
    *models = (struct engine_models){.items = NULL};
}

const struct served_model *engine_only(struct engine *engine) {
    struct model_name *name = table_first(&engine->table);
    struct growing_node *node = NULL;
    const struct served_model *only = NULL;
    for (struct model_slot *slot; (slot = next_slot(&name, &node)) != NULL;) {
        if (!lifetime_take(&slot->lifetime)) continue;
        if (only != NULL) {
            engine_release(only);
            engine_release(&slot->model->served);
            return NULL;
        }
        only = &slot->model->served;
    }
    return only;
}

/* Models that are being opened meanwhile see the flag before they are found. */
void engine_drain(struct engine *engine) {
    flag_raise(&engine->is_draining);
    struct model_name *name = table_first(&engine->table);
    struct growing_node *node = NULL;
    for (struct model_slot *slot; (slot = next_slot(&name, &node)) != NULL;) {
        if (!lifetime_share(&slot->lifetime)) continue;
        batcher_drain(slot->model->batcher);
        engine_release(&slot->model->served);
    }
}

struct tracer *engine_tracer(struct engine *engine) { return engine->tracer; }

void engine_stats(const struct served_model *served, struct batcher_stats *out) {
    batcher_stats(model_of(served)->batcher, out);
}

size_t engine_workers_waiting(struct engine *engine) { return pool_waiting(engine->pool); }

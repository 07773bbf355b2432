/* --model-control-mode poll: the directories are looked at every so often, and what has changed is
 * loaded anew, what is new is loaded, what is gone is unloaded. A change counts when the next look
 * finds the same files: what is still being copied is not.
 *
 * Load thread, but for the beginning and the end. Read next: change_load.c. */
#include "engine/change.h"

#include "infer/repository.h"

#include <stdlib.h>

struct poll {
    struct loader_task task; /* first */
    struct engine *engine;
};

/* True: the files are not those that were loaded, and are as they were at the look before. */
static bool has_changed(struct engine *engine, struct model_name *name, uint64_t stamp) {
    pthread_mutex_lock(&engine->table.lock);
    const bool is_loaded = name->is_stamped && name->loaded_stamp == stamp;
    const bool is_stable = name->seen_stamp == stamp;
    name->seen_stamp = stamp;
    pthread_mutex_unlock(&engine->table.lock);
    return !is_loaded && is_stable;
}

static void look_at(struct engine *engine, const char *repository, const char *text) {
    struct err err;
    uint64_t stamp = 0;
    if (!model_name_is_valid(view_of(text)) || control_repository(engine, text) != repository) return;
    if (repository_stamp(repository, text, &stamp, &err) != ST_OK) return; /* looked at again later */
    struct model_name *name = table_name(&engine->table, view_of(text));
    if (name == NULL || !has_changed(engine, name, stamp)) return;
    if (change_add(engine, CHANGE_LOAD, name, ORIGIN_POLL, NULL, NULL, &err) != ST_OK)
        name = NULL; /* memory is out: the next look finds it again */
}

static void poll_work(struct loader_task *task) {
    struct engine *engine = ((struct poll *)task)->engine;
    const struct option_strings *repositories = &engine->config->model_repositories;
    struct err err;
    for (size_t i = 0; i < repositories->count; i++) {
        struct names names;
        /* A repository that cannot be read, a volume that is away, takes no model with it. */
        if (repository_names(repositories->items[i], &names, &err) != ST_OK) return;
        for (size_t k = 0; k < names.count; k++)
            look_at(engine, repositories->items[i], names.items[k]);
        names_free(&names);
    }
    for (struct model_name *name = table_first(&engine->table); name != NULL; name = table_next(name)) {
        if (counter_get(&name->served) == 0 || control_repository(engine, name->text) != NULL) continue;
        if (change_add(engine, CHANGE_UNLOAD, name, ORIGIN_POLL, NULL, NULL, &err) != ST_OK) return;
    }
}

static void poll_finish(struct loader_task *task) {
    ((struct poll *)task)->engine->control->is_polling = false;
}

static void poll_release(struct loader_task *task) { free(task); }

bool poll_begin(struct engine *engine) {
    struct poll *poll = calloc(1, sizeof *poll);
    if (poll == NULL) return false;
    *poll = (struct poll){
        .task = {.work = poll_work, .finish = poll_finish, .release = poll_release}, .engine = engine};
    loader_add(engine->loader, &poll->task);
    return true;
}

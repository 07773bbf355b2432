/* What there is and in which state: the index of the repositories. See control.h. */
#include "engine/change.h"

#include "infer/repository.h"

#include <stdlib.h>

struct listing {
    struct model_index *out;
    size_t room;
    bool failed;
};

static void add(struct listing *listing, const char *name, uint64_t version, enum model_state state,
                const char *reason) {
    struct model_index *out = listing->out;
    if (listing->failed) return;
    if (out->count == listing->room) {
        const size_t room = listing->room == 0 ? 32 : listing->room * 2;
        struct model_index_entry *items = realloc(out->items, room * sizeof *items);
        listing->failed = items == NULL;
        if (items == NULL) return;
        out->items = items;
        listing->room = room;
    }
    char text[24] = "";
    if (version != 0) snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    const struct model_index_entry entry = {
        .name = arena_copy(&out->arena, view_of(name)), .version = arena_copy(&out->arena, view_of(text)),
        .state = state, .reason = arena_copy(&out->arena, view_of(reason != NULL ? reason : ""))};
    listing->failed = entry.name == NULL || entry.version == NULL || entry.reason == NULL;
    if (!listing->failed) out->items[out->count++] = entry;
}

/* Models that the engine knows, with their versions; under the lock. False: nothing is known. */
static bool add_known(struct listing *listing, const struct model_name *name, bool is_ready_only) {
    bool any = false;
    for (const struct version_state *state = name->versions; state != NULL; state = state->next) {
        if (state->version == 0 && (state->next != NULL || state->state != MODEL_UNAVAILABLE)) continue;
        any = true;
        if (!is_ready_only || state->state == MODEL_READY)
            add(listing, name->text, state->version, state->state, state->reason);
    }
    return any;
}

static int compare(const void *a, const void *b) {
    const struct model_index_entry *left = a, *right = b;
    const int by_name = strcmp(left->name, right->name);
    if (by_name != 0) return by_name;
    const uint64_t one = strtoull(left->version, NULL, 10), other = strtoull(right->version, NULL, 10);
    return one < other ? -1 : one > other ? 1 : 0;
}

static enum status add_unknown(struct engine *engine, struct listing *listing, struct err *err) {
    const struct option_strings *repositories = &engine->config->model_repositories;
    enum status status = ST_OK;
    for (size_t i = 0; i < repositories->count && status == ST_OK; i++) {
        struct names names;
        status = repository_names(repositories->items[i], &names, err);
        if (status != ST_OK) break;
        for (size_t k = 0; k < names.count; k++) {
            const struct model_name *name = table_find(&engine->table, view_of(names.items[k]));
            pthread_mutex_lock(&engine->table.lock);
            const bool is_known = name != NULL && name->versions != NULL;
            pthread_mutex_unlock(&engine->table.lock);
            if (!is_known) add(listing, names.items[k], 0, MODEL_UNKNOWN, NULL);
        }
        names_free(&names);
    }
    return status;
}

enum status engine_index(struct engine *engine, bool is_ready_only, struct model_index *out,
                         struct err *err) {
    *out = (struct model_index){.items = NULL};
    arena_init(&out->arena);
    struct listing listing = {.out = out};
    pthread_mutex_lock(&engine->table.lock);
    for (struct model_name *name = table_first(&engine->table); name != NULL; name = table_next(name))
        (void)add_known(&listing, name, is_ready_only);
    pthread_mutex_unlock(&engine->table.lock);
    enum status status = is_ready_only ? ST_OK : add_unknown(engine, &listing, err);
    if (status == ST_OK && listing.failed)
        status = err_set(err, ST_NO_MEMORY, "no memory for the index of models");
    if (status == ST_OK && out->count > 1) qsort(out->items, out->count, sizeof *out->items, compare);
    return status;
}

void engine_index_done(struct model_index *index) {
    free(index->items);
    arena_done(&index->arena);
    *index = (struct model_index){.items = NULL};
}

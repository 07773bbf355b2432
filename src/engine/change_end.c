/* Taking models away, and what follows from any change. See change.h. */
#include "engine/change.h"

#include "base/clock.h"
#include "engine/opening.h"

#include <stdlib.h>

/* ---- closing what nobody has any more ---- */

struct closing {
    struct loader_task task; /* first */
    struct engine *engine;
    struct model_slot *slot;
    uint64_t version;
};

static void close_work(struct loader_task *task) {
    opening_close(((struct closing *)task)->slot->model);
}

static bool is_served(const struct model_name *name, uint64_t version) {
    for (const struct growing_node *node = growing_first(&name->slots); node != NULL; node = node->next) {
        const struct model_slot *slot =
            (const struct model_slot *)((const char *)node - offsetof(struct model_slot, node));
        if (slot->is_taken && !slot->is_ended && slot->model->version == version) return true;
    }
    return false;
}

static void close_finish(struct loader_task *task) {
    struct closing *closing = (struct closing *)task;
    struct model_name *name = closing->slot->name;
    table_vacate(closing->slot);
    pthread_mutex_lock(&closing->engine->table.lock);
    const struct version_state *state = table_state(name, closing->version);
    if (state != NULL && state->state == MODEL_UNLOADING && !is_served(name, closing->version))
        (void)table_set_state(name, closing->version, MODEL_UNAVAILABLE, "unloaded");
    pthread_mutex_unlock(&closing->engine->table.lock);
}

static void close_release(struct loader_task *task) { free(task); }

void change_close_ended(struct control *control) {
    struct model_slot **link = &control->closing;
    while (*link != NULL) {
        struct model_slot *slot = *link;
        struct closing *closing =
            lifetime_is_over(&slot->lifetime) ? calloc(1, sizeof *closing) : NULL;
        if (closing == NULL) { /* somebody has it; or memory is out: at the next turn */
            link = &slot->next_closing;
            continue;
        }
        *link = slot->next_closing;
        *closing = (struct closing){
            .task = {.work = close_work, .finish = close_finish, .release = close_release},
            .engine = control->engine, .slot = slot, .version = slot->model->version};
        loader_add(control->engine->loader, &closing->task);
    }
}

/* ---- unloading ---- */

void change_unload_finish(struct loader_task *task) {
    struct change *change = (struct change *)task;
    struct model_name *name = change->name;
    struct table *table = &change->engine->table;
    if (counter_get(&name->served) == 0) {
        change->status = err_set(&change->err, ST_NOT_FOUND, "model %s is not loaded", name->text);
    } else {
        pthread_mutex_lock(&table->lock);
        for (struct version_state *state = name->versions; state != NULL; state = state->next)
            if (state->state == MODEL_READY) state->state = MODEL_UNLOADING;
        name->is_stamped = name->is_wanted = false;
        pthread_mutex_unlock(&table->lock);
        table_publish(table, name, NULL, 0, &change->engine->control->closing);
    }
    change_end(change, change->status == ST_OK ? ENGINE_EVENT_UNLOADED : ENGINE_EVENT_NONE);
}

/* ---- after a change ---- */

void change_count_ready(struct control *control) {
    struct table *table = &control->engine->table;
    bool has_all = true;
    pthread_mutex_lock(&table->lock);
    for (struct model_name *name = table_first(table); name != NULL; name = table_next(name))
        if (name->is_wanted && counter_get(&name->served) == 0) has_all = false;
    pthread_mutex_unlock(&table->lock);
    if (has_all) flag_raise(&control->is_ready);
    else flag_lower(&control->is_ready);
}

static void count_start(struct control *control, const struct change *change) {
    pthread_mutex_lock(&control->lock);
    if (change->status != ST_OK) {
        if (control->start_failed++ == 0) {
            control->start_status = change->status;
            control->start_err = change->err;
        } else {
            buf_text(&control->start_names, ", ");
        }
        buf_text(&control->start_names, change->name->text);
    }
    control->start_left--;
    pthread_cond_signal(&control->changed);
    pthread_mutex_unlock(&control->lock);
}

void change_end(struct change *change, enum engine_event_kind kind) {
    struct control *control = change->engine->control;
    const struct engine_config *config = change->engine->config;
    change_count_ready(control);
    if (config->on_event != NULL && kind != ENGINE_EVENT_NONE) {
        const struct engine_event event = {.kind = kind, .model = change->name->text,
                                           .text = change->err.text,
                                           .is_start = change->origin == ORIGIN_START,
                                           .took_ns = mono_ns() - change->begun_ns};
        config->on_event(config->event_ctx, &event);
    }
    if (change->on_done != NULL) change->on_done(change->ctx, change->status, &change->err);
    if (change->origin == ORIGIN_START) count_start(control, change);
}

void change_free(struct loader_task *task) {
    struct change *change = (struct change *)task;
    free(change->models);
    free(change);
}

/* See loader.h. A mutex and a condition variable for the load threads, who have time; a parker for
 * the keeper, who is woken from the request path.
 *
 * Invariant: a task is in exactly one of waiting, running (from its work to its finish). */
#include "engine/loader.h"

#include "sync/counter.h"
#include "sync/parker.h"
#include "sync/priority.h"
#include "sync/role.h"

#include <pthread.h>
#include <stdlib.h>

struct call { /* lives on the caller's stack */
    struct mpsc_node node;
    void (*run)(void *argument);
    void *argument;
    bool is_done;
};

struct loader {
    struct loader_config config;
    struct parker parker;         /* of the keeper */
    struct mpsc worked;           /* tasks for the keeper */
    struct mpsc calls;
    struct flag is_calm, is_stopping, is_over;
    pthread_mutex_t lock;         /* protects what follows */
    pthread_cond_t changed;
    struct loader_task *waiting;  /* oldest first */
    struct loader_task *running;
    size_t running_count;
    pthread_t keeper;
    bool has_keeper;
    unsigned started;
    pthread_t threads[];
};

/* ---- load threads ---- */

static bool is_running(const struct loader *loader, const void *key) {
    if (key == NULL) return false;
    for (const struct loader_task *task = loader->running; task != NULL; task = task->next)
        if (task->key == key) return true;
    return false;
}

/* The oldest that may go, moved to running; an older one of the same key goes first. */
static struct loader_task *take(struct loader *loader) {
    for (struct loader_task **link = &loader->waiting; *link != NULL; link = &(*link)->next) {
        struct loader_task *task = *link;
        bool is_first = !is_running(loader, task->key);
        for (const struct loader_task *older = loader->waiting; is_first && older != task; older = older->next)
            is_first = task->key == NULL || older->key != task->key;
        if (!is_first) continue;
        *link = task->next;
        task->next = loader->running;
        loader->running = task;
        loader->running_count++;
        return task;
    }
    return NULL;
}

static void *load_main(void *argument) {
    struct loader *loader = argument;
    bool is_low = false;
    role_set(ROLE_LOADER, 1);
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        struct loader_task *task = take(loader);
        if (task == NULL) {
            if (flag_is_up(&loader->is_over)) break;
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        pthread_mutex_unlock(&loader->lock);
        if (!is_low && flag_is_up(&loader->is_calm)) is_low = priority_lower();
        if (task->work != NULL) task->work(task);
        mpsc_push(&loader->worked, &task->node);
        parker_wake(&loader->parker, 1);
        pthread_mutex_lock(&loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

void loader_add(struct loader *loader, struct loader_task *task) {
    pthread_mutex_lock(&loader->lock);
    struct loader_task **link = &loader->waiting;
    while (*link != NULL) link = &(*link)->next;
    task->next = NULL;
    *link = task;
    pthread_cond_signal(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
}

void loader_call(struct loader *loader, void (*run)(void *argument), void *argument) {
    struct call call = {.run = run, .argument = argument};
    mpsc_push(&loader->calls, &call.node);
    parker_wake(&loader->parker, 1);
    pthread_mutex_lock(&loader->lock);
    while (!call.is_done) pthread_cond_wait(&loader->changed, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
}

/* ---- the keeper ---- */

static void answer_calls(struct loader *loader) {
    struct mpsc_node *node = mpsc_take_all(&loader->calls);
    while (node != NULL) {
        struct call *call = (struct call *)((char *)node - offsetof(struct call, node));
        node = node->next; /* the call is gone once it is done */
        call->run(call->argument);
        pthread_mutex_lock(&loader->lock);
        call->is_done = true;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
    }
}

static void end_task(struct loader *loader, struct loader_task *task) {
    pthread_mutex_lock(&loader->lock);
    struct loader_task **link = &loader->running;
    while (*link != task) link = &(*link)->next;
    *link = task->next;
    loader->running_count--;
    pthread_cond_broadcast(&loader->changed); /* one of its key may go now */
    pthread_mutex_unlock(&loader->lock);
}

static bool finish_tasks(struct loader *loader) {
    struct mpsc_node *node = mpsc_take_all(&loader->worked);
    const bool any = node != NULL;
    while (node != NULL) {
        struct loader_task *task =
            (struct loader_task *)((char *)node - offsetof(struct loader_task, node));
        node = node->next;
        task->finish(task);
        end_task(loader, task);
        task->release(task);
    }
    return any;
}

static bool is_idle(struct loader *loader) {
    pthread_mutex_lock(&loader->lock);
    const bool is = loader->waiting == NULL && loader->running == NULL;
    pthread_mutex_unlock(&loader->lock);
    return is;
}

static void *keeper_main(void *argument) {
    struct loader *loader = argument;
    role_set(ROLE_LOADER, 0);
    for (;;) {
        const uint32_t key = parker_prepare(&loader->parker);
        answer_calls(loader);
        bool any = finish_tasks(loader);
        const uint64_t next_ns = loader->config.on_turn(loader->config.ctx);
        any = any || !mpsc_is_empty(&loader->calls) || !mpsc_is_empty(&loader->worked);
        if (!any && flag_is_up(&loader->is_stopping) && is_idle(loader)) break;
        if (any) parker_cancel(&loader->parker);
        else parker_wait(&loader->parker, key, next_ns);
    }
    return NULL;
}

void loader_wake(struct loader *loader) { parker_wake(&loader->parker, 1); }

void loader_calm(struct loader *loader) { flag_raise(&loader->is_calm); }

/* ---- life cycle ---- */

enum status loader_create(const struct loader_config *config, struct loader **out, struct err *err) {
    const size_t size = sizeof(struct loader) + config->threads * sizeof(pthread_t);
    struct loader *loader = aligned_alloc(64, (size + 63) / 64 * 64);
    if (loader == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the loader");
    *loader = (struct loader){.config = *config};
    parker_init(&loader->parker);
    mpsc_init(&loader->worked);
    mpsc_init(&loader->calls);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    loader->has_keeper = pthread_create(&loader->keeper, NULL, keeper_main, loader) == 0;
    bool has_all = loader->has_keeper;
    while (has_all && loader->started < config->threads) {
        has_all = pthread_create(&loader->threads[loader->started], NULL, load_main, loader) == 0;
        loader->started += has_all ? 1 : 0;
    }
    if (!has_all) {
        loader_stop(loader);
        loader_free(loader);
        return err_set(err, ST_NO_MEMORY, "cannot start the %u threads that load models",
                       config->threads);
    }
    *out = loader;
    return ST_OK;
}

bool loader_is_stopping(const struct loader *loader) { return flag_is_up(&loader->is_stopping); }

void loader_stop(struct loader *loader) {
    if (loader == NULL) return;
    flag_raise(&loader->is_stopping);
    parker_wake(&loader->parker, 1);
    if (loader->has_keeper) pthread_join(loader->keeper, NULL);
    loader->has_keeper = false;
    pthread_mutex_lock(&loader->lock);
    flag_raise(&loader->is_over);
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    for (unsigned i = 0; i < loader->started; i++) pthread_join(loader->threads[i], NULL);
    loader->started = 0;
}

void loader_free(struct loader *loader) {
    if (loader == NULL) return;
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

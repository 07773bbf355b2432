/* The threads behind models that come and go. Load threads do the long work (reading files, opening
 * sessions, closing them), several at once, at low priority once loader_calm was called. The keeper
 * is one thread of ordinary priority: it starts what must run at that priority (instances) and is
 * the only one to change what requests find.
 *
 * A task goes: loader_add -> work on a load thread -> finish on the keeper. Tasks of one key go one
 * after another, in order. Read next: control.c, which has the tasks. */
#ifndef TELLTALE_ENGINE_LOADER_H
#define TELLTALE_ENGINE_LOADER_H

#include "base/status.h"
#include "sync/mpsc.h"
#include <stdbool.h>
#include <stdint.h>

struct loader;
struct loader_task {
    struct loader_task *next;  /* the loader's */
    struct mpsc_node node;     /* the loader's */
    const void *key;           /* NULL: goes beside any other */
    void (*work)(struct loader_task *task);   /* on a load thread; NULL: nothing */
    void (*finish)(struct loader_task *task); /* on the keeper, in the order in which work ended */
    void (*release)(struct loader_task *task); /* on the keeper: the loader has let go of it */
};

struct loader_config {
    unsigned threads;
    /* On the keeper, after each wake and each batch of finished tasks. Returns when it wants to be
     * called again at the latest (mono_ns; UINT64_MAX: when woken). */
    uint64_t (*on_turn)(void *ctx);
    void *ctx;
};
MUST_CHECK enum status loader_create(const struct loader_config *config, struct loader **out,
                                     struct err *err);
/* Any thread. What is added goes through in any case, also while the loader stops. */
void loader_add(struct loader *loader, struct loader_task *task);
void loader_wake(struct loader *loader); /* any thread, lock-free: the keeper takes a turn */
/* From the next task on the load threads give way to everybody. */
void loader_calm(struct loader *loader);
/* On a load thread: runs it on the keeper, at ordinary priority, and waits for it. */
void loader_call(struct loader *loader, void (*run)(void *argument), void *argument);
/* No task is left when it returns; loader_free is still to be called. NULL allowed. */
void loader_stop(struct loader *loader);
bool loader_is_stopping(const struct loader *loader);
void loader_free(struct loader *loader); /* NULL allowed; stopped before */

#endif

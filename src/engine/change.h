/* A change of what is served: a load, an unload, the closing of what nobody has any more. Tasks of
 * the loader, private to control.c (who asks), change_load.c and change_end.c (what they do). */
#ifndef TELLTALE_ENGINE_CHANGE_H
#define TELLTALE_ENGINE_CHANGE_H

#include "base/buf.h"
#include "engine/engine_private.h"
#include "engine/loader.h"

struct control {
    struct engine *engine;
    const char *single_name;        /* of --model or --simulate; NULL: a repository */
    struct arena arena;
    struct flag is_started, is_ready;
    struct model_slot *closing;     /* the keeper's: ended, perhaps still held */
    uint64_t next_poll_ns;          /* the keeper's */
    bool is_polling;                /* the keeper's: a poll is under way */
    pthread_mutex_t lock;           /* protects what follows: the start waits on it */
    pthread_cond_t changed;
    size_t start_left;              /* models that are still being loaded for it */
    size_t start_count, start_failed;
    enum status start_status;       /* of the first that failed */
    struct err start_err;           /* likewise */
    struct buf start_names;         /* of all that failed */
};

enum change_kind { CHANGE_LOAD, CHANGE_UNLOAD };
enum change_origin { ORIGIN_REQUEST, ORIGIN_START, ORIGIN_POLL };

struct change {
    struct loader_task task; /* first */
    struct engine *engine;
    struct model_name *name;
    enum change_origin origin;
    control_done_fn on_done; /* NULL: nobody waits */
    void *ctx;
    uint64_t begun_ns;
    /* what the work has found */
    struct engine_model **models; /* those to be served, opened */
    size_t count;
    uint64_t stamp;
    bool is_stamped;   /* stamp holds */
    bool is_unchanged; /* served already, from the same files */
    enum status status;
    struct err err;
};

/* Makes a change and gives it to the loader. */
MUST_CHECK enum status change_add(struct engine *engine, enum change_kind kind,
                                  struct model_name *name, enum change_origin origin,
                                  control_done_fn on_done, void *ctx, struct err *err);
/* The repository that has the model; NULL: none (anything, for that of --model). */
const char *control_repository(const struct engine *engine, const char *name);

/* change_load.c */
void change_load_work(struct loader_task *task);
void change_load_finish(struct loader_task *task);
/* change_end.c */
void change_unload_finish(struct loader_task *task);
void change_free(struct loader_task *task);
/* On the keeper: gives those of the ended that nobody has any more to a load thread, to be closed. */
void change_close_ended(struct control *control);
/* On the keeper: what follows from a change: readiness, who waits, the start's count, the event. */
void change_end(struct change *change, enum engine_event_kind kind);
/* Under no lock: models a start or poll wanted are served. */
void change_count_ready(struct control *control);

/* poll.c: looks at the directories. The work is a load thread's. */
MUST_CHECK bool poll_begin(struct engine *engine);

#endif

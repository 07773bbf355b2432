/* What the engine's own files share: engine.c (life cycle), opening.c (a model's), table.c (which
 * are found), loader.c and control.c (how they come and go), pipeline.c (the journey). */
#ifndef TELLTALE_ENGINE_ENGINE_PRIVATE_H
#define TELLTALE_ENGINE_ENGINE_PRIVATE_H

#include "engine/engine.h"
#include "engine/binding.h"
#include "engine/table.h"
#include "sync/parker.h"
#include "sync/pool.h"

struct engine_model {
    struct served_model served; /* first: a served_model pointer is one to this */
    struct engine *engine;
    struct model_slot *slot;    /* where it is found; NULL: nowhere */
    uint64_t version;
    struct binding binding;     /* its pipeline */
    struct arena arena;         /* names, labels */
    struct batcher *batcher;
    bool is_batched;
    uint32_t max_rows;
    /* What a request takes from a worker's hands to the model's answer, waits left out; a moving
     * average in ns, written by the instances. */
    struct counter work_ns;
};

struct engine {
    const struct engine_config *config;
    unsigned processors;
    unsigned instances;         /* a model */
    unsigned workers;
    struct table table;
    struct loader *loader;
    struct control *control;
    struct mpsc kicks;          /* slots whose batcher was pushed to without a wake */
    struct flag is_draining;
    struct pool *pool;
    struct scratch *scratches;  /* a worker each */
    struct tracer *tracer;
    struct counter batch_ids;
    struct counter outstanding; /* submitted and not yet given back */
    struct parker idle;         /* woken when that reaches 0 */
};

/* control.c: what stands at start is loaded, or err says what is not. */
MUST_CHECK enum status control_start(struct engine *engine, struct err *err);
/* No load goes on, all models are closed; requests are finished. NULL-safe in all that is missing. */
void control_stop(struct engine *engine);
void control_free(struct engine *engine);
/* pipeline.c: the batcher's callbacks. */
enum status pipeline_prepare(struct job *job, void *ctx); /* ctx: struct engine_model */
void pipeline_batch_done(struct job *list, void *ctx);

#endif

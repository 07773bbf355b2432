/* What the engine's own files share: engine.c (life cycle), pipeline.c (the journey), describe.c. */
#ifndef TELLTALE_ENGINE_ENGINE_PRIVATE_H
#define TELLTALE_ENGINE_ENGINE_PRIVATE_H

#include "engine/engine.h"
#include "engine/binding.h"
#include "sync/parker.h"
#include "sync/pool.h"

struct engine_model {
    struct served_model served; /* first: a served_model pointer is one to this */
    struct engine *engine;
    struct binding binding;     /* its pipeline */
    struct arena arena;         /* names, labels */
    struct batcher *batcher;
    bool is_batched;
    uint32_t max_rows;
    struct flag needs_kick;     /* pushed without a wake since the last flush */
    /* What a request takes from a worker's hands to the model's answer, waits left out; a moving
     * average in ns, written by the instances. */
    struct counter work_ns;
};

struct engine {
    const struct engine_config *config;
    unsigned processors;
    unsigned instances;         /* a model */
    unsigned workers;
    struct engine_model *models;
    size_t model_count;
    struct pool *pool;
    struct scratch *scratches;  /* a worker each */
    struct tracer *tracer;
    struct counter batch_ids;
    struct counter outstanding; /* submitted and not yet given back */
    struct parker idle;         /* woken when that reaches 0 */
};

/* pipeline.c: the batcher's callbacks. */
enum status pipeline_prepare(struct job *job, void *ctx); /* ctx: struct engine_model */
void pipeline_batch_done(struct job *list, void *ctx);

#endif

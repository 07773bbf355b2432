/* One request on its way. Created by whoever receives it (serve, bench, a C program), lent to the
 * engine between engine_submit and on_done. Everything it points to lives in its arena. */
#ifndef TELLTALE_ENGINE_REQUEST_H
#define TELLTALE_ENGINE_REQUEST_H

#include "batch/batcher.h"
#include "sync/pool.h"

struct served_model;
struct engine;
struct prepared;

struct request {
    /* the owner's, set before engine_submit */
    struct arena arena;
    const struct served_model *model; /* a reference of its own: given back by clear and done */
    const struct tensor *inputs;      /* as the client sent them, by name, any order */
    uint32_t input_count;
    const struct view *wanted;        /* output names asked for; NULL: all */
    uint32_t wanted_count;
    uint64_t deadline_ns;             /* mono_ns; 0: none */
    /* A body still to be decoded: called once, on a worker, before anything else; it sets inputs,
     * wanted, deadline_ns. NULL: they are set already. */
    enum status (*decode)(struct request *request);
    void (*on_done)(struct request *request);
    void *owner;
    struct mpsc_node done_node;       /* free for the owner's use, e.g. to queue the answer */

    /* the result, valid in and after on_done */
    enum status status;
    struct err err;
    struct tensor *outputs;           /* those wanted, in the order wanted; in arena */
    uint32_t output_count;

    struct trace_record trace;        /* owner stamps before submit and after on_done */

    /* the engine's */
    struct engine *engine;
    struct job job;
    struct pool_job pool_job;
    struct request *batch_next;
    uint32_t *wanted_indices;         /* into the shown outputs */
    uint32_t wanted_index_count;
    struct prepared *prepared;        /* by the pipeline's inputs; NULL: the client sent tensors */
    uint32_t prepared_rows;           /* elements of those inputs; 0 likewise */
    const struct tensor *beside;      /* the model's inputs that came as tensors beside them */
};

/* Zeroes, then readies arena. Reusable after request_clear. */
void request_init(struct request *request);
void request_clear(struct request *request);
void request_done(struct request *request);

#endif

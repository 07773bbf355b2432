/* From found files to a model that runs: session, pipeline, batcher. Errors name the model.
 *
 * Thread: a load thread for opening_open and opening_close, the keeper for opening_start. */
#ifndef TELLTALE_ENGINE_OPENING_H
#define TELLTALE_ENGINE_OPENING_H

#include "engine/engine_private.h"

/* Session and pipeline. Takes found in any case. On ST_OK the caller owns *out, which has no
 * batcher and no slot yet: opening_start, opening_close. */
MUST_CHECK enum status opening_open(struct engine *engine, struct model *found,
                                    struct engine_model **out, struct err *err);
/* The batcher and its threads. trace_name: under which the model's records are kept. */
MUST_CHECK enum status opening_start(struct engine_model *model, const char *trace_name,
                                     struct err *err);
/* Frees all of it; the batcher, if any, is stopped and freed first. NULL allowed. */
void opening_close(struct engine_model *model);

#endif

/* What clients send to the model's tensors: the steps of a pipeline's inputs, timed. Runs in a
 * worker, or (as an experiment) on the instance's thread. */
#ifndef TELLTALE_ENGINE_PREPROCESS_H
#define TELLTALE_ENGINE_PREPROCESS_H

#include "engine/engine_private.h"

/* Does the request bring what the pipeline takes (and not the model's own tensors)? */
bool preprocess_applies(const struct engine_model *model, const struct request *request);
/* Names, datatypes, shapes, rows: sets job.rows. Cheap: no picture or text is looked at. */
MUST_CHECK enum status preprocess_check(const struct engine_model *model, struct request *request);
/* Sets job.inputs, job.length, trace.tokens, trace.step_ns, and what the answers need of the
 * inputs (request->prepared). Errors name the row: "IMAGE[2]: ...". */
MUST_CHECK enum status preprocess_run(const struct engine_model *model, struct request *request,
                                      struct scratch *scratch);

struct prepared {          /* in the request's arena, by bound input */
    struct placement *placements; /* a row each: pictures */
    struct encoding *encodings;   /* a row each: texts */
};

#endif

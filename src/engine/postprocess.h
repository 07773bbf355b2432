/* The model's tensors to what clients asked for: the steps of a pipeline's outputs, timed. Runs in
 * a worker. */
#ifndef TELLTALE_ENGINE_POSTPROCESS_H
#define TELLTALE_ENGINE_POSTPROCESS_H

#include "engine/engine_private.h"

/* Is any wanted output made by the pipeline? */
bool postprocess_applies(const struct engine_model *model, const struct request *request);
/* Computes those outputs of the pipeline that are wanted and fills request->outputs, in the order
 * wanted, the model's own among them. Adds to trace.step_ns. scratch is not touched where
 * postprocess_applies is false. */
MUST_CHECK enum status postprocess_run(const struct engine_model *model, struct request *request,
                                       struct scratch *scratch);

#endif

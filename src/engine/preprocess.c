/* See preprocess.h. Shapes: a pipeline input is BYTES (rows) or (rows, 1). Invariant: all that
 * outlives the call lies in the request's arena; pixels on their way lie in scratch. Read next:
 * preprocess_image.c and preprocess_text.c, the steps; pipeline.c, which calls. */
#include "engine/preprocess_private.h"

#include "batch/staging.h"
#include "engine/check.h"

/* A name may be the model's own too: then the datatype tells which is meant. */
static bool is_own_tensor(const struct engine_model *model, const struct tensor *input) {
    const struct signature *signature = model->served.model->signature;
    for (uint32_t i = 0; i < signature->input_count; i++)
        if (view_is(input->name, signature->inputs[i].name)) return input->dtype != DTYPE_BYTES;
    return false;
}

static bool is_pipeline_input(const struct engine_model *model, const struct tensor *input) {
    const struct binding *binding = &model->binding;
    if (is_own_tensor(model, input)) return false;
    for (uint32_t i = 0; i < binding->input_count; i++) {
        const struct pipeline_input *spec = binding->inputs[i].spec;
        if (view_is(input->name, spec->name)) return true;
        if (spec->kind == PIPELINE_TEXT && spec->text.pair != NULL && view_is(input->name, spec->text.pair))
            return true;
    }
    return false;
}

bool preprocess_applies(const struct engine_model *model, const struct request *request) {
    for (uint32_t i = 0; i < request->input_count; i++)
        if (is_pipeline_input(model, &request->inputs[i])) return true;
    return false;
}

const struct tensor *preprocess_input(const struct request *request, const char *name) {
    for (uint32_t i = 0; i < request->input_count; i++)
        if (view_is(request->inputs[i].name, name)) return &request->inputs[i];
    return NULL;
}

/* One input that the pipeline takes: there, of the right kind, of as many rows as the others. */
static enum status check_one(const struct engine_model *model, struct request *request,
                             const char *name, uint32_t *rows) {
    const struct tensor *input = preprocess_input(request, name);
    const char *own = model->served.model->name;
    if (input == NULL)
        return err_set(&request->err, ST_INVALID, "model %s: input %s is missing", own, name);
    uint32_t count = 0;
    const enum status status = check_bytes(input, own, name, model->max_rows, &count, &request->err);
    if (status != ST_OK) return status;
    if (*rows != 0 && count != *rows)
        return err_set(&request->err, ST_INVALID, "model %s, input %s: %u elements, the inputs before it have %u",
                       own, name, count, *rows);
    *rows = count;
    return ST_OK;
}

/* What is sent beside the pipeline's inputs: tensors that the pipeline does not fill. */
static enum status check_rest(const struct engine_model *model, struct request *request, uint32_t rows) {
    const struct signature *signature = model->served.model->signature;
    const struct binding *binding = &model->binding;
    uint32_t known = 0;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tensor *input = &request->inputs[i];
        if (is_pipeline_input(model, input)) {
            known++;
            continue;
        }
        for (uint32_t k = 0; k < signature->input_count; k++)
            if (view_is(input->name, signature->inputs[k].name) && binding->is_fed[k])
                return err_set(&request->err, ST_INVALID,
                               "model %s takes %s alone or its tensors, not both (%s)",
                               model->served.model->name, binding->inputs[0].spec->name,
                               signature->inputs[k].name);
    }
    const uint32_t rest = request->input_count - known;
    struct tensor *others = arena_array(&request->arena, rest, sizeof *others);
    if (others == NULL) return err_set(&request->err, ST_NO_MEMORY, "no memory for a request");
    uint32_t count = 0;
    for (uint32_t i = 0; i < request->input_count; i++)
        if (!is_pipeline_input(model, &request->inputs[i])) others[count++] = request->inputs[i];
    uint32_t other_rows = 0;
    const enum status status =
        check_some_inputs(signature, binding->is_fed, model->served.model->name, others, count,
                          model->is_batched, model->max_rows, &request->arena, &request->beside,
                          &other_rows, &request->err);
    if (status != ST_OK) return status;
    if (other_rows != 0 && other_rows != rows)
        return err_set(&request->err, ST_INVALID,
                       "model %s: the tensors have a batch dimension of %u, %s has %u elements",
                       model->served.model->name, other_rows, binding->inputs[0].spec->name, rows);
    return ST_OK;
}

enum status preprocess_check(const struct engine_model *model, struct request *request) {
    const struct binding *binding = &model->binding;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < request->input_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (view_eq(request->inputs[i].name, request->inputs[k].name))
                return err_set(&request->err, ST_INVALID, "model %s, input %.*s: given twice",
                               model->served.model->name, VIEW_ARGS(request->inputs[i].name));
    for (uint32_t i = 0; i < binding->input_count; i++) {
        const struct pipeline_input *spec = binding->inputs[i].spec;
        enum status status = check_one(model, request, spec->name, &rows);
        if (status == ST_OK && spec->kind == PIPELINE_TEXT && spec->text.pair != NULL)
            status = check_one(model, request, spec->text.pair, &rows);
        if (status != ST_OK) return status;
    }
    request->prepared_rows = rows;
    request->job.rows = model->is_batched ? rows : 0;
    request->trace.rows = request->job.rows;
    return check_rest(model, request, rows);
}

enum status preprocess_run(const struct engine_model *model, struct request *request,
                           struct scratch *scratch) {
    const struct binding *binding = &model->binding;
    const struct signature *signature = model->served.model->signature;
    struct tensor *inputs = arena_array(&request->arena, signature->input_count, sizeof *inputs);
    request->prepared = arena_array(&request->arena, binding->input_count, sizeof *request->prepared);
    if (inputs == NULL || request->prepared == NULL)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for a request");
    for (uint32_t i = 0; i < signature->input_count; i++) /* those that came as tensors */
        if (!binding->is_fed[i]) inputs[i] = request->beside[i];
    for (uint32_t i = 0; i < binding->input_count; i++) {
        const struct bound_input *input = &binding->inputs[i];
        const struct prepare at = {model, request, input, &request->prepared[i], scratch, inputs};
        const enum status status = input->spec->kind == PIPELINE_IMAGE ? preprocess_images(&at) : preprocess_texts(&at);
        if (status == ST_OK) continue;
        staging_release(&request->job); /* another picture of it may have been fine */
        return status;
    }
    request->job.inputs = inputs;
    return ST_OK;
}

void preprocess_step(struct request *request, enum step step, uint64_t *since_ns) {
    const uint64_t now_ns = mono_ns();
    request->trace.step_ns[step] += (uint32_t)(now_ns - *since_ns);
    *since_ns = now_ns;
}

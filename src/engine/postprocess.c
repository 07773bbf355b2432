/* See postprocess.h. Invariant: a tensor made here lives in the request's arena; the model's own
 * outputs pass through as they are. The kinds are in postprocess_{scores,boxes,text}.c. */
#include "engine/postprocess_private.h"

#include "base/clock.h"

/* ---- what the kinds share ---- */

enum status postprocess_no_memory(const struct finish *at) {
    return err_set(&at->request->err, ST_NO_MEMORY, "no memory for the answer");
}

enum status postprocess_wrong_shape(const struct finish *at, const char *needs) {
    char shape[96];
    return err_set(&at->request->err, ST_INTERNAL, "model %s gave %.*s of shape %s; the pipeline needs %s",
                   at->model->served.model->name, VIEW_ARGS(at->from->name),
                   tensor_shape_text(at->from->shape, at->from->rank, shape, sizeof shape), needs);
}

struct tensor *postprocess_make(const struct finish *at, uint32_t index, enum dtype dtype, int64_t rows,
                                int64_t most, int64_t last) {
    const struct signature *shown = &at->model->served.shown;
    struct tensor *out = &at->made[index];
    *out = (struct tensor){.name = view_of(shown->outputs[at->output->first_shown + index].name),
                           .dtype = dtype, .rank = 1, .shape = {rows}};
    if (most >= 0) out->shape[out->rank++] = most;
    if (last > 0) out->shape[out->rank++] = last;
    size_t count = 0;
    if (dtype == DTYPE_BYTES || !tensor_elements(out->shape, out->rank, &count)) return out;
    out->size = count * dtype_size(dtype);
    out->data = arena_alloc_aligned64(&at->request->arena, out->size);
    if (out->data != NULL) memset((void *)(uintptr_t)out->data, 0, out->size);
    return out;
}

bool postprocess_texts(const struct finish *at, const struct view *texts, size_t count, struct tensor *out) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += 4 + texts[i].size;
    char *data = arena_alloc(&at->request->arena, size);
    if (data == NULL) return false;
    out->data = data;
    out->size = size;
    for (size_t i = 0; i < count; i++) {
        const uint32_t length = (uint32_t)texts[i].size;
        memcpy(data, &length, 4);
        if (length > 0) memcpy(data + 4, texts[i].data, length);
        data += 4 + texts[i].size;
    }
    return true;
}

struct placement postprocess_placement(const struct finish *at, uint32_t row) {
    const struct request *request = at->request;
    const struct bound_input *input = &at->model->binding.inputs[at->output->input];
    if (request->prepared != NULL) return request->prepared[at->output->input].placements[row];
    const struct tensor *canvas = &request->job.inputs[input->image.to];
    const bool is_planar = input->image.table.format.layout == LAYOUT_NCHW;
    const int64_t *dims = canvas->shape + canvas->rank - (is_planar ? 2 : 3);
    const uint32_t height = (uint32_t)dims[0], width = (uint32_t)dims[1];
    return (struct placement){width, height, width, height, 0, 0, width, height};
}

/* ---- the steps ---- */

static const struct {
    enum status (*run)(const struct finish *at);
    enum step step;
} KINDS[PIPELINE_OUTPUT_KIND_COUNT] = {
    [PIPELINE_SCORES] = {postprocess_scores, STEP_CLASSIFY},
    [PIPELINE_CLASSIFY] = {postprocess_classify, STEP_CLASSIFY},
    [PIPELINE_EMBED] = {postprocess_embed, STEP_POOL},
    [PIPELINE_DETECT] = {postprocess_detect, STEP_DETECT},
    [PIPELINE_CTC] = {postprocess_ctc, STEP_CTC},
    [PIPELINE_TEXT_BOXES] = {postprocess_text_boxes, STEP_TEXT_BOXES},
    [PIPELINE_DETOKENIZE] = {postprocess_detokenize, STEP_DETOKENIZE},
    [PIPELINE_TOKENS] = {postprocess_tokens, STEP_DETOKENIZE},
};

static bool is_wanted(const struct request *request, const struct bound_output *output) {
    for (uint32_t i = 0; i < request->wanted_index_count; i++) {
        const uint32_t index = request->wanted_indices[i];
        if (index >= output->first_shown && index < output->first_shown + output->made_count) return true;
    }
    return false;
}

bool postprocess_applies(const struct engine_model *model, const struct request *request) {
    for (uint32_t i = 0; i < request->wanted_index_count; i++)
        if (request->wanted_indices[i] >= model->binding.own_shown) return true;
    return false;
}

static enum status run_steps(const struct engine_model *model, struct request *request,
                             struct scratch *scratch, struct tensor *made) {
    const struct binding *binding = &model->binding;
    for (uint32_t i = 0; i < binding->output_count; i++) {
        const struct bound_output *output = &binding->outputs[i];
        if (!is_wanted(request, output)) continue;
        const enum pipeline_output_kind kind = output->spec->kind;
        const struct finish at = {
            .model = model, .request = request, .output = output, .scratch = scratch,
            .from = kind == PIPELINE_TOKENS ? NULL : &request->job.outputs[output->from],
            .made = made + (output->first_shown - binding->own_shown)};
        const uint64_t began_ns = mono_ns();
        const enum status status = KINDS[kind].run(&at);
        request->trace.step_ns[KINDS[kind].step] += (uint32_t)(mono_ns() - began_ns);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

enum status postprocess_run(const struct engine_model *model, struct request *request,
                            struct scratch *scratch) {
    const uint32_t own = model->binding.own_shown, shown = model->served.shown.output_count;
    struct tensor *made = arena_array(&request->arena, shown - own, sizeof *made);
    request->outputs = arena_array(&request->arena, request->wanted_index_count, sizeof *request->outputs);
    if (made == NULL || request->outputs == NULL)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the answer");
    if (postprocess_applies(model, request)) {
        const enum status status = run_steps(model, request, scratch, made);
        if (status != ST_OK) return status;
    }
    for (uint32_t i = 0; i < request->wanted_index_count; i++) {
        const uint32_t index = request->wanted_indices[i];
        request->outputs[i] = index < own ? request->job.outputs[index] : made[index - own];
    }
    request->output_count = request->wanted_index_count;
    return ST_OK;
}

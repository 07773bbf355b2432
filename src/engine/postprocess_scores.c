/* Rows of numbers to scores, the best classes with their labels, embeddings. Shapes: (rows,
 * classes), (rows, length, size). Read next: prep/activation.h, prep/pooling.h. */
#include "engine/postprocess_private.h"

enum status postprocess_scores(const struct finish *at) {
    const struct tensor *from = at->from;
    if (from->rank == 0) return postprocess_wrong_shape(at, "at least one axis");
    struct tensor *out = &at->made[0];
    *out = *from;
    out->name = view_of(at->output->spec->scores.name);
    float *values = arena_alloc_aligned64(&at->request->arena, from->size);
    if (values == NULL) return postprocess_no_memory(at);
    out->data = values;
    const size_t width = (size_t)from->shape[from->rank - 1];
    const size_t rows = width > 0 ? from->size / sizeof(float) / width : 0;
    for (size_t r = 0; r < rows; r++)
        activate((enum activation)at->output->spec->scores.activation, (const float *)from->data + r * width,
                 width, values + r * width);
    return ST_OK;
}

/* ---- classify ---- */

struct classes {
    struct view *labels; /* NULL: none are given */
    float *scores;
    int64_t *ids;        /* NULL likewise */
};

/* The best of one row, from `first` on. */
static void best_classes(const struct finish *at, const float *logits, size_t count, size_t top, float *scores,
                         uint32_t *order, const struct classes *out, size_t first) {
    activate((enum activation)at->output->spec->classify.activation, logits, count, scores);
    top_k(scores, count, top, order);
    for (size_t k = 0; k < top; k++) {
        out->scores[first + k] = scores[order[k]];
        if (out->labels != NULL) out->labels[first + k] = at->output->labels.names[order[k]];
        if (out->ids != NULL) out->ids[first + k] = order[k];
    }
}

enum status postprocess_classify(const struct finish *at) {
    const struct pipeline_classify *spec = &at->output->spec->classify;
    const struct tensor *from = at->from;
    const size_t names = at->output->labels.count;
    if (from->rank != 2) return postprocess_wrong_shape(at, "(rows, classes)");
    const size_t rows = (size_t)from->shape[0], count = (size_t)from->shape[1], top = spec->top;
    if (names > 0 && names != count)
        return err_set(&at->request->err, ST_INTERNAL, "model %s gives %zu scores a row, its labels file has "
                       "%zu labels", at->model->served.model->name, count, names);
    if (top > count)
        return err_set(&at->request->err, ST_INTERNAL, "model %s gives %zu scores a row, classify.top is %zu",
                       at->model->served.model->name, count, top);
    const int64_t most = top > 1 ? (int64_t)top : -1;
    uint32_t index = 0;
    struct tensor *label = names > 0 ? postprocess_make(at, index++, DTYPE_BYTES, from->shape[0], most, 0) : NULL;
    const struct tensor *score = postprocess_make(at, index++, DTYPE_FP32, from->shape[0], most, 0);
    const struct tensor *id = spec->class_id != NULL
                                  ? postprocess_make(at, index, DTYPE_INT64, from->shape[0], most, 0) : NULL;
    const struct classes out = {
        .labels = names > 0 ? arena_array(&at->request->arena, rows * top, sizeof *out.labels) : NULL,
        .scores = (float *)(uintptr_t)score->data,
        .ids = id != NULL ? (int64_t *)(uintptr_t)id->data : NULL};
    float *scores = arena_alloc(&at->request->arena, count * sizeof *scores);
    uint32_t *order = arena_alloc(&at->request->arena, count * sizeof *order);
    if (out.scores == NULL || scores == NULL || order == NULL || (names > 0 && out.labels == NULL) ||
        (id != NULL && out.ids == NULL))
        return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++)
        best_classes(at, (const float *)from->data + r * count, count, top, scores, order, &out, r * top);
    if (label != NULL && !postprocess_texts(at, out.labels, rows * top, label)) return postprocess_no_memory(at);
    return ST_OK;
}

/* ---- embed ---- */

/* The row's mask as int64 into out (length): the model's own where it has one, else by the number
 * of tokens. False: every token is real. */
static bool row_mask(const struct finish *at, uint32_t row, size_t length, int64_t *out) {
    if (at->output->input == NOT_FED) return false;
    const struct bound_text *text = &at->model->binding.inputs[at->output->input].text;
    const struct request *request = at->request;
    if (text->feeds[FEED_MASK] != NOT_FED) {
        const struct tensor *mask = &request->job.inputs[text->feeds[FEED_MASK]];
        const size_t own = (size_t)mask->shape[1];
        for (size_t i = 0; i < length; i++) {
            int32_t narrow = 0;
            int64_t wide = 0;
            const size_t place = (size_t)row * own + i;
            if (i < own && mask->dtype == DTYPE_INT64) memcpy(&wide, (const char *)mask->data + place * 8, 8);
            else if (i < own) memcpy(&narrow, (const char *)mask->data + place * 4, 4);
            out[i] = wide != 0 || narrow != 0;
        }
        return true;
    }
    if (request->prepared == NULL) return false;
    const uint32_t count = request->prepared[at->output->input].encodings[row].count;
    const uint32_t filled = request->job.length;
    const size_t skipped = text->padding.is_left && filled > count ? filled - count : 0;
    for (size_t i = 0; i < length; i++) out[i] = i >= skipped && i - skipped < count;
    return true;
}

enum status postprocess_embed(const struct finish *at) {
    const struct pipeline_embed *spec = &at->output->spec->embed;
    const struct tensor *from = at->from;
    const bool is_pooled = spec->pooling == POOLING_NONE;
    if (from->rank != (is_pooled ? 2u : 3u))
        return postprocess_wrong_shape(at, is_pooled ? "(rows, size)" : "(rows, length, size)");
    const size_t rows = (size_t)from->shape[0], size = (size_t)from->shape[from->rank - 1];
    const size_t length = is_pooled ? 1 : (size_t)from->shape[1];
    const struct tensor *out = postprocess_make(at, 0, DTYPE_FP32, from->shape[0], (int64_t)size, 0);
    int64_t *mask = arena_alloc(&at->request->arena, length * sizeof *mask);
    if (out->data == NULL || mask == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++) {
        const bool has_mask = !is_pooled && row_mask(at, (uint32_t)r, length, mask);
        pool_tokens((enum pooling)spec->pooling, (const float *)from->data + r * length * size, length, size,
                    has_mask ? mask : NULL, spec->normalizes, (float *)(uintptr_t)out->data + r * size);
    }
    return ST_OK;
}

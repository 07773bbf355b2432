/* Text out: a recogniser's characters, a generator's tokens, the tokens that the model was given.
 * Read next: prep/ctc.h, prep/tokenizer.h. */
#include "engine/postprocess_private.h"

enum status postprocess_ctc(const struct finish *at) {
    const struct tensor *from = at->from;
    if (from->rank != 3) return postprocess_wrong_shape(at, "(rows, steps, classes)");
    const size_t rows = (size_t)from->shape[0], steps = (size_t)from->shape[1], classes = (size_t)from->shape[2];
    struct tensor *text = postprocess_make(at, 0, DTYPE_BYTES, from->shape[0], -1, 0);
    float *scores = (float *)(uintptr_t)postprocess_make(at, 1, DTYPE_FP32, from->shape[0], -1, 0)->data;
    struct view *texts = arena_array(&at->request->arena, rows, sizeof *texts);
    if (scores == NULL || texts == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++) {
        const enum status status =
            ctc_greedy(&at->output->characters, (const float *)from->data + r * steps * classes, (uint32_t)steps,
                       (uint32_t)classes, &at->request->arena, &texts[r], &scores[r], &at->request->err);
        if (status != ST_OK) return status;
    }
    return postprocess_texts(at, texts, rows, text) ? ST_OK : postprocess_no_memory(at);
}

/* The ids of a row: as they are, or the best of each place's scores. */
static void row_ids(const struct tensor *from, size_t row, size_t length, int64_t *out) {
    const char *data = from->data;
    for (size_t i = 0; i < length; i++) {
        const size_t place = row * length + i;
        if (from->dtype == DTYPE_FP32) {
            const size_t width = (size_t)from->shape[2];
            out[i] = (int64_t)best_of((const float *)from->data + place * width, width);
        } else if (from->dtype == DTYPE_INT64) {
            memcpy(&out[i], data + place * 8, 8);
        } else {
            int32_t narrow;
            memcpy(&narrow, data + place * 4, 4);
            out[i] = narrow;
        }
    }
}

enum status postprocess_detokenize(const struct finish *at) {
    const struct tensor *from = at->from;
    if (from->rank != (from->dtype == DTYPE_FP32 ? 3u : 2u))
        return postprocess_wrong_shape(at, "(rows, length) ids or (rows, length, vocabulary) scores");
    const size_t rows = (size_t)from->shape[0], length = (size_t)from->shape[1];
    struct tensor *out = postprocess_make(at, 0, DTYPE_BYTES, from->shape[0], -1, 0);
    struct view *texts = arena_array(&at->request->arena, rows, sizeof *texts);
    int64_t *ids = arena_alloc(&at->request->arena, length * sizeof *ids);
    if (texts == NULL || ids == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++) {
        row_ids(from, r, length, ids);
        if (tokenizer_decode(at->output->tokenizer, ids, length, !at->output->spec->detokenize.keeps_special,
                             &at->request->arena, &texts[r]) != ST_OK)
            return postprocess_no_memory(at);
    }
    return postprocess_texts(at, texts, rows, out) ? ST_OK : postprocess_no_memory(at);
}

enum status postprocess_tokens(const struct finish *at) {
    const struct request *request = at->request;
    if (request->prepared == NULL)
        return err_set(&at->request->err, ST_INVALID, "model %s: the outputs %s and %s are of a text; the request "
                       "brought tensors", at->model->served.model->name, at->output->spec->tokens.ids,
                       at->output->spec->tokens.offsets);
    const struct encoding *encodings = request->prepared[at->output->input].encodings;
    const size_t rows = request->prepared_rows;
    size_t most = 0;
    for (size_t r = 0; r < rows; r++) most = encodings[r].count > most ? encodings[r].count : most;
    int64_t *ids = (int64_t *)(uintptr_t)postprocess_make(at, 0, DTYPE_INT64, (int64_t)rows, (int64_t)most, 0)->data;
    int64_t *places =
        (int64_t *)(uintptr_t)postprocess_make(at, 1, DTYPE_INT64, (int64_t)rows, (int64_t)most, 2)->data;
    if (ids == NULL || places == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < encodings[r].count; i++) {
            ids[r * most + i] = encodings[r].ids[i];
            places[(r * most + i) * 2] = encodings[r].offsets[i].start;
            places[(r * most + i) * 2 + 1] = encodings[r].offsets[i].end;
        }
    return ST_OK;
}

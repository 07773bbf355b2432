/* Text to token tensors, logits to labels: runs in the workers (or, as an experiment, on the
 * instance's thread). Shapes: TEXT (rows) or (rows, 1) BYTES; ids, mask, types (rows, longest).
 * Read next: pipeline.c, which calls. */
#include "engine/text_model.h"

static const char *const FEED_NAMES[FEED_COUNT] = {"input_ids", "attention_mask", "token_type_ids"};

bool text_model_feeds(const struct signature *signature, enum text_feed *out_feeds,
                      struct err *err) {
    bool has_ids = false;
    for (uint32_t i = 0; i < signature->input_count; i++) {
        const struct io_spec *input = &signature->inputs[i];
        int feed = 0;
        while (feed < FEED_COUNT && strcmp(input->name, FEED_NAMES[feed]) != 0) feed++;
        const bool is_integer = input->dtype == DTYPE_INT64 || input->dtype == DTYPE_INT32;
        if (feed == FEED_COUNT || !is_integer || input->rank != 2 || input->shape[1] != -1) {
            (void)err_set(err, ST_UNSUPPORTED,
                          "a tokenizer feeds input_ids, attention_mask and token_type_ids (INT64 "
                          "or INT32, (batch, sequence)); input %s is not one of them",
                          input->name);
            return false;
        }
        out_feeds[i] = (enum text_feed)feed;
        has_ids = has_ids || feed == FEED_IDS;
    }
    if (!has_ids) (void)err_set(err, ST_UNSUPPORTED, "the model has no input input_ids");
    return has_ids;
}

int text_model_logits(const struct signature *signature, size_t label_count) {
    for (uint32_t i = 0; i < signature->output_count; i++) {
        const struct io_spec *output = &signature->outputs[i];
        if (output->dtype == DTYPE_FP32 && output->rank == 2 &&
            (output->shape[1] == -1 || output->shape[1] == (int64_t)label_count))
            return (int)i;
    }
    return -1;
}

static int64_t feed_value(enum text_feed feed, const struct encoding *encoding, uint32_t at) {
    if (feed == FEED_IDS) return encoding->ids[at];
    return feed == FEED_MASK ? 1 : encoding->type_ids[at];
}

/* One model input for all rows, filled up to length with the pad id or 0. */
static bool fill_input(struct tensor *out, const struct io_spec *spec, enum text_feed feed,
                       const struct encoding *rows, uint32_t row_count, uint32_t length,
                       int64_t pad_id, struct arena *arena) {
    const size_t element = dtype_size(spec->dtype);
    const size_t size = (size_t)row_count * length * element;
    char *data = arena_alloc_aligned64(arena, size);
    if (data == NULL) return false;
    char *to = data;
    for (uint32_t r = 0; r < row_count; r++) {
        for (uint32_t i = 0; i < length; i++, to += element) {
            const int64_t padding = feed == FEED_IDS ? pad_id : 0;
            const int64_t value = i < rows[r].count ? feed_value(feed, &rows[r], i) : padding;
            const int32_t narrow = (int32_t)value;
            if (element == 8) memcpy(to, &value, 8);
            else memcpy(to, &narrow, 4);
        }
    }
    *out = (struct tensor){.name = view_of(spec->name), .dtype = spec->dtype, .rank = 2,
                           .shape = {row_count, length}, .data = data, .size = size};
    return true;
}

enum status text_model_encode(const struct text_model *text, const struct signature *signature,
                              const struct tensor *input, struct arena *arena,
                              struct tensor **out_inputs, uint32_t *out_length,
                              uint32_t *out_tokens, struct err *err) {
    const uint32_t rows = (uint32_t)input->shape[0];
    struct encoding *encodings = arena_array(arena, rows, sizeof *encodings);
    struct tensor *inputs = arena_array(arena, signature->input_count, sizeof *inputs);
    if (encodings == NULL || inputs == NULL) return err_set(err, ST_NO_MEMORY, "no memory for tokens");
    uint32_t longest = 1, tokens = 0;
    const char *at = input->data;
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t size; /* checked at submit: tensor_bytes_valid */
        memcpy(&size, at, 4);
        const struct view element = {at + 4, size};
        at += 4 + size;
        const enum status status =
            tokenizer_encode(text->tokenizer, element,
                             &(struct encode_options){.max_tokens = text->max_tokens}, arena, &encodings[r], err);
        if (status != ST_OK) return err_set(err, status, "no memory for tokens");
        if (encodings[r].count > longest) longest = encodings[r].count;
        tokens += encodings[r].count;
    }
    const int64_t pad_id = tokenizer_padding(text->tokenizer).id;
    for (uint32_t i = 0; i < signature->input_count; i++)
        if (!fill_input(&inputs[i], &signature->inputs[i], text->feeds[i], encodings, rows, longest,
                        pad_id, arena))
            return err_set(err, ST_NO_MEMORY, "no memory for tokens");
    *out_inputs = inputs;
    *out_length = longest;
    *out_tokens = tokens;
    return ST_OK;
}

enum status text_model_label(const struct text_model *text, const struct tensor *logits,
                             struct arena *arena, struct tensor *out_label,
                             struct tensor *out_score) {
    const size_t rows = (size_t)logits->shape[0], count = (size_t)logits->shape[1];
    float *scores = arena_alloc_aligned64(arena, rows * sizeof *scores);
    float *probabilities = arena_alloc(arena, count * sizeof *probabilities);
    size_t *best = arena_array(arena, rows, sizeof *best);
    if (scores == NULL || probabilities == NULL || best == NULL) return ST_NO_MEMORY;
    size_t size = 0;
    for (size_t r = 0; r < rows; r++) {
        best[r] = classify_softmax((const float *)logits->data + r * count, count, probabilities);
        scores[r] = probabilities[best[r]];
        size += 4 + text->labels.names[best[r]].size;
    }
    char *labels = arena_alloc(arena, size);
    if (labels == NULL) return ST_NO_MEMORY;
    char *to = labels;
    for (size_t r = 0; r < rows; r++) {
        const struct view name = text->labels.names[best[r]];
        const uint32_t length = (uint32_t)name.size;
        memcpy(to, &length, 4);
        memcpy(to + 4, name.data, name.size);
        to += 4 + name.size;
    }
    *out_label = (struct tensor){.name = view_of("label"), .dtype = DTYPE_BYTES, .rank = 1,
                                 .shape = {(int64_t)rows}, .data = labels, .size = size};
    *out_score = (struct tensor){.name = view_of("score"), .dtype = DTYPE_FP32, .rank = 1,
                                 .shape = {(int64_t)rows}, .data = scores,
                                 .size = rows * sizeof *scores};
    return ST_OK;
}

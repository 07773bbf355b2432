/* Texts to token tensors. Shapes: ids, mask, types (rows, longest), filled up on the side that
 * tokenizer.json says. Read next: prep/tokenizer.h. */
#include "engine/preprocess_private.h"

/* What stands at place `at` of a row of `length`, of which the encoding fills its own part. */
static int64_t value_at(const struct bound_text *text, enum text_feed feed, const struct encoding *row,
                        uint32_t length, uint32_t at) {
    const uint32_t skipped = text->padding.is_left ? length - row->count : 0;
    const bool is_real = at >= skipped && at - skipped < row->count;
    switch (feed) {
    case FEED_IDS: return is_real ? row->ids[at - skipped] : text->padding.id;
    case FEED_TYPES: return is_real ? row->type_ids[at - skipped] : text->padding.type_id;
    case FEED_MASK:
    case FEED_COUNT: break;
    }
    return is_real;
}

static bool fill(const struct prepare *at, enum text_feed feed, uint32_t length) {
    const struct bound_text *text = &at->input->text;
    const int index = text->feeds[feed];
    if (index == NOT_FED) return true;
    const struct io_spec *spec = &at->model->served.model->signature->inputs[index];
    const uint32_t rows = at->request->prepared_rows;
    const size_t count = (size_t)rows * length, size = count * dtype_size(spec->dtype);
    char *data = arena_alloc_aligned64(&at->request->arena, size);
    if (data == NULL) return false;
    for (uint32_t r = 0; r < rows; r++) {
        const struct encoding *row = &at->out->encodings[r];
        for (uint32_t i = 0; i < length; i++) {
            const int64_t wide = value_at(text, feed, row, length, i);
            const int32_t narrow = (int32_t)wide;
            if (spec->dtype == DTYPE_INT64) memcpy(data + ((size_t)r * length + i) * 8, &wide, 8);
            else memcpy(data + ((size_t)r * length + i) * 4, &narrow, 4);
        }
    }
    at->inputs[index] = (struct tensor){.name = view_of(spec->name), .dtype = spec->dtype, .rank = 2,
                                        .shape = {rows, length}, .data = data, .size = size};
    return true;
}

/* Are the places of the tokens asked for too? */
static bool wants_offsets(const struct prepare *at) {
    const struct binding *binding = &at->model->binding;
    for (uint32_t i = 0; i < binding->output_count; i++)
        if (binding->outputs[i].spec->kind == PIPELINE_TOKENS) return true;
    return false;
}

static uint32_t padded_length(const struct token_padding *padding, uint32_t longest) {
    if (padding->fixed_length > longest) longest = padding->fixed_length;
    const uint32_t multiple = padding->multiple_of > 1 ? padding->multiple_of : 1;
    return (longest + multiple - 1) / multiple * multiple;
}

enum status preprocess_texts(const struct prepare *at) {
    const struct bound_text *text = &at->input->text;
    const char *second_name = at->input->spec->text.pair;
    struct request *request = at->request;
    const uint32_t rows = request->prepared_rows;
    const char *element = preprocess_input(request, at->input->spec->name)->data;
    const char *other = second_name != NULL ? preprocess_input(request, second_name)->data : NULL;
    uint64_t since_ns = mono_ns();
    struct view second;
    const struct encode_options options = {.pair = other != NULL ? &second : NULL,
                                           .max_tokens = text->max_tokens,
                                           .wants_offsets = wants_offsets(at)};
    at->out->encodings = arena_array(&request->arena, rows, sizeof *at->out->encodings);
    if (at->out->encodings == NULL) return err_set(&request->err, ST_NO_MEMORY, "no memory for tokens");
    uint32_t longest = 1;
    for (uint32_t r = 0; r < rows; r++) {
        struct encoding *encoding = &at->out->encodings[r];
        const struct view first = preprocess_next(&element);
        if (other != NULL) second = preprocess_next(&other);
        const enum status status =
            tokenizer_encode(text->tokenizer, first, &options, &request->arena, encoding, &request->err);
        if (status != ST_OK) {
            err_prefix(&request->err, "%s[%u]", at->input->spec->name, r);
            return status;
        }
        if (encoding->count > longest) longest = encoding->count;
        request->trace.tokens += encoding->count;
    }
    longest = padded_length(&text->padding, longest);
    for (int feed = 0; feed < FEED_COUNT; feed++)
        if (!fill(at, (enum text_feed)feed, longest))
            return err_set(&request->err, ST_NO_MEMORY, "no memory for tokens");
    request->job.length = longest;
    preprocess_step(request, STEP_TOKENIZE, &since_ns);
    return ST_OK;
}

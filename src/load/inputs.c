/* Makes tensors and request bodies of the inputs, once, before the load. One thread. Invariant:
 * a body is head, id, tail, so that a request costs no rendering while time is measured.
 * Read next: target_http.c and target_engine.c, which send them. */
#include "load/inputs.h"

#include "load/plan.h"
#include "prep/base64.h"
#include "prep/tokenizer.h"
#include "proto/infer_json.h"

#include <jansson.h>
#include <stdlib.h>

/* Stands in the rendered body where each request's own id will be. */
static const char ID_MARK[] = "\"telltale-bench-id\"";

void inputs_done(struct inputs *inputs) {
    free(inputs->order);
    arena_done(&inputs->arena);
    *inputs = (struct inputs){0};
}

static enum status no_memory(struct err *err) {
    return err_set(err, ST_NO_MEMORY, "out of memory for the inputs");
}

/* A tensor of the spec's name, shape with 1 for every free dimension, data zeroed. */
MUST_CHECK static enum status shape_tensor(const struct input_spec *spec, struct arena *arena,
                                           size_t *out_count, struct tensor *out,
                                           struct err *err) {
    *out = (struct tensor){.name = spec->name, .dtype = spec->dtype, .rank = spec->rank};
    for (uint32_t i = 0; i < spec->rank; i++)
        out->shape[i] = spec->shape[i] < 0 ? 1 : spec->shape[i];
    if (!tensor_elements(out->shape, out->rank, out_count))
        return err_set(err, ST_INVALID, "input %.*s: its shape is too large to fill",
                       VIEW_ARGS(spec->name));
    /* There are 64 random inputs, and they are held as tensors and as bodies. */
    const size_t most = (size_t)32 << 20, text = 400; /* bytes that a random text may have */
    if (*out_count > most / (spec->dtype == DTYPE_BYTES ? text : dtype_size(spec->dtype)))
        return err_set(err, ST_INVALID,
                       "input %.*s: %zu elements are too many to make up (32 MiB at most): give real "
                       "inputs with --input", VIEW_ARGS(spec->name), *out_count);
    out->size = *out_count * dtype_size(spec->dtype);
    out->data = arena_zalloc(arena, out->size);
    return out->data == NULL ? no_memory(err) : ST_OK;
}

/* A BYTES tensor of one element: data is its length and its bytes. */
MUST_CHECK static enum status element_tensor(const struct input_spec *spec, struct view element,
                                             struct tensor *out, struct err *err) {
    *out = (struct tensor){.name = spec->name, .dtype = DTYPE_BYTES, .rank = spec->rank,
                           .data = element.data, .size = element.size};
    size_t count;
    for (uint32_t i = 0; i < spec->rank; i++)
        out->shape[i] = spec->shape[i] < 0 ? 1 : spec->shape[i];
    if (!tensor_elements(out->shape, out->rank, &count) || count != 1)
        return err_set(err, ST_UNSUPPORTED, "input %.*s takes %zu elements at once, not one",
                       VIEW_ARGS(spec->name), count);
    return ST_OK;
}

MUST_CHECK static enum status text_tensor(const struct input_spec *spec, struct view text,
                                          struct arena *arena, struct tensor *out,
                                          struct err *err) {
    uint32_t length = (uint32_t)text.size;
    char *data = arena_alloc(arena, sizeof length + text.size);
    if (data == NULL) return no_memory(err);
    memcpy(data, &length, sizeof length);
    if (text.size > 0) memcpy(data + sizeof length, text.data, text.size);
    return element_tensor(spec, (struct view){data, sizeof length + text.size}, out, err);
}

/* Random values that models bear: floats from 0 to 1, integers small enough to be ids. */
static void fill_random(struct tensor *tensor, size_t count, struct rng *rng) {
    unsigned char *bytes = (unsigned char *)(uintptr_t)tensor->data;
    size_t width = dtype_size(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        float as_float = (float)rng_uniform(rng);
        double as_double = as_float;
        uint64_t as_int = rng_below(rng, tensor->dtype == DTYPE_BOOL ? 2 : 100);
        uint16_t as_half = (uint16_t)(tensor->dtype == DTYPE_FP16 ? 0x3800 : 0x3f00); /* 0.5 */
        const void *value = &as_int;
        if (tensor->dtype == DTYPE_FP32) value = &as_float;
        if (tensor->dtype == DTYPE_FP64) value = &as_double;
        if (tensor->dtype == DTYPE_FP16 || tensor->dtype == DTYPE_BF16) value = &as_half;
        memcpy(bytes + i * width, value, width); /* little endian: the low bytes */
    }
}

static void random_words(struct buf *out, struct rng *rng) {
    static const char *const WORDS[] = {"the", "quick", "brown", "fox", "jumps", "over", "a",
                                        "lazy", "dog", "and", "runs", "away"};
    uint64_t words = 4 + rng_below(rng, 60);
    for (uint64_t i = 0; i < words; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : " ",
                   WORDS[rng_below(rng, sizeof WORDS / sizeof WORDS[0])]);
}

MUST_CHECK static enum status random_texts(const struct input_spec *spec, struct rng *rng,
                                           struct arena *arena, struct tensor *out,
                                           struct err *err) {
    size_t count = 0;
    enum status status = shape_tensor(spec, arena, &count, out, err);
    if (status != ST_OK) return status;
    struct buf text, elements;
    buf_init(&text);
    buf_init(&elements);
    for (size_t i = 0; i < count && !elements.failed && !text.failed; i++) {
        buf_clear(&text);
        random_words(&text, rng);
        buf_append(&elements, &(uint32_t){(uint32_t)text.size}, sizeof(uint32_t));
        buf_append(&elements, text.data, text.size);
    }
    char *data = arena_copy(arena, buf_view(&elements));
    if (text.failed || elements.failed || data == NULL) status = no_memory(err);
    out->data = data;
    out->size = elements.size;
    buf_done(&elements);
    buf_done(&text);
    return status;
}

MUST_CHECK static enum status make_random(struct inputs *inputs, struct input *input,
                                          struct input_shape shape, struct rng *rng,
                                          struct err *err) {
    input->tensors = arena_array(&inputs->arena, shape.count, sizeof *input->tensors);
    if (input->tensors == NULL) return no_memory(err);
    for (uint32_t i = 0; i < shape.count; i++) {
        struct tensor *tensor = &input->tensors[i];
        enum status status;
        if (shape.specs[i].dtype == DTYPE_BYTES) {
            status = random_texts(&shape.specs[i], rng, &inputs->arena, tensor, err);
        } else {
            size_t count = 0;
            status = shape_tensor(&shape.specs[i], &inputs->arena, &count, tensor, err);
            if (status == ST_OK) fill_random(tensor, count, rng);
        }
        if (status != ST_OK) return status;
    }
    input->tensor_count = shape.count;
    return ST_OK;
}

/* The first, or NULL. */
static const struct input_spec *bytes_input(struct input_shape shape) {
    for (uint32_t i = 0; i < shape.count; i++)
        if (shape.specs[i].dtype == DTYPE_BYTES) return &shape.specs[i];
    return NULL;
}

MUST_CHECK static enum status make_image(struct inputs *inputs, struct input *input,
                                         struct input_shape shape, struct err *err) {
    const struct input_spec *spec = bytes_input(shape);
    if (spec == NULL)
        return err_set(err, ST_INVALID,
                       "the model takes no pictures (no BYTES input): give it a pipeline.yaml with "
                       "an image among its inputs, or send tensors with --input json:FILE");
    input->tensors = arena_array(&inputs->arena, 1, sizeof *input->tensors);
    if (input->tensors == NULL) return no_memory(err);
    input->tensor_count = 1;
    struct view element = {input->raw.data - sizeof(uint32_t), input->raw.size + sizeof(uint32_t)};
    return element_tensor(spec, element, &input->tensors[0], err);
}

MUST_CHECK static enum status make_text(struct inputs *inputs, struct input *input,
                                        struct input_shape shape, struct err *err) {
    const struct input_spec *text = bytes_input(shape);
    if (text == NULL)
        return err_set(err, ST_INVALID,
                       "the model takes no text (no BYTES input): give it a tokenizer, or send "
                       "ids with --tokens --tokenizer FILE");
    input->tensors = arena_array(&inputs->arena, 1, sizeof *input->tensors);
    if (input->tensors == NULL) return no_memory(err);
    input->tensor_count = 1;
    return text_tensor(text, input->raw, &inputs->arena, &input->tensors[0], err);
}

static const char *const ID_INPUTS[] = {"input_ids", "attention_mask", "token_type_ids"};

/* Which of the three a model takes. One that shows only TEXT does not say: all three then. */
static bool takes_id_input(struct input_shape shape, const char *name) {
    bool shows_any = false;
    for (uint32_t i = 0; i < shape.count; i++) {
        if (view_is(shape.specs[i].name, name)) return true;
        for (size_t k = 0; k < 3; k++) shows_any |= view_is(shape.specs[i].name, ID_INPUTS[k]);
    }
    return !shows_any;
}

MUST_CHECK static enum status make_ids(struct inputs *inputs, struct input *input,
                                       struct input_shape shape, const struct encoding *ids,
                                       struct err *err) {
    input->tensors = arena_array(&inputs->arena, 3, sizeof *input->tensors);
    int64_t *mask = arena_array(&inputs->arena, ids->count, sizeof *mask);
    if (input->tensors == NULL || mask == NULL) return no_memory(err);
    for (uint32_t i = 0; i < ids->count; i++) mask[i] = 1;
    const int64_t *data[] = {ids->ids, mask, ids->type_ids};
    for (size_t k = 0; k < 3; k++) {
        if (!takes_id_input(shape, ID_INPUTS[k])) continue;
        input->tensors[input->tensor_count++] = (struct tensor){
            .name = view_of(ID_INPUTS[k]),
            .dtype = DTYPE_INT64,
            .rank = 2,
            .shape = {1, ids->count},
            .data = data[k],
            .size = ids->count * sizeof(int64_t),
        };
    }
    return ST_OK;
}

/* In process there is no parser on the way: ready bodies become tensors here. */
MUST_CHECK static enum status make_from_body(struct inputs *inputs, struct input *input,
                                             struct err *err) {
    char *padded = arena_zalloc(&inputs->arena, input->raw.size + 64);
    if (padded == NULL) return no_memory(err);
    memcpy(padded, input->raw.data, input->raw.size);
    struct infer_request request;
    struct view body = {.data = padded, .size = input->raw.size};
    enum status status = infer_request_parse(body, body.size, &inputs->arena, &request, err);
    if (status != ST_OK) return status;
    input->tensors = request.inputs;
    input->tensor_count = request.input_count;
    return ST_OK;
}

MUST_CHECK static enum status make_one(struct inputs *inputs, struct input *input,
                                       struct input_shape shape,
                                       const struct tokenizer *tokenizer, uint32_t max_tokens,
                                       struct rng *rng, struct err *err) {
    if (inputs->kind == INPUT_RANDOM) return make_random(inputs, input, shape, rng, err);
    if (inputs->kind == INPUT_JSON) return make_from_body(inputs, input, err);
    if (inputs->kind == INPUT_IMAGE) return make_image(inputs, input, shape, err);
    struct encoding ids = {0};
    if (tokenizer != NULL) {
        enum status status =
            tokenizer_encode(tokenizer, input->raw, &(struct encode_options){.max_tokens = max_tokens},
                             &inputs->arena, &ids, err);
        if (status != ST_OK) return no_memory(err);
        input->tokens = ids.count;
    }
    if (inputs->as_tokens) return make_ids(inputs, input, shape, &ids, err);
    return make_text(inputs, input, shape, err);
}

enum status inputs_make_tensors(struct inputs *inputs, struct input_shape shape,
                                const struct tokenizer *tokenizer, bool as_tokens,
                                uint32_t max_tokens, uint64_t seed, struct err *err) {
    if (as_tokens && inputs->kind != INPUT_TEXT)
        return err_set(err, ST_INVALID, "--tokens needs --input text:PATH");
    if (as_tokens && tokenizer == NULL)
        return err_set(err, ST_INVALID, "--tokens needs --tokenizer FILE");
    inputs->as_tokens = as_tokens;
    struct rng rng;
    rng_seed(&rng, seed, UINT64_MAX);
    for (size_t i = 0; i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        enum status status = make_one(inputs, input, shape, tokenizer, max_tokens, &rng, err);
        if (status != ST_OK) {
            err_prefix(err, "input %zu of --input %s", i + 1, inputs->source);
            return status;
        }
    }
    return ST_OK;
}

/* Cuts a rendered body at the id's place. */
MUST_CHECK static enum status split_body(struct inputs *inputs, struct input *input,
                                         struct view body, size_t json_size, struct err *err) {
    size_t mark_size = sizeof ID_MARK - 1;
    char *copy = arena_alloc(&inputs->arena, body.size);
    if (copy == NULL) return no_memory(err);
    memcpy(copy, body.data, body.size);
    char *mark = memmem(copy, body.size, ID_MARK, mark_size);
    if (mark == NULL) return err_set(err, ST_INTERNAL, "the rendered request has no id");
    size_t head = (size_t)(mark - copy) + 1; /* the opening quote stays */
    input->body_head = (struct view){.data = copy, .size = head};
    input->body_tail =
        (struct view){.data = mark + mark_size - 1, .size = body.size - head - mark_size + 2};
    input->json_size = json_size == 0 ? 0 : json_size - (mark_size - 2);
    return ST_OK;
}

/* A ready body gets our id in place of its own, if any. */
MUST_CHECK static enum status render_ready(struct inputs *inputs, struct input *input,
                                           struct err *err) {
    json_error_t where;
    json_t *body = json_loadb(input->raw.data, input->raw.size, 0, &where);
    if (!json_is_object(body)) {
        json_decref(body);
        return err_set(err, ST_INVALID, "not a JSON object: line %d: %s", where.line, where.text);
    }
    (void)json_object_del(body, "id");
    json_t *whole = json_pack("{s:s%}", "id", ID_MARK + 1, sizeof ID_MARK - 3);
    char *text = NULL;
    if (whole != NULL && json_object_update(whole, body) == 0)
        text = json_dumps(whole, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(whole);
    json_decref(body);
    if (text == NULL) return no_memory(err);
    enum status status = split_body(inputs, input, view_of(text), 0, err);
    free(text);
    return status;
}

/* The picture's tensor with base64 for its bytes, into *out_element, which the caller frees. */
MUST_CHECK static enum status base64_tensor(const struct input *input, char **out_element,
                                            struct tensor *out, struct err *err) {
    const uint32_t size = (uint32_t)base64_encoded_size(input->raw.size);
    char *element = malloc(sizeof size + size);
    if (element == NULL) return no_memory(err);
    memcpy(element, &size, sizeof size);
    base64_encode(input->raw, element + sizeof size);
    *out = input->tensors[0];
    out->data = element;
    out->size = sizeof size + size;
    *out_element = element;
    return ST_OK;
}

MUST_CHECK static enum status render_tensors(struct inputs *inputs, struct input *input,
                                             struct buf *body, struct err *err) {
    const struct view id = {.data = ID_MARK + 1, .size = sizeof ID_MARK - 3};
    const bool binary = inputs->is_binary;
    const struct tensor *tensors = input->tensors;
    struct tensor encoded;
    char *element = NULL;
    if (inputs->kind == INPUT_IMAGE && !binary) {
        enum status status = base64_tensor(input, &element, &encoded, err);
        if (status != ST_OK) return status;
        tensors = &encoded;
    }
    size_t json_size = 0;
    buf_clear(body);
    infer_request_write(body, id, tensors, input->tensor_count, binary, binary, &json_size);
    free(element);
    if (body->failed) return no_memory(err);
    return split_body(inputs, input, buf_view(body), binary ? json_size : 0, err);
}

enum status inputs_render(struct inputs *inputs, bool binary, struct err *err) {
    inputs->is_binary = binary && inputs->kind != INPUT_JSON;
    struct buf body;
    buf_init(&body);
    enum status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        status = inputs->kind == INPUT_JSON ? render_ready(inputs, input, err)
                                            : render_tensors(inputs, input, &body, err);
        if (status != ST_OK) err_prefix(err, "input %zu of --input %s", i + 1, inputs->source);
    }
    buf_done(&body);
    return status;
}

enum status inputs_shuffle(struct inputs *inputs, bool is_sequential, uint64_t seed,
                           struct err *err) {
    uint32_t *order = malloc(inputs->count * sizeof *order);
    if (order == NULL) return no_memory(err);
    for (size_t i = 0; i < inputs->count; i++) order[i] = (uint32_t)i;
    struct rng rng;
    rng_seed(&rng, seed, UINT64_MAX - 1);
    for (size_t i = inputs->count; !is_sequential && i > 1; i--) {
        size_t other = rng_below(&rng, i);
        uint32_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    free(inputs->order);
    inputs->order = order;
    return ST_OK;
}

static uint64_t input_bytes(const struct inputs *inputs, const struct input *input) {
    if (inputs->kind != INPUT_RANDOM) return input->raw.size;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < input->tensor_count; i++) bytes += input->tensors[i].size;
    return bytes;
}

enum status inputs_sizes(const struct inputs *inputs, struct distribution *out_bytes,
                         struct distribution *out_tokens, struct err *err) {
    uint64_t *values = malloc(inputs->count * sizeof *values);
    if (values == NULL) return no_memory(err);
    for (size_t i = 0; i < inputs->count; i++) values[i] = input_bytes(inputs, &inputs->items[i]);
    *out_bytes = distribution_of(values, inputs->count);
    size_t known = 0;
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->items[i].tokens > 0) values[known++] = inputs->items[i].tokens;
    *out_tokens = distribution_of(values, known);
    free(values);
    return ST_OK;
}

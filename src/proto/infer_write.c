/* Inference JSON, written: responses as the server sends them, requests as a client does. Any
 * thread; only the buffer allocates.
 *
 * Invariant: on failure the buffer has the size it came with.
 *
 * Read next: infer_json.cc for the other direction. */
#include "proto/infer_json.h"
#include "proto/json_text.h"

#include <math.h>

enum { PIECE_BYTES = 4096 };

/* Numbers are put together here, then appended at once. */
struct piece {
    struct buf *out;
    size_t size;
    char text[PIECE_BYTES];
};

static char *piece_room(struct piece *piece) {
    if (piece->size > PIECE_BYTES - JSON_TEXT_MAX_NUMBER - 1) {
        buf_append(piece->out, piece->text, piece->size);
        piece->size = 0;
    }
    return piece->text + piece->size;
}

static size_t text_u64(uint64_t value, char *out) {
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

static size_t text_i64(int64_t value, char *out) {
    if (value >= 0)
        return text_u64((uint64_t)value, out);
    out[0] = '-';
    return 1 + text_u64(0 - (uint64_t)value, out + 1);
}

/* Element index as text into out (at least JSON_TEXT_MAX_NUMBER); 0: not finite. The data may be
 * anywhere, so elements are copied out. */
static size_t number_text(const struct tensor *tensor, size_t index, char *out) {
    const char *at = (const char *)tensor->data + index * dtype_size(tensor->dtype);
    switch (tensor->dtype) {
#define INTEGER(dtype, type, text)                                                             \
    case DTYPE_##dtype: {                                                                      \
        type value;                                                                            \
        memcpy(&value, at, sizeof value);                                                      \
        return text(value, out);                                                               \
    }
#define FLOAT(dtype, type, text)                                                               \
    case DTYPE_##dtype: {                                                                      \
        type value;                                                                            \
        memcpy(&value, at, sizeof value);                                                      \
        return isfinite(value) ? text(value, out) : 0;                                         \
    }
        INTEGER(UINT8, uint8_t, text_u64)
        INTEGER(UINT16, uint16_t, text_u64)
        INTEGER(UINT32, uint32_t, text_u64)
        INTEGER(UINT64, uint64_t, text_u64)
        INTEGER(INT8, int8_t, text_i64)
        INTEGER(INT16, int16_t, text_i64)
        INTEGER(INT32, int32_t, text_i64)
        INTEGER(INT64, int64_t, text_i64)
        FLOAT(FP32, float, json_text_f32)
        FLOAT(FP64, double, json_text_f64)
#undef INTEGER
#undef FLOAT
    default: /* BOOL */
        memcpy(out, *at ? "true" : "false", 5);
        return *at ? 4 : 5;
    }
}

/* False at the first element that is NaN or infinite (*out_bad: its index). */
static bool write_numbers(struct buf *out, const struct tensor *tensor, size_t count,
                          size_t *out_bad) {
    struct piece piece;
    piece.out = out;
    piece.size = 0;
    for (size_t i = 0; i < count; i++) {
        char *to = piece_room(&piece);
        if (i > 0) {
            *to++ = ',';
            piece.size++;
        }
        const size_t n = number_text(tensor, i, to);
        if (n == 0) {
            *out_bad = i;
            return false;
        }
        piece.size += n;
    }
    buf_append(out, piece.text, piece.size);
    return true;
}

static bool write_strings(struct buf *out, const struct tensor *tensor, size_t count,
                          size_t *out_bad) {
    const char *at = tensor->data;
    for (size_t i = 0; i < count; i++) { /* checked by tensor_bytes_valid */
        uint32_t size;
        memcpy(&size, at, sizeof size);
        if (!json_text_is_utf8(at + 4, size)) {
            *out_bad = i;
            return false;
        }
        if (i > 0)
            buf_char(out, ',');
        buf_json_string(out, (struct view){.data = at + 4, .size = size});
        at += 4 + (size_t)size;
    }
    return true;
}

static enum status write_data(struct buf *out, const struct tensor *tensor, size_t count,
                              struct err *err) {
    size_t bad = 0;
    if (tensor->dtype == DTYPE_FP16 || tensor->dtype == DTYPE_BF16)
        return err_set(err, ST_INVALID, "tensor %.*s is %s, which JSON cannot carry: ask for "
                                        "binary_data",
                       VIEW_ARGS(tensor->name), dtype_name(tensor->dtype));
    buf_text(out, ",\"data\":[");
    if (tensor->dtype == DTYPE_BYTES) {
        if (!write_strings(out, tensor, count, &bad))
            return err_set(err, ST_INVALID, "tensor %.*s: element %zu is not UTF-8, which JSON "
                                            "cannot carry: ask for binary_data",
                           VIEW_ARGS(tensor->name), bad);
    } else if (!write_numbers(out, tensor, count, &bad)) {
        return err_set(err, ST_INVALID, "tensor %.*s: element %zu is NaN or infinite, which JSON "
                                        "cannot carry: ask for binary_data",
                       VIEW_ARGS(tensor->name), bad);
    }
    buf_char(out, ']');
    return ST_OK;
}

static void write_place(struct buf *out, const struct shared_place *place, size_t size) {
    buf_text(out, ",\"parameters\":{\"shared_memory_region\":");
    buf_json_string(out, place->region);
    if (place->offset) {
        buf_text(out, ",\"shared_memory_offset\":");
        buf_u64(out, place->offset);
    }
    buf_text(out, ",\"shared_memory_byte_size\":");
    buf_u64(out, size);
    buf_char(out, '}');
}

static enum status write_tensor(struct buf *out, const struct infer_output *output,
                                struct err *err) {
    const struct tensor *tensor = &output->tensor;
    size_t count = 0;
    const size_t width = dtype_size(tensor->dtype);
    if (!tensor_elements(tensor->shape, tensor->rank, &count) ||
        (width > 0 ? tensor->size / width != count || tensor->size % width != 0
                   : !tensor_bytes_valid(tensor->data, tensor->size, count)))
        return err_set(err, ST_INTERNAL, "tensor %.*s: %zu bytes do not fit its shape",
                       VIEW_ARGS(tensor->name), tensor->size);
    buf_text(out, "{\"name\":");
    buf_json_string(out, tensor->name);
    buf_text(out, ",\"datatype\":\"");
    buf_text(out, dtype_name(tensor->dtype));
    buf_text(out, "\",\"shape\":[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (i > 0)
            buf_char(out, ',');
        buf_i64(out, tensor->shape[i]);
    }
    buf_char(out, ']');
    enum status status = ST_OK;
    if (output->shared) {
        write_place(out, output->shared, tensor->size);
    } else if (output->binary) {
        buf_text(out, ",\"parameters\":{\"binary_data_size\":");
        buf_u64(out, tensor->size);
        buf_char(out, '}');
    } else {
        status = write_data(out, tensor, count, err);
    }
    buf_char(out, '}');
    return status;
}

static void write_member(struct buf *out, const char *name, struct view text) {
    if (text.size == 0)
        return;
    buf_char(out, '"');
    buf_text(out, name);
    buf_text(out, "\":");
    buf_json_string(out, text);
    buf_char(out, ',');
}

static bool is_sent_binary(const struct infer_output *output) {
    return output->binary && !output->shared;
}

enum status infer_response_write(struct buf *out, struct view model_name, struct view model_version,
                                 struct view id, const struct infer_output *outputs,
                                 uint32_t count, const char *parameters, size_t *out_json_size,
                                 struct err *err) {
    const size_t start = out->size;
    bool any_binary = false;
    buf_char(out, '{');
    write_member(out, "model_name", model_name);
    write_member(out, "model_version", model_version);
    write_member(out, "id", id);
    if (parameters) {
        buf_text(out, "\"parameters\":{");
        buf_text(out, parameters);
        buf_text(out, "},");
    }
    buf_text(out, "\"outputs\":[");
    enum status status = ST_OK;
    for (uint32_t i = 0; i < count && status == ST_OK; i++) {
        if (i > 0)
            buf_char(out, ',');
        any_binary |= is_sent_binary(&outputs[i]);
        status = write_tensor(out, &outputs[i], err);
    }
    buf_text(out, "]}");
    const size_t json_size = out->size - start;
    for (uint32_t i = 0; i < count && status == ST_OK; i++)
        if (is_sent_binary(&outputs[i]) && outputs[i].tensor.size > 0)
            buf_append(out, outputs[i].tensor.data, outputs[i].tensor.size);
    if (status == ST_OK && out->failed)
        status = err_set(err, ST_NO_MEMORY, "no memory for the response");
    if (status != ST_OK) {
        out->size = start;
        return status;
    }
    *out_json_size = any_binary ? json_size : 0;
    return ST_OK;
}

static bool must_be_binary(const struct tensor *tensor) {
    return tensor->dtype == DTYPE_FP16 || tensor->dtype == DTYPE_BF16;
}

void infer_request_write(struct buf *out, struct view id, const struct tensor *inputs,
                         uint32_t input_count, bool binary, bool want_binary_output,
                         size_t *out_json_size) {
    const size_t start = out->size;
    buf_char(out, '{');
    write_member(out, "id", id);
    if (want_binary_output)
        buf_text(out, "\"parameters\":{\"binary_data_output\":true},");
    buf_text(out, "\"inputs\":[");
    bool is_good = true;
    for (uint32_t i = 0; i < input_count && is_good; i++) {
        if (i > 0)
            buf_char(out, ',');
        const struct infer_output input = {.tensor = inputs[i],
                                           .binary = binary || must_be_binary(&inputs[i])};
        is_good = write_tensor(out, &input, NULL) == ST_OK;
    }
    buf_text(out, "]}");
    *out_json_size = out->size - start;
    for (uint32_t i = 0; i < input_count && is_good; i++)
        if ((binary || must_be_binary(&inputs[i])) && inputs[i].size > 0)
            buf_append(out, inputs[i].data, inputs[i].size);
    if (!is_good) {
        out->size = start;
        out->failed = true;
    }
}

/* Typed contents (bool_contents, int_contents ...) to a tensor's bytes. Pure.
 *
 * FP32 and FP64 that come packed are a tensor's bytes as they are; everything else is converted.
 * Invariant: exactly as many elements as the shape has, each in its datatype's range.
 * Read next: infer_pb.c. */
#include "proto/infer_pb_private.h"

#include <inttypes.h>
#include <string.h>

enum { CONTENTS = 5 }; /* of InferInputTensor */

struct view infer_pb_contents(struct view input) {
    struct pb_reader reader = pb_reader_of(input);
    struct pb_field field;
    struct view contents = {.data = "", .size = 0};
    while (pb_next(&reader, &field))
        if (field.number == CONTENTS && field.wire == PB_BYTES)
            contents = field.bytes;
    return contents;
}

struct content_kind {
    const char *name;
    enum pb_wire wire; /* of an element that is not packed */
};

static const struct content_kind KINDS[] = {
    {"", PB_VARINT},
    {"bool_contents", PB_VARINT},   {"int_contents", PB_VARINT},
    {"int64_contents", PB_VARINT},  {"uint_contents", PB_VARINT},
    {"uint64_contents", PB_VARINT}, {"fp32_contents", PB_FIXED32},
    {"fp64_contents", PB_FIXED64},  {"bytes_contents", PB_BYTES}};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0], KIND_BYTES = 8 };

/* The field that holds elements of the datatype; 0: they come raw only. */
static uint32_t kind_of(enum dtype dtype) {
    static const unsigned char BY_DTYPE[DTYPE_COUNT] = {
        [DTYPE_BOOL] = 1,  [DTYPE_INT8] = 2,   [DTYPE_INT16] = 2,  [DTYPE_INT32] = 2,
        [DTYPE_INT64] = 3, [DTYPE_UINT8] = 4,  [DTYPE_UINT16] = 4, [DTYPE_UINT32] = 4,
        [DTYPE_UINT64] = 5, [DTYPE_FP32] = 6,  [DTYPE_FP64] = 7,   [DTYPE_BYTES] = KIND_BYTES};
    return BY_DTYPE[dtype];
}

struct counts {
    size_t elements;
    size_t bytes;        /* of the elements themselves */
    struct view packed;  /* the last packed run */
    uint32_t runs;       /* packed runs and single elements */
};

/* Counts the elements of one kind; *out_other gets another kind that has some. */
static bool count_elements(struct view contents, uint32_t kind, struct counts *out,
                           uint32_t *out_other) {
    struct pb_reader reader = pb_reader_of(contents);
    struct pb_field field;
    *out = (struct counts){.elements = 0};
    *out_other = 0;
    while (pb_next(&reader, &field)) {
        if (field.number >= KIND_COUNT)
            continue;
        const bool is_packed = field.wire == PB_BYTES && field.number != KIND_BYTES;
        if (!is_packed && field.wire != KINDS[field.number].wire)
            return false;
        if (field.number != kind) {
            if (!is_packed || field.bytes.size)
                *out_other = field.number;
            continue;
        }
        out->runs++;
        out->bytes += field.bytes.size;
        if (!is_packed) {
            out->elements++;
            continue;
        }
        out->packed = field.bytes;
        if (KINDS[kind].wire == PB_VARINT) {
            for (size_t i = 0; i < field.bytes.size; i++)
                out->elements += (unsigned char)field.bytes.data[i] < 0x80;
        } else {
            const size_t unit = KINDS[kind].wire == PB_FIXED32 ? 4 : 8;
            if (field.bytes.size % unit)
                return false;
            out->elements += field.bytes.size / unit;
        }
    }
    return !reader.is_malformed;
}

/* Writes value as an element; false: not in the datatype's range. */
static bool put_number(char *to, enum dtype dtype, uint64_t value) {
    const int64_t number = (int64_t)value;
    const uint32_t unsigned32 = (uint32_t)value;
    switch (dtype) {
    case DTYPE_BOOL:
        *to = value != 0;
        return true;
    case DTYPE_INT8:
        *to = (char)number;
        return number >= INT8_MIN && number <= INT8_MAX;
    case DTYPE_INT16:
        memcpy(to, &(int16_t){(int16_t)number}, 2);
        return number >= INT16_MIN && number <= INT16_MAX;
    case DTYPE_INT32:
        memcpy(to, &(int32_t){(int32_t)number}, 4);
        return number >= INT32_MIN && number <= INT32_MAX;
    case DTYPE_UINT8:
        *to = (char)value;
        return value <= UINT8_MAX;
    case DTYPE_UINT16:
        memcpy(to, &(uint16_t){(uint16_t)value}, 2);
        return value <= UINT16_MAX;
    case DTYPE_UINT32:
        memcpy(to, &unsigned32, 4);
        return value <= UINT32_MAX;
    default:
        memcpy(to, &value, dtype_size(dtype));
        return true;
    }
}

struct filling {
    const struct infer_pb_place *at;
    const struct tensor *tensor;
    char *to;
    size_t index;
};

static enum status put(struct filling *fill, uint64_t value, struct err *err) {
    if (!put_number(fill->to, fill->tensor->dtype, value)) {
        (void)err_set(err, ST_INVALID, "element %zu, %" PRId64 ", is out of %s's range",
                      fill->index, (int64_t)value, dtype_name(fill->tensor->dtype));
        return infer_pb_fail(fill->at, ST_INVALID, err);
    }
    fill->to += dtype_size(fill->tensor->dtype);
    fill->index++;
    return ST_OK;
}

static enum status put_packed(struct filling *fill, struct view run, enum pb_wire wire,
                              struct err *err) {
    if (wire != PB_VARINT) { /* fixed-size elements are the tensor's bytes */
        memcpy(fill->to, run.data, run.size);
        fill->to += run.size;
        return ST_OK;
    }
    struct pb_reader reader = pb_reader_of(run);
    uint64_t value = 0;
    enum status status = ST_OK;
    while (status == ST_OK && pb_next_varint(&reader, &value))
        status = put(fill, value, err);
    if (status == ST_OK && reader.is_malformed) {
        (void)err_set(err, ST_INVALID, "contents are malformed");
        return infer_pb_fail(fill->at, ST_INVALID, err);
    }
    return status;
}

static enum status put_all(struct filling *fill, struct view contents, uint32_t kind,
                           struct err *err) {
    struct pb_reader reader = pb_reader_of(contents);
    struct pb_field field;
    enum status status = ST_OK;
    while (status == ST_OK && pb_next(&reader, &field)) {
        if (field.number != kind)
            continue;
        if (kind == KIND_BYTES) {
            const uint32_t length = (uint32_t)field.bytes.size;
            memcpy(fill->to, &length, sizeof length);
            if (length)
                memcpy(fill->to + sizeof length, field.bytes.data, length);
            fill->to += sizeof length + length;
        } else if (field.wire == PB_BYTES) {
            status = put_packed(fill, field.bytes, KINDS[kind].wire, err);
        } else {
            status = put(fill, field.value, err);
        }
    }
    return status;
}

static enum status check_counts(const struct infer_pb_place *at, const struct tensor *tensor,
                                uint32_t kind, uint32_t other, size_t elements, struct err *err) {
    size_t needed = 0;
    char shape[96];
    (void)tensor_elements(tensor->shape, tensor->rank, &needed);
    if (kind == 0 && needed)
        (void)err_set(err, ST_INVALID, "%s goes in raw_input_contents only",
                      dtype_name(tensor->dtype));
    else if (other)
        (void)err_set(err, ST_INVALID, "%s is given for datatype %s, which goes in %s",
                      KINDS[other].name, dtype_name(tensor->dtype),
                      kind ? KINDS[kind].name : "raw_input_contents");
    else if (elements != needed)
        (void)err_set(err, ST_INVALID, "%s has %zu elements, shape %s needs %zu",
                      KINDS[kind].name, elements,
                      tensor_shape_text(tensor->shape, tensor->rank, shape, sizeof shape), needed);
    else
        return ST_OK;
    return infer_pb_fail(at, ST_INVALID, err);
}

enum status infer_pb_read_contents(const struct infer_pb_place *at, struct view contents,
                                   struct arena *arena, struct tensor *tensor, struct err *err) {
    const uint32_t kind = kind_of(tensor->dtype);
    struct counts counts;
    uint32_t other = 0;
    if (!count_elements(contents, kind, &counts, &other)) {
        (void)err_set(err, ST_INVALID, "contents are malformed");
        return infer_pb_fail(at, ST_INVALID, err);
    }
    const enum status status = check_counts(at, tensor, kind, other, counts.elements, err);
    if (status != ST_OK)
        return status;
    const size_t unit = dtype_size(tensor->dtype);
    tensor->size = unit ? counts.elements * unit : counts.bytes + 4 * counts.elements;
    if (counts.runs == 1 && counts.packed.data && KINDS[kind].wire != PB_VARINT) {
        tensor->data = counts.packed.data;
        return ST_OK;
    }
    char *data = arena_alloc(arena, tensor->size);
    if (!data) {
        (void)err_set(err, ST_NO_MEMORY, "no memory for %zu bytes", tensor->size);
        return infer_pb_fail(at, ST_NO_MEMORY, err);
    }
    tensor->data = data;
    struct filling fill = {.at = at, .tensor = tensor, .to = data};
    return put_all(&fill, contents, kind, err);
}

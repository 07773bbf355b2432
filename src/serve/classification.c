/* The largest elements of an output. Any thread.
 *
 * Invariant: elements are compared exactly, by keys of 64 bits that are ordered as the elements of
 * their datatype are: 2^63 and 2^63 + 1 are told apart.
 * Read next: infer_tensors.c (who asks for it). */
#include "serve/classification.h"

#include "base/buf.h"
#include "proto/infer_json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t SIGN = UINT64_C(1) << 63;

static uint64_t key_of_double(double value) {
    uint64_t bits = 0;
    if (isnan(value))
        return 0;
    if (value == 0)
        value = 0; /* -0 too */
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

static uint64_t key_of_signed(int64_t value) {
    return (uint64_t)value ^ SIGN;
}

static double double_of_half(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const double fraction = bits & 0x3ff;
    double value = exponent ? ldexp(fraction + 1024, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 0x1f)
        value = fraction > 0 ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -value : value;
}

static double double_of_bfloat(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* A tensor's bytes may be anywhere: elements are copied out. */
#define ELEMENT(type)                                                                          \
    type value;                                                                                \
    memcpy(&value, (const char *)scores->data + index * sizeof value, sizeof value)

static double double_at(const struct tensor *scores, size_t index) {
    switch (scores->dtype) {
    case DTYPE_FP16: {
        ELEMENT(uint16_t);
        return double_of_half(value);
    }
    case DTYPE_BF16: {
        ELEMENT(uint16_t);
        return double_of_bfloat(value);
    }
    case DTYPE_FP32: {
        ELEMENT(float);
        return value;
    }
    default: {
        ELEMENT(double);
        return value;
    }
    }
}

static int64_t signed_at(const struct tensor *scores, size_t index) {
    switch (scores->dtype) {
    case DTYPE_INT8: {
        ELEMENT(int8_t);
        return value;
    }
    case DTYPE_INT16: {
        ELEMENT(int16_t);
        return value;
    }
    case DTYPE_INT32: {
        ELEMENT(int32_t);
        return value;
    }
    default: {
        ELEMENT(int64_t);
        return value;
    }
    }
}

static uint64_t unsigned_at(const struct tensor *scores, size_t index) {
    switch (scores->dtype) {
    case DTYPE_UINT16: {
        ELEMENT(uint16_t);
        return value;
    }
    case DTYPE_UINT32: {
        ELEMENT(uint32_t);
        return value;
    }
    case DTYPE_UINT64: {
        ELEMENT(uint64_t);
        return value;
    }
    default: { /* UINT8, BOOL */
        ELEMENT(uint8_t);
        return value;
    }
    }
}
#undef ELEMENT

enum kind { KIND_FLOAT, KIND_SIGNED, KIND_UNSIGNED };

static enum kind kind_of(enum dtype dtype) {
    if (dtype == DTYPE_FP16 || dtype == DTYPE_BF16 || dtype == DTYPE_FP32 || dtype == DTYPE_FP64)
        return KIND_FLOAT;
    if (dtype == DTYPE_INT8 || dtype == DTYPE_INT16 || dtype == DTYPE_INT32 || dtype == DTYPE_INT64)
        return KIND_SIGNED;
    return KIND_UNSIGNED;
}

struct ranked {
    uint64_t key;
    uint32_t index;
};

static bool comes_first(struct ranked a, struct ranked b) {
    return a.key != b.key ? a.key > b.key : a.index < b.index;
}

static int by_rank(const void *a, const void *b) {
    const struct ranked left = *(const struct ranked *)a;
    const struct ranked right = *(const struct ranked *)b;
    return comes_first(left, right) ? -1 : comes_first(right, left);
}

/* A heap with the last of the best so far at its root: an element that comes before it takes its
 * place and sinks. */
static void sink(struct ranked *heap, size_t count) {
    const struct ranked moved = heap[0];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_first(heap[child], heap[child + 1]))
            child++;
        if (!comes_first(moved, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static struct ranked rank_at(const struct tensor *scores, size_t first, size_t index) {
    struct ranked out = {.index = (uint32_t)index};
    switch (kind_of(scores->dtype)) {
    case KIND_FLOAT: out.key = key_of_double(double_at(scores, first + index)); break;
    case KIND_SIGNED: out.key = key_of_signed(signed_at(scores, first + index)); break;
    case KIND_UNSIGNED: out.key = unsigned_at(scores, first + index); break;
    }
    return out;
}

/* best has room for top; in order when this returns. */
static void take_best(const struct tensor *scores, size_t first, size_t count, struct ranked *best,
                      size_t top) {
    for (size_t i = 0; i < top; i++)
        best[i] = rank_at(scores, first, i);
    qsort(best, top, sizeof *best, by_rank);
    if (top == count)
        return;
    /* Backwards it is such a heap. */
    for (size_t i = 0; i < top / 2; i++) {
        const struct ranked swapped = best[i];
        best[i] = best[top - 1 - i];
        best[top - 1 - i] = swapped;
    }
    for (size_t i = top; i < count; i++) {
        const struct ranked next = rank_at(scores, first, i);
        if (!comes_first(next, best[0]))
            continue;
        best[0] = next;
        sink(best, top);
    }
    qsort(best, top, sizeof *best, by_rank);
}

/* Six decimals, as Triton's clients are used to, where those show as many digits; else enough to
 * tell small probabilities apart. */
static int value_text(const struct tensor *scores, size_t at, char *out, size_t size) {
    switch (kind_of(scores->dtype)) {
    case KIND_FLOAT: {
        const double value = double_at(scores, at);
        const bool is_plain = value == 0 || (fabs(value) >= 0.1 && fabs(value) < 1e15);
        return snprintf(out, size, is_plain ? "%.6f" : "%.9g", value);
    }
    case KIND_SIGNED: return snprintf(out, size, "%" PRId64, signed_at(scores, at));
    default: return snprintf(out, size, "%" PRIu64, unsigned_at(scores, at));
    }
}

static void write_class(struct buf *out, const struct tensor *scores, size_t first, uint32_t index,
                        struct class_labels labels) {
    char text[64];
    int size = value_text(scores, first + index, text, sizeof text - 16);
    size += snprintf(text + size, sizeof text - (size_t)size, ":%" PRIu32, index);
    const char *label = index < labels.count ? labels.texts[index] : NULL;
    const size_t label_size = label ? strlen(label) : 0;
    const uint32_t length = (uint32_t)((size_t)size + (label_size ? label_size + 1 : 0));
    buf_append(out, &length, sizeof length);
    buf_append(out, text, (size_t)size);
    if (label_size) {
        buf_char(out, ':');
        buf_append(out, label, label_size);
    }
}

static enum status write_classes(const struct tensor *scores, size_t rows, size_t count, size_t top,
                                 struct class_labels labels, struct arena *arena, struct buf *out,
                                 struct err *err) {
    struct ranked *best = arena_array(arena, top + 1, sizeof *best);
    for (size_t row = 0; best && row < rows; row++) {
        take_best(scores, row * count, count, best, top);
        for (size_t i = 0; i < top; i++)
            write_class(out, scores, row * count, best[i].index, labels);
    }
    if (!best || out->failed)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu classes", rows * top);
    return ST_OK;
}

enum status classification_make(const struct tensor *scores, uint32_t top, bool is_batched,
                                struct class_labels labels, struct arena *arena,
                                struct tensor *out, struct err *err) {
    size_t elements = 0;
    if (scores->dtype == DTYPE_BYTES)
        return err_set(err, ST_INVALID, "output %.*s: classification needs numbers, it is BYTES",
                       VIEW_ARGS(scores->name));
    if (!tensor_elements(scores->shape, scores->rank, &elements) ||
        elements * dtype_size(scores->dtype) != scores->size)
        return err_set(err, ST_INTERNAL, "output %.*s: %zu bytes do not fit its shape",
                       VIEW_ARGS(scores->name), scores->size);
    const bool has_rows = is_batched && scores->rank > 0;
    const size_t rows = has_rows ? (size_t)scores->shape[0] : 1;
    const size_t count = rows ? elements / rows : 0;
    const size_t wanted = top < count ? top : count;
    if (count > UINT32_MAX || (wanted && rows > (size_t)INFER_MAX_CLASSES / wanted))
        return err_set(err, ST_INVALID,
                       "output %.*s: %zu classes of each of %zu rows are more than the limit of %d",
                       VIEW_ARGS(scores->name), wanted, rows, (int)INFER_MAX_CLASSES);
    struct buf bytes;
    buf_init(&bytes);
    enum status status = write_classes(scores, rows, count, wanted, labels, arena, &bytes, err);
    char *copy = status == ST_OK ? arena_alloc(arena, bytes.size) : NULL;
    if (copy && bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    if (status == ST_OK && !copy)
        status = err_set(err, ST_NO_MEMORY, "no memory for %zu classes", rows * wanted);
    if (status == ST_OK) {
        *out = (struct tensor){.name = scores->name, .dtype = DTYPE_BYTES, .data = copy,
                               .size = bytes.size, .rank = has_rows ? 2 : 1};
        out->shape[0] = (int64_t)(has_rows ? rows : wanted);
        out->shape[1] = (int64_t)(has_rows ? wanted : 0);
    }
    buf_done(&bytes);
    return status;
}

/* See gather.h. Shapes: (rows, ...), padding only along one axis, with a value other than 0 only of
 * integers (token ids). Read next: instance.c. */
#include "batch/gather.h"

#include <stdlib.h>

void gather_buffer_done(struct gather_buffer *buffer) {
    free(buffer->data);
    *buffer = (struct gather_buffer){0};
}

static bool reserve(struct gather_buffer *buffer, size_t size) {
    if (size <= buffer->capacity) return true;
    const size_t capacity = ((size + size / 2 + 63) / 64) * 64;
    char *data = aligned_alloc(64, capacity);
    if (data == NULL) return false;
    free(buffer->data);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

static bool shapes_fit(const struct tensor *a, const struct tensor *b, int32_t pad_axis) {
    if (a->rank != b->rank || a->dtype != b->dtype || a->rank == 0) return false;
    for (uint32_t d = 1; d < a->rank; d++)
        if ((int32_t)d != pad_axis && a->shape[d] != b->shape[d]) return false;
    return true;
}

/* Product of the dimensions from..to-1. */
static size_t dims_product(const struct tensor *tensor, uint32_t from, uint32_t to) {
    size_t product = 1;
    for (uint32_t d = from; d < to; d++) product *= (size_t)tensor->shape[d];
    return product;
}

static void fill(char *at, size_t count, enum dtype dtype, int64_t value) {
    if (value == 0) {
        memset(at, 0, count * dtype_size(dtype));
    } else if (dtype == DTYPE_INT64) {
        for (size_t i = 0; i < count; i++) memcpy(at + i * 8, &value, 8);
    } else { /* INT32: the only other type an axis is padded for */
        const int32_t narrow = (int32_t)value;
        for (size_t i = 0; i < count; i++) memcpy(at + i * 4, &narrow, 4);
    }
}

/* Copies the runs of `from` (its own length on the axis) to `to` with the batch's length on it. */
static char *copy_padded(char *to, const struct tensor *from, const struct padding *padding) {
    const size_t element = dtype_size(from->dtype);
    const uint32_t axis = (uint32_t)padding->axis;
    const size_t outer = dims_product(from, 0, axis);
    const size_t inner = dims_product(from, axis + 1, from->rank);
    const size_t own = (size_t)from->shape[axis] * inner;
    const size_t filled = padding->length * inner - own;
    const char *read = from->data;
    for (size_t i = 0; i < outer; i++) {
        char *const own_at = to + (padding->is_left ? filled * element : 0);
        if (own > 0) memcpy(own_at, read, own * element);
        fill(padding->is_left ? to : to + own * element, filled, from->dtype, padding->value);
        to += (own + filled) * element;
        read += own * element;
    }
    return to;
}

/* Binary tensors lie in the request's body wherever the JSON before them ends. */
static bool is_aligned(const struct tensor *tensor) {
    const size_t element = dtype_size(tensor->dtype);
    return element == 0 || (uintptr_t)tensor->data % element == 0;
}

/* The batch's tensor but for its data; whether the jobs' data lie side by side, and whether some
 * are shorter than the batch on the padded axis. False where their shapes do not fit. */
struct layout {
    struct tensor whole;
    bool is_together, is_filled_up;
};

static bool lay_out(const struct job *list, uint32_t index, const struct padding *padding,
                    struct layout *out) {
    const struct tensor *first = &list->inputs[index];
    const bool pads = padding->axis > 0 && (uint32_t)padding->axis < first->rank;
    const char *end = first->data;
    *out = (struct layout){.whole = *first, .is_together = true};
    size_t rows = 0, size = 0;
    for (const struct job *job = list; job != NULL; job = job->next) {
        const struct tensor *part = &job->inputs[index];
        if (list->next != NULL && !shapes_fit(first, part, pads ? padding->axis : -1)) return false;
        if (pads && part->shape[padding->axis] > padding->length) return false;
        out->is_filled_up |= pads && part->shape[padding->axis] < padding->length;
        if (part->size > 0) {
            out->is_together &= part->data == end;
            end = (const char *)part->data + part->size;
        }
        if (part->rank > 0) rows += (size_t)part->shape[0];
        size += part->size;
    }
    if (list->next != NULL) out->whole.shape[0] = (int64_t)rows;
    if (pads) out->whole.shape[padding->axis] = padding->length;
    out->whole.size = out->is_filled_up ? dims_product(&out->whole, 0, out->whole.rank) *
                                              dtype_size(out->whole.dtype)
                                        : size;
    return true;
}

enum status gather_input(const struct job *list, uint32_t index, const struct padding *padding,
                         struct gather_buffer *buffer, struct tensor *out, struct err *err) {
    const struct tensor *first = &list->inputs[index];
    struct layout layout;
    if (!lay_out(list, index, padding, &layout))
        return err_set(err, ST_INVALID, "input %.*s: shapes in a batch do not fit",
                       VIEW_ARGS(first->name));
    if (layout.is_together && !layout.is_filled_up && is_aligned(first)) {
        *out = layout.whole;
        return ST_OK;
    }
    if (!reserve(buffer, layout.whole.size))
        return err_set(err, ST_NO_MEMORY, "input %.*s: no memory for a batch of %zu bytes",
                       VIEW_ARGS(first->name), layout.whole.size);
    char *to = buffer->data;
    for (const struct job *job = list; job != NULL; job = job->next) {
        const struct tensor *part = &job->inputs[index];
        if (layout.is_filled_up) {
            to = copy_padded(to, part, padding);
        } else {
            if (part->size > 0) memcpy(to, part->data, part->size);
            to += part->size;
        }
    }
    layout.whole.data = buffer->data;
    *out = layout.whole;
    return ST_OK;
}

/* Bytes that the first count elements at data take. */
static bool bytes_span(const char *data, size_t size, size_t count, size_t *out_span) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t length;
        if (size - at < 4) return false;
        memcpy(&length, data + at, 4);
        at += 4;
        if (size - at < length) return false;
        at += length;
    }
    *out_span = at;
    return true;
}

/* Copies a part whose padded axis is cut to the job's own length. */
static void copy_cut(char *to, const char *from, const struct tensor *part,
                     const struct padding *padding) {
    const uint32_t axis = (uint32_t)padding->axis;
    const size_t outer = dims_product(part, 0, axis);
    const size_t inner = dims_product(part, axis + 1, part->rank) * dtype_size(part->dtype);
    const size_t own = (size_t)part->shape[axis] * inner;
    const size_t whole = padding->length * inner;
    if (padding->is_left) from += whole - own;
    for (size_t i = 0; i < outer && own > 0; i++) memcpy(to + i * own, from + i * whole, own);
}

enum status scatter_output(struct job *list, uint32_t index, const struct tensor *batch,
                           uint32_t total_rows, const struct padding *padding,
                           struct err *err) {
    const bool is_alone = list->next == NULL;
    if (!is_alone && (batch->rank == 0 || batch->shape[0] != (int64_t)total_rows))
        return err_set(err, ST_INTERNAL,
                       "output %.*s has not one row a request: the model cannot be batched, use "
                       "--max-batch 0",
                       VIEW_ARGS(batch->name));
    const char *from = batch->data;
    size_t left = batch->size;
    const size_t row_bytes =
        batch->dtype == DTYPE_BYTES ? 0 : dims_product(batch, 1, batch->rank) * dtype_size(batch->dtype);
    for (struct job *job = list; job != NULL; job = job->next) {
        struct tensor part = *batch;
        size_t span = left;
        if (!is_alone) {
            part.shape[0] = job->rows;
            span = job->rows * row_bytes;
            if (batch->dtype == DTYPE_BYTES &&
                !bytes_span(from, left, job->rows * dims_product(batch, 1, batch->rank), &span))
                return err_set(err, ST_INTERNAL, "output %.*s: broken strings", VIEW_ARGS(batch->name));
        }
        part.size = span;
        const bool cuts = padding->axis > 0 && (uint32_t)padding->axis < part.rank &&
                          job->length != 0 && job->length < padding->length &&
                          batch->shape[padding->axis] == padding->length;
        if (cuts) {
            part.shape[padding->axis] = job->length;
            part.size = dims_product(&part, 0, part.rank) * dtype_size(part.dtype);
        }
        char *to = arena_alloc_aligned64(job->arena, part.size);
        if (to == NULL) return err_set(err, ST_NO_MEMORY, "no memory for an output");
        if (cuts) copy_cut(to, from, &part, padding);
        else if (span > 0) memcpy(to, from, span);
        part.data = to;
        job->outputs[index] = part;
        from += span;
        left -= span;
    }
    return ST_OK;
}

/* See gather.h. Shapes: (rows, ...), padding only along one axis and only of integers (token ids,
 * masks). Read next: instance.c. */
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

/* Copies the runs of `from` (its own length on the axis) to `to` with length on the axis. */
static char *copy_padded(char *to, const struct tensor *from, int32_t axis, uint32_t length,
                         int64_t pad_value) {
    const size_t element = dtype_size(from->dtype);
    const size_t outer = dims_product(from, 0, (uint32_t)axis);
    const size_t inner = dims_product(from, (uint32_t)axis + 1, from->rank);
    const size_t own = (size_t)from->shape[axis] * inner;
    const size_t padding = length * inner - own;
    const char *read = from->data;
    for (size_t i = 0; i < outer; i++) {
        memcpy(to, read, own * element);
        fill(to + own * element, padding, from->dtype, pad_value);
        to += (own + padding) * element;
        read += own * element;
    }
    return to;
}

/* Binary tensors lie in the request's body wherever the JSON before them ends. */
static bool is_aligned(const struct tensor *tensor) {
    const size_t element = dtype_size(tensor->dtype);
    return element == 0 || (uintptr_t)tensor->data % element == 0;
}

/* A lone job's tensor as it is: its own bytes where they can be run, else a copy. */
static enum status pass_through(const struct tensor *tensor, struct gather_buffer *buffer,
                                struct tensor *out, struct err *err) {
    const void *data = tensor->data;
    if (!is_aligned(tensor)) {
        if (!reserve(buffer, tensor->size))
            return err_set(err, ST_NO_MEMORY, "input %.*s: no memory for %zu bytes",
                           VIEW_ARGS(tensor->name), tensor->size);
        if (tensor->size > 0) memcpy(buffer->data, tensor->data, tensor->size);
        data = buffer->data;
    }
    *out = *tensor;
    out->data = data;
    return ST_OK;
}

enum status gather_input(const struct job *list, uint32_t index, int32_t pad_axis,
                         int64_t pad_value, uint32_t padded_length, struct gather_buffer *buffer,
                         struct tensor *out, struct err *err) {
    const struct tensor *first = &list->inputs[index];
    struct tensor whole = *first;
    const bool pads = pad_axis > 0 && (uint32_t)pad_axis < first->rank;
    if (list->next == NULL && (!pads || first->shape[pad_axis] == padded_length))
        return pass_through(first, buffer, out, err);
    whole.shape[0] = 0;
    whole.size = 0;
    if (pads) whole.shape[pad_axis] = padded_length;
    for (const struct job *job = list; job != NULL; job = job->next) {
        const struct tensor *part = &job->inputs[index];
        if (!shapes_fit(first, part, pads ? pad_axis : -1) ||
            (pads && part->shape[pad_axis] > padded_length))
            return err_set(err, ST_INVALID, "input %.*s: shapes in a batch do not fit",
                           VIEW_ARGS(first->name));
        whole.shape[0] += part->shape[0];
        whole.size += part->size;
    }
    if (pads) whole.size = dims_product(&whole, 0, whole.rank) * dtype_size(whole.dtype);
    if (!reserve(buffer, whole.size))
        return err_set(err, ST_NO_MEMORY, "input %.*s: no memory for a batch of %zu bytes",
                       VIEW_ARGS(first->name), whole.size);
    char *to = buffer->data;
    for (const struct job *job = list; job != NULL; job = job->next) {
        const struct tensor *part = &job->inputs[index];
        if (pads) {
            to = copy_padded(to, part, pad_axis, padded_length, pad_value);
        } else {
            if (part->size > 0) memcpy(to, part->data, part->size);
            to += part->size;
        }
    }
    whole.data = buffer->data;
    *out = whole;
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

/* Copies a part whose padded axis is cut to own_length. */
static void copy_cut(char *to, const char *from, const struct tensor *part, int32_t axis,
                     uint32_t padded_length) {
    const size_t element = dtype_size(part->dtype);
    const size_t outer = dims_product(part, 0, (uint32_t)axis);
    const size_t inner = dims_product(part, (uint32_t)axis + 1, part->rank) * element;
    const size_t own = (size_t)part->shape[axis] * inner;
    for (size_t i = 0; i < outer; i++)
        memcpy(to + i * own, from + i * padded_length * inner, own);
}

enum status scatter_output(struct job *list, uint32_t index, const struct tensor *batch,
                           uint32_t total_rows, int32_t pad_axis, uint32_t padded_length,
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
        const bool cuts = pad_axis > 0 && (uint32_t)pad_axis < part.rank && job->length != 0 &&
                          batch->shape[pad_axis] == padded_length && job->length < padded_length;
        if (cuts) {
            part.shape[pad_axis] = job->length;
            part.size = dims_product(&part, 0, part.rank) * dtype_size(part.dtype);
        }
        char *to = arena_alloc_aligned64(job->arena, part.size);
        if (to == NULL) return err_set(err, ST_NO_MEMORY, "no memory for an output");
        if (cuts) copy_cut(to, from, &part, pad_axis, padded_length);
        else if (span > 0) memcpy(to, from, span);
        part.data = to;
        job->outputs[index] = part;
        from += span;
        left -= span;
    }
    return ST_OK;
}

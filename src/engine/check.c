/* See check.h. Read next: pipeline.c. */
#include "engine/check.h"

/* "a, b, c" of the names there are, for errors. */
static const char *names_text(const struct io_spec *specs, uint32_t count, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < count && used + 1 < size; i++) {
        const size_t length = strlen(specs[i].name);
        if (used + length + 3 > size) break;
        if (i > 0) memcpy(out + used, ", ", 2), used += 2;
        memcpy(out + used, specs[i].name, length + 1);
        used += length;
    }
    return out;
}

static int find_spec(const struct io_spec *specs, uint32_t count, struct view name) {
    for (uint32_t i = 0; i < count; i++)
        if (view_is(name, specs[i].name)) return (int)i;
    return -1;
}

static enum status check_tensor(const struct io_spec *spec, const char *model,
                                const struct tensor *tensor, bool is_batched, struct err *err) {
    if (tensor->dtype != spec->dtype)
        return err_set(err, ST_INVALID, "model %s, input %s: datatype is %s, the model needs %s",
                       model, spec->name, dtype_name(tensor->dtype), dtype_name(spec->dtype));
    bool fits = tensor->rank == spec->rank;
    for (uint32_t d = is_batched ? 1 : 0; fits && d < spec->rank; d++)
        fits = spec->shape[d] == -1 || spec->shape[d] == tensor->shape[d];
    if (!fits) {
        char has[96], needs[96];
        return err_set(err, ST_INVALID, "model %s, input %s: shape is %s, the model needs %s",
                       model, spec->name,
                       tensor_shape_text(tensor->shape, tensor->rank, has, sizeof has),
                       tensor_shape_text(spec->shape, spec->rank, needs, sizeof needs));
    }
    size_t elements;
    if (!tensor_elements(tensor->shape, tensor->rank, &elements))
        return err_set(err, ST_INVALID, "model %s, input %s: shape is not valid", model, spec->name);
    const bool has_size = tensor->dtype == DTYPE_BYTES
                              ? tensor_bytes_valid(tensor->data, tensor->size, elements)
                              : tensor->size == elements * dtype_size(tensor->dtype);
    if (!has_size)
        return err_set(err, ST_INVALID, "model %s, input %s: %zu bytes do not hold %zu elements of %s",
                       model, spec->name, tensor->size, elements, dtype_name(tensor->dtype));
    return ST_OK;
}

static enum status check_rows(const char *model, int64_t rows, uint32_t max_rows, struct err *err) {
    if (rows < 1)
        return err_set(err, ST_INVALID, "model %s: the batch dimension is %lld, it must be at least 1",
                       model, (long long)rows);
    if (rows > 1 && max_rows == 1)
        return err_set(err, ST_INVALID,
                       "model %s: the batch dimension is %lld, the model takes one a request (it is not "
                       "batched)", model, (long long)rows);
    if (rows > max_rows)
        return err_set(err, ST_INVALID,
                       "model %s: the batch dimension is %lld, the largest batch is %u (--max-batch)",
                       model, (long long)rows, max_rows);
    return ST_OK;
}

enum status check_inputs(const struct signature *signature, const char *model,
                         const struct tensor *inputs, uint32_t count, bool is_batched,
                         uint32_t max_rows, struct arena *arena, const struct tensor **out_inputs,
                         uint32_t *out_rows, struct err *err) {
    return check_some_inputs(signature, NULL, model, inputs, count, is_batched, max_rows, arena, out_inputs,
                             out_rows, err);
}

enum status check_some_inputs(const struct signature *signature, const bool *skips,
                              const char *model, const struct tensor *inputs, uint32_t count,
                              bool is_batched, uint32_t max_rows, struct arena *arena,
                              const struct tensor **out_inputs, uint32_t *out_rows,
                              struct err *err) {
    struct tensor *ordered = arena_array(arena, signature->input_count, sizeof *ordered);
    char names[200];
    if (ordered == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a request");
    for (uint32_t i = 0; i < count; i++) {
        const int at = find_spec(signature->inputs, signature->input_count, inputs[i].name);
        if (at < 0)
            return err_set(err, ST_INVALID, "model %s has no input %.*s; it has %s", model,
                           VIEW_ARGS(inputs[i].name),
                           names_text(signature->inputs, signature->input_count, names, sizeof names));
        if (ordered[at].name.data != NULL)
            return err_set(err, ST_INVALID, "model %s, input %s: given twice", model,
                           signature->inputs[at].name);
        const enum status status =
            check_tensor(&signature->inputs[at], model, &inputs[i], is_batched, err);
        if (status != ST_OK) return status;
        ordered[at] = inputs[i];
    }
    int64_t rows = 0;
    int first = -1;
    for (uint32_t i = 0; i < signature->input_count; i++) {
        if (skips != NULL && skips[i]) continue;
        if (ordered[i].name.data == NULL)
            return err_set(err, ST_INVALID, "model %s: input %s is missing", model,
                           signature->inputs[i].name);
        if (!is_batched) continue;
        if (first >= 0 && ordered[i].shape[0] != rows)
            return err_set(err, ST_INVALID,
                           "model %s, input %s: the batch dimension is %lld, in %s it is %lld",
                           model, signature->inputs[i].name, (long long)ordered[i].shape[0],
                           signature->inputs[first].name, (long long)rows);
        if (first < 0) first = (int)i;
        rows = ordered[i].shape[0];
    }
    if (is_batched && first >= 0) {
        const enum status status = check_rows(model, rows, max_rows, err);
        if (status != ST_OK) return status;
    }
    *out_inputs = ordered;
    *out_rows = (uint32_t)rows;
    return ST_OK;
}

enum status check_bytes(const struct tensor *input, const char *model, const char *name,
                        uint32_t max_rows, uint32_t *out_rows, struct err *err) {
    if (input->dtype != DTYPE_BYTES)
        return err_set(err, ST_INVALID, "model %s, input %s: datatype is %s, it must be BYTES",
                       model, name, dtype_name(input->dtype));
    const bool fits = input->rank == 1 || (input->rank == 2 && input->shape[1] == 1);
    if (!fits) {
        char has[96];
        return err_set(err, ST_INVALID, "model %s, input %s: shape is %s, it must be [n] or [n,1]",
                       model, name, tensor_shape_text(input->shape, input->rank, has, sizeof has));
    }
    const enum status status = check_rows(model, input->shape[0], max_rows, err);
    if (status != ST_OK) return status;
    if (!tensor_bytes_valid(input->data, input->size, (size_t)input->shape[0]))
        return err_set(err, ST_INVALID, "model %s, input %s: %zu bytes do not hold %lld strings",
                       model, name, input->size, (long long)input->shape[0]);
    *out_rows = (uint32_t)input->shape[0];
    return ST_OK;
}

enum status check_wanted(const struct signature *shown, const char *model,
                         const struct view *wanted, uint32_t count, struct arena *arena,
                         uint32_t **out_indices, uint32_t *out_count, struct err *err) {
    const bool wants_all = wanted == NULL || count == 0;
    const uint32_t total = wants_all ? shown->output_count : count;
    uint32_t *indices = arena_array(arena, total, sizeof *indices);
    char names[200];
    if (indices == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a request");
    for (uint32_t i = 0; i < total; i++) {
        const int at =
            wants_all ? (int)i : find_spec(shown->outputs, shown->output_count, wanted[i]);
        if (at < 0)
            return err_set(err, ST_INVALID, "model %s has no output %.*s; it has %s", model,
                           VIEW_ARGS(wanted[i]),
                           names_text(shown->outputs, shown->output_count, names, sizeof names));
        indices[i] = (uint32_t)at;
    }
    *out_indices = indices;
    *out_count = total;
    return ST_OK;
}

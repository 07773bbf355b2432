/* --shape NAME:1,3,224,224: what a person says about dimensions that the model leaves free. Before
 * the load, one thread. Invariant: a shape that is taken differs from the model's only where that
 * has -1. Read next: inputs.c, which fills tensors of these shapes. */
#include "load/inputs.h"

#include "base/number.h"

#include <stdio.h>

/* The last colon: names may hold some ("input:0"). */
MUST_CHECK static enum status split(const char *text, struct view *out_name, const char **out_dims,
                                    struct err *err) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == 0)
        return err_set(err, ST_INVALID, "--shape %s: must be NAME:1,3,224,224", text);
    *out_name = (struct view){.data = text, .size = (size_t)(colon - text)};
    *out_dims = colon + 1;
    return ST_OK;
}

MUST_CHECK static enum status read_dims(const char *text, const char *dims, int64_t *out_shape,
                                        uint32_t *out_rank, struct err *err) {
    uint32_t rank = 0;
    for (;;) {
        const struct view part = {.data = dims, .size = strcspn(dims, ",")};
        uint64_t value = 0;
        if (rank == TENSOR_MAX_RANK)
            return err_set(err, ST_INVALID, "--shape %s: more than %d dimensions", text,
                           TENSOR_MAX_RANK);
        const enum status status = number_uint(part, &value, err);
        if (status == ST_OK && (value == 0 || value > INT32_MAX))
            return err_set(err, ST_INVALID, "--shape %s: dimension %u must be 1 to %d", text, rank,
                           INT32_MAX);
        if (status != ST_OK) {
            err_prefix(err, "--shape %s: dimension %u", text, rank);
            return status;
        }
        out_shape[rank++] = (int64_t)value;
        if (dims[part.size] == 0) break;
        dims += part.size + 1;
    }
    *out_rank = rank;
    return ST_OK;
}

/* "a, b", cut where there are too many. */
static void list_names(const struct input_spec *specs, uint32_t count, char *out, size_t out_size) {
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < count && used < out_size; i++) {
        const int size = snprintf(out + used, out_size - used, "%s%.*s", i > 0 ? ", " : "",
                                  VIEW_ARGS(specs[i].name));
        used += size > 0 ? (size_t)size : 0;
    }
}

MUST_CHECK static enum status apply(const char *text, struct input_spec *specs, uint32_t count,
                                    struct arena *arena, struct err *err) {
    struct view name = {NULL, 0};
    const char *dims = "";
    int64_t shape[TENSOR_MAX_RANK];
    uint32_t rank = 0;
    enum status status = split(text, &name, &dims, err);
    if (status == ST_OK) status = read_dims(text, dims, shape, &rank, err);
    if (status != ST_OK) return status;
    struct input_spec *spec = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (view_eq(specs[i].name, name)) spec = &specs[i];
    char names[240], declared[96];
    list_names(specs, count, names, sizeof names);
    if (spec == NULL)
        return err_set(err, ST_INVALID, "--shape %s: the model has no input %.*s, but %s", text,
                       VIEW_ARGS(name), names);
    tensor_shape_text(spec->shape, spec->rank, declared, sizeof declared);
    /* Rank 0 may stand for "any": whether it is that, the model will say. */
    bool fits = spec->rank == rank || spec->rank == 0;
    for (uint32_t i = 0; fits && i < spec->rank; i++)
        fits = spec->shape[i] < 0 || spec->shape[i] == shape[i];
    if (!fits)
        return err_set(err, ST_INVALID, "--shape %s: the model declares %s", text, declared);
    int64_t *kept = arena_array(arena, rank, sizeof *kept);
    if (kept == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for --shape %s", text);
    memcpy(kept, shape, rank * sizeof *kept);
    spec->shape = kept;
    spec->rank = rank;
    return ST_OK;
}

enum status inputs_apply_shapes(const char *const *texts, size_t text_count,
                                struct input_spec *specs, uint32_t spec_count, struct arena *arena,
                                struct err *err) {
    for (size_t i = 0; i < text_count; i++) {
        const enum status status = apply(texts[i], specs, spec_count, arena, err);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

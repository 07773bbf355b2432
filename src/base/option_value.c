/* Option values: each kind's text into its field. Called at start, one thread. Invariant: a
 * field that owns memory (the two lists) always holds either NULL or what free() takes.
 * Read next: options.c, which finds the option; number.c, which reads the numbers. */
#include "base/option_value.h"

#include "base/number.h"
#include <stdio.h>
#include <stdlib.h>

enum { LIST_MAX = 10000 }; /* "1:1000000:1" is a slip, not a wish */

static void *field_of(const struct option_spec *spec, void *config) {
    return (char *)config + spec->offset;
}

static bool has_limits(const struct option_spec *spec) { return spec->min < spec->max; }

void option_value_zero(const struct option_spec *spec, void *config) {
    void *field = field_of(spec, config);
    switch (spec->kind) {
    case OPT_FLAG: *(bool *)field = false; break;
    case OPT_UINT:
    case OPT_DURATION: *(uint64_t *)field = 0; break;
    case OPT_DOUBLE: *(double *)field = 0.0; break;
    case OPT_STRING: *(const char **)field = NULL; break;
    case OPT_STRINGS:
        *(struct option_strings *)field = (struct option_strings){.items = NULL};
        break;
    case OPT_CHOICE: *(int *)field = 0; break;
    case OPT_UINTS: *(struct option_uints *)field = (struct option_uints){.items = NULL}; break;
    case OPT_HEADING: break;
    }
}

void option_value_free(const struct option_spec *spec, void *config) {
    if (spec->kind == OPT_STRINGS) {
        free(((struct option_strings *)field_of(spec, config))->items);
    } else if (spec->kind == OPT_UINTS) {
        free(((struct option_uints *)field_of(spec, config))->items);
    } else {
        return;
    }
    option_value_zero(spec, config);
}

bool option_choice_at(const char *choices, size_t index, struct view *out_name) {
    for (size_t i = 0;; i++) {
        const size_t length = strcspn(choices, "|");
        if (i == index) {
            *out_name = (struct view){.data = choices, .size = length};
            return true;
        }
        if (choices[length] == '\0') {
            return false;
        }
        choices += length + 1;
    }
}

/* Limits are doubles in the table; 2^64 as a double is fine to compare with. */
static enum status check_limits(const struct option_spec *spec, double value, struct err *err) {
    if (!has_limits(spec) || (value >= spec->min && value <= spec->max)) {
        return ST_OK;
    }
    const bool is_low = value < spec->min;
    const double limit = is_low ? spec->min : spec->max;
    const char *relation = is_low ? "less" : "more";
    if (spec->kind == OPT_DURATION) {
        char is[32];
        char bound[32];
        number_duration_text((uint64_t)value, is, sizeof(is));
        number_duration_text((uint64_t)limit, bound, sizeof(bound));
        return err_set(err, ST_INVALID, "%s is %s than %s", is, relation, bound);
    }
    return err_set(err, ST_INVALID, "%.15g is %s than %.15g", value, relation, limit);
}

static enum status set_uint(const struct option_spec *spec, uint64_t *field, const char *text,
                            struct err *err) {
    uint64_t value = 0;
    enum status status = spec->kind == OPT_DURATION ? number_duration(view_of(text), &value, err)
                                                    : number_uint(view_of(text), &value, err);
    status = status == ST_OK ? check_limits(spec, (double)value, err) : status;
    if (status == ST_OK) {
        *field = value;
    }
    return status;
}

static enum status set_double(const struct option_spec *spec, double *field, const char *text,
                              struct err *err) {
    double value = 0.0;
    enum status status = number_double(view_of(text), &value, err);
    status = status == ST_OK ? check_limits(spec, value, err) : status;
    if (status == ST_OK) {
        *field = value;
    }
    return status;
}

static enum status set_flag(bool *field, const char *text, struct err *err) {
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        return err_set(err, ST_INVALID, "'%.60s' is neither true nor false", text);
    }
    *field = text[0] == 't';
    return ST_OK;
}

static enum status set_choice(const struct option_spec *spec, int *field, const char *text,
                              struct err *err) {
    struct view name;
    for (size_t i = 0; option_choice_at(spec->choices, i, &name); i++) {
        if (view_is(name, text)) {
            *field = (int)i;
            return ST_OK;
        }
    }
    return err_set(err, ST_INVALID, "'%.60s' is not one of %s", text, spec->choices);
}

static enum status add_string(struct option_strings *field, const char *text, bool is_first,
                              struct err *err) {
    const size_t count = is_first ? 0 : field->count;
    const char **items = realloc(field->items, (count + 1) * sizeof(*items));
    if (items == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu values", count + 1);
    }
    items[count] = text;
    *field = (struct option_strings){.items = items, .count = count + 1};
    return ST_OK;
}

static enum status not_range(struct view part, struct err *err) {
    return err_set(err, ST_INVALID, "'%.*s' is not from:to:step, as in 1:16:5",
                   part.size > 60 ? 60 : (int)part.size, part.data);
}

/* One part of a list, a number or from:to:step, as its three bounds. */
static enum status read_range(const struct option_spec *spec, struct view part,
                              uint64_t out_bounds[3], struct err *err) {
    uint64_t bounds[3] = {0, 0, 1};
    size_t count = 0;
    size_t start = 0;
    for (size_t at = 0; at <= part.size; at++) {
        if (at < part.size && part.data[at] != ':') {
            continue;
        }
        const struct view number = {.data = part.data + start, .size = at - start};
        if (count == 3) {
            return not_range(part, err);
        }
        const enum status status = number_uint(number, &bounds[count++], err);
        if (status != ST_OK) {
            return status;
        }
        start = at + 1;
    }
    if (count == 2 || bounds[2] == 0 || (count == 3 && bounds[1] < bounds[0])) {
        return not_range(part, err);
    }
    bounds[1] = count == 1 ? bounds[0] : bounds[1];
    const enum status status = check_limits(spec, (double)bounds[0], err);
    if (status != ST_OK) {
        return status;
    }
    memcpy(out_bounds, bounds, sizeof(bounds));
    return check_limits(spec, (double)bounds[1], err);
}

static enum status append_range(struct option_uints *list, const uint64_t bounds[3],
                                struct err *err) {
    const uint64_t steps = (bounds[1] - bounds[0]) / bounds[2];
    if (steps >= LIST_MAX || list->count + steps + 1 > LIST_MAX) {
        return err_set(err, ST_INVALID, "more than %d values", LIST_MAX);
    }
    const size_t count = list->count + (size_t)steps + 1;
    uint64_t *items = realloc(list->items, count * sizeof(*items));
    if (items == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu values", count);
    }
    list->items = items;
    for (uint64_t i = 0; i <= steps; i++) {
        items[list->count++] = bounds[0] + i * bounds[2];
    }
    return ST_OK;
}

static enum status set_uints(const struct option_spec *spec, struct option_uints *field,
                             const char *text, struct err *err) {
    struct option_uints list = {.items = NULL};
    for (;;) {
        const struct view part = {.data = text, .size = strcspn(text, ",")};
        uint64_t bounds[3] = {0, 0, 1};
        enum status status = read_range(spec, part, bounds, err);
        status = status == ST_OK ? append_range(&list, bounds, err) : status;
        if (status != ST_OK) {
            free(list.items);
            return status;
        }
        if (text[part.size] == '\0') {
            break;
        }
        text += part.size + 1;
    }
    free(field->items);
    *field = list;
    return ST_OK;
}

enum status option_value_set(const struct option_spec *spec, void *config, const char *text,
                             bool is_first, struct err *err) {
    void *field = field_of(spec, config);
    switch (spec->kind) {
    case OPT_FLAG: return set_flag(field, text, err);
    case OPT_UINT:
    case OPT_DURATION: return set_uint(spec, field, text, err);
    case OPT_DOUBLE: return set_double(spec, field, text, err);
    case OPT_STRING: *(const char **)field = text; return ST_OK;
    case OPT_STRINGS: return add_string(field, text, is_first, err);
    case OPT_CHOICE: return set_choice(spec, field, text, err);
    case OPT_UINTS: return set_uints(spec, field, text, err);
    case OPT_HEADING: break;
    }
    return err_set(err, ST_INTERNAL, "a heading has no value");
}

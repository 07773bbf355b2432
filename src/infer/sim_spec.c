/* Parses and prints the simulated accelerator's parameters.
 *
 * Any thread; pure. Invariant: a parsed spec has every time between 0 and 60 s, and a batch
 * takes a day at most, so that adding device times to instants cannot overflow.
 * Read next: sim.c. */
#include "infer/sim_spec.h"

#include "base/view.h"

#include <inttypes.h>
#include <stdio.h>

#define SIM_TIME_MAX_NS 60e9
#define SIM_BATCH_MAX_NS 86400e9

enum field { FIELD_A, FIELD_B, FIELD_IN, FIELD_OUT, FIELD_FAIL, FIELD_COUNT };

static const char *const FIELD_NAMES[FIELD_COUNT] = {
    [FIELD_A] = "a", [FIELD_B] = "b", [FIELD_IN] = "in", [FIELD_OUT] = "out",
    [FIELD_FAIL] = "fail",
};

/* Up to 15 digits with one point, by hand: strtod would follow the locale and take "nan" and
 * hexadecimal. Returns the number of characters read, 0 when there is no number. */
static size_t number_parse(struct view text, double *out_number) {
    double number = 0, scale = 1;
    size_t digits = 0, i = 0;
    bool has_point = false;
    for (; i < text.size; i++) {
        const char c = text.data[i];
        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (c < '0' || c > '9') {
            break;
        }
        number = number * 10 + (c - '0');
        scale *= has_point ? 10 : 1;
        if (++digits > 15) {
            return 0;
        }
    }
    if (digits == 0) {
        return 0;
    }
    *out_number = number / scale;
    return i;
}

static enum status time_parse(const char *name, struct view text, double *out_ns,
                              struct err *err) {
    static const struct { const char *name; double ns; } UNITS[] = {
        {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double number = 0;
    const size_t used = number_parse(text, &number);
    const struct view unit = {text.data + used, text.size - used};
    for (size_t i = 0; used > 0 && i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (!view_is(unit, UNITS[i].name)) {
            continue;
        }
        if (number * UNITS[i].ns > SIM_TIME_MAX_NS) {
            return err_set(err, ST_INVALID, "simulate: %s=%.*s is more than 60s", name,
                           VIEW_ARGS(text));
        }
        *out_ns = number * UNITS[i].ns;
        return ST_OK;
    }
    return err_set(err, ST_INVALID,
                   "simulate: %s=%.*s is not a time: want a number and us, ms or s, as in %s=4ms",
                   name, VIEW_ARGS(text), name);
}

static enum status fail_parse(struct view text, struct sim_spec *spec, struct err *err) {
    if (view_is(text, "nan")) {
        spec->fails_on_nan = true;
        return ST_OK;
    }
    int64_t id = 0;
    bool is_id = text.size > 3 && text.size <= 3 + 18 && memcmp(text.data, "id:", 3) == 0;
    for (size_t i = 3; is_id && i < text.size; i++) {
        is_id = text.data[i] >= '0' && text.data[i] <= '9';
        id = id * 10 + (text.data[i] - '0');
    }
    if (!is_id) {
        return err_set(err, ST_INVALID, "simulate: fail=%.*s: want fail=nan or fail=id:N",
                       VIEW_ARGS(text));
    }
    spec->fails_on_id = true;
    spec->fail_id = id;
    return ST_OK;
}

static enum status field_parse(struct view name, struct view value, unsigned *seen,
                               struct sim_spec *spec, struct err *err) {
    enum field field = 0;
    while (field < FIELD_COUNT && !view_is(name, FIELD_NAMES[field])) {
        field++;
    }
    if (field == FIELD_COUNT) {
        return err_set(err, ST_INVALID,
                       "simulate: no field \"%.*s\": there are a, b, in, out, fail",
                       VIEW_ARGS(name));
    }
    if (*seen & (1u << field)) {
        return err_set(err, ST_INVALID, "simulate: %s is given twice", FIELD_NAMES[field]);
    }
    *seen |= 1u << field;
    double *const times[FIELD_FAIL] = {&spec->batch_ns, &spec->row_ns, &spec->in_ns,
                                       &spec->out_ns};
    if (field == FIELD_FAIL) {
        return fail_parse(value, spec, err);
    }
    return time_parse(FIELD_NAMES[field], value, times[field], err);
}

enum status sim_spec_parse(const char *text, struct sim_spec *out_spec, struct err *err) {
    struct sim_spec spec = {0};
    unsigned seen = 0;
    const char *at = text;
    for (;;) {
        const struct view field = {at, strcspn(at, ",")};
        const char *equals = memchr(field.data, '=', field.size);
        if (!equals) {
            return err_set(err, ST_INVALID,
                           "simulate: \"%.*s\" is not NAME=VALUE: want a=4ms,b=0.05ms",
                           VIEW_ARGS(field));
        }
        const struct view name = {at, (size_t)(equals - at)};
        const struct view value = {equals + 1, field.size - name.size - 1};
        const enum status status = field_parse(name, value, &seen, &spec, err);
        if (status != ST_OK) {
            return status;
        }
        at += field.size;
        if (*at == '\0') {
            break;
        }
        at++;
    }
    for (enum field need = FIELD_A; need <= FIELD_B; need++) {
        if (!(seen & (1u << need))) {
            return err_set(err, ST_INVALID, "simulate: %s is missing: want a=4ms,b=0.05ms",
                           FIELD_NAMES[need]);
        }
    }
    *out_spec = spec;
    return ST_OK;
}

static size_t time_text(const char *name, double ns, char *out, size_t out_size) {
    const double scale = ns >= 1e9 ? 1e9 : ns >= 1e6 ? 1e6 : 1e3;
    const char *unit = ns >= 1e9 ? "s" : ns >= 1e6 ? "ms" : "us";
    const int n = snprintf(out, out_size, "%s=%.6g%s", name, ns / scale, unit);
    return n < 0 ? 0 : (size_t)n < out_size ? (size_t)n : out_size - 1;
}

char *sim_spec_text(const struct sim_spec *spec, char *out, size_t out_size) {
    size_t used = time_text("a", spec->batch_ns, out, out_size);
    used += time_text(" b", spec->row_ns, out + used, out_size - used);
    if (spec->in_ns > 0) {
        used += time_text(" in", spec->in_ns, out + used, out_size - used);
    }
    if (spec->out_ns > 0) {
        used += time_text(" out", spec->out_ns, out + used, out_size - used);
    }
    if (spec->fails_on_nan) {
        snprintf(out + used, out_size - used, " fail=nan");
    } else if (spec->fails_on_id) {
        snprintf(out + used, out_size - used, " fail=id:%" PRId64, spec->fail_id);
    }
    return out;
}

uint64_t sim_spec_batch_ns(const struct sim_spec *spec, uint32_t rows) {
    const double ns = spec->in_ns + spec->batch_ns + spec->row_ns * rows + spec->out_ns;
    return (uint64_t)(ns < SIM_BATCH_MAX_NS ? ns + 0.5 : SIM_BATCH_MAX_NS);
}

/* Strict numbers. Any thread. Invariant: nothing is read past the view, which need not be
 * terminated, and no arithmetic wraps: what does not fit in 64 bits is an error that says so. */
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOWN_BYTES = 60 }; /* of the mistaken text in a message */

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit SIZE_UNITS[] = {
    {"k", 1000u},     {"M", 1000000u},   {"G", 1000000000u},
    {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30},
};
static const struct unit TIME_UNITS[] = {
    {"ns", 1u},           {"us", 1000u},          {"ms", 1000000u},
    {"s", 1000000000u},   {"m", 60000000000u},    {"h", 3600000000000u},
};
enum {
    SIZE_UNIT_COUNT = sizeof(SIZE_UNITS) / sizeof(SIZE_UNITS[0]),
    TIME_UNIT_COUNT = sizeof(TIME_UNITS) / sizeof(TIME_UNITS[0])
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int shown(struct view text) {
    return text.size > SHOWN_BYTES ? SHOWN_BYTES : (int)text.size;
}

static enum status too_large(struct view text, struct err *err) {
    return err_set(err, ST_INVALID, "'%.*s' is too large", shown(text), text.data);
}

/* The factor of the unit that the rest of text names; 0 when there is none such. */
static uint64_t factor_of(const struct unit *units, size_t count, struct view rest) {
    for (size_t i = 0; i < count; i++) {
        if (view_is(rest, units[i].name)) {
            return units[i].factor;
        }
    }
    return 0;
}

static struct view view_from(struct view text, size_t start) {
    return (struct view){.data = text.data + start, .size = text.size - start};
}

/* Digits at *at, single underscores between them allowed. False when they overflow. */
static bool read_digits(struct view text, size_t *at, uint64_t *out) {
    uint64_t value = 0;
    size_t i = *at;
    while (i < text.size) {
        const bool joins = text.data[i] == '_' && i > *at && text.data[i - 1] != '_' &&
                           i + 1 < text.size && is_digit(text.data[i + 1]);
        if (joins) {
            i++;
        }
        if (!is_digit(text.data[i])) {
            break;
        }
        const uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
        i++;
    }
    *at = i;
    *out = value;
    return true;
}

enum status number_uint(struct view text, uint64_t *out, struct err *err) {
    size_t at = 0;
    uint64_t value = 0;
    if (!read_digits(text, &at, &value)) {
        return too_large(text, err);
    }
    const struct view rest = view_from(text, at);
    const uint64_t factor = rest.size == 0 ? 1 : factor_of(SIZE_UNITS, SIZE_UNIT_COUNT, rest);
    if (at == 0 || factor == 0) {
        return err_set(err, ST_INVALID,
                       "'%.*s' is not a whole number (12, 10k, 64MiB; suffixes k, M, G, KiB, "
                       "MiB, GiB)",
                       shown(text), text.data);
    }
    if (__builtin_mul_overflow(value, factor, &value)) {
        return too_large(text, err);
    }
    *out = value;
    return ST_OK;
}

static size_t skip_digits(const char *text, size_t at) {
    while (is_digit(text[at])) {
        at++;
    }
    return at;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit before or after the point. */
static bool has_double_form(const char *text) {
    size_t at = text[0] == '-' || text[0] == '+' ? 1 : 0;
    const size_t whole = at;
    at = skip_digits(text, at);
    size_t digits = at - whole;
    if (text[at] == '.') {
        const size_t fraction = at + 1;
        at = skip_digits(text, fraction);
        digits += at - fraction;
    }
    if (digits == 0) {
        return false;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        at += text[at + 1] == '-' || text[at + 1] == '+' ? 2 : 1;
        const size_t exponent = at;
        at = skip_digits(text, at);
        if (at == exponent) {
            return false;
        }
    }
    return text[at] == '\0';
}

enum status number_double(struct view text, double *out, struct err *err) {
    char copy[128]; /* strtod wants a terminator */
    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size)) {
        return err_set(err, ST_INVALID, "'%.*s' is not a number", shown(text), text.data);
    }
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (!has_double_form(copy)) {
        return err_set(err, ST_INVALID, "'%.*s' is not a number", shown(text), text.data);
    }
    const double value = strtod(copy, NULL);
    if (value > 1e300 || value < -1e300) {
        return too_large(text, err);
    }
    *out = value;
    return ST_OK;
}

/* The fraction after the point at *at, in units of factor; false when it is finer than 1 ns. */
static bool read_fraction(struct view digits, uint64_t factor, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < digits.size; i++) {
        const uint64_t digit = (uint64_t)(digits.data[i] - '0');
        if (factor % 10 != 0 && digit != 0) {
            return false;
        }
        factor /= 10;
        value += digit * factor;
    }
    *out = value;
    return true;
}

enum status number_duration(struct view text, uint64_t *out_ns, struct err *err) {
    size_t at = 0;
    uint64_t whole = 0;
    if (!read_digits(text, &at, &whole)) {
        return too_large(text, err);
    }
    const size_t whole_end = at;
    struct view digits = {.data = "", .size = 0};
    if (whole_end > 0 && at < text.size && text.data[at] == '.') {
        digits = view_from(text, ++at);
        while (at < text.size && is_digit(text.data[at])) {
            at++;
        }
        digits.size = (size_t)(text.data + at - digits.data);
    }
    const bool ends_in_point = at > whole_end && digits.size == 0;
    const struct view unit = view_from(text, at);
    if (whole_end > 0 && !ends_in_point && unit.size == 0 && (whole > 0 || digits.size > 0)) {
        return err_set(err, ST_INVALID, "'%.*s' has no unit: write %.*ss or %.*sms (ns, us, ms, "
                       "s, m, h)", shown(text), text.data, shown(text), text.data, shown(text),
                       text.data);
    }
    const uint64_t factor = unit.size == 0 ? 1 : factor_of(TIME_UNITS, TIME_UNIT_COUNT, unit);
    if (whole_end == 0 || ends_in_point || factor == 0) {
        return err_set(err, ST_INVALID,
                       "'%.*s' is not a duration (20us, 1.5ms, 10s; units ns, us, ms, s, m, h)",
                       shown(text), text.data);
    }
    uint64_t part = 0;
    if (!read_fraction(digits, factor, &part)) {
        return err_set(err, ST_INVALID, "'%.*s' is finer than a nanosecond", shown(text),
                       text.data);
    }
    if (__builtin_mul_overflow(whole, factor, &whole) ||
        __builtin_add_overflow(whole, part, &whole)) {
        return too_large(text, err);
    }
    *out_ns = whole;
    return ST_OK;
}

char *number_duration_text(uint64_t ns, char *out, size_t out_size) {
    size_t i = TIME_UNIT_COUNT - 1;
    while (i > 0 && (ns == 0 || ns % TIME_UNITS[i].factor != 0)) {
        i--;
    }
    snprintf(out, out_size, "%llu%s", (unsigned long long)(ns / TIME_UNITS[i].factor),
             ns == 0 ? "" : TIME_UNITS[i].name);
    return out;
}

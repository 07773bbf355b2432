/* A regular expression as Oniguruma reads it, said so that PCRE2 does the same. The two differ in
 * what \s, \w, \v, \h, ^, $ and {1,3}+ mean, and in their Unicode versions: each set of code points
 * is written out from pattern_sets.h where PCRE2 may have another. Load time. Invariant: what is
 * not known to mean the same is refused, never passed on. Read pattern.c next. */
#include "prep/pattern_translate.h"
#include "prep/pattern_sets.h"
#include "prep/unicode_table.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64, NONE = -1 };

struct translator {
    struct view regex;
    size_t at;
    bool has_categories;
    struct pattern_text *out;
    struct err *err;
    bool is_caseless[DEPTH_MAX]; /* in each open group; 0: outside all */
    size_t group_at[DEPTH_MAX];  /* where in out it begins */
    int depth;
    ptrdiff_t atom_at; /* where in out the last atom begins; NONE: nothing to repeat */
    char last_literal; /* the ASCII letter just before, in lower case; 0: something else */
};

static void put(struct translator *t, const char *data, size_t size) {
    struct pattern_text *out = t->out;
    if (out->capacity - out->size < size) {
        const size_t capacity = 2 * out->capacity + size + 64;
        char *larger = realloc(out->data, capacity);
        if (larger == NULL) {
            out->is_out_of_memory = true;
            return;
        }
        out->data = larger;
        out->capacity = capacity;
    }
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_text(struct translator *t, const char *text) { put(t, text, strlen(text)); }

static void __attribute__((format(printf, 2, 3))) put_format(struct translator *t,
                                                             const char *format, ...) {
    char text[64];
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size > 0) put(t, text, (size_t)size);
}

static enum status refuse(const struct translator *t, const char *what) {
    const size_t left = t->regex.size - (t->at < t->regex.size ? t->at : t->regex.size);
    return err_set(t->err, ST_UNSUPPORTED, "regular expression: %s is not supported (byte %zu: "
                   "\"%.*s\")", what, t->at, (int)(left < 24 ? left : 24),
                   t->regex.data + t->regex.size - left);
}

static bool is_next(const struct translator *t, const char *text) {
    const size_t size = strlen(text);
    return t->regex.size - t->at >= size && memcmp(t->regex.data + t->at, text, size) == 0;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void put_code(struct translator *t, uint32_t code) {
    if (code < 0x80 && (is_letter((char)code) || is_digit((char)code) || code == ' ')) {
        put_format(t, "%c", (char)code);
    } else {
        put_format(t, "\\x{%x}", code);
    }
}

/* The set, for the inside of a [class]. */
static enum status put_set(struct translator *t, struct view name, bool is_inverted) {
    if (t->is_caseless[t->depth]) return refuse(t, "a set of characters where case is ignored");
    if (t->has_categories && pattern_set_is_category(name)) {
        put_format(t, "\\%c{%.*s}", is_inverted ? 'P' : 'p', VIEW_ARGS(name));
        return ST_OK;
    }
    bool is_known;
    struct pattern_set set = pattern_set_named(name, &is_known);
    if (!is_known) return refuse(t, "a property of that name");
    if (set.ranges != NULL && is_inverted) {
        const struct pattern_set others = pattern_set_inverted(set);
        free(set.ranges);
        set = others;
    }
    if (set.ranges == NULL) return err_set(t->err, ST_NO_MEMORY, "no memory for a pattern");
    for (size_t i = 0; i < set.count; i++) {
        put_code(t, set.ranges[i].first);
        if (set.ranges[i].last > set.ranges[i].first) {
            put_text(t, "-");
            put_code(t, set.ranges[i].last);
        }
    }
    free(set.ranges);
    return ST_OK;
}

/* \p{Name}, \p{^Name} or \P{Name}; at stands on the backslash. */
static enum status put_property(struct translator *t) {
    bool is_inverted = t->regex.data[t->at + 1] == 'P';
    size_t at = t->at + 2;
    if (at >= t->regex.size || t->regex.data[at] != '{') return refuse(t, "\\p without braces");
    at++;
    if (at < t->regex.size && t->regex.data[at] == '^') {
        is_inverted = !is_inverted;
        at++;
    }
    const char *start = t->regex.data + at;
    const char *end = memchr(start, '}', t->regex.size - at);
    if (end == NULL) return refuse(t, "\\p without a closing brace");
    const struct view name = {start, (size_t)(end - start)};
    const bool is_own = view_is(name, "w") || view_is(name, "s") || view_is(name, "d")
                        || view_is(name, "numeric"); /* names of ours, not Oniguruma's */
    if (is_own) return refuse(t, "a property of that name");
    const enum status status = put_set(t, name, is_inverted);
    if (status == ST_OK) t->at = (size_t)(end + 1 - t->regex.data);
    return status;
}

static int hex_value(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : NONE;
}

/* Up to limit hexadecimal digits at `at`; returns how many. */
static size_t read_hex(const struct translator *t, size_t at, size_t limit, uint32_t *out) {
    size_t count = 0;
    *out = 0;
    while (count < limit && at + count < t->regex.size
           && hex_value(t->regex.data[at + count]) != NONE) {
        *out = *out * 16 + (uint32_t)hex_value(t->regex.data[at + count++]);
    }
    return count;
}

/* \x41, \x{41} or \u0041; at stands on the backslash. */
static enum status read_code(struct translator *t, uint32_t *out) {
    const char kind = t->regex.data[t->at + 1];
    size_t at = t->at + 2, digits;
    if (kind == 'u') {
        digits = read_hex(t, at, 4, out);
        if (digits != 4) return refuse(t, "\\u without four digits");
    } else if (at < t->regex.size && t->regex.data[at] == '{') {
        digits = read_hex(t, ++at, 6, out);
        if (digits == 0 || at + digits >= t->regex.size || t->regex.data[at + digits] != '}') {
            return refuse(t, "\\x{} without one to six digits");
        }
        digits++;
    } else {
        digits = read_hex(t, at, 2, out);
        if (digits == 0 || *out >= 0x80) return refuse(t, "\\x for a byte");
    }
    if (*out >= CODE_POINTS || (*out >= 0xd800 && *out <= 0xdfff)) {
        return refuse(t, "what is no character");
    }
    t->at = at + digits;
    return ST_OK;
}

/* A character, written plainly or escaped. */
static enum status read_literal(struct translator *t, bool is_in_class, uint32_t *out) {
    static const char LETTERS[] = "tnrfaev", CODES[] = "\t\n\r\f\a\x1b\v";
    const unsigned char *data = (const unsigned char *)t->regex.data;
    if (data[t->at] != '\\') {
        t->at += utf8_decode(data + t->at, out);
        return ST_OK;
    }
    if (t->at + 1 >= t->regex.size) return refuse(t, "a backslash at the end");
    const char escaped = t->regex.data[t->at + 1];
    if (escaped == 'x' || escaped == 'u') return read_code(t, out);
    const char *letter = strchr(LETTERS, escaped);
    if (escaped != 0 && letter != NULL) {
        *out = (unsigned char)CODES[letter - LETTERS];
    } else if (is_in_class && escaped == 'b') {
        *out = '\b';
    } else if (is_letter(escaped) || is_digit(escaped) || (unsigned char)escaped >= 0x80) {
        return refuse(t, "this escape");
    } else {
        *out = (unsigned char)escaped;
    }
    t->at += 2;
    return ST_OK;
}

/* Oniguruma takes some pairs of letters for one character (ss for a sharp s, st, ff, fi, fl for
 * ligatures) and anything beyond ASCII by tables of its own where case is ignored. */
static enum status check_caseless(struct translator *t, uint32_t code) {
    const char lower = code < 0x80 && is_letter((char)code) ? (char)(code | 0x20) : 0;
    if (t->is_caseless[t->depth]) {
        if (code >= 0x80) return refuse(t, "a character beyond ASCII where case is ignored");
        const char last = t->last_literal;
        const bool is_pair = (last == 's' && (lower == 's' || lower == 't'))
                             || (last == 'f' && (lower == 'f' || lower == 'i' || lower == 'l'));
        if (is_pair) return refuse(t, "a pair of letters that is a ligature, case being ignored,");
    }
    t->last_literal = lower;
    return ST_OK;
}

static bool starts_set(const struct translator *t) {
    return t->regex.data[t->at] == '\\' && t->at + 1 < t->regex.size
           && t->regex.data[t->at + 1] != 0
           && strchr("sSdDwWpP", t->regex.data[t->at + 1]) != NULL;
}

/* \s and its kin, \p{...}: for the inside of a class. */
static enum status put_named(struct translator *t) {
    const char letter = t->regex.data[t->at + 1];
    if (letter == 'p' || letter == 'P') return put_property(t);
    const char name = (char)(letter | 0x20);
    const enum status status = put_set(t, (struct view){&name, 1}, letter != name);
    t->at += 2;
    return status;
}

/* One member of a class: a character, a range of them. */
static enum status put_member(struct translator *t) {
    uint32_t first, last;
    enum status status = read_literal(t, true, &first);
    if (status != ST_OK) return status;
    if (t->is_caseless[t->depth] && first >= 0x80) {
        return refuse(t, "a character beyond ASCII where case is ignored");
    }
    put_format(t, "\\x{%x}", first);
    const bool is_range = is_next(t, "-") && t->at + 1 < t->regex.size
                          && t->regex.data[t->at + 1] != ']';
    if (!is_range) return ST_OK;
    if (first == '-') return refuse(t, "a range that begins with a hyphen");
    t->at++;
    if (starts_set(t) || is_next(t, "[")) return refuse(t, "a range that ends with a set");
    status = read_literal(t, true, &last);
    if (status != ST_OK) return status;
    if (last < first || (t->is_caseless[t->depth] && last >= 0x80)) {
        return refuse(t, "this range");
    }
    put_format(t, "-\\x{%x}", last);
    const bool is_odd = is_next(t, "-") && t->at + 1 < t->regex.size
                        && t->regex.data[t->at + 1] != ']';
    return is_odd ? refuse(t, "a hyphen behind a range") : ST_OK;
}

static enum status put_class(struct translator *t) {
    put_text(t, "[");
    t->at++;
    if (is_next(t, "^")) {
        put_text(t, "^");
        t->at++;
    }
    if (is_next(t, "]")) return refuse(t, "an empty class");
    while (t->at < t->regex.size && t->regex.data[t->at] != ']') {
        if (is_next(t, "[")) return refuse(t, "a class within a class");
        if (is_next(t, "&&")) return refuse(t, "&& in a class");
        const enum status status = starts_set(t) ? put_named(t) : put_member(t);
        if (status != ST_OK) return status;
    }
    if (t->at >= t->regex.size) return refuse(t, "a class without an end");
    t->at++;
    put_text(t, "]");
    return ST_OK;
}

/* An edge of words is one of \w, which PCRE2 takes differently. */
static enum status put_word_edge(struct translator *t, bool is_inverted) {
    static const char *const EDGE[] = {"(?<=[", "])(?![", "])|(?<![", "])(?=[", "])"};
    static const char *const NO_EDGE[] = {"(?<=[", "])(?=[", "])|(?<![", "])(?![", "])"};
    const char *const *parts = is_inverted ? NO_EDGE : EDGE;
    put_text(t, "(?:");
    for (size_t i = 0; i < 5; i++) {
        put_text(t, parts[i]);
        const enum status status = i < 4 ? put_set(t, view_of("w"), false) : ST_OK;
        if (status != ST_OK) return status;
    }
    put_text(t, ")");
    t->at += 2;
    return ST_OK;
}

static enum status put_escape(struct translator *t) {
    if (starts_set(t)) {
        put_text(t, "[");
        const enum status status = put_named(t);
        put_text(t, "]");
        return status;
    }
    if (is_next(t, "\\b") || is_next(t, "\\B")) {
        return put_word_edge(t, t->regex.data[t->at + 1] == 'B');
    }
    if (is_next(t, "\\A") || is_next(t, "\\z") || is_next(t, "\\Z")) {
        put(t, t->regex.data + t->at, 2);
        t->at += 2;
        return ST_OK;
    }
    uint32_t code;
    enum status status = read_literal(t, false, &code);
    if (status != ST_OK || (status = check_caseless(t, code)) != ST_OK) return status;
    put_code(t, code);
    return ST_OK;
}

static enum status open_group(struct translator *t) {
    static const char *const KNOWN[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>",
                                        "(?i:", "(?-i:", NULL};
    if (is_next(t, "(?i)") && t->at == 0) { /* for all of it; later it would reach to the end */
        put_text(t, "(?i)");
        t->is_caseless[0] = true;
        t->at += 4;
        return ST_OK;
    }
    if (t->depth + 1 == DEPTH_MAX) return refuse(t, "nesting this deep");
    const char *opening = "(";
    if (is_next(t, "(?") || is_next(t, "(*")) {
        const char *const *known = KNOWN;
        while (*known != NULL && !is_next(t, *known)) known++;
        if (*known == NULL) return refuse(t, "this kind of group");
        opening = *known;
    }
    const bool is_caseless = strcmp(opening, "(?i:") == 0
                             || (strcmp(opening, "(?-i:") != 0 && t->is_caseless[t->depth]);
    t->group_at[t->depth] = t->out->size;
    t->is_caseless[++t->depth] = is_caseless;
    put_text(t, strcmp(opening, "(") == 0 ? "(?:" : opening);
    t->at += strlen(opening);
    t->atom_at = NONE;
    t->last_literal = 0;
    return ST_OK;
}

static enum status close_group(struct translator *t) {
    if (t->depth == 0) return refuse(t, "a closing parenthesis without an opening one");
    put_text(t, ")");
    t->at++;
    t->atom_at = (ptrdiff_t)t->group_at[--t->depth];
    t->last_literal = 0;
    return ST_OK;
}

/* {n}, {n,}, {,m} or {n,m} at t->at; false: a brace that stands for itself. */
static bool read_interval(const struct translator *t, size_t *out_end, bool *out_is_fixed) {
    size_t at = t->at + 1;
    const size_t low = at;
    while (at < t->regex.size && is_digit(t->regex.data[at])) at++;
    bool has_number = at > low;
    *out_is_fixed = at < t->regex.size && t->regex.data[at] == '}';
    if (at < t->regex.size && t->regex.data[at] == ',') {
        const size_t high = ++at;
        while (at < t->regex.size && is_digit(t->regex.data[at])) at++;
        has_number = has_number || at > high;
    }
    *out_end = at + 1;
    return has_number && at < t->regex.size && t->regex.data[at] == '}';
}

/* In Oniguruma a + behind an interval repeats it, a ? behind {n} makes it optional. */
static enum status put_interval(struct translator *t, size_t end, bool is_fixed) {
    const bool is_repeated = end < t->regex.size && t->regex.data[end] == '+';
    const bool is_lazy = end < t->regex.size && t->regex.data[end] == '?';
    if (is_lazy && is_fixed) return refuse(t, "{n}?");
    if (is_repeated) {
        const size_t tail = t->out->size - (size_t)t->atom_at;
        put_text(t, "(?:");
        if (t->out->is_out_of_memory) return ST_OK;
        memmove(t->out->data + t->atom_at + 3, t->out->data + t->atom_at, tail);
        memcpy(t->out->data + t->atom_at, "(?:", 3);
    }
    if (t->regex.data[t->at + 1] == ',') put_text(t, "{0"), t->at++;
    put(t, t->regex.data + t->at, end - t->at);
    if (is_repeated) put_text(t, ")+");
    if (is_lazy) put_text(t, "?");
    t->at = end + (is_repeated || is_lazy);
    return ST_OK;
}

static enum status put_quantifier(struct translator *t) {
    size_t end = t->at + 1;
    bool is_fixed = false;
    const bool is_interval = t->regex.data[t->at] == '{';
    if (t->atom_at == NONE) return refuse(t, "a repetition of nothing or of a repetition");
    if (is_interval) {
        (void)read_interval(t, &end, &is_fixed);
        const enum status status = put_interval(t, end, is_fixed);
        if (status != ST_OK) return status;
    } else {
        const bool has_mode =
            end < t->regex.size && (t->regex.data[end] == '?' || t->regex.data[end] == '+');
        put(t, t->regex.data + t->at, 1 + has_mode);
        t->at += 1 + has_mode;
    }
    t->atom_at = NONE;
    t->last_literal = 0;
    return ST_OK;
}

static enum status put_plain(struct translator *t) {
    uint32_t code;
    enum status status = read_literal(t, false, &code);
    if (status != ST_OK || (status = check_caseless(t, code)) != ST_OK) return status;
    put_code(t, code);
    return ST_OK;
}

static enum status put_next(struct translator *t) {
    const char c = t->regex.data[t->at];
    size_t end;
    bool is_fixed;
    if (c == '(') return open_group(t);
    if (c == ')') return close_group(t);
    if (c == '*' || c == '+' || c == '?' || (c == '{' && read_interval(t, &end, &is_fixed))) {
        return put_quantifier(t);
    }
    if (c == '|') {
        put_text(t, "|");
        t->at++;
        t->atom_at = NONE;
        t->last_literal = 0;
        return ST_OK;
    }
    t->atom_at = (ptrdiff_t)t->out->size;
    if (c == '\\') return put_escape(t);
    t->last_literal = is_letter(c) ? t->last_literal : 0;
    if (c == '[') return put_class(t);
    if (c == '.' || c == '^' || c == '$') {
        put_text(t, c == '.' ? "[^\\n]" : c == '^' ? "(?m:^)" : "(?m:$)");
        t->at++;
        return ST_OK;
    }
    return put_plain(t);
}

enum status pattern_translate(struct view regex, bool has_categories, struct pattern_text *out,
                              struct err *err) {
    struct translator t = {.regex = regex, .has_categories = has_categories, .out = out,
                           .err = err, .atom_at = NONE};
    if (utf8_valid_prefix(regex) < regex.size) {
        return err_set(err, ST_INVALID, "regular expression: not UTF-8");
    }
    while (t.at < regex.size) {
        const enum status status = put_next(&t);
        if (out->is_out_of_memory) return err_set(err, ST_NO_MEMORY, "no memory for a pattern");
        if (status != ST_OK) return status;
    }
    return t.depth > 0 ? refuse(&t, "a group without an end") : ST_OK;
}

/* Server-Timing, bytes to durations. Pure; any thread; never reads outside the view. Invariant:
 * only names of measure/stage.h and "total" are taken. Fuzzed by load_timing_header_fuzz.c. */
#include "load/timing_header.h"

#include <strings.h>

struct cursor { const char *at, *end; };

static void skip_blanks(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) c->at++;
}

static bool take(struct cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    skip_blanks(c);
    return true;
}

static bool is_token_char(char c) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static struct view take_token(struct cursor *c) {
    skip_blanks(c);
    struct view token = {.data = c->at};
    while (c->at < c->end && is_token_char(*c->at)) c->at++;
    token.size = (size_t)(c->at - token.data);
    return token;
}

/* A token, or a quoted string without its quotes (escapes left as they are). */
static bool take_value(struct cursor *c, struct view *out) {
    if (!take(c, '"')) {
        *out = take_token(c);
        return out->size > 0;
    }
    const char *start = c->at;
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\' && c->at + 1 < c->end) c->at++;
        c->at++;
    }
    if (c->at == c->end) return false;
    *out = (struct view){.data = start, .size = (size_t)(c->at - start)};
    c->at++;
    return true;
}

/* Decimal milliseconds to ns, digits below 1 ns dropped. */
static bool parse_ms(struct view text, uint64_t *out_ns) {
    size_t i = 0;
    uint64_t whole = 0, ns = 0, unit = 100000;
    while (i < text.size && text.data[i] >= '0' && text.data[i] <= '9') {
        whole = whole * 10 + (uint64_t)(text.data[i++] - '0');
        if (whole > 1000000000000u) return false;
    }
    size_t digits = i;
    if (i < text.size && text.data[i] == '.') {
        for (i++; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++, digits++) {
            ns += (uint64_t)(text.data[i] - '0') * unit;
            unit /= 10;
        }
    }
    if (digits == 0 || i != text.size) return false;
    *out_ns = whole * 1000000 + ns;
    return true;
}

static void keep(struct timing_header *out, struct view name, uint64_t ns) {
    if (view_is(name, "total")) {
        out->has_total = true;
        out->total_ns = ns;
        return;
    }
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (!view_is(name, stage_name((enum stage)i))) continue;
        out->seen |= 1u << i;
        out->stage_ns[i] = ns;
        return;
    }
}

static bool parse_entry(struct cursor *c, struct timing_header *out) {
    struct view name = take_token(c);
    if (name.size == 0) return false;
    bool has_duration = false;
    uint64_t ns = 0;
    while (take(c, ';')) {
        struct view key = take_token(c), value = {0};
        if (key.size == 0) return false;
        if (!take(c, '=')) continue; /* a parameter without a value */
        if (!take_value(c, &value)) return false;
        if (key.size != 3 || strncasecmp(key.data, "dur", 3) != 0 || has_duration) continue;
        if (!parse_ms(value, &ns)) return false;
        has_duration = true;
    }
    if (has_duration) keep(out, name, ns);
    return true;
}

bool timing_header_parse(struct view text, struct timing_header *out) {
    *out = (struct timing_header){0};
    struct cursor c = {.at = text.data, .end = text.data + text.size};
    if (text.size == 0) return true;
    do {
        if (!parse_entry(&c, out)) return false;
    } while (take(&c, ','));
    return c.at == c.end;
}

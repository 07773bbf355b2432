/* Searching: a string by memchr and memcmp, a well-known regular expression by its scanner, any
 * other by PCRE2. Any thread. Invariant: matches come in order and do not overlap, and an empty
 * one never right behind another; a match that PCRE2 gives up on is an error, not an answer.
 * Read pattern_translate.c and pattern_scan.c next. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "prep/pattern.h"
#include "prep/pattern_scan.h"
#include "prep/pattern_translate.h"
#include <pcre2.h>
#include <stdlib.h>

enum {
    /* Steps of one match: a hostile text shall not hold a thread for longer than milliseconds.
     * The well-known patterns take a few a character. */
    MATCH_STEPS = 1000000,
    HEAP_KIB = 16384,
    REGEX_BYTES = 8192,
};
/* The Unicode version of pattern_ranges.h: of a PCRE2 with another, older or newer, no category is
 * taken. unit.prep_splitter looks at every code point. */
static const char CATEGORIES_VERSION[] = "16.0.0";

struct pattern {
    pattern_scan_fn scan; /* or */
    struct scan_table *table;
    pcre2_code *code; /* or, where both are NULL: */
    pcre2_match_context *limits;
    size_t size;
    char string[];
};

static bool has_same_categories(void) {
    char version[24];
    return pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) <= (int)sizeof version
           && pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0
           && strcmp(version, CATEGORIES_VERSION) == 0;
}

static enum status compile(struct pattern *pattern, struct pattern_text text, struct err *err) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pattern->limits = pcre2_match_context_create(NULL);
    if (context == NULL || pattern->limits == NULL) {
        pcre2_compile_context_free(context);
        return err_set(err, ST_NO_MEMORY, "no memory for a pattern");
    }
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_match_limit(pattern->limits, MATCH_STEPS);
    (void)pcre2_set_heap_limit(pattern->limits, HEAP_KIB);
    int code;
    PCRE2_SIZE at;
    const char *data = text.data != NULL ? text.data : ""; /* NULL: an empty one */
    pattern->code =
        pcre2_compile((PCRE2_SPTR)data, text.size, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                      &code, &at, context);
    pcre2_compile_context_free(context);
    if (pattern->code == NULL) {
        PCRE2_UCHAR message[120] = "";
        (void)pcre2_get_error_message(code, message, sizeof message);
        return err_set(err, code == PCRE2_ERROR_HEAP_FAILED ? ST_NO_MEMORY : ST_UNSUPPORTED,
                       "regular expression: %s (byte %zu of the translated one)",
                       (const char *)message, (size_t)at);
    }
    (void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* without it: slower, the same */
    return ST_OK;
}

static enum status compile_regex(struct pattern *pattern, struct view regex, struct err *err) {
    if (regex.size > REGEX_BYTES) {
        return err_set(err, ST_UNSUPPORTED, "regular expression: %zu bytes; at most %d are "
                       "supported", regex.size, REGEX_BYTES);
    }
    struct pattern_text text = {.data = NULL};
    enum status status = pattern_translate(regex, has_same_categories(), &text, err);
    if (status == ST_OK) status = compile(pattern, text, err);
    free(text.data);
    return status;
}

enum status pattern_create(struct view text, enum pattern_kind kind, struct pattern **out,
                           struct err *err) {
    struct pattern *pattern = calloc(1, sizeof *pattern + text.size);
    if (pattern == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a pattern");
    enum status status = ST_OK;
    pattern->scan = kind == PATTERN_REGEX ? pattern_scan_find(text) : NULL;
    if (pattern->scan != NULL) {
        pattern->table = scan_table_create();
        if (pattern->table == NULL) status = err_set(err, ST_NO_MEMORY, "no memory for a pattern");
    } else if (kind != PATTERN_STRING || text.size == 0) {
        status = compile_regex(pattern, text, err);
    } else {
        memcpy(pattern->string, text.data, text.size);
        pattern->size = text.size;
    }
    if (status != ST_OK) {
        pattern_free(pattern);
        return status;
    }
    *out = pattern;
    return ST_OK;
}

void pattern_free(struct pattern *pattern) {
    if (pattern == NULL) return;
    scan_table_free(pattern->table);
    pcre2_code_free(pattern->code);
    pcre2_match_context_free(pattern->limits);
    free(pattern);
}

bool pattern_matches_all(const struct pattern *pattern) { return pattern->scan != NULL; }

static void *take_from_arena(PCRE2_SIZE size, void *arena) { return arena_alloc(arena, size); }
static void leave_to_arena(void *data, void *arena) { (void)data, (void)arena; }

bool pattern_begin(const struct pattern *pattern, struct arena *arena,
                   struct pattern_cursor *out) {
    *out = (struct pattern_cursor){.pattern = pattern};
    if (pattern->code == NULL) return true;
    pcre2_general_context *context =
        pcre2_general_context_create(take_from_arena, leave_to_arena, arena);
    if (context != NULL) out->match_data = pcre2_match_data_create(1, context);
    return out->match_data != NULL;
}

void pattern_search(struct pattern_cursor *cursor, const unsigned char *data, size_t size) {
    cursor->data = data;
    cursor->size = size;
    cursor->at = cursor->last_end = 0;
    cursor->has_match = false;
}

static enum pattern_found next_string(struct pattern_cursor *cursor, size_t *out_start,
                                      size_t *out_end) {
    const struct pattern *pattern = cursor->pattern;
    while (cursor->size - cursor->at >= pattern->size) {
        const unsigned char *found = memchr(cursor->data + cursor->at, pattern->string[0],
                                            cursor->size - cursor->at - pattern->size + 1);
        if (found == NULL) break;
        const size_t start = (size_t)(found - cursor->data);
        cursor->at = start + 1;
        if (memcmp(found, pattern->string, pattern->size) == 0) {
            *out_start = start;
            *out_end = cursor->at = start + pattern->size;
            return PATTERN_MATCH;
        }
    }
    return PATTERN_END;
}

static int match_at(struct pattern_cursor *cursor) {
    const struct pattern *pattern = cursor->pattern;
    int code = pcre2_match(pattern->code, cursor->data, cursor->size, cursor->at,
                           PCRE2_NO_UTF_CHECK, cursor->match_data, pattern->limits);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) { /* the interpreter's stack is the heap's */
        code = pcre2_match(pattern->code, cursor->data, cursor->size, cursor->at,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, cursor->match_data,
                           pattern->limits);
    }
    return code;
}

static void skip_code(struct pattern_cursor *cursor) {
    cursor->at++;
    while (cursor->at < cursor->size && (cursor->data[cursor->at] & 0xc0) == 0x80) cursor->at++;
}

static enum pattern_found next_regex(struct pattern_cursor *cursor, size_t *out_start,
                                     size_t *out_end) {
    while (cursor->at <= cursor->size) {
        const int code = match_at(cursor);
        if (code == PCRE2_ERROR_NOMATCH) return PATTERN_END;
        if (code < 0) return PATTERN_FAILED;
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(cursor->match_data);
        const size_t start = bounds[0], end = bounds[1];
        if (start == end && cursor->has_match && cursor->last_end == end) {
            skip_code(cursor);
            continue;
        }
        cursor->at = cursor->last_end = end;
        cursor->has_match = true;
        *out_start = start;
        *out_end = end;
        return PATTERN_MATCH;
    }
    return PATTERN_END;
}

enum pattern_found pattern_next(struct pattern_cursor *cursor, size_t *out_start,
                                size_t *out_end) {
    const struct pattern *pattern = cursor->pattern;
    if (pattern->scan != NULL) {
        if (cursor->at >= cursor->size) return PATTERN_END;
        *out_start = cursor->at;
        *out_end = cursor->at =
            pattern->scan(pattern->table, cursor->data, cursor->at, cursor->size);
        return PATTERN_MATCH;
    }
    if (cursor->size == 0) return PATTERN_END;
    return pattern->code != NULL ? next_regex(cursor, out_start, out_end)
                                 : next_string(cursor, out_start, out_end);
}

/* The first byte chooses. Even: the rest is a regular expression, a line end and a text: it must be
 * refused or searched to its end, matches in order and between characters. Odd: the rest is a text,
 * on which the scanner of a well-known pattern must give what PCRE2 gives. */
#include "prep/pattern.h"
#include "prep/pattern_scan.h"
#include "prep/unicode_table.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char *const WELL_KNOWN[] = {
    PATTERN_GPT2,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES,
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
    SPACES,
};
enum { WELL_KNOWN_COUNT = 4 };

static bool is_edge(struct view text, size_t at) {
    return at == text.size || ((unsigned char)text.data[at] & 0xc0) != 0x80;
}

static void search(struct view regex, struct view text) {
    struct pattern *pattern;
    if (pattern_create(regex, PATTERN_REGEX_GENERIC, &pattern, NULL) != ST_OK) return;
    struct arena arena = {.first = NULL};
    struct pattern_cursor cursor;
    if (!pattern_begin(pattern, &arena, &cursor)) abort();
    pattern_search(&cursor, (const unsigned char *)text.data, text.size);
    size_t start, end, done = 0;
    while (pattern_next(&cursor, &start, &end) == PATTERN_MATCH) {
        if (start < done || end < start || end > text.size) abort();
        if (!is_edge(text, start) || !is_edge(text, end)) abort();
        done = end;
    }
    arena_done(&arena);
    pattern_free(pattern);
}

static void hold_against_each_other(size_t which, struct view text) {
    static struct pattern *pairs[WELL_KNOWN_COUNT][2]; /* made once: they are const afterwards */
    struct arena arena = {.first = NULL};
    struct pattern_cursor cursors[2];
    for (size_t i = 0; i < 2; i++) {
        if (pairs[which][i] == NULL
            && pattern_create(view_of(WELL_KNOWN[which]),
                              i == 0 ? PATTERN_REGEX : PATTERN_REGEX_GENERIC, &pairs[which][i],
                              NULL) != ST_OK) {
            abort();
        }
        if (!pattern_begin(pairs[which][i], &arena, &cursors[i])) abort();
        pattern_search(&cursors[i], (const unsigned char *)text.data, text.size);
    }
    size_t starts[2], ends[2];
    enum pattern_found found;
    do {
        found = pattern_next(&cursors[0], &starts[0], &ends[0]);
        const enum pattern_found other = pattern_next(&cursors[1], &starts[1], &ends[1]);
        if (other == PATTERN_FAILED) break;
        if (found != other) abort();
        if (found == PATTERN_MATCH && (starts[0] != starts[1] || ends[0] != ends[1])) abort();
    } while (found == PATTERN_MATCH);
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const struct view rest = {(const char *)data + 1, size - 1};
    if (data[0] & 1) {
        hold_against_each_other((data[0] >> 1) % WELL_KNOWN_COUNT,
                                (struct view){rest.data, utf8_valid_prefix(rest)});
        return 0;
    }
    const char *line_end = memchr(rest.data, '\n', rest.size);
    if (line_end == NULL) return 0;
    const struct view regex = {rest.data, (size_t)(line_end - rest.data)};
    struct view text = {line_end + 1, rest.size - regex.size - 1};
    text.size = utf8_valid_prefix(text);
    search(regex, text);
    return 0;
}

/* Hand-written forms of well-known patterns: a look-up a character where a regular expression
 * takes steps. Any thread. Invariant: each gives what the generic way gives for the same pattern
 * (unit.prep_splitter and the fuzz target hold them against each other). "Other" below is what
 * the patterns call [^\s\p{L}\p{N}]. Read pattern.c for who calls. */
#include "prep/pattern_scan.h"
#include "prep/unicode_table.h"

enum { TAKES_SLASH = 1 << 0 };

const char PATTERN_GPT2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char CL100K[] = CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
                             "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES;
static const char QWEN[] = CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES;
static const char O200K[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" CONTRACTIONS "?"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" CONTRACTIONS "?"
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES;

static unsigned class_at(const struct scan_table *table, const unsigned char *data,
                         size_t *out_length) {
    if (data[0] < 0x80) {
        *out_length = 1;
        return table->ascii[data[0]];
    }
    uint32_t code;
    *out_length = utf8_decode(data, &code);
    return table->pages[table->page_of[code / SCAN_PAGE_CODES]][code % SCAN_PAGE_CODES];
}

/* The end of the characters from `at` on that have one of the classes in wanted. */
static size_t run_of(const struct scan_table *table, const unsigned char *data, size_t at,
                     size_t size, unsigned wanted) {
    size_t length;
    while (at < size && (class_at(table, data + at, &length) & wanted) != 0) at += length;
    return at;
}

static size_t run_of_others(const struct scan_table *table, const unsigned char *data, size_t at,
                            size_t size) {
    const unsigned not_other = SCAN_LETTER | SCAN_NUMBER | SCAN_SPACE;
    size_t length;
    while (at < size && (class_at(table, data + at, &length) & not_other) == 0) at += length;
    return at;
}

/* White space from at on: up to its last line's end where there is one and takes_lines; else all
 * at the end of the text, and before other text all but the last character (unless that is the
 * only one), which is left to the word behind it. */
static size_t scan_spaces(const struct scan_table *table, const unsigned char *data, size_t at,
                          size_t size, bool takes_lines) {
    size_t last = at, lines_end = 0, end = at, length;
    while (end < size) {
        const unsigned class = class_at(table, data + end, &length);
        if ((class & SCAN_SPACE) == 0) break;
        last = end;
        end += length;
        if (class & SCAN_NEWLINE) lines_end = end;
    }
    if (takes_lines && lines_end > 0) return lines_end;
    return end < size && last > at ? last : end;
}

/* GPT-2 */
static size_t contraction(const unsigned char *data, size_t at, size_t size) {
    const size_t left = size - at;
    if (left < 2 || data[at] != '\'') return at;
    const unsigned char first = data[at + 1];
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if (left < 3) return at;
    const unsigned char second = data[at + 2];
    const bool is_one = ((first == 'r' || first == 'v') && second == 'e')
                        || (first == 'l' && second == 'l');
    return is_one ? at + 3 : at;
}

static size_t scan_gpt2(const struct scan_table *table, const unsigned char *data, size_t at,
                        size_t size) {
    const size_t end = contraction(data, at, size);
    if (end > at) return end;
    size_t length;
    unsigned class = class_at(table, data + at, &length);
    if (class & SCAN_SPACE) {
        const size_t next = at + 1;
        if (data[at] != ' ' || next == size) return scan_spaces(table, data, at, size, false);
        class = class_at(table, data + next, &length);
        if (class & SCAN_SPACE) return scan_spaces(table, data, at, size, false);
        at = next;
    }
    at += length;
    return class & SCAN_LETTER   ? run_of(table, data, at, size, SCAN_LETTER)
           : class & SCAN_NUMBER ? run_of(table, data, at, size, SCAN_NUMBER)
                                 : run_of_others(table, data, at, size);
}

/* The same in either case; U+017F, the long s, is an s there. */
static size_t contraction_any_case(const unsigned char *data, size_t at, size_t size) {
    const size_t left = size - at;
    if (left < 2 || data[at] != '\'') return at;
    const unsigned char first = data[at + 1] | 0x20;
    const bool is_ascii = data[at + 1] < 0x80;
    if (is_ascii && (first == 's' || first == 't' || first == 'm' || first == 'd')) return at + 2;
    if (left < 3) return at;
    if (data[at + 1] == 0xc5 && data[at + 2] == 0xbf) return at + 3;
    if (!is_ascii || data[at + 2] >= 0x80) return at;
    const unsigned char second = data[at + 2] | 0x20;
    const bool is_one = ((first == 'r' || first == 'v') && second == 'e')
                        || (first == 'l' && second == 'l');
    return is_one ? at + 3 : at;
}

static size_t scan_numbers(const struct scan_table *table, const unsigned char *data, size_t at,
                           size_t size, unsigned limit) {
    size_t length;
    while (limit-- > 0 && at < size && (class_at(table, data + at, &length) & SCAN_NUMBER)) {
        at += length;
    }
    return at;
}

/* Others behind an optional space, and the line ends (and slashes) behind them. Returns at when
 * there are none. */
static size_t scan_others(const struct scan_table *table, const unsigned char *data, size_t at,
                          size_t size, unsigned flags) {
    const size_t start = at + (data[at] == ' ');
    size_t end = run_of_others(table, data, start, size);
    if (end == start) return at;
    while (end < size
           && (data[end] == '\r' || data[end] == '\n'
               || (data[end] == '/' && (flags & TAKES_SLASH)))) {
        end++;
    }
    return end;
}

static size_t scan_cl100k_numbers(const struct scan_table *table, const unsigned char *data,
                                  size_t at, size_t size, unsigned numbers) {
    size_t length;
    const unsigned class = class_at(table, data + at, &length);
    if (class & SCAN_LETTER) return run_of(table, data, at + length, size, SCAN_LETTER);
    if (class & SCAN_NUMBER) return scan_numbers(table, data, at, size, numbers);
    size_t end = contraction_any_case(data, at, size);
    if (end > at) return end;
    if ((class & SCAN_NEWLINE) == 0) {
        end = run_of(table, data, at + length, size, SCAN_LETTER);
        if (end > at + length) return end;
    }
    end = scan_others(table, data, at, size, 0);
    return end > at ? end : scan_spaces(table, data, at, size, true);
}

static size_t scan_cl100k(const struct scan_table *table, const unsigned char *data, size_t at,
                          size_t size) {
    return scan_cl100k_numbers(table, data, at, size, 3);
}

static size_t scan_qwen(const struct scan_table *table, const unsigned char *data, size_t at,
                        size_t size) {
    return scan_cl100k_numbers(table, data, at, size, 1);
}

/* Upper case, then at least one of lower case, from at on; returns at where that is not so. A
 * character that is neither (SCAN_UPPER and SCAN_LOWER both) may end it: the last such one among
 * those that count as upper case does, when nothing of lower case follows them. */
static size_t upper_then_lower(const struct scan_table *table, const unsigned char *data,
                               size_t at, size_t size, size_t *out_upper_end) {
    size_t end = at, both_end = at, length;
    while (end < size) {
        const unsigned class = class_at(table, data + end, &length);
        if ((class & SCAN_UPPER) == 0) break;
        end += length;
        if (class & SCAN_LOWER) both_end = end;
    }
    *out_upper_end = end;
    const size_t lower_end = run_of(table, data, end, size, SCAN_LOWER);
    return lower_end > end ? lower_end : both_end;
}

/* A word of o200k, one character before it included where that is no letter, number or line end.
 * Returns at where there is none. */
static size_t scan_o200k_word(const struct scan_table *table, const unsigned char *data,
                              size_t at, size_t size) {
    size_t length;
    const unsigned class = class_at(table, data + at, &length);
    const bool has_prefix = (class & (SCAN_LETTER | SCAN_NUMBER | SCAN_NEWLINE)) == 0;
    const size_t start = at + (has_prefix ? length : 0);
    size_t upper_end, bare_upper_end = at;
    size_t end = upper_then_lower(table, data, start, size, &upper_end);
    if (end > start) return end;
    if (has_prefix) { /* a mark: prefix or word */
        end = upper_then_lower(table, data, at, size, &bare_upper_end);
        if (end > at) return end;
    }
    return upper_end > start ? upper_end : bare_upper_end;
}

static size_t scan_o200k(const struct scan_table *table, const unsigned char *data, size_t at,
                         size_t size) {
    size_t end = scan_o200k_word(table, data, at, size);
    if (end > at) return contraction_any_case(data, end, size);
    end = scan_numbers(table, data, at, size, 3);
    if (end > at) return end;
    end = scan_others(table, data, at, size, TAKES_SLASH);
    return end > at ? end : scan_spaces(table, data, at, size, true);
}

pattern_scan_fn pattern_scan_find(struct view regex) {
    return view_is(regex, PATTERN_GPT2) ? scan_gpt2
           : view_is(regex, CL100K)     ? scan_cl100k
           : view_is(regex, QWEN)       ? scan_qwen
           : view_is(regex, O200K)      ? scan_o200k : NULL;
}

/* Sets of code points that patterns name (\p{Lu}, \w, a script), as Hugging Face's tokenizers
 * library has them, and what the scanners of well-known patterns need to know of a code point.
 * Const; any thread. */
#ifndef TELLTALE_PREP_PATTERN_SETS_H
#define TELLTALE_PREP_PATTERN_SETS_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern_range {
    uint32_t first, last;
};

struct pattern_set {
    struct pattern_range *ranges; /* ascending, apart */
    size_t count;
};

/* The set of that name: a general category ("Lu"), a group of them ("L"), one of some scripts
 * ("Han"), "w", "s", "d" or "numeric". ranges NULL: no such name (*out_is_known false) or no
 * memory. The caller frees ranges. */
struct pattern_set pattern_set_named(struct view name, bool *out_is_known);
/* All others that can stand in a text; the caller frees ranges, NULL: no memory. */
struct pattern_set pattern_set_inverted(struct pattern_set set);
/* name is a general category or a group of them, which PCRE2 has under the same name. */
bool pattern_set_is_category(struct view name);

enum scan_class {
    SCAN_LETTER = 1 << 0,  /* L */
    SCAN_NUMBER = 1 << 1,  /* N */
    SCAN_SPACE = 1 << 2,
    SCAN_NEWLINE = 1 << 3, /* carriage return or line feed */
    SCAN_UPPER = 1 << 4,   /* Lu, Lt, Lm, Lo, M */
    SCAN_LOWER = 1 << 5,   /* Ll, Lm, Lo, M */
};

enum { SCAN_PAGE_CODES = 256, SCAN_PAGES = 0x110000 / SCAN_PAGE_CODES };

struct scan_table {
    uint8_t ascii[128];
    uint16_t page_of[SCAN_PAGES];
    uint8_t (*pages)[SCAN_PAGE_CODES];
};

struct scan_table *scan_table_create(void); /* NULL: no memory */
void scan_table_free(struct scan_table *table);

#endif

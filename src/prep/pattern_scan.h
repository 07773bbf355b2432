/* Scanners: the patterns that most byte-level tokenizers are split by, each as a hand-written
 * function over a table. Which pattern is meant is told by its exact text. Const; any thread. */
#ifndef TELLTALE_PREP_PATTERN_SCAN_H
#define TELLTALE_PREP_PATTERN_SCAN_H

#include "prep/pattern_sets.h"

/* The end of the match that starts at byte `at` < size of valid UTF-8. These patterns match
 * something everywhere. */
typedef size_t (*pattern_scan_fn)(const struct scan_table *table, const unsigned char *data,
                                  size_t at, size_t size);

extern const char PATTERN_GPT2[];
pattern_scan_fn pattern_scan_find(struct view regex); /* NULL: no scanner for it */

#endif

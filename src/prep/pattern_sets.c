/* The generated ranges behind names, and unfolded for the scanners. Load time. Invariant: a set's
 * ranges ascend and do not touch; none begins or ends among the surrogates, which no text holds.
 * Read pattern_translate.c for the use of the names, pattern_scan.c for that of the table. */
#include "prep/pattern_sets.h"
#include <stdlib.h>

#include "prep/pattern_ranges.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { SURROGATE_FIRST = 0xd800, SURROGATE_LAST = 0xdfff, CODE_LAST = 0x10ffff };

struct named_ranges {
    const char *name;
    const struct pattern_range *ranges;
    size_t count;
};
static const struct named_ranges NAMED[] = {
#define X(name, ranges) {name, ranges, COUNT_OF(ranges)},
    RANGES_TABLE(X)
#undef X
};

/* The groups, by the first letter of their categories; C is not among them: it holds what has
 * not been assigned, which is another set in each version of Unicode. */
static const char GROUPS[] = "LMNPSZ";

static bool is_group(struct view name) {
    return name.size == 1 && strchr(GROUPS, name.data[0]) != NULL;
}

bool pattern_set_is_category(struct view name) {
    if (is_group(name)) return true;
    for (size_t i = 0; i < COUNT_OF(NAMED); i++) {
        if (name.size == 2 && view_is(name, NAMED[i].name)) return true;
    }
    return false;
}

static bool belongs(const struct named_ranges *named, struct view name) {
    if (is_group(name)) return strlen(named->name) == 2 && named->name[0] == name.data[0];
    return view_is(name, named->name);
}

static int compare_ranges(const void *a, const void *b) {
    const struct pattern_range *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

struct pattern_set pattern_set_named(struct view name, bool *out_is_known) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(NAMED); i++) {
        count += belongs(&NAMED[i], name) ? NAMED[i].count : 0;
    }
    *out_is_known = count > 0;
    struct pattern_set set = {.ranges = count > 0 ? malloc(count * sizeof *set.ranges) : NULL};
    if (set.ranges == NULL) return set;
    count = 0;
    for (size_t i = 0; i < COUNT_OF(NAMED); i++) {
        if (!belongs(&NAMED[i], name)) continue;
        memcpy(set.ranges + count, NAMED[i].ranges, NAMED[i].count * sizeof *set.ranges);
        count += NAMED[i].count;
    }
    qsort(set.ranges, count, sizeof *set.ranges, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        struct pattern_range *last = set.count > 0 ? &set.ranges[set.count - 1] : NULL;
        if (last != NULL && last->last + 1 == set.ranges[i].first) {
            last->last = set.ranges[i].last;
        } else {
            set.ranges[set.count++] = set.ranges[i];
        }
    }
    return set;
}

static void push_gap(struct pattern_set *set, uint32_t first, uint32_t last) {
    if (first >= SURROGATE_FIRST && first <= SURROGATE_LAST) first = SURROGATE_LAST + 1;
    if (last >= SURROGATE_FIRST && last <= SURROGATE_LAST) last = SURROGATE_FIRST - 1;
    if (first <= last) set->ranges[set->count++] = (struct pattern_range){first, last};
}

struct pattern_set pattern_set_inverted(struct pattern_set set) {
    struct pattern_set out = {.ranges = malloc((set.count + 1) * sizeof *out.ranges)};
    uint32_t next = 0;
    for (size_t i = 0; out.ranges != NULL && i < set.count; i++) {
        if (set.ranges[i].first > 0) push_gap(&out, next, set.ranges[i].first - 1);
        next = set.ranges[i].last + 1;
    }
    if (out.ranges != NULL) push_gap(&out, next, CODE_LAST);
    return out;
}

static bool mark_set(uint8_t *flags, const char *name, unsigned flag) {
    bool is_known;
    const struct pattern_set set = pattern_set_named(view_of(name), &is_known);
    for (size_t i = 0; i < set.count; i++) {
        for (uint32_t code = set.ranges[i].first; code <= set.ranges[i].last; code++) {
            flags[code] |= (uint8_t)flag;
        }
    }
    free(set.ranges);
    return set.ranges != NULL;
}

static bool mark_sets(uint8_t *flags) {
    static const struct {
        const char *name;
        unsigned flags;
    } SETS[] = {
        {"L", SCAN_LETTER}, {"N", SCAN_NUMBER}, {"s", SCAN_SPACE},
        {"Lu", SCAN_UPPER}, {"Lt", SCAN_UPPER}, {"Ll", SCAN_LOWER},
        {"Lm", SCAN_UPPER | SCAN_LOWER}, {"Lo", SCAN_UPPER | SCAN_LOWER},
        {"M", SCAN_UPPER | SCAN_LOWER},
    };
    for (size_t i = 0; i < COUNT_OF(SETS); i++) {
        if (!mark_set(flags, SETS[i].name, SETS[i].flags)) return false;
    }
    flags['\r'] |= SCAN_NEWLINE;
    flags['\n'] |= SCAN_NEWLINE;
    return true;
}

/* Pages with the same content are stored once; the one before is tried first. */
static void fold_pages(struct scan_table *table, const uint8_t *flags) {
    size_t count = 0, at = 0;
    for (size_t page = 0; page < SCAN_PAGES; page++) {
        const uint8_t *content = flags + page * SCAN_PAGE_CODES;
        if (count == 0 || memcmp(table->pages[at], content, SCAN_PAGE_CODES) != 0) {
            at = 0;
            while (at < count && memcmp(table->pages[at], content, SCAN_PAGE_CODES) != 0) at++;
        }
        if (at == count) memcpy(table->pages[count++], content, SCAN_PAGE_CODES);
        table->page_of[page] = (uint16_t)at;
    }
    uint8_t (*smaller)[SCAN_PAGE_CODES] = realloc(table->pages, count * sizeof *table->pages);
    if (smaller != NULL) table->pages = smaller;
}

struct scan_table *scan_table_create(void) {
    struct scan_table *table = calloc(1, sizeof *table);
    uint8_t *flags = calloc(SCAN_PAGES, SCAN_PAGE_CODES);
    if (table != NULL) table->pages = malloc(SCAN_PAGES * sizeof *table->pages);
    if (table == NULL || flags == NULL || table->pages == NULL || !mark_sets(flags)) {
        free(flags);
        scan_table_free(table);
        return NULL;
    }
    fold_pages(table, flags);
    memcpy(table->ascii, flags, sizeof table->ascii);
    free(flags);
    return table;
}

void scan_table_free(struct scan_table *table) {
    if (table == NULL) return;
    free(table->pages);
    free(table);
}

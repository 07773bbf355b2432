/* Code point properties: generated ranges unfolded into a two-level table, so that a property
 * costs two loads. Any thread after unicode_table_create. Invariant: pages with the same content
 * are stored once, and page 0 covers ASCII. Read bert_normalizer.c next for the use. */
#include "prep/unicode_table.h"
#include <stdlib.h>
#include <utf8proc.h>

struct code_range {
    uint32_t first, last;
};
struct class_range {
    uint32_t first, last, rank;
};
struct lower_range {
    uint32_t first, last, step;
    int32_t delta;
};

#include "prep/unicode_decomposition.h"
#include "prep/unicode_forms.h"
#include "prep/unicode_ranges.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    PAGE_CODES = 256,
    PAGE_COUNT = CODE_POINTS / PAGE_CODES,
    MAP_SLOTS = 8192, /* about 2,060 decompositions or 1,430 lower cases: never half full */
    PAIR_SLOTS = 2048, /* about 940 compositions: never half full */
    HANGUL_FIRST = 0xac00,
    HANGUL_LAST = 0xd7a3,
    LEAD_FIRST = 0x1100, LEAD_COUNT = 19, /* Unicode 3.12 */
    VOWEL_FIRST = 0x1161, VOWEL_COUNT = 21,
    TAIL_BASE = 0x11a7, TAIL_COUNT = 28, /* the base stands for no tail */
};

/* Code point to a number, open addressing; code 0 marks an empty slot. */
struct code_map {
    struct {
        uint32_t code, value;
    } slots[MAP_SLOTS];
};

/* Two code points to what they join to. */
struct pair_slot {
    uint32_t first, second, joined; /* joined 0: free */
};

struct unicode_table {
    struct pair_slot pairs[PAIR_SLOTS];
    uint16_t page_of[PAGE_COUNT];
    uint16_t *pages; /* PAGE_CODES flags each */
    struct code_map decompositions; /* to an index in DECOMPOSITION */
    struct code_map lowers;         /* to the lower-case code */
};

static size_t code_map_slot(const struct code_map *map, uint32_t code) {
    size_t slot = (code * 0x9e3779b1u) >> 19; /* the top 13 bits: MAP_SLOTS */
    while (map->slots[slot].code != code && map->slots[slot].code != 0) {
        slot = (slot + 1) % MAP_SLOTS;
    }
    return slot;
}

static void code_map_put(struct code_map *map, uint32_t code, uint32_t value) {
    size_t slot = code_map_slot(map, code);
    map->slots[slot].code = code;
    map->slots[slot].value = value;
}

static struct pair_slot *pair_slot(const struct unicode_table *table, uint32_t first,
                                   uint32_t second) {
    size_t slot = (first * 0x9e3779b1u ^ second * 0x85ebca6bu) >> 21; /* the top 11 bits */
    const struct pair_slot *pairs = table->pairs;
    while (pairs[slot].joined != 0
           && (pairs[slot].first != first || pairs[slot].second != second)) {
        slot = (slot + 1) % PAIR_SLOTS;
    }
    return (struct pair_slot *)&pairs[slot];
}

static void mark(uint16_t *flags, uint32_t first, uint32_t last, unsigned flag) {
    for (uint32_t code = first; code <= last; code++) {
        flags[code] |= (uint16_t)flag;
    }
}

static void mark_all(uint16_t *flags, const struct code_range *ranges, size_t count,
                     unsigned flag) {
    for (size_t i = 0; i < count; i++) {
        mark(flags, ranges[i].first, ranges[i].last, flag);
    }
}

/* The decompositions that come back, backwards: what all parts but the last join to, and the last.
 * Shorter ones first, since a longer one starts with what a shorter one makes. */
static void unfold_compositions(struct unicode_table *table, uint16_t *flags) {
    mark(flags, VOWEL_FIRST, VOWEL_FIRST + VOWEL_COUNT - 1, CODE_JOINS);
    mark(flags, TAIL_BASE + 1, TAIL_BASE + TAIL_COUNT - 1, CODE_JOINS);
    for (uint32_t length = 2; length <= 4; length++) {
        for (size_t i = 0; i < COUNT_OF(DECOMPOSITION); i += 2 + DECOMPOSITION[i + 1]) {
            const uint32_t *parts = &DECOMPOSITION[i + 2];
            if (DECOMPOSITION[i + 1] != length || (flags[DECOMPOSITION[i]] & CODE_NOT_COMPOSED)) {
                continue;
            }
            uint32_t first = parts[0];
            for (uint32_t k = 1; k + 1 < length && first != 0; k++) {
                first = unicode_compose(table, first, parts[k]);
            }
            if (first == 0) continue;
            const uint32_t last = parts[length - 1];
            *pair_slot(table, first, last) = (struct pair_slot){first, last, DECOMPOSITION[i]};
            flags[last] |= CODE_JOINS;
        }
    }
}

/* Fills a flat array of flags and the maps. */
static void unfold(struct unicode_table *table, uint16_t *flags) {
    mark_all(flags, CONTROL, COUNT_OF(CONTROL), CODE_CONTROL);
    mark_all(flags, WHITESPACE, COUNT_OF(WHITESPACE), CODE_WHITESPACE);
    mark_all(flags, PUNCTUATION, COUNT_OF(PUNCTUATION), CODE_PUNCTUATION);
    mark_all(flags, CHINESE, COUNT_OF(CHINESE), CODE_CHINESE);
    mark_all(flags, MARK, COUNT_OF(MARK), CODE_MARK);
    mark_all(flags, WORD, COUNT_OF(WORD), CODE_WORD);
    mark_all(flags, COMPATIBLE, COUNT_OF(COMPATIBLE), CODE_COMPATIBLE);
    mark_all(flags, NOT_COMPOSED, COUNT_OF(NOT_COMPOSED), CODE_NOT_COMPOSED);
    mark_all(flags, ANY_MARK, COUNT_OF(ANY_MARK), CODE_ANY_MARK);
    for (size_t i = 0; i < COUNT_OF(COMBINING); i++) {
        mark(flags, COMBINING[i].first, COMBINING[i].last, CODE_COMBINING);
    }
    mark(flags, HANGUL_FIRST, HANGUL_LAST, CODE_DECOMPOSES);
    for (size_t i = 0; i < COUNT_OF(DECOMPOSITION); i += 2 + DECOMPOSITION[i + 1]) {
        flags[DECOMPOSITION[i]] |= CODE_DECOMPOSES;
        code_map_put(&table->decompositions, DECOMPOSITION[i], (uint32_t)i);
    }
    for (size_t i = 0; i < COUNT_OF(LOWER); i++) {
        for (uint32_t code = LOWER[i].first; code <= LOWER[i].last; code += LOWER[i].step) {
            flags[code] |= CODE_LOWERS;
            code_map_put(&table->lowers, code, (uint32_t)((int64_t)code + LOWER[i].delta));
        }
    }
    flags[0x130] |= CODE_LOWERS;
    unfold_compositions(table, flags);
}

static bool is_page(const uint16_t *pages, size_t page, const uint16_t *content) {
    return memcmp(pages + page * PAGE_CODES, content, PAGE_CODES * sizeof *content) == 0;
}

/* Keeps one copy of each different page. The one before is tried first: long runs are alike. */
static bool fold_pages(struct unicode_table *table, const uint16_t *flags) {
    uint16_t *pages = malloc((size_t)CODE_POINTS * sizeof *pages);
    if (pages == NULL) {
        return false;
    }
    size_t count = 0;
    size_t at = 0;
    for (size_t page = 0; page < PAGE_COUNT; page++) {
        const uint16_t *content = flags + page * PAGE_CODES;
        if (count == 0 || !is_page(pages, at, content)) {
            at = 0;
            while (at < count && !is_page(pages, at, content)) {
                at++;
            }
        }
        if (at == count) {
            memcpy(pages + count * PAGE_CODES, content, PAGE_CODES * sizeof *content);
            count++;
        }
        table->page_of[page] = (uint16_t)at;
    }
    uint16_t *shrunk = realloc(pages, count * PAGE_CODES * sizeof *pages);
    table->pages = shrunk != NULL ? shrunk : pages;
    return true;
}

struct unicode_table *unicode_table_create(void) {
    struct unicode_table *table = calloc(1, sizeof *table);
    uint16_t *flags = calloc(CODE_POINTS, sizeof *flags);
    bool is_built = false;
    if (table != NULL && flags != NULL) {
        unfold(table, flags);
        is_built = fold_pages(table, flags);
    }
    free(flags);
    if (!is_built) {
        free(table);
        return NULL;
    }
    return table;
}

void unicode_table_free(struct unicode_table *table) {
    if (table != NULL) {
        free(table->pages);
        free(table);
    }
}

unsigned unicode_flags(const struct unicode_table *table, uint32_t code) {
    size_t page = table->page_of[code / PAGE_CODES];
    return table->pages[page * PAGE_CODES + code % PAGE_CODES];
}

size_t unicode_decompose(const struct unicode_table *table, uint32_t code,
                         uint32_t out_parts[CODE_PARTS_MAX]) {
    if (code >= HANGUL_FIRST && code <= HANGUL_LAST) {
        uint32_t index = code - HANGUL_FIRST;
        out_parts[0] = LEAD_FIRST + index / (VOWEL_COUNT * TAIL_COUNT);
        out_parts[1] = VOWEL_FIRST + index % (VOWEL_COUNT * TAIL_COUNT) / TAIL_COUNT;
        out_parts[2] = TAIL_BASE + index % TAIL_COUNT;
        return index % TAIL_COUNT == 0 ? 2 : 3;
    }
    const struct code_map *map = &table->decompositions;
    const uint32_t *entry = DECOMPOSITION + map->slots[code_map_slot(map, code)].value;
    memcpy(out_parts, entry + 2, entry[1] * sizeof *entry);
    return entry[1];
}

size_t unicode_decompose_compatible(uint32_t code, uint32_t out_parts[CODE_PARTS_MAX]) {
    utf8proc_int32_t parts[CODE_PARTS_MAX];
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, CODE_PARTS_MAX,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    if (count < 1 || count > CODE_PARTS_MAX) { /* not with the codes of COMPATIBLE */
        out_parts[0] = code;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++) out_parts[i] = (uint32_t)parts[i];
    return (size_t)count;
}

uint32_t unicode_compose(const struct unicode_table *table, uint32_t first, uint32_t second) {
    if (first >= LEAD_FIRST && first < LEAD_FIRST + LEAD_COUNT && second >= VOWEL_FIRST
        && second < VOWEL_FIRST + VOWEL_COUNT) {
        return HANGUL_FIRST
               + ((first - LEAD_FIRST) * VOWEL_COUNT + (second - VOWEL_FIRST)) * TAIL_COUNT;
    }
    if (first >= HANGUL_FIRST && first <= HANGUL_LAST && (first - HANGUL_FIRST) % TAIL_COUNT == 0
        && second > TAIL_BASE && second < TAIL_BASE + TAIL_COUNT) {
        return first + (second - TAIL_BASE);
    }
    return pair_slot(table, first, second)->joined;
}

size_t unicode_lower(const struct unicode_table *table, uint32_t code, uint32_t out_codes[2]) {
    if (code == 0x130) {
        out_codes[0] = 'i';
        out_codes[1] = 0x307;
        return 2;
    }
    out_codes[0] = table->lowers.slots[code_map_slot(&table->lowers, code)].value;
    return 1;
}

unsigned unicode_class(uint32_t code) {
    size_t low = 0, high = COUNT_OF(COMBINING);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (COMBINING[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < COUNT_OF(COMBINING) && COMBINING[low].first <= code ? COMBINING[low].rank : 0;
}

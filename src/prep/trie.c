/* The double array. Building: load time, one thread; looking up: any thread. Invariant: every
 * base leaves room for 256 children inside cells, so that a walk needs no bounds check.
 * Read wordpiece.c next for the use. */
#include "prep/trie.h"
#include <stdlib.h>

enum {
    BYTES = 256,
    PLACE_TRIES = 32, /* bounds the build: beyond them children go behind all used cells */
};

struct builder {
    struct trie_cell *cells;
    uint32_t *next_free, *prev_free; /* ring of free cells through 0, the root, never free */
    uint32_t count;
    uint32_t search_from; /* a free cell or 0: where nodes with many children look first */
    uint32_t used_end;    /* all cells from here on are free */
    const struct trie_key *keys;
};

struct range { /* the keys that pass through a node */
    uint32_t node;
    uint32_t first, last; /* last is past the end */
    uint32_t depth;
};

/* The first eight bytes as a number that compares as they do. */
static uint64_t head_of(struct view text) {
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof head; i++) {
        head = head << 8 | (i < text.size ? (uint8_t)text.data[i] : 0u);
    }
    return head;
}

static int compare_keys(const void *a, const void *b) {
    const struct trie_key *key = a, *other = b;
    if (key->head != other->head) { /* settles most without touching the texts */
        return key->head < other->head ? -1 : 1;
    }
    const struct view *left = &key->text;
    const struct view *right = &other->text;
    size_t common = left->size < right->size ? left->size : right->size;
    int order = common == 0 ? 0 : memcmp(left->data, right->data, common);
    if (order != 0) {
        return order;
    }
    if (left->size != right->size) {
        return left->size < right->size ? -1 : 1;
    }
    return key->order < other->order ? -1 : key->order > other->order;
}

static bool builder_grow(struct builder *builder, uint64_t need) {
    if (need <= builder->count) {
        return true;
    }
    uint64_t count = builder->count == 0 ? 1024 : builder->count;
    while (count < need) {
        count *= 2;
    }
    if (count >= UINT32_MAX) {
        return false;
    }
    struct trie_cell *cells = realloc(builder->cells, count * sizeof *cells);
    if (cells == NULL) {
        return false;
    }
    builder->cells = cells;
    uint32_t *next = realloc(builder->next_free, count * sizeof *next);
    if (next == NULL) {
        return false;
    }
    builder->next_free = next;
    uint32_t *prev = realloc(builder->prev_free, count * sizeof *prev);
    if (prev == NULL) {
        return false;
    }
    builder->prev_free = prev;
    if (builder->count == 0) {
        next[0] = prev[0] = 0;
    }
    uint32_t from = builder->count;
    for (uint32_t cell = from; cell < count; cell++) {
        cells[cell] = (struct trie_cell){.value = TRIE_NONE};
        if (cell != 0) {
            next[cell] = 0;
            prev[cell] = prev[0];
            next[prev[0]] = cell;
            prev[0] = cell;
        }
    }
    builder->count = (uint32_t)count;
    return true;
}

static bool fits(const struct builder *builder, uint32_t base, const uint8_t *bytes,
                 size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t cell = base + bytes[i];
        if (cell == TRIE_ROOT || (cell < builder->count && builder->cells[cell].parent != 0)) {
            return false;
        }
    }
    return true;
}

/* A base at which all children fall on free cells. An only child takes the first free cell; for
 * several the search goes on where the last one gave up, since what lies before is full of holes
 * too small for them. */
static uint32_t find_base(struct builder *builder, const uint8_t *bytes, size_t count) {
    uint32_t cell = count > 1 && builder->search_from != 0 ? builder->search_from
                                                           : builder->next_free[0];
    for (int tries = 0; tries < PLACE_TRIES && cell != 0; tries++) {
        if (cell >= bytes[0] && fits(builder, cell - bytes[0], bytes, count)) {
            return cell - bytes[0];
        }
        cell = builder->next_free[cell];
    }
    if (count > 1) {
        builder->search_from = cell;
    }
    /* The first child goes to used_end; base 1 where that cannot be: then all
     * used cells lie below the children anyway. */
    return builder->used_end > bytes[0] ? builder->used_end - bytes[0] : 1;
}

static void take(struct builder *builder, uint32_t cell, uint32_t parent) {
    if (cell == builder->search_from) {
        builder->search_from = builder->next_free[cell];
    }
    builder->next_free[builder->prev_free[cell]] = builder->next_free[cell];
    builder->prev_free[builder->next_free[cell]] = builder->prev_free[cell];
    builder->cells[cell].parent = parent + 1;
    if (cell >= builder->used_end) {
        builder->used_end = cell + 1;
    }
}

/* Places the children of one range's node and pushes their ranges. False: no memory. */
static bool expand(struct builder *builder, struct range range, struct range *stack,
                   size_t *depth) {
    const struct trie_key *keys = builder->keys;
    uint32_t at = range.first;
    while (at < range.last && keys[at].text.size == range.depth) {
        builder->cells[range.node].value = keys[at++].value; /* the last of equals stays */
    }
    uint8_t bytes[BYTES];
    size_t count = 0;
    for (uint32_t i = at; i < range.last; i++) {
        uint8_t byte = (uint8_t)keys[i].text.data[range.depth];
        if (count == 0 || bytes[count - 1] != byte) {
            bytes[count++] = byte;
        }
    }
    if (count == 0) {
        return true;
    }
    uint32_t base = find_base(builder, bytes, count);
    if (!builder_grow(builder, (uint64_t)base + BYTES)) {
        return false;
    }
    builder->cells[range.node].base = base;
    for (size_t i = 0; i < count; i++) {
        uint32_t first = at;
        while (at < range.last && (uint8_t)keys[at].text.data[range.depth] == bytes[i]) {
            at++;
        }
        take(builder, base + bytes[i], range.node);
        stack[(*depth)++] = (struct range){base + bytes[i], first, at, range.depth + 1};
    }
    return true;
}

static size_t count_unique(const struct trie_key *keys, size_t count) {
    size_t unique = 0;
    for (size_t i = 0; i < count; i++) {
        unique += i == 0 || !view_eq(keys[i].text, keys[i - 1].text);
    }
    return unique;
}

static void sort_keys(struct trie_key *keys, size_t count) {
    bool is_sorted = true;
    for (size_t i = 0; i < count; i++) {
        keys[i].order = (uint32_t)i; /* qsort is not stable */
        keys[i].head = head_of(keys[i].text);
        is_sorted = is_sorted && (i == 0 || compare_keys(&keys[i - 1], &keys[i]) < 0);
    }
    if (!is_sorted) {
        qsort(keys, count, sizeof *keys, compare_keys);
    }
}

bool trie_init(struct trie *out, struct trie_key *keys, size_t count, size_t *out_unique) {
    struct builder builder = {.keys = keys, .used_end = 1};
    /* Ranges on the stack are disjoint and not empty, so there are at most count of them. */
    struct range *stack = malloc((count + 1) * sizeof *stack);
    bool is_built = stack != NULL && count < UINT32_MAX && builder_grow(&builder, 2 * BYTES);
    size_t depth = 0;
    if (is_built) {
        sort_keys(keys, count);
        stack[depth++] = (struct range){TRIE_ROOT, 0, (uint32_t)count, 0};
    }
    while (is_built && depth > 0) {
        struct range range = stack[--depth];
        is_built = expand(&builder, range, stack, &depth);
    }
    free(stack);
    free(builder.next_free);
    free(builder.prev_free);
    if (!is_built) {
        free(builder.cells);
        return false;
    }
    *out = (struct trie){.cells = builder.cells, .count = builder.count};
    *out_unique = count_unique(keys, count);
    return true;
}

void trie_done(struct trie *trie) {
    free(trie->cells);
    *trie = (struct trie){.cells = NULL};
}

uint32_t trie_walk(const struct trie *trie, uint32_t node, struct view text) {
    for (size_t i = 0; i < text.size; i++) {
        uint32_t child = trie->cells[node].base + (uint8_t)text.data[i];
        if (trie->cells[child].parent != node + 1) {
            return TRIE_NONE;
        }
        node = child;
    }
    return node;
}

uint32_t trie_find(const struct trie *trie, struct view text) {
    uint32_t node = trie_walk(trie, TRIE_ROOT, text);
    return node == TRIE_NONE ? TRIE_NONE : trie->cells[node].value;
}

uint32_t trie_longest(const struct trie *trie, uint32_t node, struct view text,
                      size_t *out_length) {
    const struct trie_cell *cells = trie->cells;
    uint32_t value = TRIE_NONE;
    for (size_t i = 0; i < text.size; i++) {
        uint32_t child = cells[node].base + (uint8_t)text.data[i];
        if (cells[child].parent != node + 1) {
            break;
        }
        node = child;
        if (cells[node].value != TRIE_NONE) {
            value = cells[node].value;
            *out_length = i + 1;
        }
    }
    return value;
}

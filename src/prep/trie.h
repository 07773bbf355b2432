/* Strings to numbers, walked a byte at a time: a vocabulary, a set of special tokens. A double
 * array (one load a byte). Built once, const afterwards, shared by all threads. */
#ifndef TELLTALE_PREP_TRIE_H
#define TELLTALE_PREP_TRIE_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIE_ROOT = 0 };
#define TRIE_NONE UINT32_MAX /* no such node; no value */

struct trie_key {
    struct view text; /* needed only while building */
    uint32_t value;   /* not TRIE_NONE */
    uint32_t order;   /* this and head: set by trie_init */
    uint64_t head;
};

struct trie_cell {
    uint32_t base;   /* a child lies at base + byte */
    uint32_t parent; /* node number of the parent plus 1; 0: free */
    uint32_t value;
};

struct trie {
    struct trie_cell *cells;
    uint32_t count;
};

/* Sorts keys; where a text comes twice, the later key counts. *out_unique: different texts.
 * False when memory is out, and then *out needs no trie_done. */
bool trie_init(struct trie *out, struct trie_key *keys, size_t count, size_t *out_unique);
void trie_done(struct trie *trie); /* zeroed trie allowed */

/* Value of the whole text, or TRIE_NONE. */
uint32_t trie_find(const struct trie *trie, struct view text);
/* Node reached from node by text, or TRIE_NONE. */
uint32_t trie_walk(const struct trie *trie, uint32_t node, struct view text);

/* The longest key that is node's path plus at least one byte of text; returns its value and
 * how many bytes of text it took, or TRIE_NONE. */
uint32_t trie_longest(const struct trie *trie, uint32_t node, struct view text,
                      size_t *out_length);

#endif

/* A vocabulary: strings to ids and back. Filled at load, by one thread; const afterwards, shared
 * by all. Everything lies in the arena it was made with; there is nothing to free. */
#ifndef TELLTALE_PREP_VOCAB_H
#define TELLTALE_PREP_VOCAB_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "prep/dom.h"
#include "prep/trie.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vocab_entry { /* small: looking one up is a cache miss */
    const char *data;
    uint32_t size;
    uint32_t id;
};

struct vocab_slot {
    uint32_t hash;
    uint32_t entry; /* number of the entry plus 1; 0: free */
};

struct vocab {
    struct vocab_entry *entries;
    struct vocab_slot *by_text; /* open addressing, at most half full */
    uint32_t *by_id;            /* the same, entries plus 1; where ids are equal the last counts */
    uint32_t mask;              /* slots - 1 */
    uint32_t count;
    bool shares_ids;            /* two strings have one id: only odd files do that */
    bool has_empty;             /* "" is a token */
};

/* Room for capacity strings. False: no memory. */
bool vocab_init(struct vocab *out, size_t capacity, struct arena *memory);
/* Adds text, which must outlive the vocabulary; one that is there gets the new id. Never more
 * strings than the capacity. After the last, vocab_finish. */
void vocab_put(struct vocab *vocab, struct view text, uint32_t id);
void vocab_finish(struct vocab *vocab);
struct view vocab_text(const struct vocab *vocab, uint32_t entry);

/* {"token": id, ...}; the strings are copied. */
MUST_CHECK enum status vocab_read(struct json_value model, struct arena *memory,
                                  struct vocab *out, struct err *err);
/* The vocabulary of a byte-level model in bytes: GPT-2's alphabet of 256 characters undone. An
 * entry with another character can stand for no bytes and is left out. False: no memory. */
bool vocab_to_bytes(const struct vocab *vocab, struct arena *memory, struct vocab *out);

uint32_t vocab_entry_of(const struct vocab *vocab, struct view text); /* or TRIE_NONE */
uint32_t vocab_find(const struct vocab *vocab, struct view text);     /* the id, or TRIE_NONE */
struct view vocab_name(const struct vocab *vocab, uint32_t id);       /* data NULL: none */

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes for U+0100 and on. */
uint32_t byte_to_letter(uint8_t byte);   /* a code point */
int letter_to_byte(uint32_t code_point); /* -1: none of the 256 */
/* Bytes that text stands for into out (room for text.size); false: a character is no letter. */
bool letters_to_bytes(struct view text, char *out, size_t *out_size);

#endif

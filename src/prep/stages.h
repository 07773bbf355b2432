/* How a text becomes ids inside a tokenizer: normalizer, splitter, model, each behind a small
 * table of functions so that other kinds (byte-level BPE, Unigram) join beside BERT's. All are
 * const after load. What a text needs meanwhile lies in the caller's arena. */
#ifndef TELLTALE_PREP_STAGES_H
#define TELLTALE_PREP_STAGES_H

#include "base/arena.h"
#include "base/view.h"
#include "prep/trie.h"
#include "prep/unicode_table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow in an arena. The room beyond size is unspecified. */
struct text_buf {
    struct arena *arena;
    unsigned char *data;
    size_t size, capacity;
};
bool text_buf_reserve(struct text_buf *buf, size_t extra); /* false: no memory */

struct id_list {
    struct arena *arena;
    uint32_t *ids;
    size_t count, capacity;
};
bool id_list_push(struct id_list *list, uint32_t id); /* false: no memory */

/* text and what is written are valid UTF-8; appends to out; false: no memory. */
struct normalizer_ops {
    bool (*run)(const void *self, struct view text, struct text_buf *out);
};
/* The next piece of text from *at on, which moves past it; an empty piece: the end.
 * ends_at_space: an ASCII white space always ends a piece and belongs to none, so that a long
 * text may be taken in parts that are cut there. */
struct splitter_ops {
    struct view (*next)(const void *self, struct view text, size_t *at);
    bool ends_at_space;
};
struct model_ops {
    bool (*encode)(const void *self, struct view piece, struct id_list *out);
    uint32_t (*find)(const void *self, struct view token); /* TRIE_NONE: not in the vocabulary */
    void (*done)(void *self);
};

/* BERT's normalizer; all four off: the text as it is. */
struct bert_normalizer {
    const struct unicode_table *unicode;
    bool cleans_text, spaces_chinese, strips_accents, lowers;
    unsigned matters;          /* code_flags that make a code point change */
    unsigned char ascii[128];  /* what becomes of an ASCII byte */
};
void bert_normalizer_prepare(struct bert_normalizer *self); /* after the first five fields */
extern const struct normalizer_ops BERT_NORMALIZER;

/* White space ends a piece, punctuation is one. */
struct bert_splitter {
    const struct unicode_table *unicode;
    unsigned char ascii[128];
};
void bert_splitter_init(struct bert_splitter *self, const struct unicode_table *unicode);
extern const struct splitter_ops BERT_SPLITTER;

struct wordpiece {
    struct trie vocab;
    uint32_t vocab_size;
    uint32_t unknown_id;
    uint32_t continuing_node; /* where the continuing prefix leads in vocab, or TRIE_NONE */
    uint32_t max_word_chars;
};
extern const struct model_ops WORDPIECE;

#endif

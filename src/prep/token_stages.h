/* How a text becomes ids inside a tokenizer: normalizer, splitter, model, each behind a small
 * table of functions. All are const after load; any number of threads may use them at once, each
 * with its own arena for what a text needs meanwhile.
 *
 * Read: normalizer_read (normalizer_file.c), splitter_read (splitter_file.c), model_read
 * (model_file.c), decoder_read (decoder.c); tokenizer.c runs them in this order. */
#ifndef TELLTALE_PREP_TOKEN_STAGES_H
#define TELLTALE_PREP_TOKEN_STAGES_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "prep/dom.h"
#include "prep/trie.h"
#include "prep/unicode_table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a byte of a rewritten text came from: bytes [start, end) of the text as it was given. */
struct source {
    uint32_t start, end;
};

/* A text that grows in an arena: valid UTF-8 (after a byte-level splitter: the same bytes, cut
 * anywhere) and, where offsets are wanted, a source for each byte. The room beyond size is
 * unspecified. */
struct span_text {
    struct arena *arena;
    unsigned char *data;
    struct source *sources; /* NULL unless has_sources */
    bool has_sources;       /* set once, before anything is written */
    size_t size, capacity;
    uint32_t origin; /* where the text as it was given starts, between two added tokens */
};
/* After it data[size, size + extra) (and sources, where there are any) may be written. False: no
 * memory. */
bool span_text_reserve(struct span_text *buf, size_t extra);
/* Appends bytes [start, end) of in with their sources. False: no memory. */
bool span_text_copy(struct span_text *out, const struct span_text *in, size_t start, size_t end);

/* Bytes [start, end) of a text. */
struct piece {
    uint32_t start, end;
};
struct piece_list {
    struct arena *arena;
    struct piece *items;
    size_t count, capacity;
};
bool piece_list_push(struct piece_list *list, uint32_t start, uint32_t end); /* false: no memory */

/* A token and the bytes of the split text that it covers. */
struct token {
    uint32_t id;
    uint32_t start, end;
};
struct token_list {
    struct arena *arena;
    struct token *items;
    size_t count, capacity;
};
bool token_list_push(struct token_list *list, uint32_t id, uint32_t start, uint32_t end);

/* Appends to out what becomes of in; sources as Hugging Face's NormalizedString gives them (what
 * is inserted has the source of the byte before it; at the start it has none: origin, origin).
 * run is NULL where there is nothing to do. False: no memory. */
struct normalizer {
    bool (*run)(const void *self, const struct span_text *in, struct span_text *out);
    bool cuts_at_space; /* a text in parts that end behind ASCII spaces gives the same */
    void *self;
    void (*done)(void *self); /* NULL: nothing to free */
};

/* Cuts each piece of `pieces` further: appends to out_pieces (an empty piece is passed over). run is
 * NULL where there is nothing to do. A splitter that rewrites the text
 * (Metaspace, a prefixed space) is marked so: it appends the new text to out_text, and its pieces
 * are of that; the others leave out_text alone. False: no memory. */
struct splitter {
    bool (*run)(const void *self, const struct span_text *text, const struct piece_list *pieces,
                struct span_text *out_text, struct piece_list *out_pieces);
    bool rewrites;
    bool ends_at_space; /* an ASCII space or newline always ends a piece and belongs to none: long
                           texts may be taken in parts that are cut there */
    bool needs_sources; /* looks at text->sources: they are there though nobody wants offsets */
    void *self;
    void (*done)(void *self);
};

/* The model: a piece to tokens, their start and end counted in bytes of text. */
struct token_model {
    bool (*encode)(const void *self, struct view text, struct piece piece, struct token_list *out);
    uint32_t (*find)(const void *self, struct view token); /* TRIE_NONE: not in the vocabulary */
    /* The token as the vocabulary file writes it; data NULL when there is no such id. */
    struct view (*name)(const void *self, uint32_t id);
    uint32_t vocab_size; /* entries, as Hugging Face counts them: the next added token's id */
    /* Set by model_read's caller before it: the splitter is ByteLevel, so that the vocabulary's
     * characters stand for bytes; the model takes them as bytes. */
    bool is_byte_level;
    void *self;
    void (*done)(void *self);
};

/* Tokens' names to text. */
struct decoder {
    bool (*run)(const void *self, const struct view *names, size_t count, struct arena *arena,
                struct view *out);
    void *self;
    void (*done)(void *self);
};

/* Each reads its own section of a tokenizer.json (value is JSON null or an object; absent is null)
 * and names what it does not support: ST_UNSUPPORTED; ST_INVALID: what makes no sense. Strings
 * and selves live in memory (the tokenizer's arena) or are freed by done. On failure *out holds
 * nothing to free. */
MUST_CHECK enum status normalizer_read(struct json_value value, struct arena *memory,
                                       const struct unicode_table *unicode,
                                       struct normalizer *out, struct err *err);
MUST_CHECK enum status splitter_read(struct json_value value, struct arena *memory,
                                     const struct unicode_table *unicode, struct splitter *out,
                                     bool *out_is_byte_level, struct err *err);
MUST_CHECK enum status model_read(struct json_value value, struct arena *memory,
                                  bool is_byte_level, struct token_model *out, struct err *err);
MUST_CHECK enum status decoder_read(struct json_value value, struct arena *memory,
                                    struct decoder *out, struct err *err);

#endif

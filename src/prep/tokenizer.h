/* Text to token ids and back, from a tokenizer.json as Hugging Face writes it. Pure: no I/O but
 * the load, no threads; one tokenizer may be used by many threads at once, each with its own
 * arena. docs/tokenizer.md lists what is supported. */
#ifndef TELLTALE_PREP_TOKENIZER_H
#define TELLTALE_PREP_TOKENIZER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

struct tokenizer;

struct encode_options {           /* zeroed: what most want */
    const struct view *pair;      /* a second text (question and passage); NULL: none */
    uint32_t max_tokens;          /* 0: what the file says, or no limit */
    bool wants_offsets;
    bool adds_no_special;         /* leave out what the post-processor adds */
};

struct token_offset {             /* code points [start, end) of the text that the token is of */
    uint32_t start, end;          /* 0, 0 for a token that the post-processor added */
};

struct encoding {
    int64_t *ids;                 /* special tokens included */
    int64_t *type_ids;
    struct token_offset *offsets; /* NULL unless wanted */
    uint8_t *special;             /* 1: added by the post-processor; NULL unless offsets are wanted */
    uint32_t count;
    bool was_truncated;
};

struct token_padding {            /* how rows of unequal length are filled up */
    int64_t id, type_id;
    bool is_left;
    uint32_t multiple_of;         /* 0: of nothing */
    uint32_t fixed_length;        /* 0: to the longest of the batch */
};

/* Anything in the file that is not supported is an error that names it (ST_UNSUPPORTED), never
 * a guess. On failure *out is untouched. */
MUST_CHECK enum status tokenizer_load(const char *path, struct tokenizer **out, struct err *err);
/* The same from memory; name stands in errors. Fuzzed. */
MUST_CHECK enum status tokenizer_parse(struct view json, const char *name, struct tokenizer **out,
                                       struct err *err);
void tokenizer_free(struct tokenizer *tokenizer);

/* Encodes one text, or a pair. options NULL: zeroed. Invalid UTF-8 is read as U+FFFD. The arrays
 * live in arena. ST_NO_MEMORY, or ST_INVALID (err says why) where a pair is given to a tokenizer
 * whose file has no template for one, or truncation cannot be done as the file says. */
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, struct view text,
                                        const struct encode_options *options, struct arena *arena,
                                        struct encoding *out, struct err *err);
/* Ids to text, through the file's decoder; ids that do not exist are passed over, special tokens
 * where skips_special. *out lives in arena. Only ST_NO_MEMORY. */
MUST_CHECK enum status tokenizer_decode(const struct tokenizer *tokenizer, const int64_t *ids,
                                        size_t count, bool skips_special, struct arena *arena,
                                        struct view *out);

/* The padding section, or that of a [PAD] token, or id 0 on the right. tokenizer_encode itself
 * never pads: how long a batch's rows are is the batch's affair. */
struct token_padding tokenizer_padding(const struct tokenizer *tokenizer);
/* The file's truncation, special tokens included; 0: none. */
uint32_t tokenizer_max_tokens(const struct tokenizer *tokenizer);
/* Entries of the vocabulary, and the added tokens that are not among them. */
uint32_t tokenizer_vocab_size(const struct tokenizer *tokenizer);
/* TRIE_NONE (UINT32_MAX): no such token. */
uint32_t tokenizer_find(const struct tokenizer *tokenizer, struct view token);

#endif

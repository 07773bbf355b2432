/* Text to token ids, from a tokenizer.json as Hugging Face writes it. WordPiece as in BERT
 * today; byte-level BPE and Unigram join behind the same interface. Pure: no I/O but the load,
 * no threads; one tokenizer may be used by many threads at once, each with its own scratch. */
#ifndef TELLTALE_PREP_TOKENIZER_H
#define TELLTALE_PREP_TOKENIZER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

struct tokenizer;

struct encoding {
    int64_t *ids;      /* special tokens included */
    int64_t *type_ids;
    uint32_t count;
    bool was_truncated;
};

/* Anything in the file that is not supported is an error that names it (ST_UNSUPPORTED), never
 * a guess. On failure *out is untouched. */
MUST_CHECK enum status tokenizer_load(const char *path, struct tokenizer **out, struct err *err);
/* The same from memory; name stands in errors. Fuzzed. */
MUST_CHECK enum status tokenizer_parse(struct view json, const char *name, struct tokenizer **out,
                                       struct err *err);
void tokenizer_free(struct tokenizer *tokenizer);

/* Encodes one text with its special tokens, truncated to max_tokens (0: what the file says, or
 * no limit). Invalid UTF-8 is read as U+FFFD. The arrays live in arena. Only ST_NO_MEMORY. */
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, struct view text,
                                        uint32_t max_tokens, struct arena *arena,
                                        struct encoding *out);
/* The padding section's, else that of [PAD], else 0. tokenizer_encode itself never pads: how
 * long a batch's rows are is the batch's affair. */
int64_t tokenizer_pad_id(const struct tokenizer *tokenizer);
/* The file's truncation, special tokens included; 0: none. */
uint32_t tokenizer_max_tokens(const struct tokenizer *tokenizer);
/* Entries of the vocabulary, and the added tokens that are not among them. */
uint32_t tokenizer_vocab_size(const struct tokenizer *tokenizer);

#endif

/* The inside of a tokenizer, for tokenizer.c (encodes), tokenizer_decode.c, tokenizer_file.c
 * (reads the file) and tokenizer_added.c (its added tokens). */
#ifndef TELLTALE_PREP_TOKENIZER_PARTS_H
#define TELLTALE_PREP_TOKENIZER_PARTS_H

#include "prep/added.h"
#include "prep/post.h"
#include "prep/token_stages.h"
#include "prep/tokenizer.h"

enum truncation_strategy { TRUNCATE_LONGEST_FIRST, TRUNCATE_ONLY_FIRST, TRUNCATE_ONLY_SECOND };

/* All added tokens, by content and by id. */
struct added_index {
    struct view *contents; /* as the file writes them; tokenizer.added has the same order */
    uint32_t *by_content;  /* open addressing: number in contents plus 1; 0: free */
    uint32_t mask;         /* slots - 1 */
    uint32_t *by_id;       /* numbers, sorted by id */
};

struct tokenizer {
    struct arena memory; /* strings, plans, added tokens */
    struct unicode_table *unicode;

    struct normalizer normalizer;
    struct splitter splitter;
    struct token_model model;
    struct decoder decoder; /* run NULL: tokens are joined by spaces */

    struct added_token *added;
    size_t added_count;
    struct added_index added_index;
    struct added_set raw_added;        /* found before normalization */
    struct added_set normalized_added; /* found after it */

    struct post post;
    uint32_t max_tokens; /* 0: no truncation */
    bool keeps_end;      /* truncation takes from the left */
    enum truncation_strategy strategy;
    struct token_padding padding;
    uint32_t vocab_size; /* added tokens included */
};

/* Fills *out, which is zeroed but for unicode and memory, from the file's root value. What is
 * there after a failure tokenizer_free frees. */
MUST_CHECK enum status tokenizer_read(struct tokenizer *out, struct json_value root,
                                      struct err *err);
/* The section added_tokens, after model and normalizer. */
MUST_CHECK enum status tokenizer_read_added(struct tokenizer *out, struct json_value root,
                                            struct err *err);
/* The added token of that id, or of that content as the file writes it; NULL: none. */
const struct added_token *tokenizer_added_by_id(const struct tokenizer *tokenizer, uint32_t id);
const struct added_token *tokenizer_added_by_content(const struct tokenizer *tokenizer,
                                                     struct view content);
/* White space and GPT-2's letter for a space at a token's ends, in characters. */
void token_spaces(struct view name, const struct unicode_table *unicode, uint32_t *out_leading,
                  uint32_t *out_trailing);

#endif

/* The inside of a tokenizer, for tokenizer.c (encodes) and tokenizer_file.c (reads the file). */
#ifndef TELLTALE_PREP_TOKENIZER_PARTS_H
#define TELLTALE_PREP_TOKENIZER_PARTS_H

#include "prep/added.h"
#include "prep/dom.h"
#include "prep/stages.h"
#include "prep/tokenizer.h"

/* What the post-processor puts around a text, in order. */
struct template_piece {
    bool is_text; /* the text's ids; else the special ids */
    uint32_t type_id;
    const uint32_t *ids;
    size_t count;
};

struct tokenizer {
    struct arena memory; /* strings, templates, added tokens */
    struct unicode_table *unicode;

    const struct normalizer_ops *normalizer_ops;
    struct bert_normalizer normalizer;
    const struct splitter_ops *splitter_ops;
    struct bert_splitter splitter;
    const struct model_ops *model_ops;
    struct wordpiece model;

    struct added_token *added;
    size_t added_count;
    struct added_set raw_added;        /* found before normalization */
    struct added_set normalized_added; /* found after it */

    struct template_piece *template;
    size_t template_count;
    size_t text_pieces;   /* how often the template holds the text */
    size_t special_count; /* ids the template adds */

    uint32_t max_tokens; /* 0: no truncation */
    bool keeps_end;      /* truncation takes from the left */
    uint32_t pad_id;
    uint32_t vocab_size; /* added tokens included */
};

/* Fills *out, which is zeroed but for unicode and memory, from the file's root value. */
MUST_CHECK enum status tokenizer_read(struct tokenizer *out, struct json_value root,
                                      struct err *err);

#endif

/* BERT's normalizer and splitter behind the tables of token_stages.h. */
#ifndef TELLTALE_PREP_BERT_H
#define TELLTALE_PREP_BERT_H

#include "prep/token_stages.h"

/* What a BertNormalizer does; all four off: the text as it is. */
struct bert_normalizer {
    const struct unicode_table *unicode;
    bool cleans_text, spaces_chinese, strips_accents, lowers;
    unsigned matters;         /* code_flags that make a code point change */
    unsigned char ascii[128]; /* what becomes of an ASCII byte */
};

/* As normalizer_read, of a section whose type is BertNormalizer. */
MUST_CHECK enum status bert_normalizer_read(struct json_value object, struct arena *memory,
                                            const struct unicode_table *unicode,
                                            struct normalizer *out, struct err *err);

/* BertPreTokenizer: white space ends a piece, punctuation is one. False: no memory. */
bool bert_splitter_make(struct arena *memory, const struct unicode_table *unicode,
                        struct splitter *out);

#endif

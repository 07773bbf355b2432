/* What is put around the tokens of one text or two: BertProcessing, RobertaProcessing,
 * TemplateProcessing, ByteLevel and sequences of them, worked out at load to a list of items in
 * the order in which they stand in the encoding. Const after load.
 *
 * Written by post_file.c, run by tokenizer.c. */
#ifndef TELLTALE_PREP_POST_H
#define TELLTALE_PREP_POST_H

#include "base/arena.h"
#include "base/status.h"
#include "prep/dom.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POST_TRIMS_MAX = 4 };

/* Takes the white space that a byte-level token begins and ends with out of its offsets. */
struct post_trim {
    bool keeps_prefix_space; /* one space before the first token was not in the text */
    bool is_first;           /* the item's first token is the first of what is trimmed */
};

struct post_item {
    bool is_text;
    bool is_second;       /* of a pair */
    bool is_special;      /* in the mask: BERT's and RoBERTa's forget what was put around before */
    uint32_t type_id;
    const uint32_t *ids;  /* of special tokens */
    size_t count;
    struct post_trim trims[POST_TRIMS_MAX]; /* one after the other */
    size_t trim_count;
};

struct post_plan {
    const char *refusal; /* why there is no such plan, for an error; NULL: there is one */
    struct post_item *items;
    size_t count;
    size_t special_count; /* ids of special tokens */
    bool trims;
};

struct post {
    struct post_plan plans[2][2]; /* [is a pair][special tokens are added] */
    size_t added_count[2];        /* what truncation leaves room for, [is a pair] */
};

/* The post_processor section (null: nothing is put around). Everything lies in memory. */
MUST_CHECK enum status post_read(struct json_value value, struct arena *memory, struct post *out,
                                 struct err *err);

#endif

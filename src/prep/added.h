/* Added tokens: strings such as [MASK] that are found in the text before (or, if the file says
 * normalized, after) normalization and become one id each. Const after load. */
#ifndef TELLTALE_PREP_ADDED_H
#define TELLTALE_PREP_ADDED_H

#include "base/status.h"
#include "base/view.h"
#include "prep/trie.h"
#include "prep/unicode_table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct added_token {
    struct view content; /* as it is looked for: normalized where normalized is set */
    struct view name;    /* as decoding gives it */
    uint32_t id;
    bool is_skipped;  /* a special token: decoding may leave it out */
    bool single_word; /* not inside a word */
    bool lstrip;      /* takes the white space before it */
    bool rstrip;      /* and behind it */
    bool normalized;
};

struct added_set {
    const struct unicode_table *unicode;
    const struct added_token *tokens; /* the tokenizer's */
    struct trie trie;                 /* content to index in tokens */
    size_t count;
    bool starts[256]; /* some content starts with this byte */
    int only_start;   /* the one byte all contents start with, or -1 */
};

/* The tokens of all whose normalized is as asked. all must stay. ST_INVALID names a content that
 * comes twice or is empty. On failure *out needs no added_set_done. */
MUST_CHECK enum status added_set_init(struct added_set *out, const struct unicode_table *unicode,
                                      const struct added_token *all, size_t count,
                                      bool normalized, struct err *err);
void added_set_done(struct added_set *set); /* zeroed set allowed */

/* Walks a text: the caller takes text[done, match.start) as text, then match.id, and sets done
 * to match.stop. A match may start before done where the file's strips overlap. */
struct added_cursor {
    const struct added_set *set;
    struct view text;
    size_t search_at; /* 0 at first */
    size_t done;      /* 0 at first */
};
struct added_match {
    size_t start, stop;
    uint32_t id;
};
bool added_next(struct added_cursor *cursor, struct added_match *out);

#endif

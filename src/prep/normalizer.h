/* The kinds of normalizers and what they are made of. Const after load, any thread.
 * normalizer_file.c reads them; the sources of what they write are those that Hugging Face's
 * NormalizedString has (docs/tokenizer.md). */
#ifndef TELLTALE_PREP_NORMALIZER_H
#define TELLTALE_PREP_NORMALIZER_H

#include "prep/pattern.h"
#include "prep/token_stages.h"

/* Appends one code point with its source. False: no memory. */
bool span_text_put(struct span_text *out, uint32_t code, struct source source);
/* The source of the byte at `at`; the text's origin where there are no sources. */
struct source span_text_source(const struct span_text *in, size_t at);
/* Of what is inserted before the byte at `at`: the one of the byte before it. */
struct source span_text_source_before(const struct span_text *in, size_t at);

/* Walks `in` while code points are written in its place, as Hugging Face's transform() does:
 * change 0: stands for the next one of in; 1: one more; -n: for the next, and the n after it go. */
struct transform {
    const struct span_text *in;
    struct span_text *out;
    size_t at;
};
bool transform_put(struct transform *transform, uint32_t code, int change);

/* A normal form, or BERT's idea of one. */
struct unicode_form {
    const struct unicode_table *unicode;
    bool is_compatible; /* NFKC, NFKD */
    bool composes;      /* NFC, NFKC */
    unsigned matters;   /* code_flags that the form has to do with */
};
void unicode_form_init(struct unicode_form *out, const struct unicode_table *unicode,
                       bool is_compatible, bool composes);
bool unicode_form_run(const void *self, const struct span_text *in, struct span_text *out);

/* Takes out code points that have one of the flags. */
struct code_filter {
    const struct unicode_table *unicode;
    unsigned removed;
};
bool code_filter_run(const void *self, const struct span_text *in, struct span_text *out);

/* self is the unicode_table. */
bool lowercase_run(const void *self, const struct span_text *in, struct span_text *out);
bool nmt_run(const void *self, const struct span_text *in, struct span_text *out);

struct strip {
    const struct unicode_table *unicode;
    bool left, right;
};
bool strip_run(const void *self, const struct span_text *in, struct span_text *out);

/* What is found becomes `to`, in the place of the code point that it ends with. */
struct replace {
    struct view from;        /* not empty; or */
    struct pattern *pattern; /* a regular expression */
    struct view to;
};
bool replace_run(const void *self, const struct span_text *in, struct span_text *out);
bool replace_pattern_run(const void *self, const struct span_text *in, struct span_text *out);
void replace_pattern_done(void *self);

struct prepend {
    struct view text;
};
bool prepend_run(const void *self, const struct span_text *in, struct span_text *out);

/* GPT-2's alphabet: each byte becomes the letter that stands for it. self is not looked at. */
bool letters_run(const void *self, const struct span_text *in, struct span_text *out);

/* SentencePiece's table of replacements: a trie of what is replaced, texts ended by NUL. */
struct charsmap {
    const uint32_t *trie;
    size_t trie_count;
    const char *texts;
    size_t texts_size;
    bool is_plain[128]; /* the table has nothing for that ASCII character */
};
/* precompiled is the file's base64. ST_INVALID: not such a table. */
MUST_CHECK enum status charsmap_make(struct view precompiled, struct arena *memory,
                                     struct charsmap *out, struct err *err);
bool charsmap_run(const void *self, const struct span_text *in, struct span_text *out);

#endif

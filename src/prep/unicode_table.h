/* What Hugging Face's tokenizers library believes about each code point (see
 * docs/tokenizer.md: no Unicode library agrees with it everywhere), in tables for fast look-up.
 * Built once at load, const afterwards, shared by all threads. */
#ifndef TELLTALE_PREP_UNICODE_TABLE_H
#define TELLTALE_PREP_UNICODE_TABLE_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_flag {
    CODE_CONTROL = 1 << 0,     /* removed by clean_text */
    CODE_WHITESPACE = 1 << 1,
    CODE_PUNCTUATION = 1 << 2, /* a piece of its own */
    CODE_CHINESE = 1 << 3,     /* gets spaces around it */
    CODE_MARK = 1 << 4,        /* removed by strip_accents */
    CODE_WORD = 1 << 5,        /* \w */
    CODE_COMBINING = 1 << 6,   /* has a combining class: takes part in reordering */
    CODE_DECOMPOSES = 1 << 7,
    CODE_LOWERS = 1 << 8,
    CODE_COMPATIBLE = 1 << 9,    /* NFKD takes it apart other than NFD */
    CODE_NOT_COMPOSED = 1 << 10, /* decomposes and does not come back */
    CODE_JOINS = 1 << 11,        /* the second of two that NFC joins */
    CODE_ANY_MARK = 1 << 12,     /* removed by StripAccents */
};

enum {
    CODE_POINTS = 0x110000,
    CODE_REPLACEMENT = 0xfffd,
    CODE_PARTS_MAX = 18, /* longest decomposition, U+FDFA's */
    CODE_CLASSES = 64,  /* ranks of combining classes are 1..63 */
};

struct unicode_table;

struct unicode_table *unicode_table_create(void); /* NULL when memory is out */
void unicode_table_free(struct unicode_table *table);

unsigned unicode_flags(const struct unicode_table *table, uint32_t code);
/* Full canonical decomposition of a code that has CODE_DECOMPOSES; returns the count. */
size_t unicode_decompose(const struct unicode_table *table, uint32_t code,
                         uint32_t out_parts[CODE_PARTS_MAX]);
/* Full compatibility decomposition of a code that has CODE_COMPATIBLE; returns the count. */
size_t unicode_decompose_compatible(uint32_t code, uint32_t out_parts[CODE_PARTS_MAX]);
/* What NFC joins the two to; 0: nothing. */
uint32_t unicode_compose(const struct unicode_table *table, uint32_t first, uint32_t second);
/* Lower case of a code that has CODE_LOWERS: one code, or two for U+0130; returns the count. */
size_t unicode_lower(const struct unicode_table *table, uint32_t code, uint32_t out_codes[2]);
/* Rank of the combining class; 0 where the code has no CODE_COMBINING. */
unsigned unicode_class(uint32_t code);

/* One code point of valid UTF-8 at data; returns its bytes. */
size_t utf8_decode(const unsigned char *data, uint32_t *out_code);
size_t utf8_encode(uint32_t code, unsigned char *out); /* at most 4 bytes; returns how many */
/* Bytes at the start of text that are valid; text.size when all of it is. */
size_t utf8_valid_prefix(struct view text);
/* After utf8_valid_prefix stopped: how many bytes there make one U+FFFD, at least 1. */
size_t utf8_bad_length(struct view text);

#endif

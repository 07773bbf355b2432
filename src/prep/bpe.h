/* Byte-pair encoding: a piece is cut into characters (bytes, in a byte-level model), and the pair
 * of neighbours whose merge comes first in the file's list is merged, the leftmost of equals,
 * until no pair is left that the list knows. bpe_file.c reads a model, bpe.c encodes, bpe_heap.c
 * takes long pieces. Const after load, any number of threads. */
#ifndef TELLTALE_PREP_BPE_H
#define TELLTALE_PREP_BPE_H

#include "prep/token_models.h"
#include "prep/vocab.h"

enum {
    BPE_SHORT_SYMBOLS = 64, /* up to here the best pair is looked for from end to end */
    BPE_AFFIX_BYTES = 64,   /* the longest prefix or suffix */
};

struct bpe_pair {
    uint32_t left, right; /* ids; left TRIE_NONE: a free slot */
    uint32_t rank;        /* place in the list of merges */
    uint32_t merged;      /* id */
};

struct bpe {
    struct vocab vocab;         /* as the file writes it */
    struct vocab bytes;         /* of a byte-level model */
    const struct vocab *lookup; /* one of the two: as pieces come */
    struct bpe_pair *pairs;     /* open addressing, at most half full */
    unsigned pair_shift;        /* 64 - log2(slots) */
    uint32_t *merged_by_rank;
    uint32_t unit_ids[256]; /* of a byte-level model's bytes; else of ASCII characters */
    uint32_t byte_tokens[256]; /* "<0x00>" and on */
    struct view prefix, suffix; /* of characters that do not begin, that end a piece */
    uint32_t unknown_id;        /* TRIE_NONE: what is unknown is left out */
    bool is_byte_level;
    bool falls_back_to_bytes;
    bool fuses_unknown;
    bool ignores_merges; /* a piece that is a token is that token */
    bool is_odd;         /* merging may not lengthen a token: only the heap follows such a file */
    /* No merge reaches over the left edge of a U+2581 that something else precedes, so that a
     * piece may be taken in words. */
    bool has_words;
    bool knows_units;    /* every byte of a byte-level model is a token, there is no affix */
    uint32_t token_bytes_max;
    /* By entry of lookup: merging the token's own characters gives the token. NULL: not known. */
    uint8_t *is_whole;
};

struct bpe_symbols { /* room for what bpe_symbols_max says */
    uint32_t *ids;
    uint32_t *sizes; /* bytes of the piece */
    size_t count;
};
size_t bpe_symbols_max(const struct bpe *model, size_t piece_bytes);
void bpe_cut(const struct bpe *model, struct view piece, struct bpe_symbols *out);

/* TRIE_NONE in both where the list has no such pair. */
struct bpe_merge {
    uint32_t rank, merged;
};
struct bpe_merge bpe_find_pair(const struct bpe *model, uint32_t left, uint32_t right);

/* A word through merges alone. False: no memory. */
bool bpe_merge_word(const struct bpe *model, struct view text, struct piece word,
                    struct token_list *out);
/* The same for many symbols, which it leaves merged. Scratch memory is the arena's. */
bool bpe_merge_heap(const struct bpe *model, struct bpe_symbols *symbols, struct arena *arena);

bool bpe_encode(const void *self, struct view text, struct piece piece, struct token_list *out);

#endif

/* Unigram: of all ways to cut a piece into tokens, the one whose scores add up to most. Const
 * after load, any number of threads. unigram_file.c reads a model, unigram.c encodes. */
#ifndef TELLTALE_PREP_UNIGRAM_H
#define TELLTALE_PREP_UNIGRAM_H

#include "prep/token_models.h"
#include "prep/vocab.h"

struct unigram {
    struct vocab vocab;
    struct trie trie;        /* values are entries of vocab */
    double *scores;          /* by entry */
    uint32_t *entries;       /* by id: the last entry of that string */
    uint32_t count;          /* ids, strings that come twice counted twice */
    uint32_t unknown_id;
    double unknown_score;
    bool falls_back_to_bytes;
    uint32_t byte_tokens[256];
};

bool unigram_encode(const void *self, struct view text, struct piece piece,
                    struct token_list *out);
/* The double that Hugging Face's reader (serde_json) makes of the shortest decimal that stands
 * for score: now and then the neighbour of the nearest one, and sums of scores decide ties. */
double unigram_score_as_read(double score);

#endif

/* Decoders: tokens' names to text, step by step. decoder_file.c reads them, decoder.c runs them.
 * Const after load, any number of threads. */
#ifndef TELLTALE_PREP_DECODER_H
#define TELLTALE_PREP_DECODER_H

#include "prep/token_stages.h"

/* The texts in work: at first the names, one a token. Those and what becomes of them lie in the
 * arena or in the vocabulary. */
struct decode_chain {
    struct view *items;
    size_t count;
    struct arena *arena;
};

struct decode_step {
    bool (*run)(const struct decode_step *step, struct decode_chain *chain); /* false: no memory */
    struct view from, to; /* what is looked for, what stands there then */
    size_t start, stop;   /* Strip: how many at most at either end */
    bool cleans_up;       /* the spaces before English punctuation go */
    bool keeps_first;     /* Metaspace: the first token's too becomes a space */
};

/* A kind of step for each type of Hugging Face's. */
bool decode_replace(const struct decode_step *step, struct decode_chain *chain);
bool decode_bytes(const struct decode_step *step, struct decode_chain *chain);
bool decode_fuse(const struct decode_step *step, struct decode_chain *chain);
bool decode_strip(const struct decode_step *step, struct decode_chain *chain);
bool decode_byte_level(const struct decode_step *step, struct decode_chain *chain);
bool decode_wordpiece(const struct decode_step *step, struct decode_chain *chain);
bool decode_metaspace(const struct decode_step *step, struct decode_chain *chain);
bool decode_bpe(const struct decode_step *step, struct decode_chain *chain);
bool decode_ctc(const struct decode_step *step, struct decode_chain *chain);

struct decode_steps {
    struct decode_step *items;
    size_t count;
    struct view between; /* joins what the steps leave */
};
bool decoder_run(const void *self, const struct view *names, size_t count, struct arena *arena,
                 struct view *out);

#endif

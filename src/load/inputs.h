/* What is sent: real texts or pictures, ready request bodies, or (for a demo) random tensors; made
 * into tensors and request bodies once, before the load starts. */
#ifndef TELLTALE_LOAD_INPUTS_H
#define TELLTALE_LOAD_INPUTS_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"
#include "load/quantile.h"
#include <stdbool.h>

enum input_kind { INPUT_TEXT, INPUT_IMAGE, INPUT_JSON, INPUT_RANDOM };
const char *input_kind_name(enum input_kind kind); /* "text" */

struct input {
    struct view raw; /* text, picture's file or ready body. Before a picture lie the 4 bytes of its
                        length, so that it is a BYTES element as it stands */
    struct tensor *tensors;
    uint32_t tensor_count;
    uint32_t tokens; /* 0: not known */
    /* The request body around its id: head, id, tail. */
    struct view body_head, body_tail;
    size_t json_size; /* without the id; 0: all JSON, no Inference-Header-Content-Length */
};

struct inputs {
    enum input_kind kind;
    const char *source; /* as given; points into the caller's text */
    struct input *items;
    size_t count;
    uint32_t *order; /* request n sends items[order[n % count]] */
    bool as_tokens;
    bool is_binary;
    struct arena arena;
};

/* spec: "text:PATH" (directory: a text a file, those below too; file: a text a line), "image:PATH"
 * (directory: its JPEG, PNG and WebP files, those below too; file: that one, whatever it is),
 * "json:FILE" (a body a line, or one document), "random", or NULL, which is random. Empty texts
 * are passed over. */
MUST_CHECK enum status inputs_load(const char *spec, struct inputs *out, struct err *err);
void inputs_done(struct inputs *inputs); /* zeroed inputs allowed */

/* What the model takes, from its metadata or signature. */
struct input_spec { struct view name; enum dtype dtype; uint32_t rank; const int64_t *shape; };
struct input_shape { const struct input_spec *specs; uint32_t count; };

/* Fills in free dimensions: each text is "NAME:1,3,224,224", as --shape gives it. specs' shapes are
 * replaced by copies in arena. ST_INVALID: no such input, a text that is none, a dimension that the
 * model fixes otherwise. */
MUST_CHECK enum status inputs_apply_shapes(const char *const *texts, size_t text_count,
                                           struct input_spec *specs, uint32_t spec_count,
                                           struct arena *arena, struct err *err);

struct tokenizer;
/* Fills the tensors. tokenizer: may be NULL; with it tokens are counted, and sent as ids
 * instead of the text where as_tokens. seed: for random tensors. */
MUST_CHECK enum status inputs_make_tensors(struct inputs *inputs, struct input_shape shape,
                                           const struct tokenizer *tokenizer, bool as_tokens,
                                           uint32_t max_tokens, uint64_t seed, struct err *err);
/* Fills the bodies from the tensors (or, INPUT_JSON, from the ready bodies). Not binary: pictures
 * are strings of base64. */
MUST_CHECK enum status inputs_render(struct inputs *inputs, bool binary, struct err *err);
/* Fills order: a permutation drawn from the seed, or 0, 1, 2, ... */
MUST_CHECK enum status inputs_shuffle(struct inputs *inputs, bool is_sequential, uint64_t seed,
                                      struct err *err);
/* Sizes of the inputs: bytes of text, picture, body or tensors; tokens where known (count 0 if not). */
MUST_CHECK enum status inputs_sizes(const struct inputs *inputs, struct distribution *out_bytes,
                                    struct distribution *out_tokens, struct err *err);

#endif

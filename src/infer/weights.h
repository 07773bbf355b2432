/* How many of a model's weights are subnormal: below 1.2e-38, so small that most processors hand
 * each multiplication with one to a slow path. Training with weight decay leaves such numbers. A
 * walk over the ONNX file's bytes (protobuf), without ONNX Runtime.
 *
 * Any thread. Only what the file holds is seen: numbers that become subnormal while the model runs
 * are not, and neither are weights kept in files beside it. */
#ifndef TELLTALE_INFER_WEIGHTS_H
#define TELLTALE_INFER_WEIGHTS_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weights {
    bool is_known;      /* false: not looked at, or not an ONNX file; the rest is 0 then */
    uint64_t values;    /* FLOAT and BFLOAT16, of initializers and constants, in subgraphs too */
    uint64_t subnormal; /* of these */
    uint64_t external;  /* tensors in other files: not counted */
};

/* Maps the file while it reads; it must not shrink meanwhile. */
struct weights weights_of_file(const char *path);
/* The same from memory. Any bytes will do. Fuzzed. */
struct weights weights_of(struct view model);

/* Subnormals enough that they may be felt: 1 in 100,000, about 1 % where one costs 150
 * multiplications and eight are made at once. Whether they are felt depends on how often each is
 * used: in a convolution once a pixel, in a layer on a pooled vector once. */
bool weights_may_be_slow(const struct weights *weights);
/* What to tell a person, "model x: 12,345 of 1,100,000 weights are subnormal: ...", into out, cut to
 * out_size; returns out. */
char *weights_warning(const struct weights *weights, const char *model, char *out,
                      size_t out_size);

#endif

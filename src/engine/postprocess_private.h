/* What postprocess.c and its kinds of steps share. */
#ifndef TELLTALE_ENGINE_POSTPROCESS_PRIVATE_H
#define TELLTALE_ENGINE_POSTPROCESS_PRIVATE_H

#include "engine/postprocess.h"
#include "engine/preprocess.h"

struct finish {
    const struct engine_model *model;
    struct request *request;
    const struct bound_output *output;
    const struct tensor *from;  /* the model's output that the kind reads; NULL: it reads none */
    struct scratch *scratch;
    struct tensor *made;        /* MADE_MAX at most, by the order of binding_made */
};

/* postprocess_scores.c: a row of numbers to scores, classes, embeddings */
MUST_CHECK enum status postprocess_scores(const struct finish *at);
MUST_CHECK enum status postprocess_classify(const struct finish *at);
MUST_CHECK enum status postprocess_embed(const struct finish *at);
/* postprocess_boxes.c */
MUST_CHECK enum status postprocess_detect(const struct finish *at);
MUST_CHECK enum status postprocess_text_boxes(const struct finish *at);
/* postprocess_text.c */
MUST_CHECK enum status postprocess_ctc(const struct finish *at);
MUST_CHECK enum status postprocess_detokenize(const struct finish *at);
MUST_CHECK enum status postprocess_tokens(const struct finish *at);

MUST_CHECK enum status postprocess_no_memory(const struct finish *at);
/* The model gave something else than the step can read: an error that shows the shape. */
MUST_CHECK enum status postprocess_wrong_shape(const struct finish *at, const char *needs);
/* A tensor of the kind's index-th output with room for its elements (BYTES: data NULL). NULL data:
 * no memory. last: length of the last axis, 0: shape is (rows). */
struct tensor *postprocess_make(const struct finish *at, uint32_t index, enum dtype dtype, int64_t rows,
                                int64_t most, int64_t last);
/* count texts, an element each, into out. False: no memory. */
bool postprocess_texts(const struct finish *at, const struct view *texts, size_t count, struct tensor *out);
/* Where the row's picture lay on the canvas; the canvas itself where the client sent tensors. */
struct placement postprocess_placement(const struct finish *at, uint32_t row);

#endif

/* What preprocess and postprocess consist of: the steps of a pipeline. Their times lie inside
 * those two stages (a request of several rows adds them up); what no step claims is the rest of
 * the stage. */
#ifndef TELLTALE_MEASURE_STEP_H
#define TELLTALE_MEASURE_STEP_H

#include "measure/stage.h"

#define STEP_TABLE(X)                                                                          \
    X(BASE64,       "base64",       PREPROCESS,  "base64 to bytes")                             \
    X(IMAGE_DECODE, "image_decode", PREPROCESS,  "JPEG, PNG or WebP to pixels")                 \
    X(RESIZE,       "resize",       PREPROCESS,  "resizing, cropping, letterboxing")            \
    X(PIXELS,       "pixels",       PREPROCESS,  "pixels to the model's numbers, into the batch") \
    X(TOKENIZE,     "tokenize",     PREPROCESS,  "text to token ids")                           \
    X(CLASSIFY,     "classify",     POSTPROCESS, "softmax or sigmoid, best classes, labels")    \
    X(POOL,         "pool",         POSTPROCESS, "token vectors to one, normalized")            \
    X(DETECT,       "detect",       POSTPROCESS, "boxes over the threshold, non-maximum suppression") \
    X(TEXT_BOXES,   "text_boxes",   POSTPROCESS, "probability map to boxes around text")        \
    X(CTC,          "ctc",          POSTPROCESS, "character scores to text")                    \
    X(DETOKENIZE,   "detokenize",   POSTPROCESS, "token ids to text")

enum step {
#define X(name, text, stage, help) STEP_##name,
    STEP_TABLE(X)
#undef X
    STEP_COUNT
};

const char *step_name(enum step step);
const char *step_help(enum step step);
enum stage step_stage(enum step step);

#endif

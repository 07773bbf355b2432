/* pipeline.yaml: what clients of a model send and get, and the steps between that and the model's
 * tensors. Read at load; docs/pipeline.md describes every key, one table (pipeline_keys.c) holds
 * them for the reader and the help. Knows nothing of the model: engine/ binds the two. */
#ifndef TELLTALE_PREP_PIPELINE_FILE_H
#define TELLTALE_PREP_PIPELINE_FILE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "prep/activation.h"
#include "prep/detect.h"
#include "prep/pixels.h"
#include "prep/pooling.h"
#include "prep/text_boxes.h"

enum { PIPELINE_MAX_INPUTS = 16, PIPELINE_MAX_OUTPUTS = 32 };

struct pipeline_image {     /* one encoded picture an element */
    const char *to;         /* model input; NULL: its only one */
    struct fit fit;         /* width and height 0: those of the model's input */
    int resize;             /* enum resize_kind */
    struct pixel_format format; /* layout auto and dtype: by the model's input */
    uint8_t pad[3];         /* in RGB */
    bool ignores_orientation;
    bool scales_jpeg;
    uint64_t max_pixels;    /* 0: the default */
};

struct pipeline_text {      /* one text an element */
    const char *tokenizer;  /* file, relative to the pipeline file; NULL: tokenizer.json beside it */
    const char *pair;       /* name of the BYTES input that brings the second text; NULL: none */
    const char *ids, *mask, *types; /* model inputs; NULL: input_ids, attention_mask,
                                       token_type_ids, where the model has them */
    uint64_t max_tokens;    /* 0: what tokenizer.json says, or 512 */
};

enum pipeline_input_kind { PIPELINE_IMAGE, PIPELINE_TEXT };
struct pipeline_input {
    const char *name;       /* what clients call it; "IMAGE", "TEXT" where the file has none */
    enum pipeline_input_kind kind;
    unsigned line;
    union {
        struct pipeline_image image;
        struct pipeline_text text;
    };
};

/* Every output kind reads the model output `from` (NULL: its only one, or the one of the right
 * shape) and gives outputs of its own, named as said here. */
struct pipeline_scores { const char *name; int activation; }; /* the same shape, activated along
                                                                 the last axis */
struct pipeline_classify {  /* (rows, classes) -> label BYTES and score FP32, each (rows) or, with
                               top > 1, (rows, top); class INT64 likewise */
    const char *label, *score, *class_id; /* "label", "score", "class": names; label only with
                                             labels; class_id NULL: not given */
    const char *labels;     /* file, a label a line; NULL: labels.txt beside, if any */
    int activation;
    uint64_t top;
};
struct pipeline_embed {     /* (rows, length, size) or (rows, size) -> (rows, size) */
    const char *name;       /* "embedding" */
    int pooling;
    bool normalizes;
};
struct pipeline_detect {    /* -> boxes FP32 (rows, n, 4), scores FP32 (rows, n), classes INT64
                               (rows, n), count INT32 (rows), label BYTES (rows, n), so named unless
                               the file says otherwise ("labels" for the last); n: the most of this
                               request, rows with fewer filled up with 0 and "" */
    const char *boxes, *scores, *classes, *count, *label; /* label only with labels */
    const char *boxes_from; /* HEAD_BOXES: the output with the boxes */
    const char *image;      /* the input whose picture it is; NULL: the only one */
    const char *labels;     /* as above */
    struct detect_config config;
};
struct pipeline_ctc {       /* (rows, steps, classes) -> text BYTES (rows), score FP32 (rows) */
    const char *name, *score; /* "text", "score" */
    const char *characters; /* file */
    uint64_t blank;
    bool has_space;
};
struct pipeline_text_boxes { /* (rows, 1, h, w) -> quads FP32 (rows, n, 8), scores FP32 (rows, n),
                                count INT32 (rows), named likewise */
    const char *quads, *scores, *count;
    const char *image;
    struct text_boxes_config config;
};
struct pipeline_detokenize { /* ids INT64 or INT32 (rows, length), or scores FP32 (rows, length,
                                vocabulary) whose best is taken -> BYTES (rows) */
    const char *name;       /* "text" */
    const char *tokenizer;  /* NULL: that of the text input */
    bool keeps_special;
};
struct pipeline_tokens {    /* of a text input: ids INT64 (rows, length), offsets INT64 (rows, length,
                               2) in code points; shorter rows filled up with 0 */
    const char *ids, *offsets; /* "tokens", "offsets" */
};

enum pipeline_output_kind {
    PIPELINE_SCORES, PIPELINE_CLASSIFY, PIPELINE_EMBED, PIPELINE_DETECT, PIPELINE_CTC,
    PIPELINE_TEXT_BOXES, PIPELINE_DETOKENIZE, PIPELINE_TOKENS, PIPELINE_OUTPUT_KIND_COUNT
};
struct pipeline_output {
    enum pipeline_output_kind kind;
    const char *from;
    unsigned line;
    unsigned label_line;    /* where the file names the output of the labels; 0: it does not */
    union {
        struct pipeline_scores scores;
        struct pipeline_classify classify;
        struct pipeline_embed embed;
        struct pipeline_detect detect;
        struct pipeline_ctc ctc;
        struct pipeline_text_boxes text_boxes;
        struct pipeline_detokenize detokenize;
        struct pipeline_tokens tokens;
    };
};

struct pipeline_file {
    const char *path;       /* for errors; "" for one that was inferred */
    struct pipeline_input inputs[PIPELINE_MAX_INPUTS];
    uint32_t input_count;
    struct pipeline_output outputs[PIPELINE_MAX_OUTPUTS];
    uint32_t output_count;
    bool shows_model_outputs; /* beside those above; true where there are none above */
};

/* Strings live in arena; relative file names come out relative to the file's directory. Errors
 * name file, line and key: "pipeline.yaml:7: image.resize: "cubic" is none of pillow-bilinear|..."
 * ST_INVALID, ST_NOT_FOUND, ST_IO, ST_NO_MEMORY. */
MUST_CHECK enum status pipeline_load(const char *path, struct arena *arena,
                                     struct pipeline_file *out, struct err *err);
/* The same from memory. Fuzzed. */
MUST_CHECK enum status pipeline_parse(struct view yaml, const char *path, struct arena *arena,
                                      struct pipeline_file *out, struct err *err);

/* The key table, for documentation: section ("image"), key, what it means, default; false at the
 * end. */
struct pipeline_key_info {
    const char *section, *key, *value, *default_text, *help;
};
bool pipeline_key(size_t index, struct pipeline_key_info *out);
/* A section with its defaults, as if the file said nothing: for inferred pipelines. */
void pipeline_input_default(enum pipeline_input_kind kind, struct pipeline_input *out);
void pipeline_output_default(enum pipeline_output_kind kind, struct pipeline_output *out);

#endif

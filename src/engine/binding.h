/* A pipeline bound to its model: which input feeds what, which output is made of what, with the
 * tokenizers, labels and tables that the steps need. Made at load, const afterwards. Every error
 * names the pipeline file's line and what does not fit. Read next: preprocess.h, postprocess.h. */
#ifndef TELLTALE_ENGINE_BINDING_H
#define TELLTALE_ENGINE_BINDING_H

#include "infer/model.h"
#include "prep/classify.h"
#include "prep/ctc.h"
#include "prep/pipeline_file.h"
#include "prep/tokenizer.h"

enum text_feed { FEED_IDS, FEED_MASK, FEED_TYPES, FEED_COUNT };
enum { NOT_FED = -1 };

struct bound_image {
    uint32_t to;                  /* the model's input */
    struct fit fit;               /* with the model's own width and height where the file has none */
    struct pixel_table table;
    struct image_options decode;
    bool has_batch_axis;          /* the input is (n, channels, height, width) and not (channels, ...) */
    size_t fixed_row_bytes;       /* of a canvas whose size does not depend on the picture; 0: it does */
};

struct bound_text {
    int feeds[FEED_COUNT];        /* the model's input; NOT_FED: none */
    struct tokenizer *tokenizer;  /* owned */
    struct token_padding padding;
    uint32_t max_tokens;
};

struct bound_input {
    const struct pipeline_input *spec; /* name, kind */
    union {
        struct bound_image image;
        struct bound_text text;
    };
};

enum { MADE_MAX = 5 }; /* names that one output kind makes at most */
struct bound_output {
    const struct pipeline_output *spec;
    uint32_t from, boxes_from;    /* the model's outputs */
    uint32_t first_shown;         /* of its names among the shown outputs */
    uint32_t made_count;
    int input;                    /* the bound input that it belongs to (picture, text); NOT_FED */
    struct labels labels;         /* count 0: none */
    struct ctc_characters characters;
    const struct tokenizer *tokenizer; /* detokenize: the text input's, or own_tokenizer */
    struct tokenizer *own_tokenizer;   /* owned; NULL */
};

struct binding {
    struct pipeline_file file;
    struct bound_input inputs[PIPELINE_MAX_INPUTS];
    struct bound_output outputs[PIPELINE_MAX_OUTPUTS];
    uint32_t input_count, output_count; /* 0 and 0: no pipeline, tensors in and out */
    bool is_fed[MODEL_MAX_IO];    /* model inputs that the pipeline fills */
    bool is_heavy;                /* postprocessing worth a worker of its own a request */
    uint32_t own_shown;           /* the model's own outputs among the shown ones: the first ones */
};

struct binding_files {            /* of a single model, from the command line; NULL: not given */
    const char *tokenizer, *labels;
    uint32_t max_tokens;          /* 0: not given */
};

/* Binds out->file, which is set, to the model; fills *out_shown with what clients see (names
 * live in the signature and in the file's arena). labels.txt and tokenizer.json beside the model
 * stand in where the file names none. On failure binding_done is still to be called. */
MUST_CHECK enum status binding_make(struct binding *binding, const struct model *model,
                                    const struct binding_files *files, struct arena *arena,
                                    struct signature *out_shown, struct err *err);
void binding_done(struct binding *binding);

/* "detect", as in the file. */
const char *binding_kind_name(enum pipeline_output_kind kind);
/* The pipeline's text input; NULL: none. */
const struct bound_text *binding_text(const struct binding *binding);

/* No pipeline file: what is obvious for this model goes into out->file (nothing, or a text input,
 * and classify where there are labels). False when a tokenizer lies there but the model does not
 * take its ids: *reason says why. */
bool binding_infer(const struct model *model, const struct binding_files *files,
                   struct pipeline_file *out, struct err *reason);

#endif

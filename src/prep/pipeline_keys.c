/* Keys of pipeline.yaml: one line each, for reading, defaults and documentation. Load time, one
 * thread. Invariant: a default is read by the same function as a value from a file. Read next:
 * pipeline_file.c. */
#include "prep/pipeline_keys.h"

#include "base/nearest.h"
#include "base/number.h"

#include <assert.h>

#define IN(field) offsetof(struct pipeline_input, field)
#define OUT(field) offsetof(struct pipeline_output, field)
#define FROM(section)                                                                           \
    {section, "from", VALUE_NAME, OUT(from), NULL, 0, 0, NULL, "OUTPUT",                        \
     "the model's output to read; default: its only one, or the one of the right shape"}

static const struct pipeline_key_spec KEYS[] = {
    {SECTION_IMAGE, "name", VALUE_NAME, IN(name), "IMAGE", 0, 0, NULL, "NAME",
     "what clients call this input: BYTES, one JPEG, PNG or WebP an element"},
    {SECTION_IMAGE, "to", VALUE_NAME, IN(image.to), NULL, 0, 0, NULL, "INPUT",
     "the model's input to fill; default: its only one"},
    {SECTION_IMAGE, "fit", VALUE_CHOICE, IN(image.fit.kind), "stretch", 0, 0, FIT_CHOICES, NULL,
     "how a picture comes to lie on the model's canvas"},
    {SECTION_IMAGE, "width", VALUE_U32, IN(image.fit.width), NULL, 1, IMAGE_MAX_SIDE, NULL, "N",
     "of the canvas, pixels; default: the model's own; fit height: at least this"},
    {SECTION_IMAGE, "height", VALUE_U32, IN(image.fit.height), NULL, 1, IMAGE_MAX_SIDE, NULL, "N",
     "of the canvas, pixels; default: the model's own"},
    {SECTION_IMAGE, "shorter", VALUE_U32, IN(image.fit.shorter), NULL, 1, IMAGE_MAX_SIDE, NULL, "N",
     "fit crop: resize the shorter side to this before cropping; default: just cover the canvas"},
    {SECTION_IMAGE, "max_width", VALUE_U32, IN(image.fit.max_width), NULL, 1, IMAGE_MAX_SIDE, NULL,
     "N", "fit height: wider pictures are squeezed; default: no limit"},
    {SECTION_IMAGE, "max_side", VALUE_U32, IN(image.fit.max_side), "960", 1, IMAGE_MAX_SIDE, NULL,
     "N", "fit limit: larger pictures are shrunk until the longer side is this"},
    {SECTION_IMAGE, "multiple", VALUE_U32, IN(image.fit.multiple), "1", 1, 4096, NULL, "N",
     "fit limit: both sides are multiples of this; fit height: the width is"},
    {SECTION_IMAGE, "resize", VALUE_CHOICE, IN(image.resize), "pillow-bilinear", 0, 0,
     RESIZE_CHOICES, NULL, "which library's resizing is done, bit for bit"},
    {SECTION_IMAGE, "color", VALUE_CHOICE, IN(image.format.color), "rgb", 0, 0, COLOR_CHOICES, NULL,
     "the channels and their order"},
    {SECTION_IMAGE, "scale", VALUE_DOUBLE, IN(image.format.scale), "1", -1e9, 1e9, NULL, "X",
     "value = (sample * scale - mean) / std"},
    {SECTION_IMAGE, "mean", VALUE_NUMBERS, IN(image.format.mean), "0", -1e9, 1e9, NULL,
     "X or [X, X, X]", "in the order of color"},
    {SECTION_IMAGE, "std", VALUE_NUMBERS, IN(image.format.std), "1", -1e9, 1e9, NULL,
     "X or [X, X, X]", "likewise; not 0"},
    {SECTION_IMAGE, "layout", VALUE_CHOICE, IN(image.format.layout), "auto", 0, 0, LAYOUT_CHOICES,
     NULL, "where the channels stand; auto: as the model's shape says"},
    {SECTION_IMAGE, "pad", VALUE_SAMPLES, IN(image.pad), "114", 0, 255, NULL, "N or [N, N, N]",
     "fit letterbox and crop: red, green and blue around the picture"},
    {SECTION_IMAGE, "orientation", VALUE_IS_SECOND, IN(image.ignores_orientation), "exif", 0, 0,
     "exif|ignore", NULL, "turn the picture upright as its EXIF data says, or not"},
    {SECTION_IMAGE, "jpeg_scaling", VALUE_BOOL, IN(image.scales_jpeg), "false", 0, 0, NULL, NULL,
     "decode large JPEGs at 1/2, 1/4 or 1/8 where the canvas permits: faster, slightly different"},
    {SECTION_IMAGE, "max_pixels", VALUE_U64, IN(image.max_pixels), "64000000", 1, 1e9, NULL, "N",
     "larger pictures are refused before they are decoded"},

    {SECTION_TEXT, "name", VALUE_NAME, IN(name), "TEXT", 0, 0, NULL, "NAME",
     "what clients call this input: BYTES, one text an element"},
    {SECTION_TEXT, "tokenizer", VALUE_FILE, IN(text.tokenizer), NULL, 0, 0, NULL, "FILE",
     "Hugging Face's tokenizer.json; default: the one beside the model"},
    {SECTION_TEXT, "pair", VALUE_NAME, IN(text.pair), NULL, 0, 0, NULL, "NAME",
     "a second BYTES input, encoded with the first as a pair (question and passage)"},
    {SECTION_TEXT, "ids", VALUE_NAME, IN(text.ids), NULL, 0, 0, NULL, "INPUT",
     "the model's input for token ids; default: input_ids"},
    {SECTION_TEXT, "mask", VALUE_NAME, IN(text.mask), NULL, 0, 0, NULL, "INPUT",
     "for the attention mask; default: attention_mask, where the model has it"},
    {SECTION_TEXT, "types", VALUE_NAME, IN(text.types), NULL, 0, 0, NULL, "INPUT",
     "for type ids; default: token_type_ids, where the model has it"},
    {SECTION_TEXT, "max_tokens", VALUE_U64, IN(text.max_tokens), "0", 0, 65536, NULL, "N",
     "truncate to this; 0: what tokenizer.json says, or 512"},

    FROM(SECTION_SCORES),
    {SECTION_SCORES, "name", VALUE_NAME, OUT(scores.name), "scores", 0, 0, NULL, "NAME",
     "FP32, the shape of the model's output"},
    {SECTION_SCORES, "activation", VALUE_CHOICE, OUT(scores.activation), "softmax", 0, 0,
     ACTIVATION_CHOICES, NULL, "along the last axis"},

    FROM(SECTION_CLASSIFY),
    {SECTION_CLASSIFY, "activation", VALUE_CHOICE, OUT(classify.activation), "softmax", 0, 0,
     ACTIVATION_CHOICES, NULL, "from logits to scores; none where the model gives scores"},
    {SECTION_CLASSIFY, "top", VALUE_U64, OUT(classify.top), "1", 1, 100000, NULL, "K",
     "how many classes, best first; 1: shape (rows), else (rows, K)"},
    {SECTION_CLASSIFY, "labels", VALUE_FILE, OUT(classify.labels), NULL, 0, 0, NULL, "FILE",
     "a label a line; default: labels.txt beside the model, if any"},
    {SECTION_CLASSIFY, "label", VALUE_NAME, OUT(classify.label), "label", 0, 0, NULL, "NAME",
     "of the output with the labels (BYTES); there only with labels"},
    {SECTION_CLASSIFY, "score", VALUE_NAME, OUT(classify.score), "score", 0, 0, NULL, "NAME",
     "of the output with the scores (FP32)"},
    {SECTION_CLASSIFY, "class", VALUE_NAME, OUT(classify.class_id), NULL, 0, 0, NULL, "NAME",
     "of an output with the classes' numbers (INT64); default: none"},

    FROM(SECTION_EMBED),
    {SECTION_EMBED, "name", VALUE_NAME, OUT(embed.name), "embedding", 0, 0, NULL, "NAME",
     "FP32 (rows, size)"},
    {SECTION_EMBED, "pooling", VALUE_CHOICE, OUT(embed.pooling), "mean", 0, 0, POOLING_CHOICES, NULL,
     "over the real tokens; none where the model gives a vector a text"},
    {SECTION_EMBED, "normalize", VALUE_BOOL, OUT(embed.normalizes), "true", 0, 0, NULL, NULL,
     "divide by the L2 norm"},

    FROM(SECTION_DETECT),
    {SECTION_DETECT, "boxes_from", VALUE_NAME, OUT(detect.boxes_from), NULL, 0, 0, NULL, "OUTPUT",
     "head boxes: the model's output with the boxes"},
    {SECTION_DETECT, "image", VALUE_NAME, OUT(detect.image), NULL, 0, 0, NULL, "NAME",
     "the input whose picture it is; default: the only one"},
    {SECTION_DETECT, "labels", VALUE_FILE, OUT(detect.labels), NULL, 0, 0, NULL, "FILE",
     "a label a line, the background left out; default: labels.txt beside the model, if any"},
    {SECTION_DETECT, "boxes", VALUE_NAME, OUT(detect.boxes), "boxes", 0, 0, NULL, "NAME",
     "of the output with the boxes (FP32)"},
    {SECTION_DETECT, "scores", VALUE_NAME, OUT(detect.scores), "scores", 0, 0, NULL, "NAME",
     "of the output with the scores (FP32)"},
    {SECTION_DETECT, "classes", VALUE_NAME, OUT(detect.classes), "classes", 0, 0, NULL, "NAME",
     "of the output with the classes' numbers (INT64)"},
    {SECTION_DETECT, "count", VALUE_NAME, OUT(detect.count), "count", 0, 0, NULL, "NAME",
     "of the output that says how many there are (INT32)"},
    {SECTION_DETECT, "label", VALUE_NAME, OUT(detect.label), "labels", 0, 0, NULL, "NAME",
     "of the output with the labels (BYTES); there only with labels"},
    {SECTION_DETECT, "head", VALUE_CHOICE, OUT(detect.config.head), "boxes", 0, 0, HEAD_CHOICES, NULL,
     "what the model's outputs hold"},
    {SECTION_DETECT, "form", VALUE_CHOICE, OUT(detect.config.form), "corners", 0, 0, BOX_CHOICES, NULL,
     "head boxes: how a box is written"},
    {SECTION_DETECT, "unit", VALUE_CHOICE, OUT(detect.config.unit), "pixel", 0, 0, UNIT_CHOICES, NULL,
     "of the model's boxes"},
    {SECTION_DETECT, "background", VALUE_BOOL, OUT(detect.config.has_background), "false", 0, 0, NULL,
     NULL, "head boxes: class 0 means that nothing is there, and is left out"},
    {SECTION_DETECT, "agnostic", VALUE_BOOL, OUT(detect.config.is_class_agnostic), "false", 0, 0, NULL,
     NULL, "suppress boxes of other classes too"},
    {SECTION_DETECT, "score_threshold", VALUE_FLOAT, OUT(detect.config.score_threshold), "0.25", 0, 1,
     NULL, "X", "detections have a greater score"},
    {SECTION_DETECT, "iou_threshold", VALUE_FLOAT, OUT(detect.config.iou_threshold), "0.45", 0, 1, NULL,
     "X", "of two boxes with a greater overlap the better is kept"},
    {SECTION_DETECT, "max_candidates", VALUE_U32, OUT(detect.config.max_candidates), "4096", 1, 1e6,
     NULL, "N", "the best so many are looked at"},
    {SECTION_DETECT, "max_detections", VALUE_U32, OUT(detect.config.max_detections), "300", 1, 1e6,
     NULL, "N", "a picture"},

    FROM(SECTION_CTC),
    {SECTION_CTC, "name", VALUE_NAME, OUT(ctc.name), "text", 0, 0, NULL, "NAME", "BYTES (rows)"},
    {SECTION_CTC, "score", VALUE_NAME, OUT(ctc.score), "score", 0, 0, NULL, "NAME", "FP32 (rows)"},
    {SECTION_CTC, "characters", VALUE_FILE, OUT(ctc.characters), NULL, 0, 0, NULL, "FILE",
     "a character a line, in the order of the classes, the blank left out; required"},
    {SECTION_CTC, "blank", VALUE_U64, OUT(ctc.blank), "0", 0, 1e6, NULL, "N", "class of the blank"},
    {SECTION_CTC, "space", VALUE_BOOL, OUT(ctc.has_space), "false", 0, 0, NULL, NULL,
     "the last class is the space, which the file leaves out"},

    FROM(SECTION_TEXT_BOXES),
    {SECTION_TEXT_BOXES, "image", VALUE_NAME, OUT(text_boxes.image), NULL, 0, 0, NULL, "NAME",
     "the input whose picture it is; default: the only one"},
    {SECTION_TEXT_BOXES, "quads", VALUE_NAME, OUT(text_boxes.quads), "quads", 0, 0, NULL, "NAME",
     "of the output with the boxes' corners (FP32)"},
    {SECTION_TEXT_BOXES, "scores", VALUE_NAME, OUT(text_boxes.scores), "scores", 0, 0, NULL, "NAME",
     "of the output with the scores (FP32)"},
    {SECTION_TEXT_BOXES, "count", VALUE_NAME, OUT(text_boxes.count), "count", 0, 0, NULL, "NAME",
     "of the output that says how many there are (INT32)"},
    {SECTION_TEXT_BOXES, "threshold", VALUE_FLOAT, OUT(text_boxes.config.threshold), "0.3", 0, 1, NULL,
     "X", "a pixel of greater probability is text"},
    {SECTION_TEXT_BOXES, "box_threshold", VALUE_FLOAT, OUT(text_boxes.config.box_threshold), "0.6", 0,
     1, NULL, "X", "least mean probability of a box"},
    {SECTION_TEXT_BOXES, "unclip", VALUE_FLOAT, OUT(text_boxes.config.unclip_ratio), "1.5", 0, 10, NULL,
     "X", "a box grows by area * unclip / perimeter"},
    {SECTION_TEXT_BOXES, "least_side", VALUE_FLOAT, OUT(text_boxes.config.least_side), "3", 0, 1000,
     NULL, "X", "pixels of the map; smaller boxes go"},
    {SECTION_TEXT_BOXES, "max_boxes", VALUE_U32, OUT(text_boxes.config.max_boxes), "1000", 1, 100000,
     NULL, "N", "a picture"},

    FROM(SECTION_DETOKENIZE),
    {SECTION_DETOKENIZE, "name", VALUE_NAME, OUT(detokenize.name), "text", 0, 0, NULL, "NAME",
     "BYTES (rows)"},
    {SECTION_DETOKENIZE, "tokenizer", VALUE_FILE, OUT(detokenize.tokenizer), NULL, 0, 0, NULL, "FILE",
     "default: that of the text input"},
    {SECTION_DETOKENIZE, "special", VALUE_BOOL, OUT(detokenize.keeps_special), "false", 0, 0, NULL, NULL,
     "keep special tokens in the text"},

    {SECTION_TOKENS, "ids", VALUE_NAME, OUT(tokens.ids), "tokens", 0, 0, NULL, "NAME",
     "INT64 (rows, length): the ids that the model was given"},
    {SECTION_TOKENS, "offsets", VALUE_NAME, OUT(tokens.offsets), "offsets", 0, 0, NULL, "NAME",
     "INT64 (rows, length, 2): where each token stands in the text, in code points"},
};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };

const char *pipeline_section_name(enum pipeline_section section) {
    static const char *const NAMES[SECTION_COUNT] = {
        [SECTION_IMAGE] = "image", [SECTION_TEXT] = "text", [SECTION_SCORES] = "scores",
        [SECTION_CLASSIFY] = "classify", [SECTION_EMBED] = "embed", [SECTION_DETECT] = "detect",
        [SECTION_CTC] = "ctc", [SECTION_TEXT_BOXES] = "text_boxes",
        [SECTION_DETOKENIZE] = "detokenize", [SECTION_TOKENS] = "tokens"};
    return NAMES[section];
}

const struct pipeline_key_spec *pipeline_key_find(enum pipeline_section section, const char *name,
                                                  const char **out_nearest) {
    struct nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (KEYS[i].section != section) continue;
        if (strcmp(KEYS[i].name, name) == 0) return &KEYS[i];
        nearest_try(&search, KEYS[i].name);
    }
    *out_nearest = search.best;
    return NULL;
}

/* ---- values ---- */

static enum status set_choice(const char *choices, const char *text, int *out, struct err *err) {
    int index = 0;
    const size_t size = strlen(text);
    for (const char *at = choices;; index++) {
        const size_t length = strcspn(at, "|");
        if (length == size && memcmp(at, text, size) == 0) {
            *out = index;
            return ST_OK;
        }
        if (at[length] == '\0')
            return err_set(err, ST_INVALID, "\"%.60s\" is none of %s", text, choices);
        at += length + 1;
    }
}

static enum status read_number(const struct pipeline_key_spec *key, const char *text, double *out,
                               struct err *err) {
    struct err reason;
    double value;
    if (number_double(view_of(text), &value, &reason) != ST_OK)
        return err_set(err, ST_INVALID, "%s", reason.text);
    if (value < key->min || value > key->max)
        return err_set(err, ST_INVALID, "%.60s is not between %.10g and %.10g", text, key->min,
                       key->max);
    *out = value;
    return ST_OK;
}

static enum status read_whole(const struct pipeline_key_spec *key, const char *text, uint64_t *out,
                              struct err *err) {
    struct err reason;
    uint64_t value;
    if (number_uint(view_of(text), &value, &reason) != ST_OK)
        return err_set(err, ST_INVALID, "%s", reason.text);
    if ((double)value < key->min || (double)value > key->max)
        return err_set(err, ST_INVALID, "%.60s is not between %.10g and %.10g", text, key->min,
                       key->max);
    *out = value;
    return ST_OK;
}

/* Into one place of a triple, or all three. */
static enum status set_triple(const struct pipeline_key_spec *key, void *field, const char *text,
                              bool is_in_list, size_t index, struct err *err) {
    double number = 0;
    uint64_t whole = 0;
    const bool is_samples = key->kind == VALUE_SAMPLES;
    const enum status status = is_samples ? read_whole(key, text, &whole, err)
                                          : read_number(key, text, &number, err);
    for (size_t i = 0; status == ST_OK && i < 3; i++) {
        if (is_in_list && i != index) continue;
        if (is_samples) ((uint8_t *)field)[i] = (uint8_t)whole;
        else ((double *)field)[i] = number;
    }
    return status;
}

static enum status set_bool(const char *text, bool *out, struct err *err) {
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return err_set(err, ST_INVALID, "\"%.60s\" is neither true nor false", text);
    *out = text[0] == 't';
    return ST_OK;
}

enum status pipeline_key_set(const struct pipeline_key_spec *key, void *target, const char *text,
                             bool is_in_list, size_t index, struct err *err) {
    void *field = (char *)target + key->offset;
    uint64_t whole;
    double number;
    int choice;
    enum status status = ST_OK;
    switch (key->kind) {
    case VALUE_NAME:
    case VALUE_FILE:
        if (text[0] == '\0') return err_set(err, ST_INVALID, "must not be empty");
        *(const char **)field = text;
        break;
    case VALUE_U32:
        status = read_whole(key, text, &whole, err);
        if (status == ST_OK) *(uint32_t *)field = (uint32_t)whole;
        break;
    case VALUE_U64:
        status = read_whole(key, text, &whole, err);
        if (status == ST_OK) *(uint64_t *)field = whole;
        break;
    case VALUE_FLOAT:
        status = read_number(key, text, &number, err);
        if (status == ST_OK) *(float *)field = (float)number;
        break;
    case VALUE_DOUBLE: status = read_number(key, text, (double *)field, err); break;
    case VALUE_BOOL: status = set_bool(text, field, err); break;
    case VALUE_CHOICE: status = set_choice(key->choices, text, field, err); break;
    case VALUE_IS_SECOND:
        status = set_choice(key->choices, text, &choice, err);
        if (status == ST_OK) *(bool *)field = choice == 1;
        break;
    case VALUE_NUMBERS:
    case VALUE_SAMPLES: status = set_triple(key, field, text, is_in_list, index, err); break;
    }
    return status;
}

void pipeline_section_default(enum pipeline_section section, void *target) {
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (KEYS[i].section != section || KEYS[i].default_text == NULL) continue;
        const enum status status =
            pipeline_key_set(&KEYS[i], target, KEYS[i].default_text, false, 0, NULL);
        assert(status == ST_OK);
        (void)status;
    }
}

void pipeline_input_default(enum pipeline_input_kind kind, struct pipeline_input *out) {
    *out = (struct pipeline_input){.kind = kind};
    pipeline_section_default(kind == PIPELINE_IMAGE ? SECTION_IMAGE : SECTION_TEXT, out);
}

void pipeline_output_default(enum pipeline_output_kind kind, struct pipeline_output *out) {
    *out = (struct pipeline_output){.kind = kind};
    pipeline_section_default((enum pipeline_section)(SECTION_FIRST_OUTPUT + kind), out);
}

bool pipeline_key(size_t index, struct pipeline_key_info *out) {
    if (index >= KEY_COUNT) return false;
    const struct pipeline_key_spec *key = &KEYS[index];
    *out = (struct pipeline_key_info){
        .section = pipeline_section_name(key->section), .key = key->name,
        .value = key->kind == VALUE_BOOL ? "true|false" : key->choices != NULL ? key->choices : key->value,
        .default_text = key->default_text, .help = key->help};
    return true;
}

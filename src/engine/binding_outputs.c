/* The outputs of a pipeline, bound to the model's: a table of what each kind reads, then the files
 * it needs. Load time, one thread. Read next: postprocess.c, which runs them. */
#include "engine/binding_private.h"

#include <stdio.h>

/* Does a model output fit what a kind reads? Open ranks do: they are checked at run time. */
static bool fits(const struct pipeline_output *output, const struct io_spec *spec) {
    const bool is_float = spec->dtype == DTYPE_FP32;
    const bool is_ids = spec->dtype == DTYPE_INT64 || spec->dtype == DTYPE_INT32;
    const uint32_t rank = spec->rank;
    if (spec->is_any_shape) return is_float || (is_ids && output->kind == PIPELINE_DETOKENIZE);
    switch (output->kind) {
    case PIPELINE_SCORES: return is_float && rank >= 1;
    case PIPELINE_CLASSIFY: return is_float && rank == 2;
    case PIPELINE_EMBED: return is_float && rank == (output->embed.pooling == POOLING_NONE ? 2 : 3);
    case PIPELINE_DETECT:
    case PIPELINE_CTC: return is_float && rank == 3;
    case PIPELINE_TEXT_BOXES: return is_float && (rank == 4 || rank == 3);
    case PIPELINE_DETOKENIZE: return (is_ids && rank == 2) || (is_float && rank == 3);
    case PIPELINE_TOKENS:
    case PIPELINE_OUTPUT_KIND_COUNT: break;
    }
    return false;
}

static const char *reads(const struct pipeline_output *output) {
    switch (output->kind) {
    case PIPELINE_SCORES: return "FP32";
    case PIPELINE_CLASSIFY: return "FP32 (n, classes)";
    case PIPELINE_EMBED:
        return output->embed.pooling == POOLING_NONE ? "FP32 (n, size)" : "FP32 (n, length, size)";
    case PIPELINE_DETECT: return "FP32 (n, anchors, classes) or the transposed";
    case PIPELINE_CTC: return "FP32 (n, steps, classes)";
    case PIPELINE_TEXT_BOXES: return "FP32 (n, 1, height, width)";
    case PIPELINE_DETOKENIZE: return "INT64 or INT32 (n, length), or FP32 (n, length, vocabulary)";
    case PIPELINE_TOKENS:
    case PIPELINE_OUTPUT_KIND_COUNT: break;
    }
    return "";
}

static const char *const KIND_NAMES[PIPELINE_OUTPUT_KIND_COUNT] = {
    "scores", "classify", "embed", "detect", "ctc", "text_boxes", "detokenize", "tokens"};

const char *binding_kind_name(enum pipeline_output_kind kind) { return KIND_NAMES[kind]; }

/* The model's output named, where it fits. */
static enum status find_named(const struct binder *binder, const struct pipeline_output *spec,
                              const char *key, const char *name, uint32_t *out) {
    const struct signature *signature = binder->signature;
    char names[300];
    const int at = binding_find(signature->outputs, signature->output_count, name);
    if (at == NOT_FED)
        return binding_refuse(binder, spec->line, "%s.%s: the model has no output \"%s\"; it has %s",
                              KIND_NAMES[spec->kind], key, name,
                              binding_names(signature->outputs, signature->output_count, names, sizeof names));
    if (!fits(spec, &signature->outputs[at]))
        return binding_refuse(binder, spec->line, "%s.%s: %s is needed, the model's output is %s",
                              KIND_NAMES[spec->kind], key, reads(spec),
                              binding_names(&signature->outputs[at], 1, names, sizeof names));
    *out = (uint32_t)at;
    return ST_OK;
}

/* Of a classifier's outputs the one whose width is the number of labels is meant. */
static bool is_wide(const struct io_spec *spec, size_t labels) {
    return labels == 0 || spec->is_any_shape || spec->shape[spec->rank - 1] == -1 ||
           spec->shape[spec->rank - 1] == (int64_t)labels;
}

static enum status find_from(const struct binder *binder, struct bound_output *output) {
    const struct pipeline_output *spec = output->spec;
    const struct signature *signature = binder->signature;
    const size_t labels = spec->kind == PIPELINE_CLASSIFY ? output->labels.count : 0;
    char names[300];
    if (spec->from != NULL) return find_named(binder, spec, "from", spec->from, &output->from);
    uint32_t found = 0;
    for (uint32_t i = signature->output_count; i-- > 0;) { /* the first is what stays */
        if (!fits(spec, &signature->outputs[i]) || !is_wide(&signature->outputs[i], labels)) continue;
        output->from = i;
        found++;
    }
    if (found == 1 || (found > 1 && spec->kind == PIPELINE_CLASSIFY)) return ST_OK;
    binding_names(signature->outputs, signature->output_count, names, sizeof names);
    if (found == 0 && labels > 0)
        return binding_refuse(binder, spec->line,
                              "there are %zu labels, but no FP32 output (batch, %zu) fits them; the model has %s",
                              labels, labels, names);
    return binding_refuse(binder, spec->line, found == 0 ? "%s: no output of the model is %s; it has %s"
                                                         : "%s.from is missing: several outputs are %s: %s",
                          KIND_NAMES[spec->kind], reads(spec), names);
}

/* ---- files ---- */

static enum status load_labels(const struct binder *binder, struct bound_output *output, const char *named) {
    const struct pipeline_output *spec = output->spec;
    const char *path = binder->files->labels != NULL ? binder->files->labels
                       : named != NULL               ? named
                                                     : binder->model->labels_path;
    char key[40];
    (void)snprintf(key, sizeof key, "%s.labels", KIND_NAMES[spec->kind]);
    if (path != NULL) {
        const enum status status = labels_load(path, binder->arena, &output->labels, binder->err);
        return path == named ? binding_file_failed(binder, spec->line, key, status) : status;
    }
    if (spec->label_line == 0) return ST_OK;
    return binding_refuse(binder, spec->label_line,
                          "%s.label names an output that there is only with labels: %s is missing, and there is "
                          "no labels.txt beside the model", KIND_NAMES[spec->kind], key);
}

/* The last axis of a model's output, -1 where it is open. */
static int64_t last_axis(const struct io_spec *spec) {
    return spec->is_any_shape || spec->rank == 0 ? -1 : spec->shape[spec->rank - 1];
}

static enum status check_labels(const struct binder *binder, const struct bound_output *output, int64_t classes) {
    const struct pipeline_output *spec = output->spec;
    const long long labels = (long long)output->labels.count;
    if (labels == 0 || classes == -1 || labels == classes) return ST_OK;
    const bool has_boxes = spec->kind == PIPELINE_DETECT && spec->detect.config.head == HEAD_BOXES;
    const bool has_background = has_boxes && spec->detect.config.has_background;
    const char *hint = "";
    if (has_boxes && !has_background && labels + 1 == classes)
        hint = ": where class 0 means that nothing is there, say background: true; it is left out then, and the "
               "labels begin with class 1";
    else if (has_background && labels == classes + 1)
        hint = ": with background: true class 0, which means that nothing is there, is left out, and the labels "
               "leave it out too";
    return binding_refuse(binder, spec->line, "%s: there %s %lld label%s, the model has %lld class%s%s%s",
                          KIND_NAMES[spec->kind], labels == 1 ? "is" : "are", labels, labels == 1 ? "" : "s",
                          (long long)classes, classes == 1 ? "" : "es",
                          has_background ? " beside the background" : "", hint);
}

/* ---- which input a step belongs to ---- */

static enum status find_input(const struct binder *binder, const struct bound_output *output,
                              enum pipeline_input_kind kind, const char *named, int *out) {
    const struct binding *binding = binder->binding;
    const char *what = kind == PIPELINE_IMAGE ? "image" : "text";
    uint32_t found = 0;
    for (uint32_t i = 0; i < binding->input_count; i++) {
        const struct pipeline_input *input = binding->inputs[i].spec;
        if (input->kind != kind || (named != NULL && strcmp(named, input->name) != 0)) continue;
        *out = (int)i;
        found++;
    }
    if (found == 1) return ST_OK;
    const struct pipeline_output *spec = output->spec;
    if (found > 1)
        return binding_refuse(binder, spec->line, "%s.%s is missing: there are several %s inputs",
                              KIND_NAMES[spec->kind], what, what);
    return named != NULL ? binding_refuse(binder, spec->line, "%s.%s: there is no %s input \"%s\"",
                                          KIND_NAMES[spec->kind], what, what, named)
                         : binding_refuse(binder, spec->line, "%s needs %s %s input in this file",
                                          KIND_NAMES[spec->kind],
                                          kind == PIPELINE_IMAGE ? "an" : "a", what);
}

/* ---- each kind ---- */

static enum status bind_classify(const struct binder *binder, struct bound_output *output) {
    enum status status = load_labels(binder, output, output->spec->classify.labels);
    if (status == ST_OK) status = find_from(binder, output);
    if (status != ST_OK) return status;
    const int64_t classes = last_axis(&binder->signature->outputs[output->from]);
    if (classes != -1 && (int64_t)output->spec->classify.top > classes)
        return binding_refuse(binder, output->spec->line, "classify.top is %llu, the model has %lld classes",
                              (unsigned long long)output->spec->classify.top, (long long)classes);
    return check_labels(binder, output, classes);
}

static enum status bind_detect(const struct binder *binder, struct bound_output *output) {
    const struct pipeline_detect *spec = &output->spec->detect;
    enum status status = load_labels(binder, output, spec->labels);
    if (status == ST_OK) status = find_from(binder, output);
    if (status == ST_OK && spec->config.head == HEAD_BOXES)
        status = find_named(binder, output->spec, "boxes_from", spec->boxes_from, &output->boxes_from);
    if (status == ST_OK) status = find_input(binder, output, PIPELINE_IMAGE, spec->image, &output->input);
    if (status != ST_OK) return status;
    const struct io_spec *scores = &binder->signature->outputs[output->from];
    int64_t classes = last_axis(scores);
    if (spec->config.head == HEAD_YOLOV5 && classes != -1) classes -= 5;
    if (spec->config.head == HEAD_YOLOV8) classes = scores->is_any_shape || scores->shape[1] == -1 ? -1 : scores->shape[1] - 4;
    if (spec->config.head == HEAD_BOXES && classes != -1 && spec->config.has_background) classes--;
    if (classes != -1 && classes < 1)
        return binding_refuse(binder, output->spec->line, "detect: the model's output %s is too narrow for its head",
                              scores->name);
    const int64_t corners = spec->config.head == HEAD_BOXES
                                ? last_axis(&binder->signature->outputs[output->boxes_from]) : 4;
    if (corners != -1 && corners != 4)
        return binding_refuse(binder, output->spec->line, "detect.boxes_from: a box has 4 numbers, not %lld",
                              (long long)corners);
    return check_labels(binder, output, classes);
}

static enum status bind_ctc(const struct binder *binder, struct bound_output *output) {
    const struct pipeline_ctc *spec = &output->spec->ctc;
    enum status status = find_from(binder, output);
    if (status != ST_OK) return status;
    status = ctc_load(spec->characters, (uint32_t)spec->blank, spec->has_space, binder->arena,
                      &output->characters, binder->err);
    if (status != ST_OK) return binding_file_failed(binder, output->spec->line, "ctc.characters", status);
    const int64_t classes = last_axis(&binder->signature->outputs[output->from]);
    if (classes != -1 && classes != (int64_t)output->characters.count)
        return binding_refuse(binder, output->spec->line,
                              "ctc.characters: %s has %zu characters (blank and space counted), the model has "
                              "%lld classes", spec->characters, output->characters.count, (long long)classes);
    return ST_OK;
}

static enum status bind_detokenize(const struct binder *binder, struct bound_output *output) {
    const struct pipeline_detokenize *spec = &output->spec->detokenize;
    const enum status status = find_from(binder, output);
    if (status != ST_OK) return status;
    if (spec->tokenizer != NULL) {
        const enum status loaded = tokenizer_load(spec->tokenizer, &output->own_tokenizer, binder->err);
        output->tokenizer = output->own_tokenizer;
        return binding_file_failed(binder, output->spec->line, "detokenize.tokenizer", loaded);
    }
    int input = NOT_FED;
    const enum status found = find_input(binder, output, PIPELINE_TEXT, NULL, &input);
    if (found == ST_OK) output->tokenizer = binder->binding->inputs[input].text.tokenizer;
    return found;
}

/* A text input there need not be: then a row's tokens are all real. */
static void find_text(const struct binder *binder, struct bound_output *output) {
    for (uint32_t i = 0; i < binder->binding->input_count; i++)
        if (binder->binding->inputs[i].spec->kind == PIPELINE_TEXT) output->input = (int)i;
}

enum status binding_output(const struct binder *binder, struct bound_output *output) {
    output->input = NOT_FED;
    switch (output->spec->kind) {
    case PIPELINE_SCORES: return find_from(binder, output);
    case PIPELINE_CLASSIFY: return bind_classify(binder, output);
    case PIPELINE_EMBED:
        find_text(binder, output);
        return find_from(binder, output);
    case PIPELINE_DETECT: return bind_detect(binder, output);
    case PIPELINE_CTC: return bind_ctc(binder, output);
    case PIPELINE_TEXT_BOXES: {
        const enum status status = find_from(binder, output);
        if (status != ST_OK) return status;
        return find_input(binder, output, PIPELINE_IMAGE, output->spec->text_boxes.image, &output->input);
    }
    case PIPELINE_DETOKENIZE: return bind_detokenize(binder, output);
    case PIPELINE_TOKENS: return find_input(binder, output, PIPELINE_TEXT, NULL, &output->input);
    case PIPELINE_OUTPUT_KIND_COUNT: break;
    }
    return ST_INTERNAL;
}

/* ---- what they are shown as ---- */

static struct io_spec made(const char *name, enum dtype dtype, uint32_t rank, int64_t last) {
    struct io_spec spec = {.name = (char *)(uintptr_t)name, .dtype = dtype, .rank = rank,
                           .shape = {-1, -1, -1}};
    if (rank > 1) spec.shape[rank - 1] = last;
    return spec;
}

static uint32_t classify_made(const struct bound_output *output, struct io_spec *out) {
    const struct pipeline_classify *spec = &output->spec->classify;
    const uint32_t rank = spec->top > 1 ? 2 : 1;
    const int64_t top = (int64_t)spec->top;
    uint32_t count = 0;
    if (output->labels.count > 0) out[count++] = made(spec->label, DTYPE_BYTES, rank, top);
    out[count++] = made(spec->score, DTYPE_FP32, rank, top);
    if (spec->class_id != NULL) out[count++] = made(spec->class_id, DTYPE_INT64, rank, top);
    return count;
}

uint32_t binding_made(const struct bound_output *output, const struct signature *signature,
                      struct io_spec out[MADE_MAX]) {
    const struct pipeline_output *spec = output->spec;
    switch (spec->kind) {
    case PIPELINE_SCORES:
        out[0] = signature->outputs[output->from];
        out[0].name = (char *)(uintptr_t)spec->scores.name;
        return 1;
    case PIPELINE_CLASSIFY: return classify_made(output, out);
    case PIPELINE_EMBED:
        out[0] = made(spec->embed.name, DTYPE_FP32, 2, last_axis(&signature->outputs[output->from]));
        return 1;
    case PIPELINE_DETECT:
        out[0] = made(spec->detect.boxes, DTYPE_FP32, 3, 4);
        out[1] = made(spec->detect.scores, DTYPE_FP32, 2, -1);
        out[2] = made(spec->detect.classes, DTYPE_INT64, 2, -1);
        out[3] = made(spec->detect.count, DTYPE_INT32, 1, -1);
        out[4] = made(spec->detect.label, DTYPE_BYTES, 2, -1);
        return output->labels.count > 0 ? 5 : 4;
    case PIPELINE_CTC:
        out[0] = made(spec->ctc.name, DTYPE_BYTES, 1, -1);
        out[1] = made(spec->ctc.score, DTYPE_FP32, 1, -1);
        return 2;
    case PIPELINE_TEXT_BOXES:
        out[0] = made(spec->text_boxes.quads, DTYPE_FP32, 3, 8);
        out[1] = made(spec->text_boxes.scores, DTYPE_FP32, 2, -1);
        out[2] = made(spec->text_boxes.count, DTYPE_INT32, 1, -1);
        return 3;
    case PIPELINE_DETOKENIZE:
        out[0] = made(spec->detokenize.name, DTYPE_BYTES, 1, -1);
        return 1;
    case PIPELINE_TOKENS:
        out[0] = made(spec->tokens.ids, DTYPE_INT64, 2, -1);
        out[1] = made(spec->tokens.offsets, DTYPE_INT64, 3, 2);
        return 2;
    case PIPELINE_OUTPUT_KIND_COUNT: break;
    }
    return 0;
}

const char *binding_name_key(const struct bound_output *output, uint32_t index) {
    static const char *const KEYS[PIPELINE_OUTPUT_KIND_COUNT][MADE_MAX] = {
        [PIPELINE_SCORES] = {"name"}, [PIPELINE_CLASSIFY] = {"label", "score", "class"},
        [PIPELINE_EMBED] = {"name"},
        [PIPELINE_DETECT] = {"boxes", "scores", "classes", "count", "label"},
        [PIPELINE_CTC] = {"name", "score"}, [PIPELINE_TEXT_BOXES] = {"quads", "scores", "count"},
        [PIPELINE_DETOKENIZE] = {"name"}, [PIPELINE_TOKENS] = {"ids", "offsets"}};
    const bool lacks_label = output->spec->kind == PIPELINE_CLASSIFY && output->labels.count == 0;
    return KEYS[output->spec->kind][index + (lacks_label ? 1 : 0)];
}

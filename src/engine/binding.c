/* See binding.h. Load time, one thread. Invariant: after binding_make no step can meet a model
 * input or output of a type or rank that it does not take; what the model leaves open (sizes) is
 * checked when it has run. The inputs are here, the outputs in binding_outputs.c. */
#include "engine/binding_private.h"

#include <stdarg.h>
#include <stdio.h>

enum { DEFAULT_MAX_TOKENS = 512 };

enum status binding_refuse(const struct binder *binder, unsigned line, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *path = binder->binding->file.path;
    if (path[0] == '\0') return err_set(binder->err, ST_INVALID, "model %s: %s", binder->model->name, text);
    return err_set(binder->err, ST_INVALID, "%s:%u: %s", path, line, text);
}

enum status binding_no_memory(const struct binder *binder) {
    return err_set(binder->err, ST_NO_MEMORY, "no memory for the pipeline of model %s",
                   binder->model->name);
}

enum status binding_file_failed(const struct binder *binder, unsigned line, const char *key,
                                enum status status) {
    const char *path = binder->binding->file.path;
    if (status != ST_OK) err_prefix(binder->err, "%s:%u: %s", path, line, key);
    return status;
}

const char *binding_names(const struct io_spec *specs, uint32_t count, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && used + 1 < size; i++) {
        char shape[96];
        const int added = snprintf(out + used, size - used, "%s%s %s %s", i > 0 ? ", " : "",
                                   specs[i].name, dtype_name(specs[i].dtype),
                                   tensor_shape_text(specs[i].shape, specs[i].rank, shape, sizeof shape));
        used += added > 0 ? (size_t)added : 0;
    }
    return out;
}

int binding_find(const struct io_spec *specs, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(specs[i].name, name) == 0) return (int)i;
    return NOT_FED;
}

/* Marks a model input as filled; twice is a mistake. */
static enum status feed(const struct binder *binder, unsigned line, const char *key, int input) {
    if (binder->binding->is_fed[input])
        return binding_refuse(binder, line, "%s: the model's input \"%s\" is filled already", key,
                              binder->signature->inputs[input].name);
    binder->binding->is_fed[input] = true;
    return ST_OK;
}

/* ---- pictures ---- */

static enum status find_image_input(const struct binder *binder, const struct pipeline_input *spec,
                                    int *out) {
    const struct signature *signature = binder->signature;
    char names[300];
    if (spec->image.to == NULL) {
        if (signature->input_count != 1)
            return binding_refuse(binder, spec->line, "image.to is missing: the model has %u inputs, %s",
                                  signature->input_count,
                                  binding_names(signature->inputs, signature->input_count, names, sizeof names));
        *out = 0;
        return ST_OK;
    }
    *out = binding_find(signature->inputs, signature->input_count, spec->image.to);
    if (*out != NOT_FED) return ST_OK;
    return binding_refuse(binder, spec->line, "image.to: the model has no input \"%s\"; it has %s",
                          spec->image.to,
                          binding_names(signature->inputs, signature->input_count, names, sizeof names));
}

static bool is_channels(int64_t size) { return size == 1 || size == 3; }

/* Where channels, height and width stand among the last three axes. */
static enum status bind_layout(const struct binder *binder, const struct pipeline_input *spec,
                               const struct io_spec *input, struct pixel_format *format,
                               int64_t out_canvas[2]) {
    const int64_t *dims = input->shape + input->rank - 3;
    if (format->layout == LAYOUT_AUTO) {
        if (is_channels(dims[0])) format->layout = LAYOUT_NCHW;
        else if (is_channels(dims[2])) format->layout = LAYOUT_NHWC;
        else
            return binding_refuse(binder, spec->line,
                                  "image.layout: the model's input \"%s\" does not say where its "
                                  "channels stand: give nchw or nhwc", input->name);
    }
    const bool is_first = format->layout == LAYOUT_NCHW;
    const int64_t channels = is_first ? dims[0] : dims[2];
    const int64_t wanted = format->color == COLOR_GREY ? 1 : 3;
    if (channels != -1 && channels != wanted)
        return binding_refuse(binder, spec->line,
                              "image.color gives %lld channels, the model's input \"%s\" has %lld",
                              (long long)wanted, input->name, (long long)channels);
    out_canvas[0] = is_first ? dims[2] : dims[1]; /* width */
    out_canvas[1] = is_first ? dims[1] : dims[0]; /* height */
    return ST_OK;
}

/* One side of the canvas: the file's, the model's, or both the same. */
static enum status bind_side(const struct binder *binder, unsigned line, const char *key, int64_t own,
                             uint32_t *side) {
    if (own == -1) return ST_OK;
    if (own < 1 || own > IMAGE_MAX_SIDE)
        return binding_refuse(binder, line, "the model's %s of %lld is none for a picture", key,
                              (long long)own);
    if (*side != 0 && (int64_t)*side != own)
        return binding_refuse(binder, line, "image.%s is %u, the model takes %lld", key, *side,
                              (long long)own);
    *side = (uint32_t)own;
    return ST_OK;
}

static enum status bind_canvas(const struct binder *binder, const struct pipeline_input *spec,
                               const int64_t canvas[2], struct fit *fit) {
    const bool is_open = fit->kind == FIT_LIMIT || fit->kind == FIT_NONE;
    if (is_open) {
        if (canvas[0] != -1 || canvas[1] != -1)
            return binding_refuse(binder, spec->line,
                                  "image.fit: the model takes pictures of one size only: choose stretch, "
                                  "letterbox or crop");
        return ST_OK;
    }
    enum status status = bind_side(binder, spec->line, "height", canvas[1], &fit->height);
    if (status != ST_OK) return status;
    if (fit->kind == FIT_HEIGHT) {
        if (canvas[0] != -1) {
            status = bind_side(binder, spec->line, "width", canvas[0], &fit->width);
            if (status == ST_OK && fit->max_width != 0)
                status = bind_side(binder, spec->line, "max_width", canvas[0], &fit->max_width);
            if (status == ST_OK && fit->multiple > 1 && fit->width % fit->multiple != 0)
                status = binding_refuse(binder, spec->line, "image.multiple is %u, the model's width of %u is no "
                                                            "multiple of it", fit->multiple, fit->width);
            fit->max_width = fit->width;
        }
        if (status == ST_OK && fit->height == 0)
            status = binding_refuse(binder, spec->line, "image.height is missing: the model leaves it open");
        return status;
    }
    status = bind_side(binder, spec->line, "width", canvas[0], &fit->width);
    if (status == ST_OK && (fit->width == 0 || fit->height == 0))
        status = binding_refuse(binder, spec->line, "image.%s is missing: the model leaves it open",
                                fit->width == 0 ? "width" : "height");
    return status;
}

static enum status bind_image(const struct binder *binder, struct bound_input *out) {
    const struct pipeline_input *spec = out->spec;
    struct bound_image *image = &out->image;
    int to = 0;
    enum status status = find_image_input(binder, spec, &to);
    if (status == ST_OK) status = feed(binder, spec->line, "image.to", to);
    if (status != ST_OK) return status;
    const struct io_spec *input = &binder->signature->inputs[to];
    if (input->is_any_shape || input->rank < 3 || input->rank > 4 ||
        (input->rank == 4 && input->shape[0] != -1 && input->shape[0] != 1))
        return binding_refuse(binder, spec->line,
                              "image.to: the model's input \"%s\" is not (n, channels, height, width) or "
                              "the like", input->name);
    *image = (struct bound_image){.to = (uint32_t)to, .fit = spec->image.fit,
                                  .has_batch_axis = input->rank == 4};
    struct pixel_format format = spec->image.format;
    format.dtype = input->dtype;
    int64_t canvas[2] = {-1, -1};
    status = bind_layout(binder, spec, input, &format, canvas);
    if (status == ST_OK) status = bind_canvas(binder, spec, canvas, &image->fit);
    if (status != ST_OK) return status;
    struct err reason;
    if (pixels_init(&image->table, &format, &reason) != ST_OK)
        return binding_refuse(binder, spec->line, "image: %s (the model's input \"%s\" is %s)", reason.text,
                              input->name, dtype_name(input->dtype));
    const struct fit *fit = &image->fit;
    const bool is_fixed = fit->kind < FIT_HEIGHT ||
                          (fit->kind == FIT_HEIGHT && fit->width != 0 && fit->width == fit->max_width);
    if (is_fixed && (uint64_t)fit->width * fit->height > IMAGE_MAX_PIXELS)
        return binding_refuse(binder, spec->line, "image: a canvas of %ux%u; it may have %d pixels", fit->width,
                              fit->height, IMAGE_MAX_PIXELS);
    if (is_fixed) image->fixed_row_bytes = pixels_size(&image->table, fit->width, fit->height);
    /* As large as it will be resized to; without resizing nothing may be lost. */
    const uint32_t least = fit->kind == FIT_NONE ? UINT32_MAX : fit->kind == FIT_CROP ? fit->shorter : 0;
    const uint32_t width = fit->width != 0 ? fit->width : fit->max_side;
    const uint32_t height = fit->height != 0 ? fit->height : fit->max_side;
    image->decode = (struct image_options){
        .is_grey = format.color == COLOR_GREY,
        .ignores_orientation = spec->image.ignores_orientation,
        .scales_jpeg = spec->image.scales_jpeg,
        .least_width = width > least ? width : least,
        .least_height = height > least ? height : least,
        .max_pixels = spec->image.max_pixels,
    };
    return ST_OK;
}

/* ---- texts ---- */

static bool takes_tokens(const struct io_spec *input) {
    return (input->dtype == DTYPE_INT64 || input->dtype == DTYPE_INT32) && !input->is_any_shape &&
           input->rank == 2 && (input->shape[0] == -1 || input->shape[0] == 1);
}

static enum status bind_feed(const struct binder *binder, const struct pipeline_input *spec,
                             enum text_feed which, const char *named, struct bound_text *text) {
    static const char *const KEYS[FEED_COUNT] = {"text.ids", "text.mask", "text.types"};
    static const char *const USUAL[FEED_COUNT] = {"input_ids", "attention_mask", "token_type_ids"};
    const struct signature *signature = binder->signature;
    char names[300];
    const int at = binding_find(signature->inputs, signature->input_count, named != NULL ? named : USUAL[which]);
    text->feeds[which] = at;
    if (at == NOT_FED) {
        if (named == NULL && which != FEED_IDS) return ST_OK; /* the model does without */
        return binding_refuse(binder, spec->line, "%s: the model has no input \"%s\"; it has %s", KEYS[which],
                              named != NULL ? named : USUAL[which],
                              binding_names(signature->inputs, signature->input_count, names, sizeof names));
    }
    if (!takes_tokens(&signature->inputs[at]))
        return binding_refuse(binder, spec->line,
                              "%s: the model's input \"%s\" is not INT64 or INT32 (n, length)", KEYS[which],
                              signature->inputs[at].name);
    return feed(binder, spec->line, KEYS[which], at);
}

/* A model whose sequence has a fixed length wants it filled up to that. */
static enum status bind_length(const struct binder *binder, const struct pipeline_input *spec,
                               struct bound_text *text) {
    const int64_t length = binder->signature->inputs[text->feeds[FEED_IDS]].shape[1];
    if (length == -1) return ST_OK;
    if (length < 1 || length > 65536)
        return binding_refuse(binder, spec->line, "the model's sequence of %lld tokens is none", (long long)length);
    if ((int64_t)spec->text.max_tokens > length)
        return binding_refuse(binder, spec->line, "text.max_tokens is %llu, the model's sequence has %lld tokens",
                              (unsigned long long)spec->text.max_tokens, (long long)length);
    text->padding.fixed_length = (uint32_t)length;
    if (text->max_tokens > length) text->max_tokens = (uint32_t)length;
    return ST_OK;
}

static enum status bind_text(const struct binder *binder, struct bound_input *out) {
    const struct pipeline_input *spec = out->spec;
    struct bound_text *text = &out->text;
    if (binding_text(binder->binding) != text) /* one sequence length a batch */
        return binding_refuse(binder, spec->line, "inputs: a second text; a pair is text.pair of the first");
    enum status status = bind_feed(binder, spec, FEED_IDS, spec->text.ids, text);
    if (status == ST_OK) status = bind_feed(binder, spec, FEED_MASK, spec->text.mask, text);
    if (status == ST_OK) status = bind_feed(binder, spec, FEED_TYPES, spec->text.types, text);
    if (status != ST_OK) return status;
    const struct binding_files *files = binder->files;
    const char *path = files->tokenizer != NULL    ? files->tokenizer
                       : spec->text.tokenizer != NULL ? spec->text.tokenizer
                                                      : binder->model->tokenizer_path;
    if (path == NULL)
        return binding_refuse(binder, spec->line,
                              "text.tokenizer is missing: there is no tokenizer.json beside the model");
    status = tokenizer_load(path, &text->tokenizer, binder->err);
    if (status != ST_OK)
        return path == spec->text.tokenizer ? binding_file_failed(binder, spec->line, "text.tokenizer", status)
                                            : status;
    text->padding = tokenizer_padding(text->tokenizer);
    text->max_tokens = files->max_tokens != 0 ? files->max_tokens : (uint32_t)spec->text.max_tokens;
    if (text->max_tokens == 0) text->max_tokens = tokenizer_max_tokens(text->tokenizer);
    if (text->max_tokens == 0) text->max_tokens = DEFAULT_MAX_TOKENS;
    return bind_length(binder, spec, text);
}

/* ---- what clients see ---- */

static enum status show(const struct binder *binder, struct io_spec *specs, uint32_t *count,
                        struct io_spec spec) {
    if (*count == MODEL_MAX_IO)
        return err_set(binder->err, ST_UNSUPPORTED, "model %s: more than %d inputs or outputs",
                       binder->model->name, MODEL_MAX_IO);
    specs[(*count)++] = spec;
    return ST_OK;
}

static struct io_spec bytes_spec(const char *name) {
    return (struct io_spec){.name = (char *)(uintptr_t)name, .dtype = DTYPE_BYTES, .rank = 1, .shape = {-1}};
}

static enum status show_inputs(const struct binder *binder, struct signature *shown) {
    const struct binding *binding = binder->binding;
    enum status status = ST_OK;
    for (uint32_t i = 0; i < binding->input_count && status == ST_OK; i++) {
        const struct pipeline_input *spec = binding->inputs[i].spec;
        status = show(binder, shown->inputs, &shown->input_count, bytes_spec(spec->name));
        if (status == ST_OK && spec->kind == PIPELINE_TEXT && spec->text.pair != NULL)
            status = show(binder, shown->inputs, &shown->input_count, bytes_spec(spec->text.pair));
    }
    const uint32_t made = shown->input_count;
    for (uint32_t i = 0; i < binder->signature->input_count && status == ST_OK; i++) {
        if (binding->is_fed[i]) continue;
        const struct io_spec *own = &binder->signature->inputs[i];
        if (binding_find(shown->inputs, made, own->name) != NOT_FED)
            return binding_refuse(binder, binding->inputs[0].spec->line,
                                  "the model has an input \"%s\" of its own: name the pipeline's otherwise",
                                  own->name);
        status = show(binder, shown->inputs, &shown->input_count, *own);
    }
    return status;
}

static enum status show_outputs(const struct binder *binder, struct signature *shown) {
    struct binding *binding = binder->binding;
    enum status status = ST_OK;
    if (binding->file.shows_model_outputs) {
        for (uint32_t i = 0; i < binder->signature->output_count && status == ST_OK; i++)
            status = show(binder, shown->outputs, &shown->output_count, binder->signature->outputs[i]);
    }
    binding->own_shown = shown->output_count;
    for (uint32_t i = 0; i < binding->output_count && status == ST_OK; i++) {
        struct bound_output *output = &binding->outputs[i];
        struct io_spec made[MADE_MAX];
        output->made_count = binding_made(output, binder->signature, made);
        output->first_shown = shown->output_count;
        for (uint32_t k = 0; k < output->made_count && status == ST_OK; k++) {
            if (binding_find(shown->outputs, binding->own_shown, made[k].name) != NOT_FED)
                return binding_refuse(binder, output->spec->line,
                                      "%s: the model has an output \"%s\" of its own: hide the model's "
                                      "(model_outputs: hidden), or give this one another name with %s.%s",
                                      binding_kind_name(output->spec->kind), made[k].name,
                                      binding_kind_name(output->spec->kind), binding_name_key(output, k));
            status = show(binder, shown->outputs, &shown->output_count, made[k]);
        }
    }
    return status;
}

enum status binding_make(struct binding *binding, const struct model *model,
                         const struct binding_files *files, struct arena *arena,
                         struct signature *out_shown, struct err *err) {
    const struct binder binder = {binding, model, model->signature, files, arena, err};
    enum status status = ST_OK;
    for (uint32_t i = 0; i < binding->file.input_count && status == ST_OK; i++) {
        struct bound_input *input = &binding->inputs[binding->input_count++];
        input->spec = &binding->file.inputs[i];
        status = input->spec->kind == PIPELINE_IMAGE ? bind_image(&binder, input) : bind_text(&binder, input);
    }
    for (uint32_t i = 0; i < binding->file.output_count && status == ST_OK; i++) {
        struct bound_output *output = &binding->outputs[binding->output_count++];
        output->spec = &binding->file.outputs[i];
        status = binding_output(&binder, output);
        const enum pipeline_output_kind kind = output->spec->kind;
        binding->is_heavy |= kind == PIPELINE_DETECT || kind == PIPELINE_TEXT_BOXES || kind == PIPELINE_CTC;
    }
    struct signature shown = {.input_count = 0};
    if (status == ST_OK) status = show_inputs(&binder, &shown);
    if (status == ST_OK) status = show_outputs(&binder, &shown);
    if (status == ST_OK && shown.output_count == 0)
        status = binding_refuse(&binder, 1, "model_outputs: hidden, and outputs makes none: nothing would be "
                                            "answered");
    if (status == ST_OK) *out_shown = shown;
    return status;
}

const struct bound_text *binding_text(const struct binding *binding) {
    for (uint32_t i = 0; i < binding->input_count; i++)
        if (binding->inputs[i].spec->kind == PIPELINE_TEXT) return &binding->inputs[i].text;
    return NULL;
}

void binding_done(struct binding *binding) {
    for (uint32_t i = 0; i < binding->input_count; i++)
        if (binding->inputs[i].spec->kind == PIPELINE_TEXT) tokenizer_free(binding->inputs[i].text.tokenizer);
    for (uint32_t i = 0; i < binding->output_count; i++) tokenizer_free(binding->outputs[i].own_tokenizer);
    binding->input_count = binding->output_count = 0;
}

/* ---- no pipeline file ---- */

/* Tokens in and nothing else, with a free batch and a free length: a text will do. */
static bool is_text_model(const struct model *model, struct err *reason) {
    static const char *const USUAL[FEED_COUNT] = {"input_ids", "attention_mask", "token_type_ids"};
    const struct signature *signature = model->signature;
    bool has_ids = false;
    for (uint32_t i = 0; i < signature->input_count; i++) {
        const struct io_spec *input = &signature->inputs[i];
        bool is_usual = false;
        for (size_t k = 0; k < FEED_COUNT; k++) is_usual |= strcmp(input->name, USUAL[k]) == 0;
        has_ids |= strcmp(input->name, USUAL[FEED_IDS]) == 0;
        if (!is_usual || !takes_tokens(input) || input->shape[0] != -1 || input->shape[1] != -1) {
            (void)err_set(reason, ST_INVALID,
                          "a tokenizer.json lies beside model %s, but its input %s is not input_ids, "
                          "attention_mask or token_type_ids, INT64 or INT32, [batch, sequence]: it takes "
                          "tensors", model->name, input->name);
            return false;
        }
    }
    if (has_ids && model->can_batch) return true;
    (void)err_set(reason, ST_INVALID,
                  "a tokenizer.json lies beside model %s, but %s: it takes tensors", model->name,
                  has_ids ? "its first dimension is not free everywhere" : "it has no input input_ids");
    return false;
}

bool binding_infer(const struct model *model, const struct binding_files *files,
                   struct pipeline_file *out, struct err *reason) {
    *out = (struct pipeline_file){.path = "", .shows_model_outputs = true};
    if (files->tokenizer == NULL && model->tokenizer_path == NULL) return true;
    if (!is_text_model(model, reason)) return false;
    pipeline_input_default(PIPELINE_TEXT, &out->inputs[out->input_count++]);
    if (files->labels != NULL || model->labels_path != NULL)
        pipeline_output_default(PIPELINE_CLASSIFY, &out->outputs[out->output_count++]);
    return true;
}

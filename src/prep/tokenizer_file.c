/* tokenizer.json to a struct tokenizer. Load time, one thread. Invariant: what this file does not
 * understand it refuses by name; nothing is skipped. Each section has its own reader
 * (token_stages.h, post.h, tokenizer_added.c); tokenizer.c runs the result. */
#include "prep/tokenizer_parts.h"
#include "prep/tokenizer_read.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_BYTES_MAX = 256 << 20 }; /* the largest public tokenizer.json is about 40 MB */

static enum status read_truncation(struct tokenizer *out, struct json_value root,
                                   struct err *err) {
    static const char *const NAMES[] = {"direction", "max_length", "strategy", "stride", NULL};
    const char *where = "truncation";
    if (read_is_null(root, where)) return ST_OK;
    struct json_value object;
    struct view strategy, direction = view_of("Right");
    uint32_t stride = 0;
    (void)dom_member(root, where, &object);
    enum status status = read_members(object, where, NAMES, err);
    if (status != ST_OK
        || (status = read_u32(object, where, "max_length", &out->max_tokens, err)) != ST_OK
        || (status = read_u32(object, where, "stride", &stride, err)) != ST_OK
        || (status = read_string(object, where, "strategy", &strategy, err)) != ST_OK
        || (!read_is_null(object, "direction")
            && (status = read_string(object, where, "direction", &direction, err)) != ST_OK)) {
        return status;
    }
    out->keeps_end = view_is(direction, "Left");
    if (!out->keeps_end && !view_is(direction, "Right")) {
        return err_set(err, ST_UNSUPPORTED, "truncation direction \"%.*s\" is not supported",
                       VIEW_SHORT(direction));
    }
    if (view_is(strategy, "OnlyFirst")) {
        out->strategy = TRUNCATE_ONLY_FIRST;
    } else if (view_is(strategy, "OnlySecond")) {
        out->strategy = TRUNCATE_ONLY_SECOND;
    } else if (!view_is(strategy, "LongestFirst")) {
        return err_set(err, ST_UNSUPPORTED, "truncation strategy \"%.*s\" is not supported",
                       VIEW_SHORT(strategy));
    }
    const size_t added = out->post.added_count[0];
    if (out->max_tokens == 0 || out->max_tokens < added + stride) {
        return err_set(err, ST_INVALID,
                       "truncation to %u tokens leaves no room beside %zu special tokens and a "
                       "stride of %u", out->max_tokens, added, stride);
    }
    return ST_OK;
}

/* "BatchLongest" or {"Fixed": 128}. */
static enum status read_padding_strategy(struct tokenizer *out, struct json_value object,
                                         struct err *err) {
    struct json_value strategy;
    if (read_is_null(object, "strategy")) return ST_OK;
    (void)dom_member(object, "strategy", &strategy);
    if (dom_kind_of(strategy) == JSON_OBJECT && dom_count(strategy) == 1) {
        return read_u32(strategy, "padding: strategy", "Fixed", &out->padding.fixed_length, err);
    }
    if (!view_is(dom_string(strategy), "BatchLongest")) {
        return err_set(err, ST_UNSUPPORTED, "padding: \"strategy\" must be \"BatchLongest\" or "
                                            "{\"Fixed\": length}");
    }
    return ST_OK;
}

static enum status read_padding(struct tokenizer *out, struct json_value root, struct err *err) {
    static const char *const NAMES[] = {"strategy", "direction", "pad_to_multiple_of", "pad_id",
                                        "pad_type_id", "pad_token", NULL};
    const char *where = "padding";
    if (read_is_null(root, where)) {
        const uint32_t own = tokenizer_find(out, view_of("[PAD]"));
        out->padding.id = own == TRIE_NONE ? 0 : own;
        return ST_OK;
    }
    struct json_value object;
    struct view direction;
    uint32_t id = 0, type_id = 0;
    (void)dom_member(root, where, &object);
    enum status status = read_members(object, where, NAMES, err);
    if (status != ST_OK || (status = read_u32(object, where, "pad_id", &id, err)) != ST_OK
        || (status = read_u32(object, where, "pad_type_id", &type_id, err)) != ST_OK
        || (!read_is_null(object, "pad_to_multiple_of")
            && (status = read_u32(object, where, "pad_to_multiple_of",
                                  &out->padding.multiple_of, err)) != ST_OK)
        || (status = read_padding_strategy(out, object, err)) != ST_OK
        || (status = read_string(object, where, "direction", &direction, err)) != ST_OK) {
        return status;
    }
    out->padding.id = id;
    out->padding.type_id = type_id;
    out->padding.is_left = view_is(direction, "Left");
    if (!out->padding.is_left && !view_is(direction, "Right")) {
        return err_set(err, ST_UNSUPPORTED, "padding: direction \"%.*s\" is not supported",
                       VIEW_SHORT(direction));
    }
    return ST_OK;
}

/* A section; absent is null. */
static struct json_value section(struct json_value root, const char *name) {
    static const struct json_value absent = {NULL, 0};
    struct json_value value;
    return dom_member(root, name, &value) ? value : absent;
}

static enum status read_stages(struct tokenizer *out, struct json_value root, struct err *err) {
    struct arena *memory = &out->memory;
    bool is_byte_level = false;
    enum status status = normalizer_read(section(root, "normalizer"), memory, out->unicode,
                                         &out->normalizer, err);
    if (status == ST_OK) {
        status = splitter_read(section(root, "pre_tokenizer"), memory, out->unicode,
                               &out->splitter, &is_byte_level, err);
    }
    if (status == ST_OK) {
        status = model_read(section(root, "model"), memory, is_byte_level, &out->model, err);
    }
    if (status == ST_OK) {
        status = decoder_read(section(root, "decoder"), memory, &out->decoder, err);
    }
    return status;
}

enum status tokenizer_read(struct tokenizer *out, struct json_value root, struct err *err) {
    static const char *const NAMES[] = {"version", "truncation", "padding", "added_tokens",
                                        "normalizer", "pre_tokenizer", "post_processor",
                                        "decoder", "model", NULL};
    enum status status = read_members(root, "tokenizer", NAMES, err);
    struct view version;
    if (status != ST_OK
        || (status = read_string(root, "tokenizer", "version", &version, err)) != ST_OK) {
        return status;
    }
    if (!view_is(version, "1.0")) {
        return err_set(err, ST_UNSUPPORTED, "version \"%.*s\" is not supported (1.0 is)",
                       VIEW_SHORT(version));
    }
    if ((status = read_stages(out, root, err)) != ST_OK) return status;
    out->vocab_size = out->model.vocab_size;
    if ((status = tokenizer_read_added(out, root, err)) != ST_OK
        || (status = post_read(section(root, "post_processor"), &out->memory, &out->post, err))
               != ST_OK
        || (status = read_truncation(out, root, err)) != ST_OK) {
        return status;
    }
    return read_padding(out, root, err);
}

enum status tokenizer_parse(struct view json, const char *name, struct tokenizer **out,
                            struct err *err) {
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (tokenizer == NULL) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for the tokenizer", name);
    }
    arena_init(&tokenizer->memory);
    struct json_document *document = NULL;
    struct json_value root;
    enum status status = ST_OK;
    tokenizer->unicode = unicode_table_create();
    if (tokenizer->unicode == NULL) {
        status = err_set(err, ST_NO_MEMORY, "no memory for the Unicode tables");
    }
    if (status == ST_OK) status = dom_open(json, &document, &root, err);
    if (status == ST_OK) status = tokenizer_read(tokenizer, root, err);
    dom_close(document);
    if (status != ST_OK) {
        err_prefix(err, "%s", name);
        tokenizer_free(tokenizer);
        return status;
    }
    *out = tokenizer;
    return ST_OK;
}

/* The whole file into *out_text, which the caller frees. */
static enum status read_file(const char *path, struct view *out_text, struct err *err) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "%s: %s", path,
                       strerror(errno));
    }
    enum status status = ST_OK;
    char *data = NULL;
    const bool is_readable = fgetc(file) != EOF || !ferror(file); /* a directory is not */
    long size = is_readable && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0) {
        status = err_set(err, ST_IO, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (size > FILE_BYTES_MAX) {
        status = err_set(err, ST_TOO_LARGE, "%s: %ld bytes, at most %d are read", path, size,
                         FILE_BYTES_MAX);
        goto out;
    }
    data = malloc((size_t)size + 1);
    if (data == NULL) {
        status = err_set(err, ST_NO_MEMORY, "%s: no memory for %ld bytes", path, size);
        goto out;
    }
    if (fread(data, 1, (size_t)size, file) != (size_t)size) {
        status = err_set(err, ST_IO, "%s: could not be read to its end", path);
        goto out;
    }
    *out_text = (struct view){data, (size_t)size};
    data = NULL;
out:
    free(data);
    (void)fclose(file);
    return status;
}

enum status tokenizer_load(const char *path, struct tokenizer **out, struct err *err) {
    struct view text;
    enum status status = read_file(path, &text, err);
    if (status == ST_OK) {
        status = tokenizer_parse(text, path, out, err);
        free((char *)text.data);
    }
    return status;
}

void tokenizer_free(struct tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    if (tokenizer->normalizer.done != NULL) tokenizer->normalizer.done(tokenizer->normalizer.self);
    if (tokenizer->splitter.done != NULL) tokenizer->splitter.done(tokenizer->splitter.self);
    if (tokenizer->model.done != NULL) tokenizer->model.done(tokenizer->model.self);
    if (tokenizer->decoder.done != NULL) tokenizer->decoder.done(tokenizer->decoder.self);
    added_set_done(&tokenizer->raw_added);
    added_set_done(&tokenizer->normalized_added);
    unicode_table_free(tokenizer->unicode);
    arena_done(&tokenizer->memory);
    free(tokenizer);
}

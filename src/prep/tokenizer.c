/* Encoding: added tokens out of the raw text, the rest through normalizer, splitter and model,
 * then truncation and the template. Any number of threads at once; a tokenizer is const after
 * load and what one text needs lies in its arena. Invariant: no stage sees invalid UTF-8.
 * The file is read in tokenizer_file.c, the stages are in stages.h. */
#include "prep/tokenizer.h"
#include "prep/tokenizer_parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PART_BYTES = 4096, /* text taken through the stages at once: stays in the first cache */
    FILE_BYTES_MAX = 256 << 20, /* the largest public tokenizer.json is about 40 MB */
};

bool text_buf_reserve(struct text_buf *buf, size_t extra) {
    if (buf->capacity - buf->size >= extra) {
        return true;
    }
    if (extra > SIZE_MAX / 4 - buf->capacity) {
        return false;
    }
    size_t capacity = 2 * buf->capacity + extra;
    unsigned char *data = arena_alloc(buf->arena, capacity);
    if (data == NULL) {
        return false;
    }
    if (buf->size > 0) {
        memcpy(data, buf->data, buf->size);
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

static bool id_list_grow(struct id_list *list) {
    size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    uint32_t *ids = arena_alloc(list->arena, capacity * sizeof *ids);
    if (ids == NULL) {
        return false;
    }
    if (list->count > 0) {
        memcpy(ids, list->ids, list->count * sizeof *ids);
    }
    list->ids = ids;
    list->capacity = capacity;
    return true;
}

bool id_list_push(struct id_list *list, uint32_t id) {
    if (list->count == list->capacity && !id_list_grow(list)) {
        return false;
    }
    list->ids[list->count++] = id;
    return true;
}

struct encoder {
    const struct tokenizer *tokenizer;
    struct id_list ids;
    struct text_buf normal; /* the part in work, normalized */
    size_t enough;          /* once there are more ids than this the rest does not matter */
};

static bool has_enough(const struct encoder *encoder) {
    return encoder->ids.count > encoder->enough;
}

/* Splitter and model over normalized text. */
static bool encode_normal(struct encoder *encoder, struct view text) {
    const struct tokenizer *t = encoder->tokenizer;
    size_t at = 0;
    while (!has_enough(encoder)) {
        struct view piece = t->splitter_ops->next(&t->splitter, text, &at);
        if (piece.size == 0) {
            break;
        }
        if (!t->model_ops->encode(&t->model, piece, &encoder->ids)) {
            return false;
        }
    }
    return true;
}

/* Normalizes a part and looks for the added tokens that wait for that. */
static bool encode_part(struct encoder *encoder, struct view text) {
    const struct tokenizer *t = encoder->tokenizer;
    encoder->normal.size = 0;
    if (!t->normalizer_ops->run(&t->normalizer, text, &encoder->normal)) {
        return false;
    }
    struct view normal = {(const char *)encoder->normal.data, encoder->normal.size};
    struct added_cursor cursor = {.set = &t->normalized_added, .text = normal};
    struct added_match match;
    while (!has_enough(encoder) && added_next(&cursor, &match)) {
        if (cursor.done < match.start
            && !encode_normal(encoder, (struct view){normal.data + cursor.done,
                                                     match.start - cursor.done})) {
            return false;
        }
        if (!id_list_push(&encoder->ids, match.id)) {
            return false;
        }
        cursor.done = match.stop;
    }
    return cursor.done >= normal.size
           || encode_normal(encoder, (struct view){normal.data + cursor.done,
                                                   normal.size - cursor.done});
}

/* Where the part that starts at `at` may end: behind the first ASCII white space after
 * PART_BYTES, or at the end of the text. */
static size_t part_end(struct view text, size_t at) {
    if (text.size - at <= PART_BYTES) {
        return text.size;
    }
    at += PART_BYTES;
    while (at < text.size && text.data[at - 1] != ' ' && text.data[at - 1] != '\n') {
        at++;
    }
    return at;
}

/* Text between two added tokens. */
static bool encode_text(struct encoder *encoder, struct view text) {
    const struct tokenizer *t = encoder->tokenizer;
    if (t->normalized_added.count > 0 || !t->splitter_ops->ends_at_space) {
        return encode_part(encoder, text); /* a token may reach over white space */
    }
    size_t at = 0;
    while (at < text.size && !has_enough(encoder)) {
        size_t end = part_end(text, at);
        if (!encode_part(encoder, (struct view){text.data + at, end - at})) {
            return false;
        }
        at = end;
    }
    return true;
}

static bool encode_valid(struct encoder *encoder, struct view text) {
    struct added_cursor cursor = {.set = &encoder->tokenizer->raw_added, .text = text};
    struct added_match match;
    while (!has_enough(encoder) && added_next(&cursor, &match)) {
        if (cursor.done < match.start
            && !encode_text(encoder, (struct view){text.data + cursor.done,
                                                   match.start - cursor.done})) {
            return false;
        }
        if (!id_list_push(&encoder->ids, match.id)) {
            return false;
        }
        cursor.done = match.stop;
    }
    return cursor.done >= text.size
           || encode_text(encoder, (struct view){text.data + cursor.done,
                                                 text.size - cursor.done});
}

/* A copy of text with U+FFFD for what is not UTF-8; data is NULL when memory is out. */
static struct view replace_invalid(struct view text, size_t valid, struct arena *arena) {
    struct text_buf out = {.arena = arena};
    for (;;) {
        if (!text_buf_reserve(&out, text.size + 4)) {
            return (struct view){NULL, 0};
        }
        memcpy(out.data + out.size, text.data, valid);
        out.size += valid;
        text.data += valid;
        text.size -= valid;
        if (text.size == 0) {
            return (struct view){(const char *)out.data, out.size};
        }
        out.size += utf8_encode(CODE_REPLACEMENT, out.data + out.size);
        size_t bad = utf8_bad_length(text);
        text.data += bad;
        text.size -= bad;
        valid = utf8_valid_prefix(text);
    }
}

/* Ids and type ids through the template. kept is what truncation left of the text's ids. */
static bool assemble(const struct tokenizer *t, const uint32_t *kept, size_t kept_count,
                     size_t max_tokens, struct arena *arena, struct encoding *out) {
    size_t total = t->special_count + t->text_pieces * kept_count;
    total = total < max_tokens ? total : max_tokens;
    int64_t *ids = arena_alloc(arena, total * sizeof *ids);
    int64_t *type_ids = arena_alloc(arena, total * sizeof *type_ids);
    if (ids == NULL || type_ids == NULL || total > UINT32_MAX) {
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < t->template_count; i++) {
        const struct template_piece *piece = &t->template[i];
        const uint32_t *from = piece->is_text ? kept : piece->ids;
        size_t count = piece->is_text ? kept_count : piece->count;
        for (size_t k = 0; k < count && at < total; k++) {
            ids[at] = from[k];
            type_ids[at++] = piece->type_id;
        }
    }
    out->ids = ids;
    out->type_ids = type_ids;
    out->count = (uint32_t)total;
    return true;
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, struct view text,
                             const struct encode_options *options, struct arena *arena,
                             struct encoding *out, struct err *err) {
    static const struct encode_options usual = {.max_tokens = 0};
    options = options != NULL ? options : &usual;
    if (options->pair != NULL || options->wants_offsets || options->adds_no_special) {
        return err_set(err, ST_UNSUPPORTED, "pairs, offsets and texts without special tokens are "
                                            "not supported yet");
    }
    uint32_t max_tokens = options->max_tokens;
    if (max_tokens == 0) {
        max_tokens = tokenizer->max_tokens;
    }
    size_t limit = max_tokens == 0 ? SIZE_MAX : max_tokens;
    size_t room = limit > tokenizer->special_count ? limit - tokenizer->special_count : 0;
    if (max_tokens == 0) {
        room = SIZE_MAX;
    }
    struct encoder encoder = {
        .tokenizer = tokenizer,
        .ids = {.arena = arena},
        .normal = {.arena = arena},
        .enough = tokenizer->keeps_end ? SIZE_MAX : room,
    };
    size_t valid = utf8_valid_prefix(text);
    if (valid < text.size) {
        text = replace_invalid(text, valid, arena);
        if (text.data == NULL) {
            return err_set(err, ST_NO_MEMORY, "no memory for tokens");
        }
    }
    if (!encode_valid(&encoder, text)) {
        return err_set(err, ST_NO_MEMORY, "no memory for tokens");
    }
    const uint32_t *kept = encoder.ids.ids;
    size_t count = encoder.ids.count;
    bool was_truncated = count > room;
    if (was_truncated) {
        kept += tokenizer->keeps_end ? count - room : 0;
        count = room;
    }
    if (!assemble(tokenizer, kept, count, limit, arena, out)) {
        return err_set(err, ST_NO_MEMORY, "no memory for tokens");
    }
    out->offsets = NULL;
    out->special = NULL;
    out->was_truncated = was_truncated;
    return ST_OK;
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
    if (status == ST_OK) {
        status = dom_open(json, &document, &root, err);
    }
    if (status == ST_OK) {
        status = tokenizer_read(tokenizer, root, err);
    }
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
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
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
    if (tokenizer == NULL) {
        return;
    }
    if (tokenizer->model_ops != NULL) {
        tokenizer->model_ops->done(&tokenizer->model);
    }
    added_set_done(&tokenizer->raw_added);
    added_set_done(&tokenizer->normalized_added);
    unicode_table_free(tokenizer->unicode);
    arena_done(&tokenizer->memory);
    free(tokenizer);
}

struct token_padding tokenizer_padding(const struct tokenizer *tokenizer) {
    return (struct token_padding){.id = tokenizer->pad_id};
}
uint32_t tokenizer_find(const struct tokenizer *tokenizer, struct view token) {
    return tokenizer->model_ops->find(&tokenizer->model, token);
}
uint32_t tokenizer_max_tokens(const struct tokenizer *tokenizer) { return tokenizer->max_tokens; }
uint32_t tokenizer_vocab_size(const struct tokenizer *tokenizer) { return tokenizer->vocab_size; }

/* The section "decoder" of a tokenizer.json. Load time, one thread. Invariant: a decoder or a
 * member that is not known is refused by name. Sequences are flattened: their steps run in order.
 * Read decoder.c next. */
#include "prep/decoder.h"
#include "prep/tokenizer_read.h"

enum { NESTED_MAX = 16 }; /* sequences in sequences */

static const char WHERE[] = "decoder";

struct decoder_reader {
    struct arena *memory;
    struct decode_steps *steps;
    size_t capacity;
    int depth;
    struct err *err;
};

static enum status copy_string(struct decoder_reader *reader, struct json_value object,
                               const char *name, struct view *out) {
    struct view text;
    enum status status = read_string(object, WHERE, name, &text, reader->err);
    if (status != ST_OK) {
        return status;
    }
    char *copy = arena_copy(reader->memory, text);
    if (copy == NULL) {
        return err_set(reader->err, ST_NO_MEMORY, "no memory for the decoder");
    }
    *out = (struct view){copy, text.size};
    return ST_OK;
}

/* The same for what is looked for: Rust finds "" between all characters. */
static enum status copy_wanted(struct decoder_reader *reader, struct json_value object,
                               const char *name, struct view *out) {
    enum status status = copy_string(reader, object, name, out);
    if (status == ST_OK && out->size == 0) {
        status = err_set(reader->err, ST_UNSUPPORTED, "decoder: an empty \"%s\" is not supported",
                         name);
    }
    return status;
}

static enum status copy_character(struct decoder_reader *reader, struct json_value object,
                                  const char *name, struct view *out) {
    enum status status = copy_string(reader, object, name, out);
    uint32_t code;
    if (status == ST_OK
        && (out->size == 0 || utf8_decode((const unsigned char *)out->data, &code) != out->size)) {
        status = err_set(reader->err, ST_INVALID, "decoder: \"%s\" must be one character", name);
    }
    return status;
}

static enum status read_replace(struct decoder_reader *reader, struct json_value object,
                                struct decode_step *step) {
    static const char *const NAMES[] = {"type", "pattern", "content", NULL};
    struct json_value pattern, string;
    enum status status = read_members(object, WHERE, NAMES, reader->err);
    if (status != ST_OK) {
        return status;
    }
    if (!dom_member(object, "pattern", &pattern) || dom_kind_of(pattern) != JSON_OBJECT) {
        return err_set(reader->err, ST_INVALID, "decoder: \"pattern\" must be an object");
    }
    if (!dom_member(pattern, "String", &string) || dom_count(pattern) != 1) {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "decoder: Replace is supported with a String pattern only");
    }
    if ((status = copy_wanted(reader, pattern, "String", &step->from)) != ST_OK) {
        return status;
    }
    step->run = decode_replace;
    return copy_string(reader, object, "content", &step->to);
}

static enum status read_strip(struct decoder_reader *reader, struct json_value object,
                              struct decode_step *step) {
    static const char *const NAMES[] = {"type", "content", "start", "stop", NULL};
    uint32_t start, stop;
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, reader->err)) != ST_OK
        || (status = copy_character(reader, object, "content", &step->from)) != ST_OK
        || (status = read_u32(object, WHERE, "start", &start, reader->err)) != ST_OK
        || (status = read_u32(object, WHERE, "stop", &stop, reader->err)) != ST_OK) {
        return status;
    }
    step->start = start;
    step->stop = stop;
    step->run = decode_strip;
    return ST_OK;
}

static enum status read_wordpiece(struct decoder_reader *reader, struct json_value object,
                                  struct decode_step *step) {
    static const char *const NAMES[] = {"type", "prefix", "cleanup", NULL};
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, reader->err)) != ST_OK
        || (status = copy_string(reader, object, "prefix", &step->from)) != ST_OK) {
        return status;
    }
    step->run = decode_wordpiece;
    return read_bool(object, WHERE, "cleanup", &step->cleans_up, reader->err);
}

static enum status read_ctc(struct decoder_reader *reader, struct json_value object,
                            struct decode_step *step) {
    static const char *const NAMES[] = {"type", "pad_token", "word_delimiter_token", "cleanup",
                                        NULL};
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, reader->err)) != ST_OK
        || (status = copy_wanted(reader, object, "pad_token", &step->from)) != ST_OK
        || (status = copy_wanted(reader, object, "word_delimiter_token", &step->to)) != ST_OK) {
        return status;
    }
    step->run = decode_ctc;
    return read_bool(object, WHERE, "cleanup", &step->cleans_up, reader->err);
}

static enum status read_bpe(struct decoder_reader *reader, struct json_value object,
                            struct decode_step *step) {
    static const char *const NAMES[] = {"type", "suffix", NULL};
    enum status status = read_members(object, WHERE, NAMES, reader->err);
    step->run = decode_bpe;
    return status != ST_OK ? status : copy_wanted(reader, object, "suffix", &step->from);
}

static enum status read_metaspace(struct decoder_reader *reader, struct json_value object,
                                  struct decode_step *step) {
    static const char *const NAMES[] = {"type", "replacement", "add_prefix_space", "prepend_scheme",
                                        "split", "str_rep", NULL};
    struct view scheme = view_of("always");
    bool adds_space = true;
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, reader->err)) != ST_OK
        || (status = copy_character(reader, object, "replacement", &step->from)) != ST_OK
        || (!read_is_null(object, "prepend_scheme")
            && (status = read_string(object, WHERE, "prepend_scheme", &scheme, reader->err))
                   != ST_OK)
        || (!read_is_null(object, "add_prefix_space")
            && (status = read_bool(object, WHERE, "add_prefix_space", &adds_space, reader->err))
                   != ST_OK)) {
        return status;
    }
    bool is_never = view_is(scheme, "never");
    if (!is_never && !view_is(scheme, "always") && !view_is(scheme, "first")) {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "decoder: prepend_scheme \"%.*s\" is not supported", VIEW_SHORT(scheme));
    }
    /* Hugging Face's reader refuses a contradiction, which "always" by default is one of. */
    if (!adds_space && !is_never) {
        return err_set(reader->err, ST_INVALID, "decoder: add_prefix_space is false, "
                                                "prepend_scheme is not \"never\"");
    }
    step->keeps_first = is_never;
    step->run = decode_metaspace;
    return ST_OK;
}

static enum status read_plain(struct decoder_reader *reader, struct json_value object,
                              struct decode_step *step, bool is_byte_level) {
    static const char *const NONE[] = {"type", NULL};
    static const char *const BYTE_LEVEL[] = {"type", "add_prefix_space", "trim_offsets",
                                             "use_regex", NULL};
    (void)step;
    return read_members(object, WHERE, is_byte_level ? BYTE_LEVEL : NONE, reader->err);
}

static enum status read_step(struct decoder_reader *reader, struct json_value object,
                             struct view type, struct decode_step *step) {
    if (view_is(type, "ByteLevel")) { /* its members are the pre-tokenizer's business */
        step->run = decode_byte_level;
        return read_plain(reader, object, step, true);
    }
    if (view_is(type, "ByteFallback") || view_is(type, "Fuse")) {
        step->run = view_is(type, "Fuse") ? decode_fuse : decode_bytes;
        return read_plain(reader, object, step, false);
    }
    if (view_is(type, "WordPiece")) {
        return read_wordpiece(reader, object, step);
    }
    if (view_is(type, "Metaspace")) {
        return read_metaspace(reader, object, step);
    }
    if (view_is(type, "BPEDecoder")) {
        return read_bpe(reader, object, step);
    }
    if (view_is(type, "Replace")) {
        return read_replace(reader, object, step);
    }
    if (view_is(type, "Strip")) {
        return read_strip(reader, object, step);
    }
    if (view_is(type, "CTC")) {
        return read_ctc(reader, object, step);
    }
    return err_set(reader->err, ST_UNSUPPORTED, "decoder \"%.*s\" is not supported",
                   VIEW_SHORT(type));
}

/* Room for one more step; NULL when memory is out. */
static struct decode_step *add_step(struct decoder_reader *reader) {
    struct decode_steps *steps = reader->steps;
    if (steps->count == reader->capacity) {
        size_t capacity = 2 * reader->capacity + 4;
        struct decode_step *items = arena_array(reader->memory, capacity, sizeof *items);
        if (items == NULL) {
            return NULL;
        }
        if (steps->count > 0) {
            memcpy(items, steps->items, steps->count * sizeof *items);
        }
        steps->items = items;
        reader->capacity = capacity;
    }
    return &steps->items[steps->count++];
}

static enum status read_decoder(void *context, struct view name, struct json_value object) {
    static const char *const NAMES[] = {"type", "decoders", NULL};
    struct decoder_reader *reader = context;
    struct view type;
    (void)name;
    if (dom_kind_of(object) != JSON_OBJECT) {
        return err_set(reader->err, ST_INVALID, "decoder is not an object");
    }
    enum status status = read_string(object, WHERE, "type", &type, reader->err);
    if (status != ST_OK) {
        return status;
    }
    if (!view_is(type, "Sequence")) {
        struct decode_step *step = add_step(reader);
        return step == NULL ? err_set(reader->err, ST_NO_MEMORY, "no memory for the decoder")
                            : read_step(reader, object, type, step);
    }
    struct json_value list;
    if ((status = read_members(object, WHERE, NAMES, reader->err)) != ST_OK) {
        return status;
    }
    if (!dom_member(object, "decoders", &list) || dom_kind_of(list) != JSON_ARRAY) {
        return err_set(reader->err, ST_INVALID, "decoder: \"decoders\" must be an array");
    }
    if (reader->depth == NESTED_MAX) {
        return err_set(reader->err, ST_UNSUPPORTED, "decoder: more than %d sequences in each other",
                       NESTED_MAX);
    }
    reader->depth++;
    status = dom_each(list, read_decoder, reader);
    reader->depth--;
    return status;
}

enum status decoder_read(struct json_value value, struct arena *memory, struct decoder *out,
                         struct err *err) {
    struct decode_steps *steps = arena_zalloc(memory, sizeof *steps);
    if (steps == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the decoder");
    }
    struct decoder_reader reader = {.memory = memory, .steps = steps, .err = err};
    steps->between = view_of("");
    if (dom_kind_of(value) == JSON_NULL) {
        steps->between = view_of(" "); /* what Hugging Face does without a decoder */
    } else {
        enum status status = read_decoder(&reader, (struct view){"", 0}, value);
        if (status != ST_OK) {
            return status;
        }
    }
    *out = (struct decoder){.run = decoder_run, .self = steps};
    return ST_OK;
}

/* BERT's normalizer and splitter, to the letter of Hugging Face's: clean, space out Chinese,
 * decompose and drop marks, lower-case, in that order, in one pass. Any thread. Invariant:
 * characters that carry a combining class wait in `pending` until one without a class comes,
 * since canonical order is only known then. See unicode_table.h for whose Unicode this is. */
#include "prep/bert.h"
#include "prep/normalizer.h"
#include "prep/tokenizer_read.h"

enum {
    ASCII_DROP = 0xff,
    SPLIT_WORD = 0,
    SPLIT_SPACE,
    SPLIT_PUNCTUATION,
    CODE_BITS = 24, /* a pending code point carries its class above them */
};

struct bert_splitter {
    const struct unicode_table *unicode;
    unsigned char ascii[128];
};

struct run {
    const struct bert_normalizer *self;
    struct span_text *out;
    struct token_list pending; /* id: class << CODE_BITS | code */
    bool is_unordered;         /* pending needs sorting */
};

static void prepare(struct bert_normalizer *self) {
    self->matters = (self->cleans_text ? CODE_CONTROL | CODE_WHITESPACE : 0u)
                    | (self->spaces_chinese ? CODE_CHINESE : 0u)
                    | (self->strips_accents ? CODE_MARK | CODE_COMBINING | CODE_DECOMPOSES : 0u)
                    | (self->lowers ? CODE_LOWERS : 0u);
    for (unsigned byte = 0; byte < sizeof self->ascii; byte++) {
        unsigned flags = unicode_flags(self->unicode, byte) & self->matters;
        uint32_t lower[2] = {byte};
        if (flags & CODE_CONTROL) {
            lower[0] = ASCII_DROP;
        } else if (flags & CODE_WHITESPACE) {
            lower[0] = ' ';
        } else if (flags & CODE_LOWERS) {
            (void)unicode_lower(self->unicode, byte, lower);
        }
        self->ascii[byte] = (unsigned char)lower[0];
    }
}

/* Writes one code point, lower-cased where that is asked for. */
static bool put(struct run *run, uint32_t code) {
    uint32_t codes[2] = {code};
    size_t count = 1;
    if (run->self->lowers && (unicode_flags(run->self->unicode, code) & CODE_LOWERS)) {
        count = unicode_lower(run->self->unicode, code, codes);
    }
    if (!span_text_reserve(run->out, 8)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        run->out->size += utf8_encode(codes[i], run->out->data + run->out->size);
    }
    return true;
}

/* Writes the pending code points by class, those of one class in their order. One pass a class
 * that occurs: a hostile run of a million marks costs 63 passes and not a million squared. */
static bool flush(struct run *run) {
    const struct token_list *pending = &run->pending;
    uint64_t classes = 0;
    for (size_t i = 0; run->is_unordered && i < pending->count; i++) {
        classes |= (uint64_t)1 << (pending->items[i].id >> CODE_BITS);
    }
    for (unsigned class = 0; class < CODE_CLASSES; class ++) {
        if (run->is_unordered && (classes >> class & 1) == 0) {
            continue;
        }
        for (size_t i = 0; i < pending->count; i++) {
            if ((!run->is_unordered || pending->items[i].id >> CODE_BITS == class)
                && !put(run, pending->items[i].id & ((1u << CODE_BITS) - 1))) {
                return false;
            }
        }
        if (!run->is_unordered) {
            break;
        }
    }
    run->pending.count = 0;
    run->is_unordered = false;
    return true;
}

/* One code point after decomposition. */
static bool put_part(struct run *run, uint32_t code) {
    unsigned flags = unicode_flags(run->self->unicode, code);
    bool is_starter = (flags & CODE_COMBINING) == 0;
    if (is_starter && run->pending.count > 0 && !flush(run)) {
        return false;
    }
    if (flags & CODE_MARK) {
        return true; /* dropped; without a class it has still ended the run */
    }
    if (is_starter) {
        return put(run, code);
    }
    uint32_t entry = unicode_class(code) << CODE_BITS | code;
    const struct token_list *pending = &run->pending;
    if (pending->count > 0 && pending->items[pending->count - 1].id >> CODE_BITS > entry >> CODE_BITS) {
        run->is_unordered = true;
    }
    return token_list_push(&run->pending, entry, 0, 0);
}

static bool put_decomposed(struct run *run, uint32_t code, unsigned flags) {
    if (!run->self->strips_accents) {
        return put(run, code);
    }
    uint32_t parts[CODE_PARTS_MAX] = {code};
    size_t count = 1;
    if (flags & CODE_DECOMPOSES) {
        count = unicode_decompose(run->self->unicode, code, parts);
    }
    for (size_t i = 0; i < count; i++) {
        if (!put_part(run, parts[i])) {
            return false;
        }
    }
    return true;
}

/* A code point that the normalizer changes, or that comes while others are pending. */
static bool put_changed(struct run *run, uint32_t code, unsigned flags) {
    const struct bert_normalizer *self = run->self;
    if (self->cleans_text && (flags & CODE_CONTROL)) {
        return true;
    }
    if (self->cleans_text && (flags & CODE_WHITESPACE)) {
        return put_decomposed(run, ' ', 0);
    }
    if (self->spaces_chinese && (flags & CODE_CHINESE)) {
        return put_decomposed(run, ' ', 0) && put_decomposed(run, code, flags)
               && put_decomposed(run, ' ', 0);
    }
    return put_decomposed(run, code, flags);
}

/* A stretch of ASCII with nothing pending: a table look-up a byte. Returns bytes taken. */
static size_t copy_ascii(const struct bert_normalizer *self, const unsigned char *data,
                         size_t size, struct span_text *out) {
    unsigned char *to = out->data + out->size;
    size_t at = 0;
    while (at < size && data[at] < 0x80) {
        unsigned char byte = self->ascii[data[at++]];
        *to = byte;
        to += byte != ASCII_DROP;
    }
    out->size = (size_t)(to - out->data);
    return at;
}

/* Control characters away, white space to spaces. */
static bool clean(const struct bert_normalizer *self, const struct span_text *in,
                  struct span_text *out) {
    for (size_t at = 0, length; at < in->size; at += length) {
        uint32_t code;
        length = utf8_decode(in->data + at, &code);
        const unsigned flags = unicode_flags(self->unicode, code);
        if (flags & CODE_CONTROL) continue;
        if (!span_text_put(out, flags & CODE_WHITESPACE ? ' ' : code, span_text_source(in, at))) {
            return false;
        }
    }
    return true;
}

/* Spaces around Chinese characters; both are of the character. */
static bool space_chinese(const struct bert_normalizer *self, const struct span_text *in,
                          struct span_text *out) {
    for (size_t at = 0, length; at < in->size; at += length) {
        uint32_t code;
        length = utf8_decode(in->data + at, &code);
        const bool spaces = (unicode_flags(self->unicode, code) & CODE_CHINESE) != 0;
        const struct source source = span_text_source(in, at);
        if ((spaces && !span_text_put(out, ' ', source)) || !span_text_put(out, code, source)
            || (spaces && !span_text_put(out, ' ', source))) {
            return false;
        }
    }
    return true;
}

/* The same in a pass for each change: the sources after canonical order hang on the text that this
 * pass found, not on the one that was given. */
static bool run_with_sources(const struct bert_normalizer *self, const struct span_text *in,
                             struct span_text *out) {
    enum { PASSES = 5 };
    struct unicode_form form;
    unicode_form_init(&form, self->unicode, false, false);
    const struct code_filter filter = {self->unicode, CODE_MARK};
    const bool wanted[PASSES] = {self->cleans_text, self->spaces_chinese, self->strips_accents,
                                 self->strips_accents, self->lowers};
    struct span_text texts[PASSES];
    bool is_done = true;
    for (int i = 0; i < PASSES && is_done; i++) {
        if (!wanted[i]) continue;
        texts[i] = (struct span_text){
            .arena = out->arena, .has_sources = out->has_sources, .origin = in->origin};
        is_done = i == 0   ? clean(self, in, &texts[i])
                  : i == 1 ? space_chinese(self, in, &texts[i])
                  : i == 2 ? unicode_form_run(&form, in, &texts[i])
                  : i == 3 ? code_filter_run(&filter, in, &texts[i])
                           : lowercase_run(self->unicode, in, &texts[i]);
        in = &texts[i];
    }
    return is_done && span_text_copy(out, in, 0, in->size);
}

static bool run_normalizer(const void *self, const struct span_text *in, struct span_text *out) {
    if (out->has_sources) return run_with_sources(self, in, out);
    struct run run = {.self = self, .out = out, .pending = {.arena = out->arena}};
    const unsigned char *data = in->data;
    size_t at = 0;
    while (at < in->size) {
        /* Room for the rest unchanged and a code point: all that is written without asking. */
        if (!span_text_reserve(out, in->size - at + 8)) {
            return false;
        }
        if (data[at] < 0x80 && run.pending.count == 0) {
            at += copy_ascii(run.self, data + at, in->size - at, out);
            continue;
        }
        uint32_t code;
        size_t length = utf8_decode(data + at, &code);
        unsigned flags = unicode_flags(run.self->unicode, code);
        if ((flags & run.self->matters) == 0 && run.pending.count == 0) {
            memcpy(out->data + out->size, data + at, length);
            out->size += length;
        } else if (!put_changed(&run, code, flags)) {
            return false;
        }
        at += length;
    }
    return flush(&run);
}

static enum status read_flags(struct json_value object, struct bert_normalizer *out,
                              struct err *err) {
    static const char *const NAMES[] = {"type", "clean_text", "handle_chinese_chars",
                                        "strip_accents", "lowercase", NULL};
    const char *where = "normalizer";
    enum status status = read_members(object, where, NAMES, err);
    if (status != ST_OK
        || (status = read_bool(object, where, "clean_text", &out->cleans_text, err)) != ST_OK
        || (status = read_bool(object, where, "handle_chinese_chars", &out->spaces_chinese,
                               err)) != ST_OK
        || (status = read_bool(object, where, "lowercase", &out->lowers, err)) != ST_OK) {
        return status;
    }
    out->strips_accents = out->lowers; /* what null means */
    return read_is_null(object, "strip_accents")
               ? ST_OK
               : read_bool(object, where, "strip_accents", &out->strips_accents, err);
}

enum status bert_normalizer_read(struct json_value object, struct arena *memory,
                                 const struct unicode_table *unicode, struct normalizer *out,
                                 struct err *err) {
    struct bert_normalizer *self = arena_zalloc(memory, sizeof *self);
    if (self == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the normalizer");
    self->unicode = unicode;
    const enum status status = read_flags(object, self, err);
    if (status != ST_OK) return status;
    prepare(self);
    *out = (struct normalizer){.run = run_normalizer, .cuts_at_space = true, .self = self};
    return ST_OK;
}

static unsigned char split_kind(unsigned flags) {
    return flags & CODE_WHITESPACE ? SPLIT_SPACE
           : flags & CODE_PUNCTUATION ? SPLIT_PUNCTUATION : SPLIT_WORD;
}

static unsigned char kind_at(const struct bert_splitter *self, const unsigned char *data,
                             size_t *out_length) {
    if (data[0] < 0x80) {
        *out_length = 1;
        return self->ascii[data[0]];
    }
    uint32_t code;
    *out_length = utf8_decode(data, &code);
    return split_kind(unicode_flags(self->unicode, code));
}

/* The words and punctuation of one piece. */
static bool split_piece(const struct bert_splitter *self, const unsigned char *data,
                        struct piece piece, struct piece_list *out) {
    size_t at = piece.start;
    while (at < piece.end) {
        size_t length;
        const unsigned char kind = kind_at(self, data + at, &length);
        const size_t start = at;
        at += length;
        if (kind == SPLIT_SPACE) continue;
        while (kind == SPLIT_WORD && at < piece.end
               && kind_at(self, data + at, &length) == SPLIT_WORD) {
            at += length;
        }
        if (!piece_list_push(out, (uint32_t)start, (uint32_t)at)) return false;
    }
    return true;
}

static bool run_splitter(const void *self, const struct span_text *text,
                         const struct piece_list *pieces, struct span_text *out_text,
                         struct piece_list *out_pieces) {
    (void)out_text;
    for (size_t i = 0; i < pieces->count; i++) {
        if (!split_piece(self, text->data, pieces->items[i], out_pieces)) return false;
    }
    return true;
}

bool bert_splitter_make(struct arena *memory, const struct unicode_table *unicode,
                        struct splitter *out) {
    struct bert_splitter *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) return false;
    self->unicode = unicode;
    for (unsigned byte = 0; byte < sizeof self->ascii; byte++) {
        self->ascii[byte] = split_kind(unicode_flags(unicode, byte));
    }
    *out = (struct splitter){.run = run_splitter, .ends_at_space = true, .self = self};
    return true;
}

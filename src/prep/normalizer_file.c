/* The normalizer section of a tokenizer.json. Load time, one thread. Invariant: a kind or a member
 * that is not known is refused by name. The kinds run in normalizer_unicode.c, normalizer_text.c,
 * normalizer_charsmap.c and bert.c. */
#include "prep/bert.h"
#include "prep/normalizer.h"
#include "prep/tokenizer_read.h"

struct reader {
    struct arena *memory;
    const struct unicode_table *unicode;
    struct err *err;
    struct sequence *sequence; /* being read */
};

struct sequence {
    struct normalizer *items;
    size_t count;
};

static enum status no_memory(const struct reader *reader) {
    return err_set(reader->err, ST_NO_MEMORY, "no memory for the normalizer");
}

/* Each step's text is the next one's; the last writes out. */
static bool sequence_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct sequence *sequence = self;
    struct span_text texts[2];
    for (size_t i = 0; i + 1 < sequence->count; i++) {
        struct span_text *next = &texts[i % 2];
        *next = (struct span_text){
            .arena = out->arena, .has_sources = out->has_sources, .origin = in->origin};
        if (!sequence->items[i].run(sequence->items[i].self, in, next)) return false;
        in = next;
    }
    const struct normalizer *last = &sequence->items[sequence->count - 1];
    return last->run(last->self, in, out);
}

static void sequence_done(void *self) {
    struct sequence *sequence = self;
    for (size_t i = 0; i < sequence->count; i++) {
        struct normalizer *item = &sequence->items[i];
        if (item->done != NULL) item->done(item->self);
    }
}

static enum status read_form(struct reader *reader, bool is_compatible, bool composes,
                             struct normalizer *out) {
    struct unicode_form *form = arena_alloc(reader->memory, sizeof *form);
    if (form == NULL) return no_memory(reader);
    unicode_form_init(form, reader->unicode, is_compatible, composes);
    *out = (struct normalizer){.run = unicode_form_run, .cuts_at_space = true, .self = form};
    return ST_OK;
}

static enum status read_strip_accents(struct reader *reader, struct normalizer *out) {
    struct code_filter *filter = arena_alloc(reader->memory, sizeof *filter);
    if (filter == NULL) return no_memory(reader);
    *filter = (struct code_filter){reader->unicode, CODE_ANY_MARK};
    *out = (struct normalizer){.run = code_filter_run, .cuts_at_space = true, .self = filter};
    return ST_OK;
}

/* Those whose only member is their type. */
static enum status read_plain(struct reader *reader, struct view type, struct normalizer *out) {
    if (view_is(type, "NFC")) return read_form(reader, false, true, out);
    if (view_is(type, "NFD")) return read_form(reader, false, false, out);
    if (view_is(type, "NFKC")) return read_form(reader, true, true, out);
    if (view_is(type, "NFKD")) return read_form(reader, true, false, out);
    if (view_is(type, "StripAccents")) return read_strip_accents(reader, out);
    if (view_is(type, "Lowercase")) {
        *out = (struct normalizer){.run = lowercase_run,
                                   .cuts_at_space = true,
                                   .self = (void *)reader->unicode};
    } else if (view_is(type, "Nmt")) {
        *out = (struct normalizer){.run = nmt_run};
    } else {
        *out = (struct normalizer){.run = letters_run};
    }
    return ST_OK;
}

static bool is_plain(struct view type) {
    static const char *const KINDS[] = {"NFC",       "NFD", "NFKC",      "NFKD", "StripAccents",
                                        "Lowercase", "Nmt", "ByteLevel", NULL};
    for (const char *const *kind = KINDS; *kind != NULL; kind++) {
        if (view_is(type, *kind)) return true;
    }
    return false;
}

static enum status read_strip(struct reader *reader, struct json_value object,
                              struct normalizer *out) {
    static const char *const NAMES[] = {"type", "strip_left", "strip_right", NULL};
    struct strip *strip = arena_alloc(reader->memory, sizeof *strip);
    if (strip == NULL) return no_memory(reader);
    strip->unicode = reader->unicode;
    enum status status = read_members(object, "normalizer Strip", NAMES, reader->err);
    if (status != ST_OK
        || (status = read_bool(object, "normalizer Strip", "strip_left", &strip->left,
                               reader->err)) != ST_OK
        || (status = read_bool(object, "normalizer Strip", "strip_right", &strip->right,
                               reader->err)) != ST_OK) {
        return status;
    }
    *out = (struct normalizer){.run = strip_run, .self = strip};
    return ST_OK;
}

static enum status copy_string(struct reader *reader, struct json_value object, const char *where,
                               const char *name, struct view *out) {
    struct view text;
    const enum status status = read_string(object, where, name, &text, reader->err);
    if (status != ST_OK) return status;
    const char *copy = arena_copy(reader->memory, text);
    if (copy == NULL) return no_memory(reader);
    *out = (struct view){copy, text.size};
    return ST_OK;
}

static enum status read_prepend(struct reader *reader, struct json_value object,
                                struct normalizer *out) {
    static const char *const NAMES[] = {"type", "prepend", NULL};
    struct prepend *prepend = arena_alloc(reader->memory, sizeof *prepend);
    if (prepend == NULL) return no_memory(reader);
    enum status status = read_members(object, "normalizer Prepend", NAMES, reader->err);
    if (status != ST_OK
        || (status = copy_string(reader, object, "normalizer Prepend", "prepend",
                                 &prepend->text)) != ST_OK) {
        return status;
    }
    *out = (struct normalizer){.run = prepend_run, .self = prepend};
    return ST_OK;
}

static enum status read_replace(struct reader *reader, struct json_value object,
                                struct normalizer *out) {
    static const char *const NAMES[] = {"type", "pattern", "content", NULL};
    const char *where = "normalizer Replace";
    struct json_value pattern;
    struct replace *replace = arena_zalloc(reader->memory, sizeof *replace);
    if (replace == NULL) return no_memory(reader);
    enum status status = read_members(object, where, NAMES, reader->err);
    if (status != ST_OK
        || (status = copy_string(reader, object, where, "content", &replace->to)) != ST_OK) {
        return status;
    }
    if (!dom_member(object, "pattern", &pattern) || dom_count(pattern) != 1) {
        return err_set(reader->err, ST_INVALID,
                       "%s: \"pattern\" must be {\"String\": text} or {\"Regex\": pattern}", where);
    }
    if (read_is_null(pattern, "String")) {
        struct view regex;
        status = read_string(pattern, where, "Regex", &regex, reader->err);
        if (status == ST_OK) {
            status = pattern_create(regex, PATTERN_REGEX, &replace->pattern, reader->err);
        }
        if (status != ST_OK) return status;
        *out = (struct normalizer){
            .run = replace_pattern_run, .self = replace, .done = replace_pattern_done};
        return ST_OK;
    }
    status = copy_string(reader, pattern, where, "String", &replace->from);
    if (status != ST_OK) return status;
    if (replace->from.size == 0) {
        return err_set(reader->err, ST_UNSUPPORTED, "%s: an empty pattern is not supported", where);
    }
    *out = (struct normalizer){.run = replace_run, .self = replace};
    return ST_OK;
}

static enum status read_charsmap(struct reader *reader, struct json_value object,
                                 struct normalizer *out) {
    static const char *const NAMES[] = {"type", "precompiled_charsmap", NULL};
    struct view precompiled;
    struct charsmap *map = arena_alloc(reader->memory, sizeof *map);
    if (map == NULL) return no_memory(reader);
    enum status status = read_members(object, "normalizer Precompiled", NAMES, reader->err);
    if (status != ST_OK
        || (status = read_string(object, "normalizer Precompiled", "precompiled_charsmap",
                                 &precompiled, reader->err)) != ST_OK
        || (status = charsmap_make(precompiled, reader->memory, map, reader->err)) != ST_OK) {
        return status;
    }
    *out = (struct normalizer){.run = charsmap_run, .self = map};
    return ST_OK;
}

static enum status read_one(struct reader *reader, struct json_value value,
                            struct normalizer *out);

/* A step of a Sequence; one that is a Sequence itself stands as its steps. */
static enum status read_step(void *context, struct view name, struct json_value value) {
    struct reader *reader = context;
    (void)name;
    return read_one(reader, value, &reader->sequence->items[reader->sequence->count++]);
}

static enum status read_sequence(struct reader *reader, struct json_value object,
                                 struct normalizer *out) {
    static const char *const NAMES[] = {"type", "normalizers", NULL};
    struct json_value list;
    enum status status = read_members(object, "normalizer Sequence", NAMES, reader->err);
    if (status != ST_OK) return status;
    if (reader->sequence != NULL) {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "normalizer: a Sequence within a Sequence is not supported");
    }
    if (!dom_member(object, "normalizers", &list) || dom_kind_of(list) != JSON_ARRAY) {
        return err_set(reader->err, ST_INVALID, "normalizer: \"normalizers\" must be an array");
    }
    struct sequence *sequence = arena_zalloc(reader->memory, sizeof *sequence);
    if (sequence == NULL) return no_memory(reader);
    sequence->items = arena_array(reader->memory, dom_count(list), sizeof *sequence->items);
    if (sequence->items == NULL) return no_memory(reader);
    reader->sequence = sequence;
    status = dom_each(list, read_step, reader);
    if (status != ST_OK) sequence_done(sequence);
    if (status != ST_OK || sequence->count == 0) return status;
    *out = (struct normalizer){
        .run = sequence_run, .cuts_at_space = true, .self = sequence, .done = sequence_done};
    for (size_t i = 0; i < sequence->count; i++) {
        out->cuts_at_space = out->cuts_at_space && sequence->items[i].cuts_at_space;
    }
    return ST_OK;
}

static enum status read_one(struct reader *reader, struct json_value value,
                            struct normalizer *out) {
    static const char *const ONLY_TYPE[] = {"type", NULL};
    struct view type;
    enum status status = read_type(value, "normalizer", &type, reader->err);
    if (status != ST_OK) return status;
    if (is_plain(type)) {
        status = read_members(value, "normalizer", ONLY_TYPE, reader->err);
        return status == ST_OK ? read_plain(reader, type, out) : status;
    }
    if (view_is(type, "BertNormalizer")) {
        return bert_normalizer_read(value, reader->memory, reader->unicode, out, reader->err);
    }
    if (view_is(type, "Sequence")) return read_sequence(reader, value, out);
    if (view_is(type, "Strip")) return read_strip(reader, value, out);
    if (view_is(type, "Prepend")) return read_prepend(reader, value, out);
    if (view_is(type, "Replace")) return read_replace(reader, value, out);
    if (view_is(type, "Precompiled")) return read_charsmap(reader, value, out);
    return err_set(reader->err, ST_UNSUPPORTED,
                   "normalizer \"%.*s\" is not supported (BertNormalizer, NFC, NFD, NFKC, NFKD, "
                   "Lowercase, StripAccents, Replace, Prepend, Strip, Precompiled, Nmt, ByteLevel "
                   "and Sequence are)", VIEW_SHORT(type));
}

enum status normalizer_read(struct json_value value, struct arena *memory,
                            const struct unicode_table *unicode, struct normalizer *out,
                            struct err *err) {
    struct reader reader = {.memory = memory, .unicode = unicode, .err = err};
    struct normalizer read = {.run = NULL};
    const enum status status =
        dom_kind_of(value) == JSON_NULL ? ST_OK : read_one(&reader, value, &read);
    if (status == ST_OK) *out = read;
    return status;
}

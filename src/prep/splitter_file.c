/* The pre_tokenizer section of a tokenizer.json. Load time, one thread. Invariant: a kind or a
 * member that is not known is refused by name, and so is a sequence in which a splitter would look
 * at the letters that ByteLevel writes for bytes, which are not written here. Read splitter.h for
 * what is made. */
#include "prep/bert.h"
#include "prep/pattern_scan.h"
#include "prep/splitter.h"
#include "prep/tokenizer_read.h"

enum { DEPTH_MAX = 16 };

/* What a reader needs and gives besides its own section. */
struct reading {
    struct arena *memory;
    const struct unicode_table *unicode;
    bool is_byte_level; /* a ByteLevel has been read */
    unsigned depth;
    struct err *err;
};

static const char WHERE[] = "pre_tokenizer";
static const char *const NO_MEMBERS[] = {"type", NULL};

static enum status no_memory(const struct reading *reading) {
    return err_set(reading->err, ST_NO_MEMORY, "no memory for the pre_tokenizer");
}

static enum status made(const struct reading *reading, bool is_made) {
    return is_made ? ST_OK : no_memory(reading);
}

static enum status read_behavior(const struct reading *reading, struct json_value value,
                                 enum split_behavior *out) {
    static const char *const NAMES[SPLIT_BEHAVIOR_COUNT] = {
        [SPLIT_REMOVED] = "Removed",
        [SPLIT_ISOLATED] = "Isolated",
        [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [SPLIT_CONTIGUOUS] = "Contiguous",
    };
    struct view name;
    const enum status status = read_string(value, WHERE, "behavior", &name, reading->err);
    if (status != ST_OK) return status;
    for (unsigned i = 0; i < SPLIT_BEHAVIOR_COUNT; i++) {
        if (view_is(name, NAMES[i])) {
            *out = (enum split_behavior)i;
            return ST_OK;
        }
    }
    return err_set(reading->err, ST_UNSUPPORTED, "%s: behavior \"%.*s\" is not supported", WHERE,
                   VIEW_SHORT(name));
}

/* A string of one character. */
static enum status read_character(const struct reading *reading, struct json_value value,
                                  const char *name, struct view *out) {
    struct view text;
    const enum status status = read_string(value, WHERE, name, &text, reading->err);
    if (status != ST_OK) return status;
    uint32_t code;
    if (text.size == 0 || utf8_valid_prefix(text) < text.size
        || utf8_decode((const unsigned char *)text.data, &code) != text.size) {
        return err_set(reading->err, ST_INVALID, "%s: \"%s\" must be one character", WHERE, name);
    }
    *out = (struct view){arena_copy(reading->memory, text), text.size};
    return made(reading, out->data != NULL);
}

static enum status read_optional_bool(const struct reading *reading, struct json_value value,
                                      const char *name, bool *out) {
    return read_is_null(value, name) ? ST_OK : read_bool(value, WHERE, name, out, reading->err);
}

static enum status read_bert(struct reading *reading, struct json_value value,
                             struct splitter *out) {
    const enum status status = read_members(value, WHERE, NO_MEMBERS, reading->err);
    return status != ST_OK ? status
                           : made(reading, bert_splitter_make(reading->memory, reading->unicode,
                                                              out));
}

static enum status read_whitespace(struct reading *reading, struct json_value value,
                                   struct splitter *out) {
    const enum status status = read_members(value, WHERE, NO_MEMBERS, reading->err);
    return status != ST_OK ? status
                           : made(reading, splitter_of_words(reading->memory, reading->unicode,
                                                             out));
}

static enum status read_whitespace_split(struct reading *reading, struct json_value value,
                                         struct splitter *out) {
    const enum status status = read_members(value, WHERE, NO_MEMBERS, reading->err);
    if (status != ST_OK) return status;
    return made(reading, splitter_of_flags(reading->memory, reading->unicode, CODE_WHITESPACE,
                                           SPLIT_REMOVED, out));
}

static enum status read_punctuation(struct reading *reading, struct json_value value,
                                    struct splitter *out) {
    static const char *const NAMES[] = {"type", "behavior", NULL};
    enum split_behavior behavior = SPLIT_ISOLATED;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    struct json_value given;
    if (status == ST_OK && dom_member(value, "behavior", &given)) {
        status = read_behavior(reading, value, &behavior);
    }
    if (status != ST_OK) return status;
    return made(reading, splitter_of_flags(reading->memory, reading->unicode, CODE_PUNCTUATION,
                                           behavior, out));
}

static enum status read_digits(struct reading *reading, struct json_value value,
                               struct splitter *out) {
    static const char *const NAMES[] = {"type", "individual_digits", NULL};
    bool is_individual;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK
        || (status = read_bool(value, WHERE, "individual_digits", &is_individual,
                               reading->err)) != ST_OK) {
        return status;
    }
    return made(reading, splitter_of_numbers(reading->memory, is_individual ? SPLIT_ISOLATED
                                                                            : SPLIT_CONTIGUOUS,
                                             out));
}

static enum status read_length(struct reading *reading, struct json_value value,
                               struct splitter *out) {
    static const char *const NAMES[] = {"type", "length", NULL};
    uint32_t length = 5; /* what the library takes without one */
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    struct json_value given;
    if (status == ST_OK && dom_member(value, "length", &given)) {
        status = read_u32(value, WHERE, "length", &length, reading->err);
    }
    if (status != ST_OK) return status;
    if (length == 0) return err_set(reading->err, ST_INVALID, "%s: \"length\" is 0", WHERE);
    return made(reading, splitter_of_length(reading->memory, length, out));
}

static enum status read_delimiter(struct reading *reading, struct json_value value,
                                  struct splitter *out) {
    static const char *const NAMES[] = {"type", "delimiter", NULL};
    struct view delimiter;
    struct pattern *pattern;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK
        || (status = read_character(reading, value, "delimiter", &delimiter)) != ST_OK
        || (status = pattern_create(delimiter, PATTERN_STRING, &pattern,
                                    reading->err)) != ST_OK) {
        return status;
    }
    return made(reading, splitter_of_pattern(reading->memory, pattern, SPLIT_REMOVED, false, out));
}

static enum status read_pattern(const struct reading *reading, struct json_value value,
                                struct pattern **out) {
    static const char *const NAMES[] = {"String", "Regex", NULL};
    struct json_value pattern, text;
    if (!dom_member(value, "pattern", &pattern)) {
        return err_set(reading->err, ST_INVALID, "%s: \"pattern\" is missing", WHERE);
    }
    enum status status = read_members(pattern, "pre_tokenizer: pattern", NAMES, reading->err);
    if (status != ST_OK) return status;
    const bool is_string = dom_member(pattern, "String", &text);
    if ((!is_string && !dom_member(pattern, "Regex", &text)) || dom_count(pattern) != 1
        || dom_kind_of(text) != JSON_STRING) {
        return err_set(reading->err, ST_INVALID,
                       "%s: \"pattern\" must have either a String or a Regex", WHERE);
    }
    status = pattern_create(dom_string(text), is_string ? PATTERN_STRING : PATTERN_REGEX, out,
                            reading->err);
    if (status != ST_OK) err_prefix(reading->err, "%s", WHERE);
    return status;
}

static enum status read_split(struct reading *reading, struct json_value value,
                              struct splitter *out) {
    static const char *const NAMES[] = {"type", "pattern", "behavior", "invert", NULL};
    enum split_behavior behavior;
    bool is_inverted;
    struct pattern *pattern;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK || (status = read_behavior(reading, value, &behavior)) != ST_OK
        || (status = read_bool(value, WHERE, "invert", &is_inverted, reading->err)) != ST_OK
        || (status = read_pattern(reading, value, &pattern)) != ST_OK) {
        return status;
    }
    return made(reading, splitter_of_pattern(reading->memory, pattern, behavior, is_inverted,
                                             out));
}

static enum status read_scheme(const struct reading *reading, struct json_value value,
                               enum prepend_scheme *out) {
    static const char *const NAMES[] = {"always", "first", "never"};
    struct json_value given;
    struct view name;
    bool prefixes = true;
    enum status status;
    *out = PREPEND_ALWAYS;
    if (dom_member(value, "prepend_scheme", &given)) {
        status = read_string(value, WHERE, "prepend_scheme", &name, reading->err);
        if (status != ST_OK) return status;
        unsigned i = 0;
        while (i < 3 && !view_is(name, NAMES[i])) i++;
        if (i == 3) {
            return err_set(reading->err, ST_UNSUPPORTED,
                           "%s: prepend_scheme \"%.*s\" is not supported", WHERE,
                           VIEW_SHORT(name));
        }
        *out = (enum prepend_scheme)i;
    }
    status = read_optional_bool(reading, value, "add_prefix_space", &prefixes);
    if (status == ST_OK && !prefixes && *out != PREPEND_NEVER) {
        return err_set(reading->err, ST_INVALID, "%s: \"add_prefix_space\" is false, and "
                       "\"prepend_scheme\" is not \"never\"", WHERE);
    }
    return status;
}

static enum status read_metaspace(struct reading *reading, struct json_value value,
                                  struct splitter *out) {
    static const char *const NAMES[] = {"type", "replacement", "prepend_scheme", "split",
                                        "add_prefix_space", "str_rep", NULL};
    struct metaspace settings = {.cuts = true};
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK
        || (status = read_character(reading, value, "replacement", &settings.replacement)) != ST_OK
        || (status = read_scheme(reading, value, &settings.scheme)) != ST_OK
        || (status = read_optional_bool(reading, value, "split", &settings.cuts)) != ST_OK) {
        return status;
    }
    return made(reading, metaspace_make(reading->memory, &settings, out));
}

static enum status read_byte_level(struct reading *reading, struct json_value value,
                                   struct splitter *out) {
    static const char *const NAMES[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    bool prefixes_space, trims, uses_pattern = true;
    struct json_value given;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK
        || (status = read_bool(value, WHERE, "add_prefix_space", &prefixes_space,
                               reading->err)) != ST_OK
        || (status = read_bool(value, WHERE, "trim_offsets", &trims, reading->err)) != ST_OK
        || (dom_member(value, "use_regex", &given)
            && (status = read_bool(value, WHERE, "use_regex", &uses_pattern,
                                   reading->err)) != ST_OK)) {
        return status; /* trim_offsets is for the post-processor of that name */
    }
    struct pattern *pattern = NULL;
    if (uses_pattern) {
        status = pattern_create(view_of(PATTERN_GPT2), PATTERN_REGEX, &pattern, reading->err);
        if (status != ST_OK) return status;
    }
    reading->is_byte_level = true;
    return made(reading, byte_level_make(reading->memory, pattern, prefixes_space, out));
}

static enum status read_one(struct reading *reading, struct json_value value,
                            struct splitter *out);

struct sequence {
    struct reading *reading;
    struct splitter *items;
    size_t count;
};

static enum status read_item(void *context, struct view name, struct json_value value) {
    (void)name;
    struct sequence *sequence = context;
    struct reading *reading = sequence->reading;
    const bool sees_bytes = reading->is_byte_level;
    struct splitter item;
    struct view type = {"null", 4};
    enum status status = read_type(value, "pre_tokenizer: one of the sequence", &type,
                                   reading->err);
    if (status != ST_OK) return status;
    /* None of the letters for bytes is white space: there it has nothing to do. */
    const bool is_idle = sees_bytes && view_is(type, "WhitespaceSplit");
    if (sees_bytes && !is_idle) {
        return err_set(reading->err, ST_UNSUPPORTED, "%s: \"%.*s\" behind ByteLevel in a Sequence "
                       "is not supported (only WhitespaceSplit is)", WHERE, VIEW_SHORT(type));
    }
    status = read_one(reading, value, &item);
    if (status != ST_OK) return status;
    if (is_idle || item.run == NULL) {
        if (item.done != NULL) item.done(item.self);
        return ST_OK;
    }
    sequence->items[sequence->count++] = item;
    return ST_OK;
}

static enum status read_sequence(struct reading *reading, struct json_value value,
                                 struct splitter *out) {
    static const char *const NAMES[] = {"type", "pretokenizers", NULL};
    struct json_value list;
    enum status status = read_members(value, WHERE, NAMES, reading->err);
    if (status != ST_OK) return status;
    if (!dom_member(value, "pretokenizers", &list) || dom_kind_of(list) != JSON_ARRAY) {
        return err_set(reading->err, ST_INVALID, "%s: \"pretokenizers\" must be a list", WHERE);
    }
    if (reading->depth == DEPTH_MAX) {
        return err_set(reading->err, ST_UNSUPPORTED, "%s: more than %d sequences in each other "
                       "are not supported", WHERE, DEPTH_MAX);
    }
    struct sequence sequence = {
        .reading = reading,
        .items = arena_array(reading->memory, dom_count(list), sizeof *sequence.items),
    };
    if (sequence.items == NULL) return no_memory(reading);
    reading->depth++;
    status = dom_each(list, read_item, &sequence);
    reading->depth--;
    if (status == ST_OK) {
        status = made(reading, splitter_sequence_make(reading->memory, sequence.items,
                                                      sequence.count, out));
    }
    for (size_t i = 0; status != ST_OK && i < sequence.count; i++) {
        if (sequence.items[i].done != NULL) sequence.items[i].done(sequence.items[i].self);
    }
    return status;
}

static enum status read_one(struct reading *reading, struct json_value value,
                            struct splitter *out) {
    static const struct {
        const char *type;
        enum status (*read)(struct reading *reading, struct json_value value,
                            struct splitter *out);
    } KINDS[] = {
        {"BertPreTokenizer", read_bert},
        {"ByteLevel", read_byte_level},
        {"CharDelimiterSplit", read_delimiter},
        {"Digits", read_digits},
        {"FixedLength", read_length},
        {"Metaspace", read_metaspace},
        {"Punctuation", read_punctuation},
        {"Sequence", read_sequence},
        {"Split", read_split},
        {"Whitespace", read_whitespace},
        {"WhitespaceSplit", read_whitespace_split},
    };
    struct view type;
    const enum status status = read_type(value, WHERE, &type, reading->err);
    if (status != ST_OK) return status;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (view_is(type, KINDS[i].type)) return KINDS[i].read(reading, value, out);
    }
    return err_set(reading->err, ST_UNSUPPORTED, "%s \"%.*s\" is not supported", WHERE,
                   VIEW_SHORT(type));
}

enum status splitter_read(struct json_value value, struct arena *memory,
                          const struct unicode_table *unicode, struct splitter *out,
                          bool *out_is_byte_level, struct err *err) {
    struct reading reading = {.memory = memory, .unicode = unicode, .err = err};
    struct splitter splitter = {.run = NULL};
    const enum status status =
        dom_kind_of(value) == JSON_NULL ? ST_OK : read_one(&reading, value, &splitter);
    if (status != ST_OK) return status;
    *out = splitter;
    *out_is_byte_level = reading.is_byte_level;
    return ST_OK;
}

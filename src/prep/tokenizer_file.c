/* tokenizer.json to a struct tokenizer. Load time, one thread. Invariant: what this file does
 * not understand it refuses by name; nothing is skipped but the decoder, which encoding does not
 * use. tokenizer_model.c reads the model and the added tokens, tokenizer.c runs the result. */
#include "prep/tokenizer_read.h"

enum status read_members(struct json_value object, const char *where, const char *const *known,
                         struct err *err) {
    if (dom_kind_of(object) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "%s is not an object", where);
    }
    struct known_names names = {.known = known, .where = where, .err = err};
    return dom_each(object, read_known_name, &names);
}

enum status read_known_name(void *context, struct view name, struct json_value value) {
    const struct known_names *names = context;
    (void)value;
    for (const char *const *known = names->known; *known != NULL; known++) {
        if (view_is(name, *known)) {
            return ST_OK;
        }
    }
    return err_set(names->err, ST_UNSUPPORTED, "%s: \"%.*s\" is not supported", names->where,
                   VIEW_SHORT(name));
}

bool read_is_null(struct json_value object, const char *name) {
    struct json_value value;
    return !dom_member(object, name, &value) || dom_kind_of(value) == JSON_NULL;
}

enum status read_bool(struct json_value object, const char *where, const char *name, bool *out,
                      struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || dom_kind_of(value) != JSON_BOOL) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be true or false", where, name);
    }
    *out = dom_bool(value);
    return ST_OK;
}

enum status read_u32(struct json_value object, const char *where, const char *name,
                     uint32_t *out, struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || !dom_u32(value, out)) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be a whole number below 2^32", where,
                       name);
    }
    return ST_OK;
}

enum status read_string(struct json_value object, const char *where, const char *name,
                        struct view *out, struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || dom_kind_of(value) != JSON_STRING) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be a string", where, name);
    }
    *out = dom_string(value);
    return ST_OK;
}

/* The type of a stage, or "null" for a null one. */
static enum status read_type(struct json_value root, const char *where, struct json_value *out,
                             struct view *out_type, struct err *err) {
    if (read_is_null(root, where)) {
        *out_type = view_of("null");
        return ST_OK;
    }
    (void)dom_member(root, where, out);
    return read_string(*out, where, "type", out_type, err);
}

static enum status read_normalizer(struct tokenizer *out, struct json_value root,
                                   struct err *err) {
    static const char *const NAMES[] = {"type", "clean_text", "handle_chinese_chars",
                                        "strip_accents", "lowercase", NULL};
    const char *where = "normalizer";
    struct bert_normalizer *bert = &out->normalizer;
    bert->unicode = out->unicode;
    out->normalizer_ops = &BERT_NORMALIZER;
    struct json_value object;
    struct view type;
    enum status status = read_type(root, where, &object, &type, err);
    if (status != ST_OK) {
        return status;
    }
    if (view_is(type, "null")) {
        bert_normalizer_prepare(bert);
        return ST_OK;
    }
    if (!view_is(type, "BertNormalizer")) {
        return err_set(err, ST_UNSUPPORTED,
                       "normalizer \"%.*s\" is not supported (BertNormalizer is)",
                       VIEW_SHORT(type));
    }
    if ((status = read_members(object, where, NAMES, err)) != ST_OK
        || (status = read_bool(object, where, "clean_text", &bert->cleans_text, err)) != ST_OK
        || (status = read_bool(object, where, "handle_chinese_chars", &bert->spaces_chinese,
                               err)) != ST_OK
        || (status = read_bool(object, where, "lowercase", &bert->lowers, err)) != ST_OK) {
        return status;
    }
    bert->strips_accents = bert->lowers; /* what null means */
    if (!read_is_null(object, "strip_accents")) {
        status = read_bool(object, where, "strip_accents", &bert->strips_accents, err);
    }
    bert_normalizer_prepare(bert);
    return status;
}

static enum status read_pre_tokenizer(struct tokenizer *out, struct json_value root,
                                      struct err *err) {
    static const char *const NAMES[] = {"type", NULL};
    struct json_value object;
    struct view type;
    enum status status = read_type(root, "pre_tokenizer", &object, &type, err);
    if (status != ST_OK) {
        return status;
    }
    if (!view_is(type, "BertPreTokenizer")) {
        return err_set(err, ST_UNSUPPORTED,
                       "pre_tokenizer \"%.*s\" is not supported (BertPreTokenizer is)",
                       VIEW_SHORT(type));
    }
    out->splitter_ops = &BERT_SPLITTER;
    bert_splitter_init(&out->splitter, out->unicode);
    return read_members(object, "pre_tokenizer", NAMES, err);
}

/* ["[SEP]", 102] of BertProcessing. */
static enum status read_pair(void *context, struct view name, struct json_value value) {
    uint32_t *id = context;
    (void)name;
    if (dom_kind_of(value) == JSON_STRING) {
        return ST_OK;
    }
    return dom_u32(value, id) ? ST_OK : ST_INVALID;
}

static enum status read_bert_processing(struct tokenizer *out, struct json_value object,
                                        struct err *err) {
    static const char *const NAMES[] = {"type", "sep", "cls", NULL};
    enum status status = read_members(object, "post_processor", NAMES, err);
    if (status != ST_OK) {
        return status;
    }
    uint32_t *ids = arena_array(&out->memory, 2, sizeof *ids);
    struct template_piece *pieces = arena_array(&out->memory, 3, sizeof *pieces);
    if (ids == NULL || pieces == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory");
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "cls" : "sep";
        struct json_value value;
        ids[i] = TRIE_NONE;
        if (!dom_member(object, name, &value) || dom_count(value) != 2
            || dom_each(value, read_pair, &ids[i]) != ST_OK || ids[i] == TRIE_NONE) {
            return err_set(err, ST_INVALID, "post_processor: \"%s\" must be [token, id]", name);
        }
        pieces[2 * i] = (struct template_piece){.ids = &ids[i], .count = 1};
    }
    pieces[1] = (struct template_piece){.is_text = true};
    out->template = pieces;
    out->template_count = 3;
    return ST_OK;
}

struct template_reader {
    struct tokenizer *out;
    struct json_value special_tokens;
    struct err *err;
    uint32_t *ids; /* of the special token being read */
    size_t id_count;
};

static enum status read_special_id(void *context, struct view name, struct json_value value) {
    struct template_reader *reader = context;
    (void)name;
    if (!dom_u32(value, &reader->ids[reader->id_count++])) {
        return err_set(reader->err, ST_INVALID, "post_processor: an id is not a whole number");
    }
    return ST_OK;
}

static enum status read_special_piece(struct template_reader *reader, struct json_value special,
                                      struct template_piece *piece) {
    struct view id;
    struct json_value token, ids;
    enum status status = read_string(special, "post_processor: SpecialToken", "id", &id,
                                     reader->err);
    if (status != ST_OK) {
        return status;
    }
    char *name = arena_copy(&reader->out->memory, id);
    if (name == NULL) {
        return err_set(reader->err, ST_NO_MEMORY, "no memory");
    }
    if (!dom_member(reader->special_tokens, name, &token) || !dom_member(token, "ids", &ids)
        || dom_kind_of(ids) != JSON_ARRAY) {
        return err_set(reader->err, ST_INVALID,
                       "post_processor: special_tokens has no ids for \"%.*s\"", VIEW_SHORT(id));
    }
    reader->ids = arena_array(&reader->out->memory, dom_count(ids), sizeof *reader->ids);
    reader->id_count = 0;
    if (reader->ids == NULL) {
        return err_set(reader->err, ST_NO_MEMORY, "no memory");
    }
    status = dom_each(ids, read_special_id, reader);
    piece->ids = reader->ids;
    piece->count = reader->id_count;
    return status;
}

static enum status read_piece(void *context, struct view name, struct json_value value) {
    struct template_reader *reader = context;
    struct template_piece *piece = &reader->out->template[reader->out->template_count++];
    struct json_value inner;
    struct view id;
    enum status status;
    (void)name;
    if (dom_count(value) == 1 && dom_member(value, "Sequence", &inner)) {
        piece->is_text = true;
        status = read_string(inner, "post_processor: Sequence", "id", &id, reader->err);
        if (status == ST_OK && !view_is(id, "A")) {
            return err_set(reader->err, ST_UNSUPPORTED,
                           "post_processor: sequence \"%.*s\" in the template of a single text",
                           VIEW_SHORT(id));
        }
    } else if (dom_count(value) == 1 && dom_member(value, "SpecialToken", &inner)) {
        status = read_special_piece(reader, inner, piece);
    } else {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "post_processor: a template piece is neither Sequence nor SpecialToken");
    }
    if (status != ST_OK) {
        return status;
    }
    return read_u32(inner, "post_processor: template piece", "type_id", &piece->type_id,
                    reader->err);
}

static enum status read_template(struct tokenizer *out, struct json_value object,
                                 struct err *err) {
    static const char *const NAMES[] = {"type", "single", "pair", "special_tokens", NULL};
    enum status status = read_members(object, "post_processor", NAMES, err);
    if (status != ST_OK) {
        return status;
    }
    struct template_reader reader = {.out = out, .err = err};
    struct json_value single;
    if (!dom_member(object, "single", &single) || dom_kind_of(single) != JSON_ARRAY
        || !dom_member(object, "special_tokens", &reader.special_tokens)) {
        return err_set(err, ST_INVALID,
                       "post_processor: \"single\" and \"special_tokens\" must be there");
    }
    out->template = arena_array(&out->memory, dom_count(single), sizeof *out->template);
    if (out->template == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory");
    }
    return dom_each(single, read_piece, &reader);
}

static enum status read_post_processor(struct tokenizer *out, struct json_value root,
                                       struct err *err) {
    struct json_value object;
    struct view type;
    enum status status = read_type(root, "post_processor", &object, &type, err);
    if (status != ST_OK) {
        return status;
    }
    if (view_is(type, "TemplateProcessing")) {
        status = read_template(out, object, err);
    } else if (view_is(type, "BertProcessing")) {
        status = read_bert_processing(out, object, err);
    } else if (view_is(type, "null")) {
        out->template = arena_array(&out->memory, 1, sizeof *out->template);
        if (out->template == NULL) {
            return err_set(err, ST_NO_MEMORY, "no memory");
        }
        out->template[0].is_text = true;
        out->template_count = 1;
    } else {
        return err_set(err, ST_UNSUPPORTED,
                       "post_processor \"%.*s\" is not supported (TemplateProcessing and "
                       "BertProcessing are)", VIEW_SHORT(type));
    }
    for (size_t i = 0; status == ST_OK && i < out->template_count; i++) {
        out->text_pieces += out->template[i].is_text;
        out->special_count += out->template[i].count;
    }
    return status;
}

static enum status read_truncation(struct tokenizer *out, struct json_value root,
                                   struct err *err) {
    static const char *const NAMES[] = {"direction", "max_length", "strategy", "stride", NULL};
    const char *where = "truncation";
    if (read_is_null(root, where)) {
        return ST_OK;
    }
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
    /* For a single text the two mean the same; OnlySecond would fail on every long text. */
    if (!view_is(strategy, "LongestFirst") && !view_is(strategy, "OnlyFirst")) {
        return err_set(err, ST_UNSUPPORTED, "truncation strategy \"%.*s\" is not supported",
                       VIEW_SHORT(strategy));
    }
    if (out->max_tokens == 0 || out->max_tokens < out->special_count + stride) {
        return err_set(err, ST_INVALID,
                       "truncation to %u tokens leaves no room beside %zu special tokens and a "
                       "stride of %u", out->max_tokens, out->special_count, stride);
    }
    return ST_OK;
}

static enum status read_padding(struct tokenizer *out, struct json_value root, struct err *err) {
    static const char *const NAMES[] = {"strategy", "direction", "pad_to_multiple_of", "pad_id",
                                        "pad_type_id", "pad_token", NULL};
    const char *where = "padding";
    if (read_is_null(root, where)) {
        uint32_t id = out->model_ops->find(&out->model, view_of("[PAD]"));
        out->pad_id = id == TRIE_NONE ? 0 : id;
        return ST_OK;
    }
    struct json_value object;
    struct view direction;
    uint32_t type_id = 0;
    (void)dom_member(root, where, &object);
    enum status status = read_members(object, where, NAMES, err);
    if (status != ST_OK
        || (status = read_u32(object, where, "pad_id", &out->pad_id, err)) != ST_OK
        || (status = read_u32(object, where, "pad_type_id", &type_id, err)) != ST_OK
        || (status = read_string(object, where, "direction", &direction, err)) != ST_OK) {
        return status;
    }
    /* The length that texts are padded to is the batch's affair, the side is not. */
    if (!view_is(direction, "Right") || type_id != 0) {
        return err_set(err, ST_UNSUPPORTED,
                       "padding on the side \"%.*s\" with type id %u is not supported",
                       VIEW_SHORT(direction), type_id);
    }
    return ST_OK;
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
    if ((status = read_normalizer(out, root, err)) != ST_OK
        || (status = read_pre_tokenizer(out, root, err)) != ST_OK
        || (status = read_model(out, root, err)) != ST_OK
        || (status = read_added_tokens(out, root, err)) != ST_OK
        || (status = read_post_processor(out, root, err)) != ST_OK
        || (status = read_truncation(out, root, err)) != ST_OK) {
        return status;
    }
    return read_padding(out, root, err);
}

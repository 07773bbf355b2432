/* The model and the added tokens of a tokenizer.json. Load time, one thread. Invariant: ids are
 * given as Hugging Face's loader gives them, which is not always what the file says (see
 * read_added_tokens). Called from tokenizer_file.c. */
#include "prep/tokenizer_read.h"
#include <stdlib.h>

struct vocab_reader {
    struct trie_key *keys;
    size_t count;
    struct err *err;
};

static enum status read_vocab_entry(void *context, struct view name, struct json_value value) {
    struct vocab_reader *reader = context;
    struct trie_key *key = &reader->keys[reader->count++];
    if (!dom_u32(value, &key->value) || key->value == TRIE_NONE) {
        return err_set(reader->err, ST_INVALID,
                       "model: the id of \"%.*s\" must be a whole number below 2^32 - 1",
                       VIEW_SHORT(name));
    }
    key->text = name;
    return ST_OK;
}

static enum status read_vocab(struct wordpiece *out, struct json_value model, struct err *err) {
    struct json_value vocab;
    if (!dom_member(model, "vocab", &vocab) || dom_kind_of(vocab) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "model: \"vocab\" must be an object");
    }
    size_t count = dom_count(vocab);
    struct vocab_reader reader = {.keys = calloc(count + 1, sizeof *reader.keys), .err = err};
    if (reader.keys == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %zu", count);
    }
    enum status status = dom_each(vocab, read_vocab_entry, &reader);
    size_t unique = 0;
    if (status == ST_OK && !trie_init(&out->vocab, reader.keys, reader.count, &unique)) {
        status = err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %zu", count);
    }
    out->vocab_size = (uint32_t)unique;
    free(reader.keys);
    return status;
}

enum status read_model(struct tokenizer *out, struct json_value root, struct err *err) {
    static const char *const NAMES[] = {"type", "unk_token", "continuing_subword_prefix",
                                        "max_input_chars_per_word", "vocab", NULL};
    const char *where = "model";
    struct json_value object;
    struct view type = view_of("WordPiece"), unknown, prefix;
    struct wordpiece *model = &out->model;
    enum status status;
    if (read_is_null(root, where)) {
        return err_set(err, ST_INVALID, "there is no model");
    }
    (void)dom_member(root, where, &object);
    if (!read_is_null(object, "type")
        && (status = read_string(object, where, "type", &type, err)) != ST_OK) {
        return status;
    }
    if (!view_is(type, "WordPiece")) {
        return err_set(err, ST_UNSUPPORTED, "model \"%.*s\" is not supported (WordPiece is)",
                       VIEW_SHORT(type));
    }
    if ((status = read_members(object, where, NAMES, err)) != ST_OK
        || (status = read_string(object, where, "unk_token", &unknown, err)) != ST_OK
        || (status = read_string(object, where, "continuing_subword_prefix", &prefix, err))
               != ST_OK
        || (status = read_u32(object, where, "max_input_chars_per_word", &model->max_word_chars,
                              err)) != ST_OK
        || (status = read_vocab(model, object, err)) != ST_OK) {
        return status;
    }
    out->model_ops = &WORDPIECE; /* from here on tokenizer_free has a model to free */
    model->unknown_id = trie_find(&model->vocab, unknown);
    model->continuing_node = trie_walk(&model->vocab, TRIE_ROOT, prefix);
    out->vocab_size = model->vocab_size;
    if (model->unknown_id == TRIE_NONE) {
        return err_set(err, ST_INVALID, "model: unk_token \"%.*s\" is not in the vocabulary",
                       VIEW_SHORT(unknown));
    }
    return ST_OK;
}

struct added_reader {
    struct tokenizer *out;
    struct view *contents; /* as written; out->added holds them as they are looked for */
    uint32_t next_id;
    struct err *err;
};

/* The content as the text will look when it is compared. */
static enum status normalize_content(struct tokenizer *out, struct added_token *token,
                                     struct err *err) {
    struct text_buf normal = {.arena = &out->memory};
    if (!out->normalizer_ops->run(&out->normalizer, token->content, &normal)) {
        return err_set(err, ST_NO_MEMORY, "no memory for the added tokens");
    }
    token->content = (struct view){(const char *)normal.data, normal.size};
    return ST_OK;
}

static enum status read_added_flags(struct json_value value, struct added_token *token,
                                    struct err *err) {
    static const char *const NAMES[] = {"id", "content", "single_word", "lstrip", "rstrip",
                                        "normalized", "special", NULL};
    const char *where = "added_tokens";
    bool is_special;
    uint32_t id;
    enum status status = read_members(value, where, NAMES, err);
    if (status != ST_OK || (status = read_u32(value, where, "id", &id, err)) != ST_OK
        || (status = read_bool(value, where, "single_word", &token->single_word, err)) != ST_OK
        || (status = read_bool(value, where, "lstrip", &token->lstrip, err)) != ST_OK
        || (status = read_bool(value, where, "rstrip", &token->rstrip, err)) != ST_OK
        || (status = read_bool(value, where, "normalized", &token->normalized, err)) != ST_OK
        || (status = read_bool(value, where, "special", &is_special, err)) != ST_OK) {
        return status;
    }
    return read_string(value, where, "content", &token->content, err);
}

/* One added token. Its id is the vocabulary's where the content is in it, else the next free one:
 * the file's own id is not looked at, as in Hugging Face's loader. A content that came before is
 * replaced, an empty one ignored. */
static enum status read_added_token(void *context, struct view name, struct json_value value) {
    struct added_reader *reader = context;
    struct tokenizer *out = reader->out;
    struct added_token token = {.id = 0};
    (void)name;
    enum status status = read_added_flags(value, &token, reader->err);
    if (status != ST_OK || token.content.size == 0) {
        return status;
    }
    char *copy = arena_copy(&out->memory, token.content);
    if (copy == NULL) {
        return err_set(reader->err, ST_NO_MEMORY, "no memory for the added tokens");
    }
    token.content.data = copy;
    struct view content = token.content;
    size_t index = 0;
    while (index < out->added_count && !view_eq(reader->contents[index], content)) {
        index++;
    }
    if (index == out->added_count) {
        token.id = out->model_ops->find(&out->model, content);
        if (token.id == TRIE_NONE) {
            token.id = reader->next_id++;
            out->vocab_size++;
        }
        out->added_count++;
    } else {
        token.id = out->added[index].id;
    }
    if (token.normalized && (status = normalize_content(out, &token, reader->err)) != ST_OK) {
        return status;
    }
    reader->contents[index] = content;
    out->added[index] = token;
    return ST_OK;
}

enum status read_added_tokens(struct tokenizer *out, struct json_value root, struct err *err) {
    struct json_value list;
    size_t count = 0;
    if (!read_is_null(root, "added_tokens")) {
        (void)dom_member(root, "added_tokens", &list);
        if (dom_kind_of(list) != JSON_ARRAY) {
            return err_set(err, ST_INVALID, "\"added_tokens\" must be an array");
        }
        count = dom_count(list);
    }
    struct added_reader reader = {.out = out, .next_id = out->model.vocab_size, .err = err};
    reader.contents = arena_array(&out->memory, count, sizeof *reader.contents);
    out->added = arena_array(&out->memory, count, sizeof *out->added);
    if (reader.contents == NULL || out->added == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu added tokens", count);
    }
    enum status status = count > 0 ? dom_each(list, read_added_token, &reader) : ST_OK;
    if (status == ST_OK) {
        status = added_set_init(&out->raw_added, out->unicode, out->added, out->added_count,
                                false, err);
    }
    if (status == ST_OK) {
        status = added_set_init(&out->normalized_added, out->unicode, out->added,
                                out->added_count, true, err);
    }
    return status;
}

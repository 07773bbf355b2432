/* The section added_tokens of a tokenizer.json. Load time, one thread. Invariant: ids are given as
 * Hugging Face's loader gives them, which is not what the file says: the vocabulary's id where the
 * content is in it, else the next free one. added.c finds the tokens in a text. */
#include "prep/tokenizer_parts.h"
#include "prep/tokenizer_read.h"
#include <stdlib.h>

struct added_reader {
    struct tokenizer *out;
    bool *is_special; /* some token of that content was */
    uint32_t next_id;
    struct err *err;
};

static uint32_t content_hash(struct view text) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < text.size; i++) hash = (hash ^ (uint8_t)text.data[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* The slot of content: its own, or the free one where it belongs. */
static uint32_t *content_slot(const struct added_index *index, struct view content) {
    uint32_t slot = content_hash(content) & index->mask;
    while (index->by_content[slot] != 0
           && !view_eq(index->contents[index->by_content[slot] - 1], content)) {
        slot = (slot + 1) & index->mask;
    }
    return &index->by_content[slot];
}

const struct added_token *tokenizer_added_by_content(const struct tokenizer *tokenizer,
                                                     struct view content) {
    const uint32_t number = *content_slot(&tokenizer->added_index, content);
    return number == 0 ? NULL : &tokenizer->added[number - 1];
}

const struct added_token *tokenizer_added_by_id(const struct tokenizer *tokenizer, uint32_t id) {
    size_t low = 0, high = tokenizer->added_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (tokenizer->added[tokenizer->added_index.by_id[middle]].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == tokenizer->added_count) return NULL;
    const struct added_token *token = &tokenizer->added[tokenizer->added_index.by_id[low]];
    return token->id == id ? token : NULL;
}

/* The content as the text will look when it is compared. */
static enum status normalize_content(struct tokenizer *out, struct added_token *token,
                                     struct err *err) {
    if (out->normalizer.run == NULL) return ST_OK;
    struct span_text normal = {.arena = &out->memory};
    const struct span_text content = {.data = (unsigned char *)token->content.data,
                                      .size = token->content.size};
    if (!out->normalizer.run(out->normalizer.self, &content, &normal)) {
        return err_set(err, ST_NO_MEMORY, "no memory for the added tokens");
    }
    token->content = (struct view){(const char *)normal.data, normal.size};
    return ST_OK;
}

static enum status read_flags(struct json_value value, struct added_token *token,
                              bool *out_is_special, struct err *err) {
    static const char *const NAMES[] = {"id", "content", "single_word", "lstrip", "rstrip",
                                        "normalized", "special", NULL};
    const char *where = "added_tokens";
    uint32_t id;
    enum status status = read_members(value, where, NAMES, err);
    if (status != ST_OK || (status = read_u32(value, where, "id", &id, err)) != ST_OK
        || (status = read_bool(value, where, "single_word", &token->single_word, err)) != ST_OK
        || (status = read_bool(value, where, "lstrip", &token->lstrip, err)) != ST_OK
        || (status = read_bool(value, where, "rstrip", &token->rstrip, err)) != ST_OK
        || (status = read_bool(value, where, "normalized", &token->normalized, err)) != ST_OK
        || (status = read_bool(value, where, "special", out_is_special, err)) != ST_OK) {
        return status;
    }
    return read_string(value, where, "content", &token->content, err);
}

/* A content that came before is replaced, an empty one ignored. */
static enum status read_token(void *context, struct view name, struct json_value value) {
    struct added_reader *reader = context;
    struct tokenizer *out = reader->out;
    struct added_token token = {.id = 0};
    bool is_special = false;
    (void)name;
    enum status status = read_flags(value, &token, &is_special, reader->err);
    if (status != ST_OK || token.content.size == 0) return status;
    char *copy = arena_copy(&out->memory, token.content);
    if (copy == NULL) {
        return err_set(reader->err, ST_NO_MEMORY, "no memory for the added tokens");
    }
    token.content.data = copy;
    const struct view content = token.content;
    uint32_t *slot = content_slot(&out->added_index, content);
    if (*slot == 0) {
        token.id = out->model.find(out->model.self, content);
        if (token.id == TRIE_NONE) {
            token.id = reader->next_id++;
            out->vocab_size++;
        }
        *slot = (uint32_t)++out->added_count;
    } else {
        token.id = out->added[*slot - 1].id;
    }
    if (token.normalized && (status = normalize_content(out, &token, reader->err)) != ST_OK) {
        return status;
    }
    token.name = token.content;
    out->added_index.contents[*slot - 1] = content;
    out->added[*slot - 1] = token;
    reader->is_special[*slot - 1] |= is_special;
    return ST_OK;
}

/* Decoding leaves out what is written like a special token's content. */
static void mark_skipped(const struct added_reader *reader) {
    struct tokenizer *out = reader->out;
    for (size_t i = 0; i < out->added_count; i++) {
        const uint32_t number = *content_slot(&out->added_index, out->added[i].name);
        out->added[i].is_skipped = number != 0 && reader->is_special[number - 1];
    }
}

struct id_number {
    uint32_t id, number;
};

static int compare_ids(const void *a, const void *b) {
    const struct id_number *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static bool sort_by_id(struct tokenizer *out) {
    struct id_number *order = malloc((out->added_count + 1) * sizeof *order);
    out->added_index.by_id =
        arena_array(&out->memory, out->added_count, sizeof *out->added_index.by_id);
    if (order == NULL || out->added_index.by_id == NULL) {
        free(order);
        return false;
    }
    for (size_t i = 0; i < out->added_count; i++) {
        order[i] = (struct id_number){out->added[i].id, (uint32_t)i};
    }
    qsort(order, out->added_count, sizeof *order, compare_ids);
    for (size_t i = 0; i < out->added_count; i++) out->added_index.by_id[i] = order[i].number;
    free(order);
    return true;
}

static bool make_index(struct added_reader *reader, size_t count) {
    struct tokenizer *out = reader->out;
    struct added_index *index = &out->added_index;
    uint32_t slots = 2;
    while (slots < 2 * count) slots *= 2;
    index->mask = slots - 1;
    index->contents = arena_array(&out->memory, count, sizeof *index->contents);
    index->by_content = arena_array(&out->memory, slots, sizeof *index->by_content);
    out->added = arena_array(&out->memory, count, sizeof *out->added);
    reader->is_special = arena_array(&out->memory, count, sizeof *reader->is_special);
    return index->contents != NULL && index->by_content != NULL && out->added != NULL
           && reader->is_special != NULL;
}

enum status tokenizer_read_added(struct tokenizer *out, struct json_value root,
                                 struct err *err) {
    enum { ADDED_MAX = 1 << 24 };
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
    if (count > ADDED_MAX || !make_index(&reader, count)) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu added tokens", count);
    }
    enum status status = count > 0 ? dom_each(list, read_token, &reader) : ST_OK;
    if (status != ST_OK) return status;
    mark_skipped(&reader);
    if (!sort_by_id(out)) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu added tokens", count);
    }
    status = added_set_init(&out->raw_added, out->unicode, out->added, out->added_count, false,
                            err);
    if (status == ST_OK) {
        status = added_set_init(&out->normalized_added, out->unicode, out->added,
                                out->added_count, true, err);
    }
    return status;
}

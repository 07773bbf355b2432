/* Any JSON as a model and, behind a NUL byte, any text as a piece: tokens lie in the piece, one
 * after the other but for Unigram's bytes, and BPE's short cuts give what merging pair by pair
 * with the heap gives. An uppercase letter in front of all makes it byte-level. */
#include "prep/bpe.h"
#include "prep/unicode_table.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bounds(const struct token_list *tokens, uint32_t size) {
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->start > token->end || token->end > size
            || (i > 0 && token->start < token[-1].start)) {
            abort();
        }
    }
}

static void check_short_cuts(const struct bpe *model, struct view text, struct piece all,
                             const struct token_list *tokens, struct arena *arena) {
    struct bpe slow = *model;
    slow.has_words = false;
    slow.is_whole = NULL;
    slow.is_odd = true; /* which leaves only the heap */
    struct token_list others = {.arena = arena};
    if (!bpe_encode(&slow, text, all, &others) || others.count != tokens->count) {
        abort();
    }
    for (size_t i = 0; i < others.count; i++) {
        if (memcmp(&others.items[i], &tokens->items[i], sizeof *others.items) != 0) {
            abort();
        }
    }
}

static void encode(const struct token_model *model, struct view text) {
    struct arena arena;
    arena_init(&arena);
    text.size = model->is_byte_level ? text.size : utf8_valid_prefix(text);
    struct piece all = {0, (uint32_t)text.size};
    struct token_list tokens = {.arena = &arena};
    if (!model->encode(model->self, text, all, &tokens)) {
        abort();
    }
    check_bounds(&tokens, all.end);
    for (size_t i = 0; i < tokens.count; i++) {
        if (model->name(model->self, tokens.items[i].id).data == NULL) {
            abort();
        }
    }
    if (model->encode == bpe_encode) {
        check_short_cuts(model->self, text, all, &tokens, &arena);
    }
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool is_byte_level = size > 0 && data[0] >= 'A' && data[0] <= 'Z';
    data += is_byte_level;
    size -= is_byte_level;
    const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size);
    struct view json = {(const char *)data, end == NULL ? size : (size_t)(end - data)};
    struct json_document *document;
    struct json_value root;
    if (dom_open(json, &document, &root, NULL) != ST_OK) {
        return 0;
    }
    struct arena memory;
    arena_init(&memory);
    struct token_model model = {.self = NULL};
    struct err err;
    enum status status = model_read(root, &memory, is_byte_level, &model, &err);
    dom_close(document);
    if (status == ST_OK && end != NULL) {
        encode(&model, (struct view){json.data + json.size + 1, size - json.size - 1});
    }
    if (status == ST_OK && model.done != NULL) {
        model.done(model.self);
    }
    arena_done(&memory);
    return 0;
}

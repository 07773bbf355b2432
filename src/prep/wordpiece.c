/* WordPiece: the longest vocabulary entry that starts the word, then the longest continuations;
 * a word that cannot be covered is one unknown token. Any thread. Invariant: an entry is valid
 * UTF-8, so a match in valid text ends between code points. See trie.h. */
#include "prep/token_models.h"
#include "prep/tokenizer_read.h"
#include "prep/vocab.h"
#include <stdlib.h>

static size_t count_codes(struct view text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    }
    return count;
}

struct wordpiece {
    struct vocab vocab;
    struct trie trie;
    uint32_t unknown_id;
    uint32_t continuing_node; /* where the continuing prefix leads in the trie, or TRIE_NONE */
    uint32_t max_word_chars;
};

static bool wordpiece_encode(const void *self, struct view text, struct piece piece,
                         struct token_list *out) {
    const struct wordpiece *model = self;
    struct view rest = {text.data + piece.start, piece.end - piece.start};
    /* A code point is at least a byte: short words need no count. */
    if (rest.size > model->max_word_chars && count_codes(rest) > model->max_word_chars) {
        return token_list_push(out, model->unknown_id, piece.start, piece.end);
    }
    size_t start_count = out->count;
    uint32_t node = TRIE_ROOT;
    uint32_t at = piece.start;
    while (rest.size > 0) {
        size_t length = 0;
        uint32_t id = node == TRIE_NONE ? TRIE_NONE
                                        : trie_longest(&model->trie, node, rest, &length);
        if (id == TRIE_NONE) {
            out->count = start_count;
            return token_list_push(out, model->unknown_id, piece.start, piece.end);
        }
        if (!token_list_push(out, id, at, at + (uint32_t)length)) {
            return false;
        }
        at += (uint32_t)length;
        rest.data += length;
        rest.size -= length;
        node = model->continuing_node;
    }
    return true;
}

static uint32_t wordpiece_find(const void *self, struct view token) {
    const struct wordpiece *model = self;
    return vocab_find(&model->vocab, token);
}

static struct view wordpiece_name(const void *self, uint32_t id) {
    const struct wordpiece *model = self;
    return vocab_name(&model->vocab, id);
}

static void wordpiece_done(void *self) {
    struct wordpiece *model = self;
    trie_done(&model->trie);
}

static bool build_trie(struct wordpiece *model) {
    const struct vocab *vocab = &model->vocab;
    struct trie_key *keys = calloc(vocab->count + 1, sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < vocab->count; i++) {
        keys[i] = (struct trie_key){.text = vocab_text(vocab, i),
                                    .value = vocab->entries[i].id};
    }
    size_t unique;
    bool is_built = trie_init(&model->trie, keys, vocab->count, &unique);
    free(keys);
    return is_built;
}

enum status wordpiece_read(struct json_value object, struct arena *memory,
                           struct token_model *out, struct err *err) {
    static const char *const NAMES[] = {"type", "unk_token", "continuing_subword_prefix",
                                        "max_input_chars_per_word", "vocab", NULL};
    const char *where = "model";
    struct view unknown, prefix;
    struct wordpiece *model = arena_zalloc(memory, sizeof *model);
    if (model == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    enum status status;
    if ((status = read_members(object, where, NAMES, err)) != ST_OK
        || (status = read_string(object, where, "unk_token", &unknown, err)) != ST_OK
        || (status = read_string(object, where, "continuing_subword_prefix", &prefix, err))
               != ST_OK
        || (status = read_u32(object, where, "max_input_chars_per_word", &model->max_word_chars,
                              err)) != ST_OK
        || (status = vocab_read(object, memory, &model->vocab, err)) != ST_OK) {
        return status;
    }
    model->unknown_id = vocab_find(&model->vocab, unknown);
    if (model->unknown_id == TRIE_NONE) {
        return err_set(err, ST_INVALID, "model: unk_token \"%.*s\" is not in the vocabulary",
                       VIEW_SHORT(unknown));
    }
    if (!build_trie(model)) {
        return err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %u",
                       model->vocab.count);
    }
    model->continuing_node = trie_walk(&model->trie, TRIE_ROOT, prefix);
    *out = (struct token_model){
        .encode = wordpiece_encode,
        .find = wordpiece_find,
        .name = wordpiece_name,
        .vocab_size = model->vocab.count,
        .self = model,
        .done = wordpiece_done,
    };
    return ST_OK;
}

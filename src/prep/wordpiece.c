/* WordPiece: the longest vocabulary entry that starts the word, then the longest continuations;
 * a word that cannot be covered is one unknown token. Any thread. Invariant: an entry is valid
 * UTF-8, so a match in valid text ends between code points. See trie.h. */
#include "prep/stages.h"

static size_t count_codes(struct view text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    }
    return count;
}

static bool wordpiece_encode(const void *self, struct view piece, struct id_list *out) {
    const struct wordpiece *model = self;
    /* A code point is at least a byte: short words need no count. */
    if (piece.size > model->max_word_chars && count_codes(piece) > model->max_word_chars) {
        return id_list_push(out, model->unknown_id);
    }
    size_t start_count = out->count;
    uint32_t node = TRIE_ROOT;
    while (piece.size > 0) {
        size_t length = 0;
        uint32_t id = node == TRIE_NONE ? TRIE_NONE
                                        : trie_longest(&model->vocab, node, piece, &length);
        if (id == TRIE_NONE) {
            out->count = start_count;
            return id_list_push(out, model->unknown_id);
        }
        if (!id_list_push(out, id)) {
            return false;
        }
        piece.data += length;
        piece.size -= length;
        node = model->continuing_node;
    }
    return true;
}

static uint32_t wordpiece_find(const void *self, struct view token) {
    const struct wordpiece *model = self;
    return trie_find(&model->vocab, token);
}

static void wordpiece_done(void *self) {
    struct wordpiece *model = self;
    trie_done(&model->vocab);
}

const struct model_ops WORDPIECE = {
    .encode = wordpiece_encode, .find = wordpiece_find, .done = wordpiece_done};

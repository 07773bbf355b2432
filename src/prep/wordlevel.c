/* WordLevel: a piece is one token, or the unknown one. Any thread. Invariant: the unknown token is
 * in the vocabulary, so that every piece has an id. See vocab.h. */
#include "prep/token_models.h"
#include "prep/tokenizer_read.h"
#include "prep/vocab.h"

struct word_level {
    struct vocab vocab;
    struct vocab bytes;         /* of a byte-level one */
    const struct vocab *lookup; /* one of the two: as the pieces come */
    uint32_t unknown_id;
};

static bool word_level_encode(const void *self, struct view text, struct piece piece,
                              struct token_list *out) {
    const struct word_level *model = self;
    if (piece.start == piece.end) {
        return true;
    }
    struct view word = {text.data + piece.start, piece.end - piece.start};
    uint32_t id = vocab_find(model->lookup, word);
    return token_list_push(out, id == TRIE_NONE ? model->unknown_id : id, piece.start, piece.end);
}

static uint32_t word_level_find(const void *self, struct view token) {
    const struct word_level *model = self;
    return vocab_find(&model->vocab, token);
}

static struct view word_level_name(const void *self, uint32_t id) {
    const struct word_level *model = self;
    return vocab_name(&model->vocab, id);
}

enum status word_level_read(struct json_value object, struct arena *memory, bool is_byte_level,
                            struct token_model *out, struct err *err) {
    static const char *const NAMES[] = {"type", "unk_token", "vocab", NULL};
    struct word_level *model = arena_zalloc(memory, sizeof *model);
    struct view unknown;
    enum status status = read_members(object, "model", NAMES, err);
    if (status != ST_OK
        || (status = read_string(object, "model", "unk_token", &unknown, err)) != ST_OK) {
        return status;
    }
    if (model == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    if ((status = vocab_read(object, memory, &model->vocab, err)) != ST_OK) {
        return status;
    }
    model->lookup = &model->vocab;
    if (is_byte_level) {
        if (!vocab_to_bytes(&model->vocab, memory, &model->bytes)) {
            return err_set(err, ST_NO_MEMORY, "no memory for the vocabulary");
        }
        model->lookup = &model->bytes;
    }
    model->unknown_id = vocab_find(&model->vocab, unknown);
    if (model->unknown_id == TRIE_NONE) {
        return err_set(err, ST_INVALID, "model: unk_token \"%.*s\" is not in the vocabulary",
                       VIEW_SHORT(unknown));
    }
    *out = (struct token_model){
        .encode = word_level_encode,
        .find = word_level_find,
        .name = word_level_name,
        .vocab_size = model->vocab.count,
        .is_byte_level = is_byte_level,
        .self = model,
    };
    return ST_OK;
}

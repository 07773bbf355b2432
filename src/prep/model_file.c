/* The section "model" of a tokenizer.json: which kind it is. Load time, one thread. Invariant: a
 * kind that is not known is refused by name. Each kind reads itself: bpe_file.c, unigram.c,
 * wordlevel.c, wordpiece.c. */
#include "prep/token_models.h"
#include "prep/tokenizer_read.h"

/* Files of before 2021 name no type; what members there are tells, in the order in which Hugging
 * Face's loader tries the kinds. */
static const char *guess_type(struct json_value object) {
    struct json_value member;
    if (dom_member(object, "merges", &member)) {
        return "BPE";
    }
    if (dom_member(object, "max_input_chars_per_word", &member)
        && dom_member(object, "continuing_subword_prefix", &member)) {
        return "WordPiece";
    }
    if (dom_member(object, "vocab", &member) && dom_kind_of(member) == JSON_ARRAY) {
        return "Unigram";
    }
    return "WordLevel";
}

enum status model_read(struct json_value value, struct arena *memory, bool is_byte_level,
                       struct token_model *out, struct err *err) {
    if (dom_kind_of(value) == JSON_NULL) {
        return err_set(err, ST_INVALID, "there is no model");
    }
    if (dom_kind_of(value) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "model is not an object");
    }
    struct view type = view_of(guess_type(value));
    enum status status;
    if (!read_is_null(value, "type")
        && (status = read_string(value, "model", "type", &type, err)) != ST_OK) {
        return status;
    }
    if (view_is(type, "BPE")) {
        return bpe_read(value, memory, is_byte_level, out, err);
    }
    if (view_is(type, "WordLevel")) {
        return word_level_read(value, memory, is_byte_level, out, err);
    }
    if (is_byte_level && (view_is(type, "WordPiece") || view_is(type, "Unigram"))) {
        return err_set(err, ST_UNSUPPORTED,
                       "model \"%.*s\" behind a ByteLevel pre_tokenizer is not supported (BPE "
                       "and WordLevel are)", VIEW_SHORT(type));
    }
    if (view_is(type, "WordPiece")) {
        return wordpiece_read(value, memory, out, err);
    }
    if (view_is(type, "Unigram")) {
        return unigram_read(value, memory, out, err);
    }
    return err_set(err, ST_UNSUPPORTED,
                   "model \"%.*s\" is not supported (WordPiece, BPE, Unigram and WordLevel are)",
                   VIEW_SHORT(type));
}

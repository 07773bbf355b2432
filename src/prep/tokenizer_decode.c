/* Ids to text, and what is asked of a tokenizer besides encoding. Any thread. Invariant: an id
 * that is an added token's is that, whatever the vocabulary holds there. decoder.c makes the text,
 * tokenizer.c is the way back. */
#include "prep/tokenizer_parts.h"

enum { LETTER_SPACE = 0x120 }; /* GPT-2's alphabet writes the space so */

static bool is_space(uint32_t code, const struct unicode_table *unicode) {
    return code == LETTER_SPACE || (unicode_flags(unicode, code) & CODE_WHITESPACE) != 0;
}

void token_spaces(struct view name, const struct unicode_table *unicode, uint32_t *out_leading,
                  uint32_t *out_trailing) {
    uint32_t leading = 0, trailing = 0;
    bool is_leading = true;
    for (size_t at = 0; at < name.size;) {
        uint32_t code;
        at += utf8_decode((const unsigned char *)name.data + at, &code);
        const bool space = is_space(code, unicode);
        is_leading = is_leading && space;
        leading += is_leading;
        trailing = space ? trailing + 1 : 0;
    }
    *out_leading = leading;
    *out_trailing = trailing;
}

/* What is not an id of this tokenizer, or is not wanted, has no name: data is NULL. */
static struct view name_of(const struct tokenizer *tokenizer, int64_t id, bool skips_special) {
    const struct view none = {NULL, 0};
    if (id < 0 || id > UINT32_MAX) return none;
    const struct added_token *added = tokenizer_added_by_id(tokenizer, (uint32_t)id);
    if (added != NULL) return skips_special && added->is_skipped ? none : added->name;
    return tokenizer->model.name(tokenizer->model.self, (uint32_t)id);
}

enum status tokenizer_decode(const struct tokenizer *tokenizer, const int64_t *ids, size_t count,
                             bool skips_special, struct arena *arena, struct view *out) {
    struct view *names = arena_array(arena, count, sizeof *names);
    if (names == NULL) return ST_NO_MEMORY;
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        names[named] = name_of(tokenizer, ids[i], skips_special);
        named += names[named].data != NULL;
    }
    struct view text;
    const struct decoder *decoder = &tokenizer->decoder;
    if (!decoder->run(decoder->self, names, named, arena, &text)) return ST_NO_MEMORY;
    *out = text;
    return ST_OK;
}

uint32_t tokenizer_find(const struct tokenizer *tokenizer, struct view token) {
    const struct added_token *added = tokenizer_added_by_content(tokenizer, token);
    return added != NULL ? added->id : tokenizer->model.find(tokenizer->model.self, token);
}

struct token_padding tokenizer_padding(const struct tokenizer *tokenizer) {
    return tokenizer->padding;
}

uint32_t tokenizer_max_tokens(const struct tokenizer *tokenizer) { return tokenizer->max_tokens; }

uint32_t tokenizer_vocab_size(const struct tokenizer *tokenizer) { return tokenizer->vocab_size; }

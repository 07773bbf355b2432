/* The BPE model of a tokenizer.json. Load time, one thread. Invariant: a merge's parts and its
 * result are tokens, so that whatever bpe.c comes to has an id; and a short cut is only taken
 * where this file has shown that it gives the same. Read bpe.c next. */
#include "prep/bpe.h"
#include "prep/tokenizer_read.h"

enum { SCRATCH_BYTES = 1 << 20 };

static const char WHERE[] = "model";
static const struct view WORD_START = {"\xe2\x96\x81", 3}; /* U+2581 */

/* A string that may be null or left out: empty then. */
static enum status read_optional(struct json_value object, const char *name, struct view *out,
                                 struct err *err) {
    *out = (struct view){"", 0};
    return read_is_null(object, name) ? ST_OK : read_string(object, WHERE, name, out, err);
}

static enum status read_flag(struct json_value object, const char *name, bool *out,
                             struct err *err) {
    *out = false;
    return read_is_null(object, name) ? ST_OK : read_bool(object, WHERE, name, out, err);
}

static enum status read_dropout(struct json_value object, struct err *err) {
    struct json_value value;
    double dropout = 0;
    if (read_is_null(object, "dropout")) {
        return ST_OK;
    }
    (void)dom_member(object, "dropout", &value);
    if (!dom_double(value, &dropout) || dropout != 0) {
        return err_set(err, ST_UNSUPPORTED,
                       "model: \"dropout\" other than 0 is not supported: it belongs to training");
    }
    return ST_OK;
}

/* A prefix or suffix as it stands before the characters of a piece. */
static enum status read_affix(struct json_value object, const char *name, struct bpe *model,
                              struct arena *memory, struct view *out, struct err *err) {
    struct view text;
    enum status status = read_optional(object, name, &text, err);
    if (status != ST_OK) {
        return status;
    }
    if (text.size > BPE_AFFIX_BYTES) {
        return err_set(err, ST_UNSUPPORTED, "model: \"%s\" of more than %d bytes", name,
                       BPE_AFFIX_BYTES);
    }
    char *copy = arena_copy(memory, text);
    if (copy == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    size_t size = text.size;
    if (model->is_byte_level && !letters_to_bytes(text, copy, &size)) {
        return err_set(err, ST_UNSUPPORTED,
                       "model: \"%s\" of characters that stand for no byte is not supported "
                       "behind a ByteLevel pre_tokenizer", name);
    }
    *out = (struct view){copy, size};
    return ST_OK;
}

struct merge_reader {
    struct bpe *model;
    struct view prefix;  /* as the file writes it */
    struct view pair[2]; /* of ["a", "b"] */
    size_t pair_count;
    uint32_t rank;
    char *buffer;   /* for the merged token */
    uint32_t guess; /* its entry, perhaps: that of the last one */
    bool keeps_words;
    struct err *err;
};

static void put_pair(struct bpe *model, struct bpe_pair pair) {
    uint64_t key = (uint64_t)pair.left << 32 | pair.right;
    uint64_t mask = UINT64_MAX >> model->pair_shift;
    uint64_t at = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> model->pair_shift;
    while (model->pairs[at].left != TRIE_NONE
           && (model->pairs[at].left != pair.left || model->pairs[at].right != pair.right)) {
        at = (at + 1) & mask;
    }
    model->pairs[at] = pair; /* of two merges of one pair the later counts */
}

static enum status find_part(const struct merge_reader *reader, struct view token,
                             uint32_t *out) {
    *out = vocab_find(&reader->model->vocab, token);
    if (*out == TRIE_NONE) {
        return err_set(reader->err, ST_INVALID,
                       "model: merge %u needs \"%.*s\", which is not in the vocabulary",
                       reader->rank, VIEW_SHORT(token));
    }
    return ST_OK;
}

/* Merges come in the order of the tokens that they make, in most files: the last one's token or
 * the next, which saves a search. */
static enum status find_merged(struct merge_reader *reader, struct view token, uint32_t *out) {
    const struct vocab *vocab = &reader->model->vocab;
    for (uint32_t entry = reader->guess; entry - reader->guess < 2 && entry < vocab->count;
         entry++) {
        if (view_eq(vocab_text(vocab, entry), token)) {
            reader->guess = entry;
            *out = vocab->entries[entry].id;
            return ST_OK;
        }
    }
    uint32_t entry = vocab_entry_of(vocab, token);
    if (entry == TRIE_NONE) {
        return find_part(reader, token, out); /* says so */
    }
    reader->guess = entry;
    *out = vocab->entries[entry].id;
    return ST_OK;
}

static bool starts_with(struct view text, struct view start) {
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

static bool ends_with(struct view text, struct view end) {
    return text.size >= end.size
           && memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

static enum status add_merge(struct merge_reader *reader, struct view left, struct view right) {
    struct bpe *model = reader->model;
    struct bpe_pair pair = {.rank = reader->rank};
    enum status status = find_part(reader, left, &pair.left);
    if (status != ST_OK || (status = find_part(reader, right, &pair.right)) != ST_OK) {
        return status;
    }
    if (right.size < reader->prefix.size) {
        return err_set(reader->err, ST_INVALID,
                       "model: merge %u: \"%.*s\" is shorter than continuing_subword_prefix",
                       reader->rank, VIEW_SHORT(right));
    }
    size_t kept = right.size - reader->prefix.size;
    memcpy(reader->buffer, left.data, left.size);
    memcpy(reader->buffer + left.size, right.data + reader->prefix.size, kept);
    status = find_merged(reader, (struct view){reader->buffer, left.size + kept}, &pair.merged);
    if (status != ST_OK) {
        return status;
    }
    reader->keeps_words = reader->keeps_words
                          && (!starts_with(right, WORD_START) || ends_with(left, WORD_START));
    put_pair(model, pair);
    model->merged_by_rank[reader->rank++] = pair.merged;
    return ST_OK;
}

static enum status read_part(void *context, struct view name, struct json_value value) {
    struct merge_reader *reader = context;
    (void)name;
    if (reader->pair_count == 2 || dom_kind_of(value) != JSON_STRING) {
        return ST_INVALID;
    }
    reader->pair[reader->pair_count++] = dom_string(value);
    return ST_OK;
}

/* "a b", or ["a", "b"], or the line "#version: ..." that merges.txt begins with. */
static enum status read_merge(void *context, struct view name, struct json_value value) {
    static const char VERSION[] = "#version";
    struct merge_reader *reader = context;
    (void)name;
    if (dom_kind_of(value) == JSON_ARRAY) {
        reader->pair_count = 0;
        if (dom_each(value, read_part, reader) == ST_OK && reader->pair_count == 2) {
            return add_merge(reader, reader->pair[0], reader->pair[1]);
        }
    }
    struct view line = dom_string(value);
    if (line.size >= sizeof VERSION - 1 && memcmp(line.data, VERSION, sizeof VERSION - 1) == 0) {
        return ST_OK;
    }
    const char *space = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
    size_t left_size = space == NULL ? 0 : (size_t)(space - line.data);
    if (space == NULL || memchr(space + 1, ' ', line.size - left_size - 1) != NULL) {
        return err_set(reader->err, ST_INVALID,
                       "model: merge %u must be \"left right\" or [\"left\", \"right\"]",
                       reader->rank);
    }
    return add_merge(reader, (struct view){line.data, left_size},
                     (struct view){space + 1, line.size - left_size - 1});
}

static uint32_t longest_token(const struct vocab *vocab) {
    size_t longest = 0;
    for (uint32_t i = 0; i < vocab->count; i++) {
        size_t size = vocab->entries[i].size;
        longest = size > longest ? size : longest;
    }
    return longest > UINT32_MAX ? UINT32_MAX : (uint32_t)longest;
}

static enum status read_merges(struct json_value object, struct arena *memory, struct bpe *model,
                               struct err *err) {
    struct json_value merges;
    struct merge_reader reader = {.model = model, .err = err};
    if (!dom_member(object, "merges", &merges) || dom_kind_of(merges) != JSON_ARRAY) {
        return err_set(err, ST_INVALID, "model: \"merges\" must be an array");
    }
    enum status status = read_optional(object, "continuing_subword_prefix", &reader.prefix, err);
    if (status != ST_OK) {
        return status;
    }
    size_t count = dom_count(merges);
    size_t slots = 16;
    model->pair_shift = 60;
    while (slots < 2 * count) {
        slots *= 2;
        model->pair_shift--;
    }
    model->pairs = arena_array(memory, slots, sizeof *model->pairs);
    model->merged_by_rank = arena_array(memory, count, sizeof *model->merged_by_rank);
    reader.buffer = arena_array(memory, 2, longest_token(&model->vocab) + 1);
    if (model->pairs == NULL || model->merged_by_rank == NULL || reader.buffer == NULL
        || count >= UINT32_MAX) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu merges", count);
    }
    for (size_t i = 0; i < slots; i++) {
        model->pairs[i].left = TRIE_NONE;
    }
    reader.keeps_words = true;
    status = dom_each(merges, read_merge, &reader);
    /* Characters join from both sides of the edge of a word nowhere; were U+2581 itself unknown,
     * it might still be fused with what is before it. */
    model->has_words = reader.keeps_words && vocab_find(&model->vocab, WORD_START) != TRIE_NONE;
    return status;
}

/* Whether every unit that can come up is a token or falls back to tokens. */
static bool covers_all(const struct bpe *model) {
    bool has_affix = model->prefix.size + model->suffix.size > 0;
    bool covers = model->is_byte_level ? !has_affix : model->falls_back_to_bytes;
    const uint32_t *ids = model->is_byte_level ? model->unit_ids : model->byte_tokens;
    for (int byte = 0; byte < 256; byte++) {
        covers = covers && ids[byte] != TRIE_NONE;
    }
    return covers;
}

static enum status find_units(struct json_value object, struct bpe *model, struct err *err) {
    static const char HEX[] = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        char token[] = {'<', '0', 'x', HEX[byte >> 4], HEX[byte & 15], '>'};
        model->unit_ids[byte] = vocab_find(model->lookup, (struct view){&one, 1});
        model->byte_tokens[byte] = vocab_find(&model->vocab, (struct view){token, sizeof token});
    }
    bool covers = covers_all(model);
    model->knows_units = model->is_byte_level && covers;
    if (model->is_byte_level && model->falls_back_to_bytes && !covers) {
        return err_set(err, ST_UNSUPPORTED,
                       "model: \"byte_fallback\" behind a ByteLevel pre_tokenizer is not "
                       "supported where a byte is missing in the vocabulary");
    }
    struct view unknown;
    enum status status = read_optional(object, "unk_token", &unknown, err);
    model->unknown_id = TRIE_NONE;
    if (status == ST_OK && !read_is_null(object, "unk_token")) {
        model->unknown_id = vocab_find(&model->vocab, unknown);
        if (model->unknown_id == TRIE_NONE && !covers) {
            status = err_set(err, ST_INVALID,
                             "model: unk_token \"%.*s\" is not in the vocabulary",
                             VIEW_SHORT(unknown));
        }
    }
    return status;
}

/* Tries every token on itself: what is then found whole need not be merged again. */
static enum status find_whole_tokens(struct bpe *model, struct arena *memory, struct err *err) {
    uint8_t *is_whole = arena_zalloc(memory, model->lookup->count);
    struct arena scratch;
    arena_init(&scratch);
    enum status status = ST_OK;
    struct token_list tokens = {.arena = &scratch};
    for (uint32_t i = 0; is_whole != NULL && status == ST_OK && i < model->lookup->count; i++) {
        struct view text = vocab_text(model->lookup, i);
        struct piece all = {0, (uint32_t)text.size};
        if (scratch.used_bytes > SCRATCH_BYTES) { /* long tokens: the heap's */
            arena_clear(&scratch);
            tokens = (struct token_list){.arena = &scratch};
        }
        tokens.count = 0;
        if (!bpe_merge_word(model, text, all, &tokens)) {
            status = ST_NO_MEMORY;
        }
        is_whole[i] = tokens.count == 1 && tokens.items[0].id == model->lookup->entries[i].id
                      && tokens.items[0].end == all.end;
    }
    arena_done(&scratch);
    if (status != ST_OK || is_whole == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    model->is_whole = is_whole;
    return ST_OK;
}

static enum status plan_short_cuts(struct bpe *model, struct arena *memory, struct err *err) {
    bool has_affix = model->prefix.size + model->suffix.size > 0;
    model->token_bytes_max = longest_token(model->lookup);
    model->is_odd = model->vocab.shares_ids || model->vocab.has_empty || model->prefix.size > 0;
    /* Where characters are left out, Hugging Face counts offsets as if they had not been there,
     * through the whole piece. */
    bool leaves_out = model->unknown_id == TRIE_NONE && !covers_all(model);
    model->has_words = model->has_words && !model->is_byte_level && !model->is_odd && !has_affix
                       && !leaves_out;
    /* Without words a piece may be a whole text, which is hardly ever a token. */
    if (model->has_words || (model->is_byte_level && !model->ignores_merges)) {
        return find_whole_tokens(model, memory, err);
    }
    return ST_OK;
}

static uint32_t bpe_find(const void *self, struct view token) {
    const struct bpe *model = self;
    return vocab_find(&model->vocab, token);
}

static struct view bpe_name(const void *self, uint32_t id) {
    const struct bpe *model = self;
    return vocab_name(&model->vocab, id);
}

static enum status read_all(struct json_value object, struct arena *memory, struct bpe *model,
                            struct err *err) {
    static const char *const NAMES[] = {
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges", NULL};
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, err)) != ST_OK
        || (status = read_dropout(object, err)) != ST_OK
        || (status = read_flag(object, "fuse_unk", &model->fuses_unknown, err)) != ST_OK
        || (status = read_flag(object, "byte_fallback", &model->falls_back_to_bytes, err))
               != ST_OK
        || (status = read_flag(object, "ignore_merges", &model->ignores_merges, err)) != ST_OK
        || (status = read_affix(object, "continuing_subword_prefix", model, memory,
                                &model->prefix, err)) != ST_OK
        || (status = read_affix(object, "end_of_word_suffix", model, memory, &model->suffix,
                                err)) != ST_OK
        || (status = vocab_read(object, memory, &model->vocab, err)) != ST_OK) {
        return status;
    }
    model->lookup = &model->vocab;
    if (model->is_byte_level) {
        if (!vocab_to_bytes(&model->vocab, memory, &model->bytes)) {
            return err_set(err, ST_NO_MEMORY, "no memory for the vocabulary");
        }
        model->lookup = &model->bytes;
    }
    if ((status = find_units(object, model, err)) != ST_OK
        || (status = read_merges(object, memory, model, err)) != ST_OK) {
        return status;
    }
    return plan_short_cuts(model, memory, err);
}

enum status bpe_read(struct json_value object, struct arena *memory, bool is_byte_level,
                     struct token_model *out, struct err *err) {
    struct bpe *model = arena_zalloc(memory, sizeof *model);
    if (model == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    model->is_byte_level = is_byte_level;
    enum status status = read_all(object, memory, model, err);
    if (status == ST_OK) {
        *out = (struct token_model){
            .encode = bpe_encode,
            .find = bpe_find,
            .name = bpe_name,
            .vocab_size = model->vocab.count,
            .is_byte_level = is_byte_level,
            .self = model,
        };
    }
    return status;
}

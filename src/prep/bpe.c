/* Encoding by merges. Any thread. Invariant: the result is that of merging pair by pair in the
 * order of the list; every short cut (whole tokens, words, the scan from end to end) is one that
 * provably gives the same. See bpe.h; bpe_file.c decides which short cuts a file allows. */
#include "prep/bpe.h"

static const struct view WORD_START = {"\xe2\x96\x81", 3}; /* U+2581 */

struct bpe_merge bpe_find_pair(const struct bpe *model, uint32_t left, uint32_t right) {
    uint64_t key = (uint64_t)left << 32 | right;
    uint64_t mask = UINT64_MAX >> model->pair_shift;
    uint64_t at = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> model->pair_shift;
    for (;; at = (at + 1) & mask) {
        const struct bpe_pair *pair = &model->pairs[at];
        if (pair->left == left && pair->right == right) {
            return (struct bpe_merge){pair->rank, pair->merged};
        }
        if (pair->left == TRIE_NONE) {
            return (struct bpe_merge){TRIE_NONE, TRIE_NONE};
        }
    }
}

size_t bpe_symbols_max(const struct bpe *model, size_t piece_bytes) {
    /* Bytes fallen back to include those of the affixes. */
    size_t affixes = model->falls_back_to_bytes ? model->prefix.size + model->suffix.size : 0;
    return piece_bytes * (1 + affixes);
}

static size_t unit_bytes(const struct bpe *model, struct view rest) {
    unsigned lead = (unsigned char)rest.data[0];
    if (model->is_byte_level || lead < 0x80) {
        return 1;
    }
    size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return size < rest.size ? size : rest.size;
}

/* A unit with its affixes, as the vocabulary has it. */
static struct view dress(const struct bpe *model, struct view unit, bool is_first, bool is_last,
                         char *buffer) {
    size_t size = 0;
    if (!is_first && model->prefix.size > 0) {
        memcpy(buffer, model->prefix.data, model->prefix.size);
        size = model->prefix.size;
    }
    memcpy(buffer + size, unit.data, unit.size);
    size += unit.size;
    if (is_last && model->suffix.size > 0) {
        memcpy(buffer + size, model->suffix.data, model->suffix.size);
        size += model->suffix.size;
    }
    return (struct view){buffer, size};
}

static void add_symbol(struct bpe_symbols *out, uint32_t id, size_t size) {
    out->ids[out->count] = id;
    out->sizes[out->count++] = (uint32_t)size;
}

/* False where a byte has no token: then none is used. */
static bool add_bytes(const struct bpe *model, struct view unit, struct bpe_symbols *out) {
    for (size_t i = 0; i < unit.size; i++) {
        if (model->byte_tokens[(uint8_t)unit.data[i]] == TRIE_NONE) {
            return false;
        }
    }
    for (size_t i = 0; i < unit.size; i++) {
        add_symbol(out, model->byte_tokens[(uint8_t)unit.data[i]], 1);
    }
    return true;
}

/* What is unknown waits in unknown_size for a known unit after it, past bytes fallen back to: the
 * order of Hugging Face's library. */
void bpe_cut(const struct bpe *model, struct view piece, struct bpe_symbols *out) {
    const bool has_affix = model->prefix.size + model->suffix.size > 0;
    char buffer[2 * BPE_AFFIX_BYTES + 4];
    size_t unknown_size = 0;
    out->count = 0;
    for (size_t at = 0; at < piece.size;) {
        size_t size = unit_bytes(model, (struct view){piece.data + at, piece.size - at});
        struct view unit = {piece.data + at, size};
        if (has_affix) {
            unit = dress(model, unit, at == 0, at + size == piece.size, buffer);
        }
        at += size;
        uint32_t id = unit.size == 1 ? model->unit_ids[(uint8_t)unit.data[0]]
                                     : vocab_find(model->lookup, unit);
        if (id != TRIE_NONE) {
            if (unknown_size > 0) {
                add_symbol(out, model->unknown_id, unknown_size);
                unknown_size = 0;
            }
            add_symbol(out, id, size);
        } else if (model->falls_back_to_bytes && add_bytes(model, unit, out)) {
            continue;
        } else if (model->unknown_id != TRIE_NONE) {
            if (unknown_size > 0 && !model->fuses_unknown) {
                add_symbol(out, model->unknown_id, unknown_size);
                unknown_size = 0;
            }
            unknown_size += size;
        }
    }
    if (unknown_size > 0) {
        add_symbol(out, model->unknown_id, unknown_size);
    }
}

/* Merges up to BPE_SHORT_SYMBOLS symbols: most words have fewer than ten, and a scan over an
 * array costs less than a heap then. */
static void merge_short(const struct bpe *model, struct bpe_symbols *symbols) {
    struct bpe_merge merges[BPE_SHORT_SYMBOLS]; /* of symbol i and the next */
    uint32_t *ids = symbols->ids, *sizes = symbols->sizes;
    size_t count = symbols->count;
    for (size_t i = 0; i + 1 < count; i++) {
        merges[i] = bpe_find_pair(model, ids[i], ids[i + 1]);
    }
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            best = merges[i].rank < merges[best].rank ? i : best;
        }
        if (merges[best].rank == TRIE_NONE) {
            break;
        }
        ids[best] = merges[best].merged;
        sizes[best] += sizes[best + 1];
        size_t moved = count - best - 2; /* symbols behind the two */
        memmove(&ids[best + 1], &ids[best + 2], moved * sizeof *ids);
        memmove(&sizes[best + 1], &sizes[best + 2], moved * sizeof *sizes);
        memmove(&merges[best], &merges[best + 1], moved * sizeof *merges);
        count--;
        if (best > 0) {
            merges[best - 1] = bpe_find_pair(model, ids[best - 1], ids[best]);
        }
        if (best + 1 < count) {
            merges[best] = bpe_find_pair(model, ids[best], ids[best + 1]);
        }
    }
    symbols->count = count;
}

static bool push_symbols(const struct bpe_symbols *symbols, struct piece word,
                         struct token_list *out) {
    uint32_t at = word.start;
    for (size_t i = 0; i < symbols->count; i++) {
        /* Sizes may add up to more: bytes of a suffix that were fallen back to. */
        uint32_t end = symbols->sizes[i] < word.end - at ? at + symbols->sizes[i] : word.end;
        if (!token_list_push(out, symbols->ids[i], at, end)) {
            return false;
        }
        at = end;
    }
    return true;
}

bool bpe_merge_word(const struct bpe *model, struct view text, struct piece word,
                    struct token_list *out) {
    struct view piece = {text.data + word.start, word.end - word.start};
    size_t symbols_max = bpe_symbols_max(model, piece.size);
    if (symbols_max <= BPE_SHORT_SYMBOLS && !model->is_odd) {
        uint32_t ids[BPE_SHORT_SYMBOLS], sizes[BPE_SHORT_SYMBOLS];
        struct bpe_symbols symbols = {.ids = ids, .sizes = sizes};
        if (model->knows_units) {
            for (size_t i = 0; i < piece.size; i++) {
                ids[i] = model->unit_ids[(uint8_t)piece.data[i]];
                sizes[i] = 1;
            }
            symbols.count = piece.size;
        } else {
            bpe_cut(model, piece, &symbols);
        }
        merge_short(model, &symbols);
        return push_symbols(&symbols, word, out);
    }
    struct bpe_symbols symbols = {
        .ids = arena_alloc(out->arena, symbols_max * sizeof *symbols.ids),
        .sizes = arena_alloc(out->arena, symbols_max * sizeof *symbols.sizes),
    };
    if (symbols.ids == NULL || symbols.sizes == NULL) {
        return false;
    }
    bpe_cut(model, piece, &symbols);
    return bpe_merge_heap(model, &symbols, out->arena) && push_symbols(&symbols, word, out);
}

/* The token that is the whole of a word, where merging would give that; or TRIE_NONE. */
static uint32_t find_whole(const struct bpe *model, struct view word, bool ignores_merges) {
    if (word.size > model->token_bytes_max || (!ignores_merges && model->is_whole == NULL)) {
        return TRIE_NONE;
    }
    uint32_t entry = vocab_entry_of(model->lookup, word);
    if (entry == TRIE_NONE || !(ignores_merges || model->is_whole[entry])) {
        return TRIE_NONE;
    }
    return model->lookup->entries[entry].id;
}

static bool encode_word(const struct bpe *model, struct view text, struct piece word,
                        struct token_list *out) {
    uint32_t id = find_whole(model, (struct view){text.data + word.start, word.end - word.start},
                             false);
    return id != TRIE_NONE ? token_list_push(out, id, word.start, word.end)
                           : bpe_merge_word(model, text, word, out);
}

static bool is_word_start(struct view text, uint32_t at) {
    return text.size - at >= WORD_START.size
           && memcmp(text.data + at, WORD_START.data, WORD_START.size) == 0;
}

/* The end of the word that starts at `at`: its own U+2581s, then all up to the next one. */
static uint32_t word_end(struct view text, uint32_t at, uint32_t end) {
    text.size = end;
    while (at < end && is_word_start(text, at)) {
        at += (uint32_t)WORD_START.size;
    }
    while (at < end) {
        const char *next = memchr(text.data + at, WORD_START.data[0], end - at);
        if (next == NULL) {
            return end;
        }
        at = (uint32_t)(next - text.data);
        if (is_word_start(text, at)) {
            return at;
        }
        at++;
    }
    return end;
}

bool bpe_encode(const void *self, struct view text, struct piece piece, struct token_list *out) {
    const struct bpe *model = self;
    if (piece.start == piece.end) {
        return true;
    }
    if (model->ignores_merges) {
        uint32_t id = find_whole(
            model, (struct view){text.data + piece.start, piece.end - piece.start}, true);
        if (id != TRIE_NONE) {
            return token_list_push(out, id, piece.start, piece.end);
        }
    }
    while (model->has_words && piece.start < piece.end) {
        struct piece word = {piece.start, word_end(text, piece.start, piece.end)};
        if (!encode_word(model, text, word, out)) {
            return false;
        }
        piece.start = word.end;
    }
    return piece.start == piece.end || encode_word(model, text, piece, out);
}

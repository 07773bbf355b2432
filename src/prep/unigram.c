/* Viterbi's search through a piece. Any thread. Invariant: scores are added from the left in
 * doubles, and of equal sums the one found first stays (starts from the left, at each the shorter
 * token first), as in Hugging Face's library: that settles ties alike. See unigram.h. */
#include "prep/unigram.h"

struct best { /* the best way to the place before a byte */
    double score;
    uint32_t start; /* of its last token; TRIE_NONE: no way yet */
    uint32_t id;
};

enum { SHORT_BYTES = 128 }; /* pieces are words, mostly */

static size_t code_bytes(unsigned char lead) {
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static void offer(struct best *place, double score, uint32_t start, uint32_t id) {
    if (place->start == TRIE_NONE || score > place->score) {
        *place = (struct best){score, start, id};
    }
}

static void search(const struct unigram *model, struct view piece, struct best *best) {
    const struct trie_cell *cells = model->trie.cells;
    best[0] = (struct best){.score = 0};
    for (size_t i = 1; i <= piece.size; i++) {
        best[i].start = TRIE_NONE;
    }
    for (size_t at = 0; at < piece.size;) {
        size_t one = code_bytes((unsigned char)piece.data[at]);
        one = one < piece.size - at ? one : piece.size - at;
        bool has_single = false;
        const double so_far = best[at].score;
        uint32_t node = TRIE_ROOT;
        for (size_t i = at; i < piece.size; i++) {
            uint32_t child = cells[node].base + (uint8_t)piece.data[i];
            if (cells[child].parent != node + 1) {
                break;
            }
            node = child;
            uint32_t entry = cells[node].value;
            if (entry != TRIE_NONE) {
                offer(&best[i + 1], model->scores[entry] + so_far, (uint32_t)at,
                      model->vocab.entries[entry].id);
                has_single = has_single || i + 1 - at == one;
            }
        }
        if (!has_single) {
            offer(&best[at + one], model->unknown_score + so_far, (uint32_t)at,
                  model->unknown_id);
        }
        at += one;
    }
}

/* A run of unknown characters: it may be a token by itself; else its bytes, else one unknown. */
static bool push_unknown(const struct unigram *model, struct view text, struct piece run,
                         struct token_list *out) {
    struct view string = {text.data + run.start, run.end - run.start};
    uint32_t id = vocab_find(&model->vocab, string);
    if (id != TRIE_NONE) {
        return token_list_push(out, id, run.start, run.end);
    }
    bool has_bytes = model->falls_back_to_bytes;
    for (size_t i = 0; has_bytes && i < string.size; i++) {
        has_bytes = model->byte_tokens[(uint8_t)string.data[i]] != TRIE_NONE;
    }
    if (!has_bytes) {
        return token_list_push(out, model->unknown_id, run.start, run.end);
    }
    for (size_t i = 0; i < string.size; i++) {
        /* Every one covers the whole run. */
        if (!token_list_push(out, model->byte_tokens[(uint8_t)string.data[i]], run.start,
                             run.end)) {
            return false;
        }
    }
    return true;
}

/* Turns the way back from the end around: best[place].start becomes where the token that starts
 * at place ends, its id in best[place].id. */
static void turn_around(struct best *best, uint32_t size) {
    uint32_t end = size;
    struct best step = best[end];
    while (end > 0) {
        uint32_t start = step.start;
        struct best before = best[start];
        best[start].start = end;
        best[start].id = step.id;
        end = start;
        step = before;
    }
}

static bool push_way(const struct unigram *model, struct view text, struct piece piece,
                     const struct best *best, struct token_list *out) {
    uint32_t size = piece.end - piece.start;
    for (uint32_t at = 0; at < size;) {
        uint32_t start = at;
        uint32_t id = best[at].id;
        at = best[at].start;
        struct piece token = {piece.start + start, piece.start + at};
        if (id != model->unknown_id) {
            if (!token_list_push(out, id, token.start, token.end)) {
                return false;
            }
            continue;
        }
        while (at < size && best[at].id == model->unknown_id) {
            at = best[at].start;
        }
        token.end = piece.start + at;
        if (!push_unknown(model, text, token, out)) {
            return false;
        }
    }
    return true;
}

bool unigram_encode(const void *self, struct view text, struct piece piece,
                    struct token_list *out) {
    const struct unigram *model = self;
    uint32_t size = piece.end - piece.start;
    struct best few[SHORT_BYTES + 1];
    struct best *best = few;
    if (size > SHORT_BYTES) {
        best = arena_alloc(out->arena, ((size_t)size + 1) * sizeof *best);
        if (best == NULL) {
            return false;
        }
    }
    search(model, (struct view){text.data + piece.start, size}, best);
    turn_around(best, size);
    return push_way(model, text, piece, best, out);
}

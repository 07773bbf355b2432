/* ByteLevel as a splitter: GPT-2's pattern, and a space before the text. The bytes stay as they
 * are: what Hugging Face writes in an alphabet of 256 characters is here the bytes themselves, and
 * the model is told (is_byte_level). Any thread. Invariant: a piece ends where a character does.
 * Read splitter.c for the splitting. */
#include "prep/splitter.h"

struct byte_level {
    struct pattern *pattern; /* NULL: the pieces stay */
};

static bool run(const void *self, const struct span_text *text, const struct piece_list *pieces,
                struct span_text *out_text, struct piece_list *out_pieces) {
    const struct byte_level *byte_level = self;
    struct piece_list prefixed = {.arena = out_pieces->arena};
    struct piece_list *whole = byte_level->pattern != NULL ? &prefixed : out_pieces;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece piece = pieces->items[i];
        const size_t start = out_text->size;
        if (piece.start == piece.end) continue;
        if ((text->data[piece.start] != ' '
             && !splitter_insert_text(out_text, (struct view){" ", 1}, text, piece.start))
            || !span_text_copy(out_text, text, piece.start, piece.end)
            || !piece_list_push(whole, (uint32_t)start, (uint32_t)out_text->size)) {
            return false;
        }
    }
    return byte_level->pattern == NULL
           || split_by_pattern(byte_level->pattern, SPLIT_ISOLATED, false, out_text, &prefixed,
                               out_pieces);
}

static void done(void *self) { pattern_free(((struct byte_level *)self)->pattern); }

bool byte_level_make(struct arena *memory, struct pattern *pattern, bool prefixes_space,
                     struct splitter *out) {
    if (!prefixes_space) {
        *out = (struct splitter){.run = NULL};
        return pattern == NULL
               || splitter_of_pattern(memory, pattern, SPLIT_ISOLATED, false, out);
    }
    struct byte_level *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) {
        pattern_free(pattern);
        return false;
    }
    self->pattern = pattern;
    *out = (struct splitter){.run = run, .rewrites = true, .self = self, .done = done};
    return true;
}

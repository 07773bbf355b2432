/* Several splitters, each on the pieces of the one before. Any thread. Invariant: the last one
 * that rewrites writes into the caller's text, those behind it read there; the last one of all
 * writes the caller's pieces. Read splitter.c for the ones that it calls. */
#include "prep/splitter.h"

struct splitter_sequence {
    struct splitter *items;
    size_t count;
    size_t last_rewriting; /* count: none rewrites */
};

static bool run(const void *self, const struct span_text *text, const struct piece_list *pieces,
                struct span_text *out_text, struct piece_list *out_pieces) {
    const struct splitter_sequence *sequence = self;
    struct arena *arena = out_pieces->arena;
    struct piece_list lists[2] = {{.arena = arena}, {.arena = arena}};
    struct span_text texts[2];
    for (size_t i = 0; i < 2; i++) {
        texts[i] = (struct span_text){.arena = arena, .has_sources = text->has_sources,
                                      .origin = text->origin};
    }
    size_t written = 0; /* texts that were rewritten so far */
    for (size_t i = 0; i < sequence->count; i++) {
        const struct splitter *item = &sequence->items[i];
        const bool is_last = i + 1 == sequence->count;
        struct piece_list *to = is_last ? out_pieces : &lists[i % 2];
        struct span_text *rewritten =
            i == sequence->last_rewriting ? out_text : &texts[written % 2];
        if (!is_last) to->count = 0;
        if (item->rewrites && rewritten != out_text) rewritten->size = 0;
        if (!item->run(item->self, text, pieces, rewritten, to)) return false;
        if (item->rewrites) {
            text = rewritten;
            written++;
        }
        pieces = to;
    }
    return true;
}

static void done(void *self) {
    const struct splitter_sequence *sequence = self;
    for (size_t i = 0; i < sequence->count; i++) {
        if (sequence->items[i].done != NULL) sequence->items[i].done(sequence->items[i].self);
    }
}

bool splitter_sequence_make(struct arena *memory, struct splitter *items, size_t count,
                            struct splitter *out) {
    if (count <= 1) {
        *out = count == 1 ? items[0] : (struct splitter){.run = NULL};
        return true;
    }
    struct splitter_sequence *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) return false;
    *self = (struct splitter_sequence){.items = items, .count = count, .last_rewriting = count};
    *out = (struct splitter){.run = run, .self = self, .done = done,
                             .ends_at_space = items[0].ends_at_space};
    for (size_t i = 0; i < count; i++) {
        if (items[i].rewrites) self->last_rewriting = i;
        out->rewrites = out->rewrites || items[i].rewrites;
        out->needs_sources = out->needs_sources || items[i].needs_sources;
    }
    return true;
}

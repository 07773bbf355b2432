/* Metaspace: a space becomes a visible character, which also stands before the first word. Any
 * thread. Invariant: what is put before a piece has the source of the piece's first character, and
 * a replacement that of the space. Read splitter.h for the settings. */
#include "prep/splitter.h"

bool splitter_insert_text(struct span_text *out, struct view bytes, const struct span_text *text,
                          size_t like) {
    if (!span_text_reserve(out, bytes.size)) return false;
    memcpy(out->data + out->size, bytes.data, bytes.size);
    for (size_t i = 0; out->has_sources && i < bytes.size; i++) {
        out->sources[out->size + i] = text->sources[like];
    }
    out->size += bytes.size;
    return true;
}

static bool starts_with(const unsigned char *data, size_t size, struct view start) {
    return size >= start.size && memcmp(data, start.data, start.size) == 0;
}

static bool wants_prefix(const struct metaspace *self, const struct span_text *text,
                         struct piece piece) {
    const unsigned char *data = text->data + piece.start;
    if (self->scheme == PREPEND_NEVER || data[0] == ' '
        || starts_with(data, piece.end - piece.start, self->replacement)) {
        return false;
    }
    return self->scheme == PREPEND_ALWAYS || text->sources[piece.start].start == 0;
}

static bool replace_spaces(const struct metaspace *self, const struct span_text *text,
                           struct piece piece, struct span_text *out) {
    size_t at = piece.start;
    if (!span_text_reserve(out, piece.end - piece.start)) return false;
    while (at < piece.end) {
        const unsigned char *space = memchr(text->data + at, ' ', piece.end - at);
        const size_t stop = space == NULL ? piece.end : (size_t)(space - text->data);
        if (!span_text_copy(out, text, at, stop)) return false;
        at = stop;
        if (space != NULL && !splitter_insert_text(out, self->replacement, text, at++)) return false;
    }
    return true;
}

/* Bytes [start, out->size) of out, cut before every replacement. */
static bool cut(const struct metaspace *self, const struct span_text *out, size_t start,
                struct piece_list *out_pieces) {
    const size_t size = self->replacement.size;
    for (size_t at = start + 1; at + size <= out->size; at++) {
        const unsigned char *found =
            memchr(out->data + at, self->replacement.data[0], out->size - at - size + 1);
        if (found == NULL) break;
        at = (size_t)(found - out->data);
        if (!starts_with(found, size, self->replacement)) continue;
        if (!piece_list_push(out_pieces, (uint32_t)start, (uint32_t)at)) return false;
        start = at;
    }
    return piece_list_push(out_pieces, (uint32_t)start, (uint32_t)out->size);
}

static bool run(const void *self, const struct span_text *text, const struct piece_list *pieces,
                struct span_text *out_text, struct piece_list *out_pieces) {
    const struct metaspace *metaspace = self;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece piece = pieces->items[i];
        const size_t start = out_text->size;
        if (piece.start == piece.end) continue;
        if ((wants_prefix(metaspace, text, piece)
             && !splitter_insert_text(out_text, metaspace->replacement, text, piece.start))
            || !replace_spaces(metaspace, text, piece, out_text)) {
            return false;
        }
        const bool is_done = metaspace->cuts
                                 ? cut(metaspace, out_text, start, out_pieces)
                                 : piece_list_push(out_pieces, (uint32_t)start,
                                                   (uint32_t)out_text->size);
        if (!is_done) return false;
    }
    return true;
}

bool metaspace_make(struct arena *memory, const struct metaspace *settings,
                    struct splitter *out) {
    struct metaspace *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) return false;
    *self = *settings;
    *out = (struct splitter){.run = run, .rewrites = true, .self = self,
                             .needs_sources = settings->scheme == PREPEND_FIRST};
    return true;
}

/* Splitters that cut a text and leave it as it is: by a pattern, by kinds of characters, by
 * length. Any thread. Invariant: pieces come in the order of the text, do not overlap, and none is
 * empty. Read splitter_file.c for what reads them, metaspace.c and byte_level.c for those that
 * rewrite. */
#include "prep/splitter.h"
#include "prep/pattern_sets.h"
#include <stdlib.h>

static bool emit(struct segments *segments, struct piece piece) {
    return piece.start == piece.end
           || piece_list_push(segments->out, piece.start, piece.end);
}

/* Whether the segment goes into the one before it, which waits in last. */
static bool joins(const struct segments *segments, bool is_match) {
    if (!segments->has_last) return false;
    switch (segments->behavior) {
    case SPLIT_CONTIGUOUS: return is_match == segments->last_is_match;
    case SPLIT_MERGED_WITH_PREVIOUS: return is_match && !segments->last_is_match;
    case SPLIT_MERGED_WITH_NEXT: return !is_match && segments->last_is_match;
    default: return false;
    }
}

bool segments_add(struct segments *segments, size_t start, size_t end, bool is_match) {
    const struct piece piece = {(uint32_t)start, (uint32_t)end};
    if (segments->behavior == SPLIT_ISOLATED) return emit(segments, piece);
    if (segments->behavior == SPLIT_REMOVED) return is_match || emit(segments, piece);
    const bool is_joined = joins(segments, is_match);
    segments->last_is_match = is_match;
    if (is_joined) {
        segments->last.end = piece.end;
        return true;
    }
    const bool has_room = !segments->has_last || emit(segments, segments->last);
    segments->has_last = true;
    segments->last = piece;
    return has_room;
}

bool segments_end(struct segments *segments) {
    const bool has_room = !segments->has_last || emit(segments, segments->last);
    segments->has_last = segments->last_is_match = false;
    return has_room;
}

/* Where matches cover everything, a match is a piece: what most byte-level tokenizers want. */
static bool split_fully(struct pattern_cursor *cursor, struct piece piece,
                        struct piece_list *out) {
    size_t start, end;
    while (pattern_next(cursor, &start, &end) == PATTERN_MATCH) {
        if (!piece_list_push(out, piece.start + (uint32_t)start, piece.start + (uint32_t)end)) {
            return false;
        }
    }
    return true;
}

static bool split_piece(struct pattern_cursor *cursor, struct piece piece, bool is_inverted,
                        struct segments *segments) {
    size_t start, end, done = 0;
    enum pattern_found found;
    while ((found = pattern_next(cursor, &start, &end)) == PATTERN_MATCH) {
        if ((done < start
             && !segments_add(segments, piece.start + done, piece.start + start, is_inverted))
            || !segments_add(segments, piece.start + start, piece.start + end, !is_inverted)) {
            return false;
        }
        done = end;
    }
    if (found == PATTERN_FAILED) return false;
    const size_t size = piece.end - piece.start;
    return (done == size || segments_add(segments, piece.start + done, piece.end, is_inverted))
           && segments_end(segments);
}

bool split_by_pattern(const struct pattern *pattern, enum split_behavior behavior,
                      bool is_inverted, const struct span_text *text,
                      const struct piece_list *pieces, struct piece_list *out_pieces) {
    struct pattern_cursor cursor;
    if (!pattern_begin(pattern, out_pieces->arena, &cursor)) return false;
    const bool is_full = pattern_matches_all(pattern)
                         && (behavior == SPLIT_ISOLATED
                             || (behavior == SPLIT_REMOVED && is_inverted));
    struct segments segments = {.out = out_pieces, .behavior = behavior};
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece piece = pieces->items[i];
        pattern_search(&cursor, text->data + piece.start, piece.end - piece.start);
        const bool is_done = is_full ? split_fully(&cursor, piece, out_pieces)
                                     : split_piece(&cursor, piece, is_inverted, &segments);
        if (!is_done) return false;
    }
    return true;
}

struct pattern_splitter {
    struct pattern *pattern;
    enum split_behavior behavior;
    bool is_inverted;
};

static bool run_pattern(const void *self, const struct span_text *text,
                        const struct piece_list *pieces, struct span_text *out_text,
                        struct piece_list *out_pieces) {
    (void)out_text;
    const struct pattern_splitter *splitter = self;
    return split_by_pattern(splitter->pattern, splitter->behavior, splitter->is_inverted, text,
                            pieces, out_pieces);
}

static void done_pattern(void *self) {
    pattern_free(((struct pattern_splitter *)self)->pattern);
}

bool splitter_of_pattern(struct arena *memory, struct pattern *pattern,
                         enum split_behavior behavior, bool is_inverted, struct splitter *out) {
    struct pattern_splitter *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) {
        pattern_free(pattern);
        return false;
    }
    *self = (struct pattern_splitter){pattern, behavior, is_inverted};
    *out = (struct splitter){.run = run_pattern, .self = self, .done = done_pattern};
    return true;
}

/* Which characters are matches: those with a flag, or those in a set. */
struct code_splitter {
    const struct unicode_table *unicode;
    unsigned flags;
    struct pattern_set set;
    enum split_behavior behavior;
    bool ascii[128];
};

static bool is_in_set(const struct pattern_set *set, uint32_t code) {
    size_t low = 0, high = set->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (set->ranges[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < set->count && set->ranges[low].first <= code;
}

static bool is_code_match(const struct code_splitter *self, uint32_t code) {
    return self->unicode != NULL ? (unicode_flags(self->unicode, code) & self->flags) != 0
                                 : is_in_set(&self->set, code);
}

static bool split_codes(const struct code_splitter *self, const unsigned char *data,
                        struct piece piece, struct segments *segments) {
    size_t at = piece.start, done = piece.start, length = 1;
    for (; at < piece.end; at += length) {
        uint32_t code = data[at];
        length = 1;
        if (code >= 0x80) length = utf8_decode(data + at, &code);
        if (code < 0x80 ? !self->ascii[code] : !is_code_match(self, code)) continue;
        if ((done < at && !segments_add(segments, done, at, false))
            || !segments_add(segments, at, at + length, true)) {
            return false;
        }
        done = at + length;
    }
    return (done == piece.end || segments_add(segments, done, piece.end, false))
           && segments_end(segments);
}

static bool run_codes(const void *self, const struct span_text *text,
                      const struct piece_list *pieces, struct span_text *out_text,
                      struct piece_list *out_pieces) {
    (void)out_text;
    const struct code_splitter *splitter = self;
    struct segments segments = {.out = out_pieces, .behavior = splitter->behavior};
    for (size_t i = 0; i < pieces->count; i++) {
        if (!split_codes(splitter, text->data, pieces->items[i], &segments)) return false;
    }
    return true;
}

static void done_codes(void *self) { free(((struct code_splitter *)self)->set.ranges); }

static void make_codes(struct code_splitter *self, struct splitter *out) {
    for (unsigned code = 0; code < sizeof self->ascii; code++) {
        self->ascii[code] = is_code_match(self, code);
    }
    *out = (struct splitter){
        .run = run_codes,
        .self = self,
        .done = done_codes,
        .ends_at_space = self->behavior == SPLIT_REMOVED && self->ascii[' '] && self->ascii['\n'],
    };
}

bool splitter_of_flags(struct arena *memory, const struct unicode_table *unicode, unsigned flags,
                       enum split_behavior behavior, struct splitter *out) {
    struct code_splitter *self = arena_zalloc(memory, sizeof *self);
    if (self == NULL) return false;
    self->unicode = unicode;
    self->flags = flags;
    self->behavior = behavior;
    make_codes(self, out);
    return true;
}

bool splitter_of_numbers(struct arena *memory, enum split_behavior behavior,
                         struct splitter *out) {
    struct code_splitter *self = arena_zalloc(memory, sizeof *self);
    if (self == NULL) return false;
    bool is_known;
    self->set = pattern_set_named(view_of("numeric"), &is_known);
    if (self->set.ranges == NULL) return false;
    self->behavior = behavior;
    make_codes(self, out);
    return true;
}

enum word_kind { WORD_SPACE, WORD_LETTERS, WORD_OTHERS };
struct word_splitter {
    const struct unicode_table *unicode;
    unsigned char ascii[128];
};

static unsigned char kind_of(const struct unicode_table *unicode, uint32_t code) {
    const unsigned flags = unicode_flags(unicode, code);
    return flags & CODE_WORD ? WORD_LETTERS : flags & CODE_WHITESPACE ? WORD_SPACE : WORD_OTHERS;
}

static unsigned char kind_at(const struct word_splitter *self, const unsigned char *data,
                             size_t *out_length) {
    uint32_t code = data[0];
    *out_length = 1;
    if (code < 0x80) return self->ascii[code];
    *out_length = utf8_decode(data, &code);
    return kind_of(self->unicode, code);
}

static bool run_words(const void *self, const struct span_text *text,
                      const struct piece_list *pieces, struct span_text *out_text,
                      struct piece_list *out_pieces) {
    (void)out_text;
    for (size_t i = 0; i < pieces->count; i++) {
        size_t at = pieces->items[i].start, length;
        while (at < pieces->items[i].end) {
            const size_t start = at;
            const unsigned char kind = kind_at(self, text->data + at, &length);
            do {
                at += length;
            } while (at < pieces->items[i].end
                     && kind_at(self, text->data + at, &length) == kind);
            if (kind != WORD_SPACE
                && !piece_list_push(out_pieces, (uint32_t)start, (uint32_t)at)) {
                return false;
            }
        }
    }
    return true;
}

bool splitter_of_words(struct arena *memory, const struct unicode_table *unicode,
                       struct splitter *out) {
    struct word_splitter *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) return false;
    self->unicode = unicode;
    for (unsigned code = 0; code < sizeof self->ascii; code++) {
        self->ascii[code] = kind_of(unicode, code);
    }
    *out = (struct splitter){.run = run_words, .ends_at_space = true, .self = self};
    return true;
}

static bool run_length(const void *self, const struct span_text *text,
                       const struct piece_list *pieces, struct span_text *out_text,
                       struct piece_list *out_pieces) {
    (void)out_text;
    const uint32_t limit = *(const uint32_t *)self;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece piece = pieces->items[i];
        for (size_t start = piece.start, at = start; start < piece.end; start = at) {
            for (uint32_t codes = 0; codes < limit && at < piece.end; codes++) {
                uint32_t code;
                at += utf8_decode(text->data + at, &code);
            }
            if (!piece_list_push(out_pieces, (uint32_t)start, (uint32_t)at)) return false;
        }
    }
    return true;
}

bool splitter_of_length(struct arena *memory, uint32_t codes, struct splitter *out) {
    uint32_t *self = arena_alloc(memory, sizeof *self);
    if (self == NULL) return false;
    *self = codes;
    *out = (struct splitter){.run = run_length, .self = self};
    return true;
}

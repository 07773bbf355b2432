/* Encoding: added tokens out of the raw text, the rest through normalizer, splitter and model,
 * then truncation and the post-processor's plan. Any number of threads at once; a tokenizer is
 * const after load and what one text needs lies in its arena. Invariant: no stage sees invalid
 * UTF-8; where offsets are wanted, a token that is found holds bytes of the text as it was given.
 * The file is read in tokenizer_file.c, the stages are in token_stages.h. */
#include "prep/tokenizer_parts.h"

enum {
    PART_BYTES = 4096, /* text taken through the stages at once: stays in the first cache */
    BLOCK_BYTES = 64,  /* code points are counted up to every such place */
};

/* How much white space an added token that was found begins and ends with. */
struct added_spaces {
    size_t token; /* number in tokens */
    uint32_t leading, trailing;
};

struct encoder {
    const struct tokenizer *tokenizer;
    struct arena *arena;
    struct view text;             /* as it was given */
    const struct source *sources; /* of its bytes; NULL unless a stage needs them */
    bool wants_offsets, wants_spaces;
    size_t enough; /* once there are more tokens than this the rest does not matter */
    /* Hugging Face's library gives up behind the piece that brings a text to so many tokens; of a
     * pair, which is the longer hangs on that. */
    size_t most;
    size_t counted;         /* tokens when it would have given up; SIZE_MAX: it would not have */
    bool waits_for_counted; /* there is not enough before */
    bool wants_splits;      /* giving up from the end is worked out afterwards */
    struct piece_list splits; /* tokens before a piece or an added token; 1: a piece, 0: added */

    struct token_list tokens;
    struct added_spaces *spaces; /* of the added ones among them */
    size_t space_count, space_capacity;
    struct span_text normal; /* the part in work, normalized */
    struct span_text split;  /* what a splitter makes of it that rewrites */
    struct piece_list whole, pieces;
};

static bool has_enough(const struct encoder *encoder) {
    return encoder->tokens.count > encoder->enough
           && (!encoder->waits_for_counted || encoder->counted != SIZE_MAX);
}

static bool is_inside_code(const struct view text, size_t at) {
    return at < text.size && ((unsigned char)text.data[at] & 0xc0) == 0x80;
}

/* Bytes of a stage's text to bytes of the text as it was given, for the tokens from first on. */
static void locate(struct encoder *encoder, const struct span_text *text, size_t first) {
    struct token *items = encoder->tokens.items;
    if (text->has_sources) {
        for (size_t i = first; i < encoder->tokens.count; i++) {
            struct token *token = &items[i];
            const uint32_t last = token->end > token->start ? token->end - 1 : token->start;
            const struct source none = {text->origin, text->origin};
            const struct source *from =
                token->start < text->size ? &text->sources[token->start] : &none;
            token->end = last < text->size ? text->sources[last].end : from->end;
            token->start = from->start;
        }
        return;
    }
    /* No stage has rewritten it: text->data points into the text as it was given. A token that
     * is part of a code point stands for the whole. */
    const uint32_t base = (uint32_t)((const char *)text->data - encoder->text.data);
    for (size_t i = first; i < encoder->tokens.count; i++) {
        items[i].start += base;
        items[i].end += base;
        while (is_inside_code(encoder->text, items[i].start)) items[i].start--;
        while (is_inside_code(encoder->text, items[i].end)) items[i].end++;
    }
}

static bool note_split(struct encoder *encoder, bool is_piece) {
    return !encoder->wants_splits
           || piece_list_push(&encoder->splits, (uint32_t)encoder->tokens.count, is_piece);
}

/* Splitter and model over bytes [start, end) of normalized text. */
static bool encode_normal(struct encoder *encoder, const struct span_text *text, size_t start,
                          size_t end) {
    const struct tokenizer *t = encoder->tokenizer;
    const struct span_text *split = text;
    const struct piece_list *pieces = &encoder->whole;
    encoder->whole.count = 0;
    if (!piece_list_push(&encoder->whole, (uint32_t)start, (uint32_t)end)) return false;
    if (t->splitter.run != NULL) {
        encoder->pieces.count = 0;
        encoder->split.size = 0;
        encoder->split.origin = text->origin;
        if (!t->splitter.run(t->splitter.self, text, &encoder->whole, &encoder->split,
                             &encoder->pieces)) {
            return false;
        }
        pieces = &encoder->pieces;
        if (t->splitter.rewrites) split = &encoder->split;
    }
    const struct view view = {(const char *)split->data, split->size};
    const size_t first = encoder->tokens.count;
    for (size_t i = 0; i < pieces->count && !has_enough(encoder); i++) {
        const struct piece piece = pieces->items[i];
        if (piece.start == piece.end) continue;
        if (!note_split(encoder, true)
            || !t->model.encode(t->model.self, view, piece, &encoder->tokens)) {
            return false;
        }
        if (encoder->counted == SIZE_MAX && encoder->tokens.count >= encoder->most) {
            encoder->counted = encoder->tokens.count;
        }
    }
    if (encoder->wants_offsets) locate(encoder, split, first);
    return true;
}

static bool note_spaces(struct encoder *encoder, struct view text) {
    if (encoder->space_count == encoder->space_capacity) {
        const size_t capacity = 2 * encoder->space_capacity + 16;
        struct added_spaces *spaces = arena_alloc(encoder->arena, capacity * sizeof *spaces);
        if (spaces == NULL) return false;
        if (encoder->space_count > 0) {
            memcpy(spaces, encoder->spaces, encoder->space_count * sizeof *spaces);
        }
        encoder->spaces = spaces;
        encoder->space_capacity = capacity;
    }
    struct added_spaces *spaces = &encoder->spaces[encoder->space_count++];
    spaces->token = encoder->tokens.count;
    token_spaces(text, encoder->tokenizer->unicode, &spaces->leading, &spaces->trailing);
    return true;
}

/* An added token at bytes [start, stop) of a stage's text. */
static bool push_added(struct encoder *encoder, const struct span_text *text,
                       const struct added_match *match) {
    if (encoder->wants_spaces
        && !note_spaces(encoder, (struct view){(const char *)text->data + match->start,
                                               match->stop - match->start})) {
        return false;
    }
    const size_t first = encoder->tokens.count;
    if (!note_split(encoder, false)
        || !token_list_push(&encoder->tokens, match->id, (uint32_t)match->start,
                         (uint32_t)match->stop)) {
        return false;
    }
    if (encoder->wants_offsets) locate(encoder, text, first);
    return true;
}

/* Normalizes a part and looks for the added tokens that wait for that. */
static bool encode_part(struct encoder *encoder, struct view part) {
    const struct tokenizer *t = encoder->tokenizer;
    const size_t base = (size_t)(part.data - encoder->text.data);
    struct span_text raw = {
        .data = (unsigned char *)part.data,
        .size = part.size,
        .sources = encoder->sources != NULL ? (struct source *)encoder->sources + base : NULL,
        .has_sources = encoder->sources != NULL,
        .origin = (uint32_t)base,
    };
    const struct span_text *normal = &raw;
    if (t->normalizer.run != NULL) {
        normal = &encoder->normal;
        encoder->normal.size = 0;
        encoder->normal.origin = raw.origin;
        if (!t->normalizer.run(t->normalizer.self, &raw, &encoder->normal)) return false;
    }
    struct added_cursor cursor = {.set = &t->normalized_added,
                                  .text = {(const char *)normal->data, normal->size}};
    struct added_match match;
    while (!has_enough(encoder) && added_next(&cursor, &match)) {
        if ((cursor.done < match.start
             && !encode_normal(encoder, normal, cursor.done, match.start))
            || !push_added(encoder, normal, &match)) {
            return false;
        }
        cursor.done = match.stop;
    }
    return cursor.done >= normal->size
           || encode_normal(encoder, normal, cursor.done, normal->size);
}

/* Where the part that starts at `at` may end: behind the first ASCII white space after
 * PART_BYTES, or at the end of the text. */
static size_t part_end(struct view text, size_t at) {
    if (text.size - at <= PART_BYTES) return text.size;
    at += PART_BYTES;
    while (at < text.size && text.data[at - 1] != ' ' && text.data[at - 1] != '\n') at++;
    return at;
}

/* Text between two added tokens. */
static bool encode_text(struct encoder *encoder, struct view text) {
    const struct tokenizer *t = encoder->tokenizer;
    const bool may_cut = t->normalized_added.count == 0 /* a token may reach over white space */
                         && (t->normalizer.run == NULL || t->normalizer.cuts_at_space)
                         && t->splitter.run != NULL && t->splitter.ends_at_space
                         && !encoder->wants_offsets;
    if (!may_cut) return encode_part(encoder, text);
    size_t at = 0;
    while (at < text.size && !has_enough(encoder)) {
        const size_t end = part_end(text, at);
        if (!encode_part(encoder, (struct view){text.data + at, end - at})) return false;
        at = end;
    }
    return true;
}

/* Tokens of encoder->text, which is valid UTF-8. */
static bool encode_valid(struct encoder *encoder) {
    const struct view text = encoder->text;
    const struct span_text raw = {.data = (unsigned char *)text.data, .size = text.size};
    struct added_cursor cursor = {.set = &encoder->tokenizer->raw_added, .text = text};
    struct added_match match;
    while (!has_enough(encoder) && added_next(&cursor, &match)) {
        if ((cursor.done < match.start
             && !encode_text(encoder, (struct view){text.data + cursor.done,
                                                    match.start - cursor.done}))
            || !push_added(encoder, &raw, &match)) {
            return false;
        }
        cursor.done = match.stop;
    }
    return cursor.done >= text.size
           || encode_text(encoder, (struct view){text.data + cursor.done,
                                                 text.size - cursor.done});
}

/* A copy of text with U+FFFD for what is not UTF-8; data is NULL when memory is out. */
static struct view replace_invalid(struct view text, size_t valid, struct arena *arena) {
    struct span_text out = {.arena = arena};
    for (;;) {
        if (!span_text_reserve(&out, text.size + 4)) return (struct view){NULL, 0};
        memcpy(out.data + out.size, text.data, valid);
        out.size += valid;
        text.data += valid;
        text.size -= valid;
        if (text.size == 0) return (struct view){(const char *)out.data, out.size};
        out.size += utf8_encode(CODE_REPLACEMENT, out.data + out.size);
        const size_t bad = utf8_bad_length(text);
        text.data += bad;
        text.size -= bad;
        valid = utf8_valid_prefix(text);
    }
}

/* Each byte comes from the code point that it is in. */
static const struct source *own_sources(struct view text, struct arena *arena) {
    struct source *sources = arena_alloc(arena, text.size * sizeof *sources);
    for (size_t at = 0; sources != NULL && at < text.size;) {
        uint32_t code;
        const size_t length = utf8_decode((const unsigned char *)text.data + at, &code);
        for (size_t i = 0; i < length; i++) {
            sources[at + i] = (struct source){(uint32_t)at, (uint32_t)(at + length)};
        }
        at += length;
    }
    return sources;
}

static bool encode_one(struct encoder *encoder, struct view text) {
    const struct tokenizer *t = encoder->tokenizer;
    struct arena *arena = encoder->arena;
    const size_t valid = utf8_valid_prefix(text);
    if (valid < text.size) {
        text = replace_invalid(text, valid, arena);
        if (text.data == NULL) return false;
    }
    encoder->text = text;
    const bool needs_sources =
        t->splitter.needs_sources
        || (encoder->wants_offsets && (t->normalizer.run != NULL || t->splitter.rewrites));
    if (needs_sources && text.size > 0) {
        encoder->sources = own_sources(text, arena);
        if (encoder->sources == NULL) return false;
    }
    encoder->tokens.arena = encoder->whole.arena = encoder->pieces.arena = arena;
    encoder->splits.arena = arena;
    encoder->normal = (struct span_text){.arena = arena, .has_sources = needs_sources};
    encoder->split = encoder->normal;
    return encode_valid(encoder);
}

/* How many tokens of a text Hugging Face's library would have found before it gave up. */
static size_t count_found(const struct encoder *encoder, bool is_second) {
    const struct tokenizer *t = encoder->tokenizer;
    const size_t all = encoder->tokens.count;
    if (t->strategy == TRUNCATE_ONLY_SECOND && !is_second) return all;
    if (!t->keeps_end) return encoder->counted < all ? encoder->counted : all;
    for (size_t i = encoder->splits.count; i > 0; i--) {
        const struct piece split = encoder->splits.items[i - 1];
        const size_t behind = all - split.start;
        if (split.end == 1 && behind >= encoder->most) return behind;
    }
    return all;
}

/* How many tokens of each text stay, as Hugging Face's three strategies have it; count[1] is 0
 * where there is no pair. */
static enum status keep_counts(const struct tokenizer *t, size_t room, bool is_pair,
                               size_t count[2], struct err *err) {
    const size_t total = count[0] + count[1];
    if (room == 0) count[0] = count[1] = 0;
    if (room == 0 || total <= room) return ST_OK;
    if (t->strategy == TRUNCATE_LONGEST_FIRST) {
        const bool swaps = count[0] > count[1];
        size_t shorter = swaps ? count[1] : count[0];
        size_t longer = shorter;
        if (shorter <= room && room - shorter > shorter) longer = room - shorter;
        if (shorter + longer > room) {
            shorter = room / 2;
            longer = shorter + room % 2;
        }
        if (!is_pair) {
            shorter = 0;
            longer = room;
        }
        count[0] = swaps ? longer : shorter;
        count[1] = swaps ? shorter : longer;
        return ST_OK;
    }
    const bool is_second = t->strategy == TRUNCATE_ONLY_SECOND;
    const size_t cut = total - room;
    if (is_second && !is_pair) {
        return err_set(err, ST_INVALID, "%zu tokens are more than the %zu that there is room for, "
                       "and the tokenizer's truncation (OnlySecond) is for the second text of a "
                       "pair: send a pair or a shorter text", total, room);
    }
    if (count[is_second] <= cut) {
        return err_set(err, ST_INVALID, "the %s text of the pair has %zu tokens, and %zu must go: "
                       "the tokenizer's truncation (%s) cuts no other; send shorter texts",
                       is_second ? "second" : "first", count[is_second], cut,
                       is_second ? "OnlySecond" : "OnlyFirst");
    }
    count[is_second] -= cut;
    return ST_OK;
}

/* Bytes of a text to code points: counted at every BLOCK_BYTES once, from there each time. */
struct code_counter {
    struct view text;
    uint32_t *blocks; /* code points that begin before each block */
};

static bool code_counter_init(struct code_counter *out, struct view text, struct arena *arena) {
    const size_t count = text.size / BLOCK_BYTES + 1;
    uint32_t codes = 0;
    *out = (struct code_counter){text, arena_alloc(arena, count * sizeof *out->blocks)};
    for (size_t at = 0; out->blocks != NULL && at <= text.size; at++) {
        if (at % BLOCK_BYTES == 0) out->blocks[at / BLOCK_BYTES] = codes;
        if (at < text.size) codes += ((unsigned char)text.data[at] & 0xc0) != 0x80;
    }
    return out->blocks != NULL;
}

static uint32_t codes_before(const struct code_counter *counter, uint32_t end) {
    uint32_t codes = counter->blocks[end / BLOCK_BYTES];
    for (size_t at = end / BLOCK_BYTES * BLOCK_BYTES; at < end; at++) {
        codes += ((unsigned char)counter->text.data[at] & 0xc0) != 0x80;
    }
    return codes;
}

/* What of a text's tokens stands in the encoding. */
struct kept {
    const struct encoder *encoder;
    size_t first, count;
    struct code_counter counter;
};

static void put_text(const struct kept *kept, const struct post_item *item, size_t at,
                     size_t count, struct encoding *out) {
    if (count == 0) return;
    const struct token *tokens = kept->encoder->tokens.items + kept->first;
    for (size_t i = 0; i < count; i++) {
        out->ids[at + i] = tokens[i].id;
        out->type_ids[at + i] = item->type_id;
    }
    for (size_t i = 0; out->offsets != NULL && i < count; i++) {
        out->offsets[at + i] =
            (struct token_offset){codes_before(&kept->counter, tokens[i].start),
                                  codes_before(&kept->counter, tokens[i].end)};
        out->special[at + i] = 0;
    }
}

/* The white space of byte-level tokens out of their offsets, as often as the plan has it. */
static void trim_text(const struct kept *kept, const struct post_item *item, size_t count,
                      struct token_offset *offsets) {
    const struct encoder *encoder = kept->encoder;
    const struct tokenizer *t = encoder->tokenizer;
    size_t next_added = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t number = kept->first + i;
        struct added_spaces spaces = {.token = number};
        while (next_added < encoder->space_count
               && encoder->spaces[next_added].token < number) {
            next_added++;
        }
        if (next_added < encoder->space_count && encoder->spaces[next_added].token == number) {
            spaces = encoder->spaces[next_added];
        } else {
            token_spaces(t->model.name(t->model.self, encoder->tokens.items[number].id),
                         t->unicode, &spaces.leading, &spaces.trailing);
        }
        for (size_t k = 0; k < item->trim_count; k++) {
            const struct post_trim *trim = &item->trims[k];
            uint32_t leading = spaces.leading;
            const bool is_first = (i == 0 && trim->is_first) || offsets[i].start == 0;
            if (is_first && trim->keeps_prefix_space && leading == 1) leading = 0;
            offsets[i].start += leading;
            if (offsets[i].start > offsets[i].end) offsets[i].start = offsets[i].end;
            if (spaces.trailing > 0 && offsets[i].end >= spaces.trailing) {
                const uint32_t end = offsets[i].end - spaces.trailing;
                offsets[i].end = end > offsets[i].start ? end : offsets[i].start;
            }
        }
    }
}

static void put_special(const struct post_item *item, size_t at, size_t count,
                        struct encoding *out) {
    for (size_t i = 0; i < count; i++) {
        out->ids[at + i] = item->ids[i];
        out->type_ids[at + i] = item->type_id;
        if (out->offsets != NULL) {
            out->offsets[at + i] = (struct token_offset){0, 0};
            out->special[at + i] = item->is_special;
        }
    }
}

/* The plan's items one after the other, at most limit tokens. */
static bool assemble(const struct post_plan *plan, const struct kept kept[2], size_t limit,
                     bool wants_offsets, struct arena *arena, struct encoding *out) {
    size_t total = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct post_item *item = &plan->items[i];
        total += item->is_text ? kept[item->is_second].count : item->count;
    }
    total = total < limit ? total : limit;
    if (total > UINT32_MAX) return false;
    struct encoding made = {.count = (uint32_t)total};
    made.ids = arena_alloc(arena, total * sizeof *made.ids);
    made.type_ids = arena_alloc(arena, total * sizeof *made.type_ids);
    if (made.ids == NULL || made.type_ids == NULL) return false;
    if (wants_offsets) {
        made.offsets = arena_alloc(arena, total * sizeof *made.offsets);
        made.special = arena_alloc(arena, total * sizeof *made.special);
        if (made.offsets == NULL || made.special == NULL) return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct post_item *item = &plan->items[i];
        const struct kept *text = &kept[item->is_second];
        size_t count = item->is_text ? text->count : item->count;
        count = count < total - at ? count : total - at;
        if (item->is_text) {
            put_text(text, item, at, count, &made);
        } else {
            put_special(item, at, count, &made);
        }
        if (wants_offsets && item->trim_count > 0) {
            trim_text(text, item, count, made.offsets + at);
        }
        at += count;
    }
    *out = made;
    return true;
}

static enum status no_memory(struct err *err) {
    return err_set(err, ST_NO_MEMORY, "no memory for the tokens of a text");
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, struct view text,
                             const struct encode_options *options, struct arena *arena,
                             struct encoding *out, struct err *err) {
    static const struct encode_options usual = {.max_tokens = 0};
    if (options == NULL) options = &usual;
    const bool is_pair = options->pair != NULL;
    const struct post_plan *plan = &tokenizer->post.plans[is_pair][!options->adds_no_special];
    if (plan->refusal != NULL) {
        return err_set(err, ST_INVALID, "the tokenizer cannot put two texts together: %s",
                       plan->refusal);
    }
    const size_t limit = options->max_tokens > 0 ? options->max_tokens : SIZE_MAX;
    size_t room = options->max_tokens > 0 ? options->max_tokens : tokenizer->max_tokens;
    const size_t added = options->adds_no_special ? 0 : tokenizer->post.added_count[is_pair];
    const size_t most = room > 0 ? room : SIZE_MAX;
    room = most == SIZE_MAX ? SIZE_MAX : most > added ? most - added : 0;

    struct encoder encoders[2];
    struct kept kept[2] = {{.count = 0}, {.count = 0}};
    size_t counts[2] = {0, 0};
    size_t total = 0;
    for (int i = 0; i <= is_pair; i++) {
        const struct view one = i == 0 ? text : *options->pair;
        encoders[i] = (struct encoder){
            .tokenizer = tokenizer,
            .arena = arena,
            .wants_offsets = options->wants_offsets,
            .wants_spaces = options->wants_offsets && plan->trims,
            .most = most,
            .counted = SIZE_MAX,
            .waits_for_counted = is_pair && !tokenizer->keeps_end,
            .wants_splits = tokenizer->keeps_end && is_pair && most < SIZE_MAX,
            .enough = tokenizer->keeps_end ? SIZE_MAX : is_pair ? most : room,
        };
        if (one.size > UINT32_MAX) {
            return err_set(err, ST_INVALID, "a text of %zu bytes: at most 4 GiB", one.size);
        }
        if (!encode_one(&encoders[i], one)) return no_memory(err);
        counts[i] = count_found(&encoders[i], i == 1);
        total += encoders[i].tokens.count;
    }
    const enum status status = keep_counts(tokenizer, room, is_pair, counts, err);
    if (status != ST_OK) return status;
    for (int i = 0; i <= is_pair; i++) {
        kept[i].encoder = &encoders[i];
        kept[i].count = counts[i];
        kept[i].first = tokenizer->keeps_end ? encoders[i].tokens.count - counts[i] : 0;
        if (options->wants_offsets
            && !code_counter_init(&kept[i].counter, encoders[i].text, arena)) {
            return no_memory(err);
        }
    }
    if (!assemble(plan, kept, limit, options->wants_offsets, arena, out)) return no_memory(err);
    out->was_truncated = counts[0] + counts[1] < total;
    return ST_OK;
}

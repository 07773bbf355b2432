/* The Precompiled normalizer: SentencePiece's table of replacements, applied as Hugging Face
 * applies it: to a grapheme of less than six bytes whole, where the table has an entry that it
 * begins with (what is behind that entry goes too), else to each code point. Any thread.
 * Invariant: no look-up leaves the trie, whatever the file holds. */
#include "prep/base64.h"
#include "prep/normalizer.h"
#include <utf8proc.h>

enum { GRAPHEME_BYTES = 6 };

/* A unit of the trie, as the double array of SentencePiece packs it. */
static uint32_t unit_label(uint32_t unit) { return unit & (1u << 31 | 0xff); }
static uint32_t unit_offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
static bool unit_has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }

/* What the shortest entry that text begins with becomes; false: there is no such entry. */
static bool find_entry(const struct charsmap *map, struct view text, struct view *out) {
    size_t node = unit_offset(map->trie[0]);
    for (size_t i = 0; i < text.size && text.data[i] != '\0'; i++) {
        const uint8_t byte = (uint8_t)text.data[i];
        node ^= byte;
        if (node >= map->trie_count) return false;
        const uint32_t unit = map->trie[node];
        if (unit_label(unit) != byte) return false;
        node ^= unit_offset(unit);
        if (node >= map->trie_count) return false;
        if (unit_has_leaf(unit)) {
            const size_t start = map->trie[node] & ~(1u << 31);
            if (start > map->texts_size
                || (start < map->texts_size && ((uint8_t)map->texts[start] & 0xc0) == 0x80)) {
                return false; /* no text starts there */
            }
            const char *end = memchr(map->texts + start, '\0', map->texts_size - start);
            const size_t stop = end == NULL ? map->texts_size : (size_t)(end - map->texts);
            *out = (struct view){map->texts + start, stop - start};
            return true;
        }
    }
    return false;
}

static enum status broken(struct err *err) {
    return err_set(err, ST_INVALID,
                   "normalizer: \"precompiled_charsmap\" is not a table of SentencePiece's");
}

enum status charsmap_make(struct view precompiled, struct arena *memory, struct charsmap *out,
                          struct err *err) {
    unsigned char *bytes = arena_alloc(memory, base64_room(precompiled.size));
    if (bytes == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the normalizer");
    size_t size, bad;
    uint32_t trie_bytes;
    if (!base64_decode(precompiled, bytes, &size, &bad) || size < sizeof trie_bytes) {
        return broken(err);
    }
    memcpy(&trie_bytes, bytes, sizeof trie_bytes);
    const size_t count = trie_bytes / sizeof(uint32_t);
    const size_t used = (count + 1) * sizeof(uint32_t);
    if (count == 0 || used > size) return broken(err);
    const struct view texts = {(const char *)bytes + used, size - used};
    if (utf8_valid_prefix(texts) < texts.size) return broken(err);
    /* the arena aligns to 16, so that the trie behind its size is aligned */
    struct charsmap map = {.trie = (const uint32_t *)(const void *)(bytes + sizeof trie_bytes),
                           .trie_count = count,
                           .texts = texts.data,
                           .texts_size = texts.size};
    for (unsigned char byte = 0; byte < sizeof map.is_plain; byte++) {
        struct view unused;
        const char text = (char)byte;
        map.is_plain[byte] = !find_entry(&map, (struct view){&text, 1}, &unused);
    }
    *out = map;
    return ST_OK;
}

/* What is written, as transform_put takes it: kept until the end, since how often a code point is
 * passed is settled only by what comes behind it. */
struct change {
    uint32_t code;
    int change;
};

struct run {
    const struct charsmap *map;
    const struct span_text *in;
    struct span_text *out;
    struct change *changes; /* only with sources; else the text is written at once */
    size_t count, capacity;
};

static bool push(struct run *run, uint32_t code) {
    if (!run->out->has_sources) return span_text_put(run->out, code, (struct source){0, 0});
    if (run->count == run->capacity) {
        const size_t capacity = 2 * run->capacity + 64;
        struct change *changes = arena_alloc(run->out->arena, capacity * sizeof *changes);
        if (changes == NULL) return false;
        if (run->count > 0) memcpy(changes, run->changes, run->count * sizeof *changes);
        run->changes = changes;
        run->capacity = capacity;
    }
    run->changes[run->count++] = (struct change){code, 0};
    return true;
}

static size_t count_codes(struct view text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) count += ((uint8_t)text.data[i] & 0xc0) != 0x80;
    return count;
}

/* Text in place of what was there. More code points: the last ones are extra. Fewer: those that are
 * missing are passed with the code point before; at the start of the text there is none, and
 * Hugging Face's library forgets them. */
static bool put_entry(struct run *run, struct view old, struct view text) {
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        at += utf8_decode((const unsigned char *)text.data + at, &code);
        if (!push(run, code)) return false;
    }
    if (!run->out->has_sources) return true;
    const size_t before = count_codes(old), after = count_codes(text);
    for (size_t i = before; i < after; i++) run->changes[run->count - 1 - (i - before)].change = 1;
    if (after < before && run->count > 0) {
        run->changes[run->count - 1].change -= (int)(before - after);
    }
    return true;
}

static bool put_grapheme(struct run *run, struct view grapheme, bool *is_modified) {
    struct view text;
    if (grapheme.size < GRAPHEME_BYTES && find_entry(run->map, grapheme, &text)) {
        *is_modified = true;
        return put_entry(run, grapheme, text);
    }
    for (size_t at = 0, length; at < grapheme.size; at += length) {
        uint32_t code;
        length = utf8_decode((const unsigned char *)grapheme.data + at, &code);
        const struct view one = {grapheme.data + at, length};
        if (find_entry(run->map, one, &text)) {
            *is_modified = true;
            if (!put_entry(run, one, text)) return false;
        } else if (!push(run, code)) {
            return false;
        }
    }
    return true;
}

/* Where the grapheme that starts at `at` ends. */
static size_t grapheme_end(const struct span_text *in, size_t at) {
    uint32_t code;
    at += utf8_decode(in->data + at, &code);
    utf8proc_int32_t state = 0;
    while (at < in->size) {
        uint32_t next;
        const size_t length = utf8_decode(in->data + at, &next);
        if (code < 0x80 && next < 0x80 && code != '\r') break;
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state)) {
            break;
        }
        code = next;
        at += length;
    }
    return at;
}

/* ASCII that the table leaves alone, as long as ASCII follows it. */
static size_t plain_end(const struct charsmap *map, const struct span_text *in, size_t at) {
    while (at + 1 < in->size && in->data[at] < 0x80 && map->is_plain[in->data[at]]
           && in->data[at + 1] < 0x80) {
        at++;
    }
    return at;
}

bool charsmap_run(const void *self, const struct span_text *in, struct span_text *out) {
    struct run run = {.map = self, .in = in, .out = out};
    bool is_modified = false;
    for (size_t at = 0; at < in->size;) {
        const size_t plain = out->has_sources ? at : plain_end(run.map, in, at);
        if (plain > at) {
            if (!span_text_copy(out, in, at, plain)) return false;
            at = plain;
        }
        const size_t end = grapheme_end(in, at);
        const struct view grapheme = {(const char *)in->data + at, end - at};
        if (!put_grapheme(&run, grapheme, &is_modified)) return false;
        at = end;
    }
    if (!out->has_sources) return true;
    if (!is_modified) return span_text_copy(out, in, 0, in->size);
    struct transform transform = {.in = in, .out = out};
    for (size_t i = 0; i < run.count; i++) {
        if (!transform_put(&transform, run.changes[i].code, run.changes[i].change)) return false;
    }
    return true;
}

/* Normalizers that look for text: Replace, Prepend, Strip, ByteLevel; and how all of them write.
 * Any thread. Invariant: every byte written has a source where out has sources. */
#include "prep/normalizer.h"
#include "prep/vocab.h"

bool span_text_put(struct span_text *out, uint32_t code, struct source source) {
    if (!span_text_reserve(out, 4)) return false;
    const size_t length = utf8_encode(code, out->data + out->size);
    for (size_t i = 0; out->has_sources && i < length; i++) out->sources[out->size + i] = source;
    out->size += length;
    return true;
}

struct source span_text_source(const struct span_text *in, size_t at) {
    return in->has_sources && at < in->size ? in->sources[at]
                                            : (struct source){in->origin, in->origin};
}

struct source span_text_source_before(const struct span_text *in, size_t at) {
    return at > 0 ? span_text_source(in, at - 1) : (struct source){in->origin, in->origin};
}

/* Appends text, all of one source. */
static bool put_text(struct span_text *out, struct view text, struct source source) {
    if (text.size == 0) return true;
    if (!span_text_reserve(out, text.size)) return false;
    memcpy(out->data + out->size, text.data, text.size);
    for (size_t i = 0; out->has_sources && i < text.size; i++) {
        out->sources[out->size + i] = source;
    }
    out->size += text.size;
    return true;
}

bool replace_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct replace *replace = self;
    const struct view from = replace->from;
    size_t done = 0;
    while (done < in->size) {
        const void *found = from.size == 1
                                ? memchr(in->data + done, from.data[0], in->size - done)
                                : memmem(in->data + done, in->size - done, from.data, from.size);
        if (found == NULL) break;
        const size_t start = (size_t)((const unsigned char *)found - in->data);
        const size_t end = start + from.size;
        if (!span_text_copy(out, in, done, start)
            || !put_text(out, replace->to, span_text_source_before(in, end))) {
            return false;
        }
        done = end;
    }
    return span_text_copy(out, in, done, in->size);
}

bool replace_pattern_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct replace *replace = self;
    struct pattern_cursor cursor;
    size_t done = 0, start, end;
    if (in->size == 0) return true;
    if (!pattern_begin(replace->pattern, out->arena, &cursor)) return false;
    pattern_search(&cursor, in->data, in->size);
    enum pattern_found found;
    while ((found = pattern_next(&cursor, &start, &end)) == PATTERN_MATCH) {
        if (!span_text_copy(out, in, done, start)
            || !put_text(out, replace->to, span_text_source_before(in, end))) {
            return false;
        }
        done = end;
    }
    return found == PATTERN_END && span_text_copy(out, in, done, in->size);
}

void replace_pattern_done(void *self) {
    struct replace *replace = self;
    pattern_free(replace->pattern);
}

bool prepend_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct prepend *prepend = self;
    if (in->size == 0) return true;
    const size_t start = out->size;
    if (!put_text(out, prepend->text, span_text_source(in, 0))
        || !span_text_copy(out, in, 0, in->size)) {
        return false;
    }
    if (prepend->text.size == 0 && out->has_sources) {
        /* Nothing put before the first character still counts as a change: it has no source. */
        uint32_t code;
        const size_t length = utf8_decode(in->data, &code);
        for (size_t i = 0; i < length; i++) {
            out->sources[start + i] = (struct source){in->origin, in->origin};
        }
    }
    return true;
}

static bool is_space_at(const struct strip *strip, const unsigned char *data, size_t *out_length) {
    uint32_t code;
    *out_length = utf8_decode(data, &code);
    return (unicode_flags(strip->unicode, code) & CODE_WHITESPACE) != 0;
}

bool strip_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct strip *strip = self;
    size_t start = 0, end = in->size, length;
    while (strip->left && start < end && is_space_at(strip, in->data + start, &length)) {
        start += length;
    }
    while (strip->right && end > start) {
        size_t last = end - 1;
        while ((in->data[last] & 0xc0) == 0x80) last--;
        if (!is_space_at(strip, in->data + last, &length)) break;
        end = last;
    }
    return span_text_copy(out, in, start, end);
}

bool letters_run(const void *self, const struct span_text *in, struct span_text *out) {
    (void)self;
    for (size_t at = 0; at < in->size; at++) {
        if (!span_text_put(out, byte_to_letter(in->data[at]), span_text_source(in, at))) {
            return false;
        }
    }
    return true;
}

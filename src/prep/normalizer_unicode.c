/* Normalizers that look at code points: the four normal forms, Lowercase, StripAccents, Nmt. Any
 * thread. Invariant: what no flag marks is copied as it stands; only stretches around code points
 * that a form has to do with are taken apart. See unicode_table.h for whose Unicode this is. */
#include "prep/normalizer.h"

enum { CODE_BITS = 24, CODE_MASK = (1 << CODE_BITS) - 1, CLASSES = CODE_CLASSES };

bool transform_put(struct transform *transform, uint32_t code, int change) {
    const struct span_text *in = transform->in;
    const struct source source = change > 0 ? span_text_source_before(in, transform->at)
                                            : span_text_source(in, transform->at);
    for (int i = change; i <= 0 && transform->at < in->size; i++) {
        uint32_t passed;
        transform->at += utf8_decode(in->data + transform->at, &passed);
    }
    return span_text_put(transform->out, code, source);
}

/* A code point of a stretch that is taken apart. */
struct part {
    uint32_t code; /* rank of its combining class above CODE_BITS */
    int change;    /* as transform_put takes it */
};

struct parts {
    struct arena *arena;
    struct part *items;
    size_t count, capacity;
};

static bool push_part(struct parts *parts, uint32_t code, int change) {
    if (parts->count == parts->capacity) {
        const size_t capacity = 2 * parts->capacity + 64;
        struct part *items = arena_alloc(parts->arena, capacity * sizeof *items);
        if (items == NULL) return false;
        if (parts->count > 0) memcpy(items, parts->items, parts->count * sizeof *items);
        parts->items = items;
        parts->capacity = capacity;
    }
    parts->items[parts->count++] = (struct part){code, change};
    return true;
}

void unicode_form_init(struct unicode_form *out, const struct unicode_table *unicode,
                       bool is_compatible, bool composes) {
    *out = (struct unicode_form){
        .unicode = unicode,
        .is_compatible = is_compatible,
        .composes = composes,
        .matters = CODE_COMBINING | (is_compatible ? CODE_COMPATIBLE : 0u)
                   | (composes ? CODE_NOT_COMPOSED | CODE_JOINS : CODE_DECOMPOSES),
    };
}

static bool decompose(const struct unicode_form *form, uint32_t code, struct parts *parts) {
    uint32_t codes[CODE_PARTS_MAX] = {code};
    const unsigned flags = unicode_flags(form->unicode, code);
    size_t count = 1;
    if (form->is_compatible && (flags & CODE_COMPATIBLE) != 0) {
        count = unicode_decompose_compatible(code, codes);
    } else if (flags & CODE_DECOMPOSES) {
        count = unicode_decompose(form->unicode, code, codes);
    }
    for (size_t i = 0; i < count; i++) {
        const bool combines = (unicode_flags(form->unicode, codes[i]) & CODE_COMBINING) != 0;
        const uint32_t rank = combines ? unicode_class(codes[i]) : 0;
        if (!push_part(parts, rank << CODE_BITS | codes[i], i > 0)) return false;
    }
    return true;
}

/* Sorts the marks of items[first, last) by class, those of one class in their order: counted, so
 * that a hostile run of a million costs no more than a million steps. spare has their room. */
static void sort_marks(struct part *items, size_t first, size_t last, struct part *spare) {
    size_t starts[CLASSES + 1] = {0};
    for (size_t i = first; i < last; i++) starts[(items[i].code >> CODE_BITS) + 1]++;
    for (size_t class = 1; class <= CLASSES; class ++) starts[class] += starts[class - 1];
    for (size_t i = first; i < last; i++) spare[starts[items[i].code >> CODE_BITS]++] = items[i];
    memcpy(items + first, spare, (last - first) * sizeof *items);
}

/* Canonical order. */
static bool order(struct parts *parts) {
    struct part *spare = NULL;
    for (size_t i = 0; i < parts->count;) {
        size_t last = i;
        bool is_ordered = true;
        while (last < parts->count && parts->items[last].code >> CODE_BITS != 0) {
            is_ordered = is_ordered && (last == i
                                        || parts->items[last - 1].code >> CODE_BITS
                                               <= parts->items[last].code >> CODE_BITS);
            last++;
        }
        if (!is_ordered) {
            if (spare == NULL) spare = arena_alloc(parts->arena, parts->count * sizeof *spare);
            if (spare == NULL) return false;
            sort_marks(parts->items, i, last, spare);
        }
        i = last + 1;
    }
    return true;
}

/* Joins in place what joins. The change of a joined one adds up, so that as many code points are
 * passed as before. */
static void compose(const struct unicode_table *unicode, struct parts *parts) {
    struct part *items = parts->items;
    size_t kept = 0, starter = SIZE_MAX;
    uint32_t last_class = 0; /* of the mark before; 0: nothing stands between it and the starter */
    for (size_t i = 0; i < parts->count; i++) {
        const struct part part = items[i];
        const uint32_t class = part.code >> CODE_BITS;
        if (starter != SIZE_MAX && (last_class == 0 || last_class < class)) {
            const uint32_t joined =
                unicode_compose(unicode, items[starter].code & CODE_MASK, part.code & CODE_MASK);
            if (joined != 0) {
                items[starter] = (struct part){joined, items[starter].change + part.change - 1};
                continue;
            }
        }
        if (class == 0) {
            starter = kept;
            last_class = 0;
        } else if (starter != SIZE_MAX) {
            last_class = class;
        }
        items[kept++] = part;
    }
    parts->count = kept;
}

/* Bytes [start, end), where the form has something to do. */
static bool put_stretch(const struct unicode_form *form, const struct span_text *in, size_t start,
                        size_t end, struct parts *parts, struct span_text *out) {
    parts->count = 0;
    for (size_t at = start; at < end;) {
        uint32_t code;
        at += utf8_decode(in->data + at, &code);
        if (!decompose(form, code, parts)) return false;
    }
    if (!order(parts)) return false;
    if (form->composes) compose(form->unicode, parts);
    struct transform transform = {.in = in, .out = out, .at = start};
    for (size_t i = 0; i < parts->count; i++) {
        if (!transform_put(&transform, parts->items[i].code & CODE_MASK, parts->items[i].change)) {
            return false;
        }
    }
    return true;
}

/* The end of ASCII from at on, eight bytes at once. */
static size_t ascii_end(const unsigned char *data, size_t at, size_t size) {
    uint64_t eight;
    while (size - at >= sizeof eight) {
        memcpy(&eight, data + at, sizeof eight);
        if ((eight & 0x8080808080808080u) != 0) break;
        at += sizeof eight;
    }
    while (at < size && data[at] < 0x80) at++;
    return at;
}

bool unicode_form_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct unicode_form *form = self;
    struct parts parts = {.arena = out->arena};
    const unsigned char *data = in->data;
    size_t done = 0, last = 0; /* last: where the code point before `at` starts */
    for (size_t at = 0; at < in->size;) {
        if (data[at] < 0x80) { /* no ASCII character matters to any form */
            at = ascii_end(data, at, in->size);
            last = at - 1;
            continue;
        }
        uint32_t code;
        size_t length = utf8_decode(data + at, &code);
        if ((unicode_flags(form->unicode, code) & form->matters) == 0) {
            last = at;
            at += length;
            continue;
        }
        /* From the code point before, which may be what it joins, to the next that the form has
         * nothing to do with. */
        const size_t start = form->composes && at > 0 && last >= done ? last : at;
        do {
            at += length;
            if (at < in->size) length = utf8_decode(data + at, &code);
        } while (at < in->size && (unicode_flags(form->unicode, code) & form->matters) != 0);
        if (!span_text_copy(out, in, done, start)
            || !put_stretch(form, in, start, at, &parts, out)) {
            return false;
        }
        done = at;
    }
    return span_text_copy(out, in, done, in->size);
}

bool code_filter_run(const void *self, const struct span_text *in, struct span_text *out) {
    const struct code_filter *filter = self;
    size_t done = 0;
    for (size_t at = 0; at < in->size;) {
        uint32_t code;
        const size_t length = utf8_decode(in->data + at, &code);
        if ((unicode_flags(filter->unicode, code) & filter->removed) != 0) {
            if (!span_text_copy(out, in, done, at)) return false;
            done = at + length;
        }
        at += length;
    }
    return span_text_copy(out, in, done, in->size);
}

bool lowercase_run(const void *self, const struct span_text *in, struct span_text *out) {
    size_t done = 0;
    for (size_t at = 0; at < in->size;) {
        uint32_t code;
        const size_t length = utf8_decode(in->data + at, &code);
        if ((unicode_flags(self, code) & CODE_LOWERS) != 0) {
            uint32_t codes[2];
            const size_t count = unicode_lower(self, code, codes);
            if (!span_text_copy(out, in, done, at)) return false;
            for (size_t i = 0; i < count; i++) {
                if (!span_text_put(out, codes[i], span_text_source(in, at))) return false;
            }
            done = at + length;
        }
        at += length;
    }
    return span_text_copy(out, in, done, in->size);
}

/* What Nmt takes out, and what it makes a space. */
static bool nmt_removes(uint32_t code) {
    return (code >= 0x1 && code <= 0x8) || code == 0xb || (code >= 0xe && code <= 0x1f)
           || code == 0x7f || code == 0x8f || code == 0x9f;
}
static bool nmt_spaces(uint32_t code) {
    return code == 0x9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680
           || (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029
           || code == 0x2581 || code == 0xfeff || code == 0xfffd;
}

bool nmt_run(const void *self, const struct span_text *in, struct span_text *out) {
    (void)self;
    size_t done = 0;
    for (size_t at = 0; at < in->size;) {
        uint32_t code;
        const size_t length = utf8_decode(in->data + at, &code);
        const bool spaces = nmt_spaces(code);
        if (spaces || nmt_removes(code)) {
            if (!span_text_copy(out, in, done, at)) return false;
            if (spaces && !span_text_put(out, ' ', span_text_source(in, at))) return false;
            done = at + length;
        }
        at += length;
    }
    return span_text_copy(out, in, done, in->size);
}

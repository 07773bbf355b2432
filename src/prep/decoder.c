/* Tokens' names to text, as Hugging Face's decoders do it. Any thread. Invariant: a step leaves
 * valid UTF-8. Read decoder_file.c for how a file's decoder becomes steps. */
#include "prep/decoder.h"
#include "prep/vocab.h"

static const struct view REPLACEMENT = {"\xef\xbf\xbd", 3}; /* U+FFFD */

static const char *find(struct view text, struct view wanted) {
    while (text.size >= wanted.size) {
        const char *at = memchr(text.data, wanted.data[0], text.size - wanted.size + 1);
        if (at == NULL) {
            return NULL;
        }
        if (memcmp(at, wanted.data, wanted.size) == 0) {
            return at;
        }
        text.size -= (size_t)(at + 1 - text.data);
        text.data = at + 1;
    }
    return NULL;
}

static char *append(char *at, struct view text) {
    if (text.size > 0) {
        memcpy(at, text.data, text.size);
    }
    return at + text.size;
}

/* Every `from` in *text becomes `to`, from the left; nothing is copied where there is none. An
 * empty `from` is found nowhere. */
static bool replace(struct arena *arena, struct view from, struct view to, struct view *text) {
    if (from.size == 0 || text->size < from.size || find(*text, from) == NULL) {
        return true;
    }
    size_t copies = text->size / from.size;
    if (to.size > from.size && copies > (SIZE_MAX / 2 - text->size) / to.size) {
        return false;
    }
    char *out = arena_alloc(arena, text->size + (to.size > from.size ? copies * to.size : 0));
    if (out == NULL) {
        return false;
    }
    char *end = out;
    struct view rest = *text;
    for (const char *at; (at = find(rest, from)) != NULL;) {
        size_t before = (size_t)(at - rest.data);
        end = append(end, (struct view){rest.data, before});
        end = append(end, to);
        rest.data += before + from.size;
        rest.size -= before + from.size;
    }
    end = append(end, rest);
    *text = (struct view){out, (size_t)(end - out)};
    return true;
}

/* The English habits that BERT's tokenizer took apart; the order matters. */
static bool clean_up(struct arena *arena, struct view *text) {
    static const char *const RULES[][2] = {
        {" .", "."},     {" ?", "?"},     {" !", "!"},         {" ,", ","},
        {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"},       {" do not", " don't"},
        {" 's", "'s"},   {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        if (!replace(arena, view_of(RULES[i][0]), view_of(RULES[i][1]), text)) {
            return false;
        }
    }
    return true;
}

static bool join(const struct decode_chain *chain, struct view between, struct view *out) {
    size_t size = 0;
    for (size_t i = 0; i < chain->count; i++) {
        size += chain->items[i].size + (i > 0 ? between.size : 0);
    }
    char *data = arena_alloc(chain->arena, size);
    if (data == NULL) {
        return false;
    }
    char *end = data;
    for (size_t i = 0; i < chain->count; i++) {
        end = i > 0 ? append(end, between) : end;
        end = append(end, chain->items[i]);
    }
    *out = (struct view){data, size};
    return true;
}

bool decode_replace(const struct decode_step *step, struct decode_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        if (!replace(chain->arena, step->from, step->to, &chain->items[i])) {
            return false;
        }
    }
    return true;
}

bool decode_fuse(const struct decode_step *step, struct decode_chain *chain) {
    struct view all;
    (void)step;
    if (!join(chain, (struct view){"", 0}, &all)) {
        return false;
    }
    if (chain->count == 0) { /* nothing joined is one empty text, which later steps see */
        chain->items = arena_alloc(chain->arena, sizeof *chain->items);
        if (chain->items == NULL) {
            return false;
        }
    }
    chain->items[0] = all;
    chain->count = 1;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0x41>", or -1. Rust's number parser takes a sign for the first digit. */
static int byte_of(struct view name) {
    if (name.size != 6 || memcmp(name.data, "<0x", 3) != 0 || name.data[5] != '>') {
        return -1;
    }
    int high = name.data[3] == '+' ? 0 : hex_digit(name.data[3]);
    int low = hex_digit(name.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* items [first, last) are bytes: one text, or a U+FFFD each where they are no UTF-8. Written to
 * items[*at], which lies at or before first. */
static bool put_bytes(struct decode_chain *chain, size_t first, size_t last, size_t *at) {
    size_t count = last - first;
    char *data = arena_alloc(chain->arena, count);
    if (data == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        data[i] = (char)byte_of(chain->items[first + i]);
    }
    struct view text = {data, count};
    if (utf8_valid_prefix(text) == count) {
        chain->items[(*at)++] = text;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        chain->items[(*at)++] = REPLACEMENT;
    }
    return true;
}

bool decode_bytes(const struct decode_step *step, struct decode_chain *chain) {
    size_t kept = 0;
    (void)step;
    for (size_t i = 0; i < chain->count;) {
        size_t first = i;
        while (i < chain->count && byte_of(chain->items[i]) >= 0) {
            i++;
        }
        if (i == first) {
            chain->items[kept++] = chain->items[i++];
        } else if (!put_bytes(chain, first, i, &kept)) {
            return false;
        }
    }
    chain->count = kept;
    return true;
}

bool decode_strip(const struct decode_step *step, struct decode_chain *chain) {
    const struct view mark = step->from;
    for (size_t i = 0; i < chain->count; i++) {
        struct view *text = &chain->items[i];
        for (size_t n = 0; n < step->start && text->size >= mark.size
                           && memcmp(text->data, mark.data, mark.size) == 0; n++) {
            text->data += mark.size;
            text->size -= mark.size;
        }
        for (size_t n = 0; n < step->stop && text->size >= mark.size
                           && memcmp(text->data + text->size - mark.size, mark.data, mark.size)
                                  == 0; n++) {
            text->size -= mark.size;
        }
    }
    return true;
}

/* A copy with a U+FFFD for each maximal part that is no UTF-8. */
static bool make_valid(struct arena *arena, struct view text, struct view *out) {
    if (utf8_valid_prefix(text) == text.size) {
        *out = text;
        return true;
    }
    char *data = arena_alloc(arena, REPLACEMENT.size * text.size);
    if (data == NULL) {
        return false;
    }
    char *end = data;
    for (;;) {
        size_t valid = utf8_valid_prefix(text);
        end = append(end, (struct view){text.data, valid});
        text.data += valid;
        text.size -= valid;
        if (text.size == 0) {
            *out = (struct view){data, (size_t)(end - data)};
            return true;
        }
        end = append(end, REPLACEMENT);
        size_t bad = utf8_bad_length(text);
        text.data += bad;
        text.size -= bad;
    }
}

bool decode_byte_level(const struct decode_step *step, struct decode_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        struct view *text = &chain->items[i];
        char *bytes = arena_alloc(chain->arena, text->size);
        size_t size;
        if (bytes == NULL) {
            return false;
        }
        if (letters_to_bytes(*text, bytes, &size)) { /* an added token stays as it is */
            *text = (struct view){bytes, size};
        }
    }
    return decode_fuse(step, chain)
           && make_valid(chain->arena, chain->items[0], &chain->items[0]);
}

bool decode_wordpiece(const struct decode_step *step, struct decode_chain *chain) {
    const struct view prefix = step->from;
    for (size_t i = 0; i < chain->count; i++) {
        struct view *text = &chain->items[i];
        if (i > 0 && text->size >= prefix.size
            && (prefix.size == 0 || memcmp(text->data, prefix.data, prefix.size) == 0)) {
            text->data += prefix.size;
            text->size -= prefix.size;
        } else if (i > 0) {
            char *spaced = arena_alloc(chain->arena, text->size + 1);
            if (spaced == NULL) {
                return false;
            }
            spaced[0] = ' ';
            (void)append(spaced + 1, *text);
            *text = (struct view){spaced, text->size + 1};
        }
        if (step->cleans_up && !clean_up(chain->arena, text)) {
            return false;
        }
    }
    return true;
}

bool decode_metaspace(const struct decode_step *step, struct decode_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        struct view to = i == 0 && !step->keeps_first ? (struct view){"", 0} : view_of(" ");
        if (!replace(chain->arena, step->from, to, &chain->items[i])) {
            return false;
        }
    }
    return true;
}

bool decode_bpe(const struct decode_step *step, struct decode_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        struct view to = i + 1 == chain->count ? (struct view){"", 0} : view_of(" ");
        if (!replace(chain->arena, step->from, to, &chain->items[i])) {
            return false;
        }
    }
    return true;
}

/* from: the padding token; to: the one that ends a word. */
bool decode_ctc(const struct decode_step *step, struct decode_chain *chain) {
    size_t kept = 0;
    struct view previous = {NULL, 0};
    for (size_t i = 0; i < chain->count; i++) {
        struct view text = chain->items[i];
        bool is_repeated = i > 0 && view_eq(text, previous);
        previous = text;
        if (is_repeated) {
            continue;
        }
        if (!replace(chain->arena, step->from, (struct view){"", 0}, &text)
            || (step->cleans_up
                && (!clean_up(chain->arena, &text)
                    || !replace(chain->arena, step->to, view_of(" "), &text)))) {
            return false;
        }
        if (text.size > 0) {
            chain->items[kept++] = text;
        }
    }
    chain->count = kept;
    return true;
}

bool decoder_run(const void *self, const struct view *names, size_t count, struct arena *arena,
                 struct view *out) {
    const struct decode_steps *steps = self;
    struct decode_chain chain = {.count = count, .arena = arena};
    if (count > SIZE_MAX / sizeof *chain.items) {
        return false;
    }
    chain.items = arena_alloc(arena, count * sizeof *chain.items);
    if (chain.items == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(chain.items, names, count * sizeof *names);
    }
    for (size_t i = 0; i < steps->count; i++) {
        if (!steps->items[i].run(&steps->items[i], &chain)) {
            return false;
        }
    }
    return join(&chain, steps->between, out);
}

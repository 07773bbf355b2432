/* Finding added tokens: the leftmost match, and of those that start there the longest; what
 * single_word rejects is passed over whole. Any thread. Invariant: text is valid UTF-8. The
 * rules are those of Hugging Face's added_vocabulary; see docs/tokenizer.md. */
#include "prep/added.h"
#include <stdlib.h>

enum status added_set_init(struct added_set *out, const struct unicode_table *unicode,
                           const struct added_token *all, size_t count, bool normalized,
                           struct err *err) {
    struct added_set set = {.unicode = unicode, .tokens = all, .only_start = -1};
    struct trie_key *keys = malloc((count + 1) * sizeof *keys);
    if (keys == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu added tokens", count);
    }
    int start = -1;
    for (size_t i = 0; i < count; i++) {
        struct view content = all[i].content;
        if (all[i].normalized != normalized) {
            continue;
        }
        if (content.size == 0) {
            free(keys);
            return err_set(err, ST_INVALID, "added token %u is empty after normalization",
                           all[i].id);
        }
        start = (unsigned char)content.data[0];
        set.starts[start] = true;
        keys[set.count++] = (struct trie_key){.text = content, .value = (uint32_t)i};
    }
    for (int byte = 0; byte < 256; byte++) {
        if (byte != start && set.starts[byte]) {
            start = -1;
        }
    }
    set.only_start = start;
    size_t unique = 0;
    bool is_built = trie_init(&set.trie, keys, set.count, &unique);
    free(keys);
    if (!is_built) {
        return err_set(err, ST_NO_MEMORY, "no memory for %zu added tokens", count);
    }
    if (unique != set.count) {
        trie_done(&set.trie);
        return err_set(err, ST_INVALID, "two added tokens are the same text%s",
                       normalized ? " after normalization" : "");
    }
    *out = set;
    return ST_OK;
}

void added_set_done(struct added_set *set) { trie_done(&set->trie); }

/* Code point that ends at `end` and where it starts; end > 0. */
static size_t code_before(struct view text, size_t end, uint32_t *out_code) {
    size_t at = end - 1;
    while (at > 0 && ((unsigned char)text.data[at] & 0xc0) == 0x80) {
        at--;
    }
    (void)utf8_decode((const unsigned char *)text.data + at, out_code);
    return at;
}

static bool is_in_word(const struct added_set *set, struct view text, size_t start, size_t stop) {
    uint32_t code;
    if (start > 0) {
        (void)code_before(text, start, &code);
        if (unicode_flags(set->unicode, code) & CODE_WORD) {
            return true;
        }
    }
    if (stop < text.size) {
        (void)utf8_decode((const unsigned char *)text.data + stop, &code);
        return (unicode_flags(set->unicode, code) & CODE_WORD) != 0;
    }
    return false;
}

static size_t skip_space_before(const struct added_set *set, struct view text, size_t end) {
    while (end > 0) {
        uint32_t code;
        size_t at = code_before(text, end, &code);
        if ((unicode_flags(set->unicode, code) & CODE_WHITESPACE) == 0) {
            break;
        }
        end = at;
    }
    return end;
}

static size_t skip_space_after(const struct added_set *set, struct view text, size_t at) {
    while (at < text.size) {
        uint32_t code;
        size_t length = utf8_decode((const unsigned char *)text.data + at, &code);
        if ((unicode_flags(set->unicode, code) & CODE_WHITESPACE) == 0) {
            break;
        }
        at += length;
    }
    return at;
}

/* The next place from at on where a token may start; text.size: none. */
static size_t next_start(const struct added_set *set, struct view text, size_t at) {
    if (set->only_start >= 0) {
        const char *found = memchr(text.data + at, set->only_start, text.size - at);
        return found == NULL ? text.size : (size_t)(found - text.data);
    }
    while (at < text.size && !set->starts[(unsigned char)text.data[at]]) {
        at++;
    }
    return at;
}

bool added_next(struct added_cursor *cursor, struct added_match *out) {
    const struct added_set *set = cursor->set;
    struct view text = cursor->text;
    while (set->count > 0 && cursor->search_at < text.size) {
        size_t start = next_start(set, text, cursor->search_at);
        if (start >= text.size) {
            cursor->search_at = start;
            break;
        }
        size_t length = 0;
        struct view rest = {text.data + start, text.size - start};
        uint32_t index = trie_longest(&set->trie, TRIE_ROOT, rest, &length);
        if (index == TRIE_NONE) {
            cursor->search_at = start + 1;
            continue;
        }
        const struct added_token *token = &set->tokens[index];
        size_t stop = start + length;
        cursor->search_at = stop;
        if (token->single_word && is_in_word(set, text, start, stop)) {
            continue;
        }
        if (token->lstrip) {
            start = skip_space_before(set, text, start);
            start = start > cursor->done ? start : cursor->done;
        }
        if (token->rstrip) {
            stop = skip_space_after(set, text, stop);
        }
        *out = (struct added_match){.start = start, .stop = stop, .id = token->id};
        return true;
    }
    return false;
}

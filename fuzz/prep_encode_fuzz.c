/* Any bytes as a text, with added tokens of every kind: a limit must give the start of what no
 * limit gives. */
#include "prep/tokenizer.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char FILE_TEXT[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":2,\"content\":\"[M]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":true},"
    "{\"id\":3,\"content\":\"<\",\"single_word\":false,\"lstrip\":true,\"rstrip\":true,"
    "\"normalized\":false,\"special\":true},"
    "{\"id\":4,\"content\":\"zz\",\"single_word\":true,\"lstrip\":false,\"rstrip\":true,"
    "\"normalized\":true,\"special\":false},"
    "{\"id\":5,\"content\":\" \xc3\x89 \",\"single_word\":false,\"lstrip\":true,"
    "\"rstrip\":true,\"normalized\":true,\"special\":false}],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":null,"
    "\"decoder\":null,\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\","
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":20,\"vocab\":{"
    "\"?\":0,\"a\":1,\"##a\":6,\"aa\":7,\"##b\":8,\"b\":9,\"\xe4\xb8\xad\":10,\",\":11,"
    "\"##\xe3\x80\xae\":12,\"e\":13,\"z\":14,\"##z\":15}}}";

/* With offsets the ids are the same, and a pair of the text with itself is both. */
static void check_offsets(const struct tokenizer *tokenizer, struct view text,
                          const struct encoding *whole, struct arena *arena) {
    struct encoding with, pair;
    struct view decoded;
    const struct encode_options offsets = {.wants_offsets = true};
    const struct encode_options both = {.pair = &text, .wants_offsets = true};
    if (tokenizer_encode(tokenizer, text, &offsets, arena, &with, NULL) != ST_OK
        || tokenizer_encode(tokenizer, text, &both, arena, &pair, NULL) != ST_OK
        || tokenizer_decode(tokenizer, with.ids, with.count, true, arena, &decoded) != ST_OK
        || with.count != whole->count || pair.count != 2 * whole->count) {
        abort();
    }
    for (uint32_t i = 0; i < with.count; i++) {
        if (with.ids[i] != whole->ids[i] || pair.ids[with.count + i] != whole->ids[i]
            || with.offsets[i].start > with.offsets[i].end || with.offsets[i].end > text.size) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct tokenizer *tokenizer; /* loaded once: it is const afterwards */
    if (tokenizer == NULL
        && tokenizer_parse(view_of(FILE_TEXT), "fuzz", &tokenizer, NULL) != ST_OK) {
        abort();
    }
    struct view text = {(const char *)data, size};
    struct arena arena;
    arena_init(&arena);
    struct encoding whole, start;
    if (tokenizer_encode(tokenizer, text, NULL, &arena, &whole, NULL) != ST_OK
        || tokenizer_encode(tokenizer, text, &(struct encode_options){.max_tokens = 5}, &arena,
                            &start, NULL) != ST_OK) {
        abort();
    }
    uint32_t expected = whole.count < 5 ? whole.count : 5;
    if (start.count != expected || start.was_truncated != (whole.count > 5)) {
        abort();
    }
    for (uint32_t i = 0; i < expected; i++) {
        if (start.ids[i] != whole.ids[i]) {
            abort();
        }
    }
    check_offsets(tokenizer, text, &whole, &arena);
    arena_done(&arena);
    return 0;
}

/* Encodes texts for tokenizer_oracle.mjs and post_oracle.mjs:
 *     oracle_prep_encode_texts TOKENIZER TEXTS OUT [REPEATS] [offsets] [pairs] [bare] [decode] [skip]
 * TEXTS is a sequence of (uint32 length, bytes), OUT of (uint32 count, uint32 was_truncated, ids
 * as uint32, type ids as uint32), little endian; a count of 2^32 - 1, and nothing after it: refused.
 * offsets: after the type ids come (uint32 start, uint32 end) and uint32 special of each token;
 * pairs: two texts at a time are a pair; bare: without special tokens; decode: after all that
 * uint32 length and bytes of the text that the ids decode to, skip: without special tokens.
 * Prints the milliseconds that loading took and the seconds of the fastest of REPEATS passes over
 * all texts. One thread. */
#include "base/clock.h"
#include "prep/tokenizer.h"
#include "files.h"

struct mode {
    bool offsets, pairs, bare, decode, skip;
};

static void put_encoding(FILE *out, const struct encoding *encoding) {
    put_u32(out, encoding->count);
    put_u32(out, encoding->was_truncated);
    for (uint32_t i = 0; i < encoding->count; i++) {
        put_u32(out, encoding->ids[i]);
    }
    for (uint32_t i = 0; i < encoding->count; i++) {
        put_u32(out, encoding->type_ids[i]);
    }
    for (uint32_t i = 0; encoding->offsets != NULL && i < encoding->count; i++) {
        put_u32(out, encoding->offsets[i].start);
        put_u32(out, encoding->offsets[i].end);
    }
    for (uint32_t i = 0; encoding->offsets != NULL && i < encoding->count; i++) {
        put_u32(out, encoding->special[i]);
    }
}

static void put_decoded(FILE *out, const struct tokenizer *tokenizer,
                        const struct encoding *encoding, bool skips, struct arena *arena) {
    struct view text;
    if (tokenizer_decode(tokenizer, encoding->ids, encoding->count, skips, arena, &text)
        != ST_OK) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    put_u32(out, (int64_t)text.size);
    put_bytes(out, text.data, text.size);
}

/* The next text; false: there is none. */
static bool next_text(struct view texts, size_t *at, struct view *out) {
    uint32_t length;
    if (*at + sizeof length > texts.size) {
        return false;
    }
    memcpy(&length, texts.data + *at, sizeof length);
    *out = (struct view){texts.data + *at + sizeof length, length};
    *at += sizeof length + length;
    return true;
}

/* One pass over all texts; out NULL: only for the time. Returns nanoseconds. */
static uint64_t encode_all(const struct tokenizer *tokenizer, struct view texts, struct mode mode,
                           FILE *out) {
    struct arena arena;
    arena_init(&arena);
    uint64_t start_ns = mono_ns();
    struct view text, second;
    for (size_t at = 0; next_text(texts, &at, &text);) {
        struct encode_options options = {.wants_offsets = mode.offsets,
                                         .adds_no_special = mode.bare};
        if (mode.pairs && next_text(texts, &at, &second)) {
            options.pair = &second;
        }
        struct encoding encoding;
        enum status status = tokenizer_encode(tokenizer, text, &options, &arena, &encoding, NULL);
        if (status != ST_OK && status != ST_INVALID) {
            fputs("out of memory\n", stderr);
            exit(2);
        }
        if (out != NULL && status == ST_INVALID) {
            put_u32(out, UINT32_MAX);
        } else if (out != NULL) {
            put_encoding(out, &encoding);
            if (mode.decode) {
                put_decoded(out, tokenizer, &encoding, mode.skip, &arena);
            }
        }
        arena_clear(&arena);
    }
    uint64_t spent_ns = mono_ns() - start_ns;
    arena_done(&arena);
    return spent_ns;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s TOKENIZER TEXTS OUT [REPEATS] [offsets] [pairs] [bare] [decode] [skip]\n", argv[0]);
        return 2;
    }
    long repeats = 0;
    struct mode mode = {false};
    for (int i = 4; i < argc; i++) {
        mode.offsets |= strcmp(argv[i], "offsets") == 0;
        mode.pairs |= strcmp(argv[i], "pairs") == 0;
        mode.bare |= strcmp(argv[i], "bare") == 0;
        mode.decode |= strcmp(argv[i], "decode") == 0;
        mode.skip |= strcmp(argv[i], "skip") == 0;
        repeats = i == 4 ? strtol(argv[i], NULL, 10) : repeats;
    }
    struct tokenizer *tokenizer;
    struct err err;
    uint64_t load_start_ns = mono_ns();
    if (tokenizer_load(argv[1], &tokenizer, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double load_ms = (double)(mono_ns() - load_start_ns) / 1e6;
    struct view texts = read_whole(argv[2]);
    FILE *out = fopen(argv[3], "wb");
    if (out == NULL) {
        perror(argv[3]);
        return 2;
    }
    (void)encode_all(tokenizer, texts, mode, out);
    if (fclose(out) != 0) {
        perror(argv[3]);
        return 2;
    }
    uint64_t best_ns = UINT64_MAX;
    for (long i = repeats; i > 0; i--) {
        uint64_t spent_ns = encode_all(tokenizer, texts, mode, NULL);
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
    }
    printf("{\"load_ms\":%.3f,\"seconds\":%.6f}\n", load_ms,
           best_ns == UINT64_MAX ? 0.0 : (double)best_ns / 1e9);
    free((char *)texts.data);
    tokenizer_free(tokenizer);
    return 0;
}

/* Encodes texts for tokenizer_oracle.mjs:
 *     oracle_prep_encode_texts TOKENIZER TEXTS OUT [REPEATS]
 * TEXTS is a sequence of (uint32 length, bytes), OUT of (uint32 count, uint32 was_truncated, ids
 * as uint32, type ids as uint32), little endian. Prints the milliseconds that loading took and
 * the seconds of the fastest of REPEATS passes over all texts. One thread. */
#include "base/clock.h"
#include "prep/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>

static struct view read_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    size_t size = (size_t)ftell(file);
    char *data = malloc(size + 1);
    if (data == NULL || fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, size, file) != size) {
        perror(path);
        exit(2);
    }
    (void)fclose(file);
    return (struct view){data, size};
}

static void put_u32(FILE *out, int64_t value) {
    uint32_t word = (uint32_t)value;
    if (fwrite(&word, sizeof word, 1, out) != 1) {
        perror("write");
        exit(2);
    }
}

static void put_encoding(FILE *out, const struct encoding *encoding) {
    put_u32(out, encoding->count);
    put_u32(out, encoding->was_truncated);
    for (uint32_t i = 0; i < encoding->count; i++) {
        put_u32(out, encoding->ids[i]);
    }
    for (uint32_t i = 0; i < encoding->count; i++) {
        put_u32(out, encoding->type_ids[i]);
    }
}

/* One pass over all texts; out NULL: only for the time. Returns nanoseconds. */
static uint64_t encode_all(const struct tokenizer *tokenizer, struct view texts, FILE *out) {
    struct arena arena;
    arena_init(&arena);
    uint64_t start_ns = mono_ns();
    for (size_t at = 0; at + sizeof(uint32_t) <= texts.size;) {
        uint32_t length;
        memcpy(&length, texts.data + at, sizeof length);
        at += sizeof length;
        struct encoding encoding;
        if (tokenizer_encode(tokenizer, (struct view){texts.data + at, length}, NULL, &arena,
                             &encoding, NULL) != ST_OK) {
            fputs("out of memory\n", stderr);
            exit(2);
        }
        at += length;
        if (out != NULL) {
            put_encoding(out, &encoding);
        }
        arena_clear(&arena);
    }
    uint64_t spent_ns = mono_ns() - start_ns;
    arena_done(&arena);
    return spent_ns;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s TOKENIZER TEXTS OUT [REPEATS]\n", argv[0]);
        return 2;
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
    (void)encode_all(tokenizer, texts, out);
    if (fclose(out) != 0) {
        perror(argv[3]);
        return 2;
    }
    uint64_t best_ns = UINT64_MAX;
    for (long i = argc > 4 ? strtol(argv[4], NULL, 10) : 0; i > 0; i--) {
        uint64_t spent_ns = encode_all(tokenizer, texts, NULL);
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
    }
    printf("{\"load_ms\":%.3f,\"seconds\":%.6f}\n", load_ms,
           best_ns == UINT64_MAX ? 0.0 : (double)best_ns / 1e9);
    free((char *)texts.data);
    tokenizer_free(tokenizer);
    return 0;
}

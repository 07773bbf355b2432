/* One side of perf/tokenizer_speed: a pass over the texts for every line on standard input.
 *
 *     perf_tokenizer_speed TOKENIZER TEXTS
 *
 * TEXTS is a sequence of (uint32 length, bytes), little endian. Prints how long loading took, then
 * for each line the seconds of a pass and the tokens that it gave. One thread; ids only, as a
 * model is served. */
#include "base/clock.h"
#include "prep/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>

static struct view read_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    long size = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *data = size < 0 ? NULL : malloc((size_t)size + 1);
    if (data == NULL || fseek(file, 0, SEEK_SET) != 0
        || fread(data, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        exit(2);
    }
    (void)fclose(file);
    return (struct view){data, (size_t)size};
}

static size_t encode_all(const struct tokenizer *tokenizer, struct view texts,
                         struct arena *arena) {
    size_t tokens = 0;
    for (size_t at = 0; at < texts.size;) {
        uint32_t size;
        struct encoding encoding;
        struct err err;
        memcpy(&size, texts.data + at, sizeof size);
        at += sizeof size;
        if (tokenizer_encode(tokenizer, (struct view){texts.data + at, size}, NULL, arena,
                             &encoding, &err) != ST_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            exit(2);
        }
        tokens += encoding.count;
        at += size;
        arena_clear(arena);
    }
    return tokens;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        (void)fprintf(stderr, "usage: perf_tokenizer_speed TOKENIZER TEXTS\n");
        return 2;
    }
    struct view texts = read_whole(argv[2]);
    struct tokenizer *tokenizer;
    struct err err;
    const uint64_t before_ns = mono_ns();
    if (tokenizer_load(argv[1], &tokenizer, &err) != ST_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    (void)printf("loaded %.3f\n", (double)(mono_ns() - before_ns) / 1e9);
    (void)fflush(stdout);
    struct arena arena;
    arena_init(&arena);
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n') {
            continue;
        }
        const uint64_t start_ns = mono_ns();
        size_t tokens = encode_all(tokenizer, texts, &arena);
        (void)printf("%.6f %zu\n", (double)(mono_ns() - start_ns) / 1e9, tokens);
        (void)fflush(stdout);
    }
    arena_done(&arena);
    tokenizer_free(tokenizer);
    free((char *)texts.data);
    return 0;
}

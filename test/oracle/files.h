/* Files whole and words, for the programs that the oracle scripts drive. Any failure ends the
 * program with 2 and a sentence. */
#ifndef TELLTALE_TEST_ORACLE_FILES_H
#define TELLTALE_TEST_ORACLE_FILES_H

#include "base/view.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The caller frees data. */
static inline struct view read_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    const size_t size = (size_t)ftell(file);
    char *data = malloc(size + 1);
    if (data == NULL || fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, size, file) != size) {
        perror(path);
        exit(2);
    }
    (void)fclose(file);
    return (struct view){data, size};
}

static inline void put_bytes(FILE *out, const void *data, size_t size) {
    if (size > 0 && fwrite(data, size, 1, out) != 1) {
        perror("write");
        exit(2);
    }
}

static inline void put_u32(FILE *out, int64_t value) {
    const uint32_t word = (uint32_t)value;
    put_bytes(out, &word, sizeof word);
}

#endif

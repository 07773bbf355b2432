/* Any bytes as what a client sends for a picture: base64 is read exactly as a decoder that knows
 * nothing but one character after the other reads it. */
#include "prep/image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int value_of(unsigned char c) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *found = c != 0 ? strchr(LETTERS, c) : NULL;
    if (found != NULL) return (int)(found - LETTERS);
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* -1: not base64 */
static long decode(const uint8_t *in, size_t size, uint8_t *out) {
    size_t values = 0, padding = 0, written = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++) {
        if (in[i] == '\r' || in[i] == '\n') continue;
        if (in[i] == '=') {
            padding++;
            continue;
        }
        const int value = value_of(in[i]);
        if (value < 0 || padding > 0) return -1;
        bits = bits << 6 | (unsigned)value;
        values++;
        if (values % 4 != 1) {
            const unsigned shift = 6 - 2 * ((unsigned)(values - 1) % 4);
            out[written++] = (uint8_t)(bits >> shift);
        }
    }
    if (values % 4 == 1 || (padding > 0 && (values % 4 == 0 || values % 4 + padding != 4))) return -1;
    return (long)written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct scratch scratch;
    const struct view sent = {(const char *)data, size};
    struct view file;
    bool was_base64 = false;
    struct err err = {.text = ""};
    const enum status status = image_unwrap(sent, &scratch, &file, &was_base64, &err);
    if (status != ST_OK && (status != ST_INVALID || err.text[0] == '\0')) abort();
    if (status == ST_OK && !was_base64) {
        if (file.data != sent.data || file.size != size) abort();
        return 0;
    }
    const uint8_t *comma = size >= 5 && data[4] == ':' ? memchr(data, ',', size) : NULL;
    const size_t head = comma != NULL ? (size_t)(comma - data) + 1 : 0;
    uint8_t *expected = malloc(size + 1);
    const long length = decode(data + head, size - head, expected);
    if (status == ST_OK
        && (length < 0 || file.size != (size_t)length
            || memcmp(file.data, expected, file.size) != 0)) {
        abort();
    }
    if (status != ST_OK && head == 0 && length >= 0 && !(size >= 5 && data[4] == ':')) abort();
    free(expected);
    return 0;
}

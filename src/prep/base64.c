/* Base64 (base64.h). Pure. Invariant: never writes more than base64_room bytes. Four characters
 * that are all of the alphabet take one test (decode_runs); line ends, padding and mistakes take
 * the slow way, a character at a time. */
#include "prep/base64.h"

enum { BAD = 0xff, SKIP = 0xfe, PAD = 0xfd, NOT_VALUE = 0xc0 };

#define BAD8 BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD
#define BAD32 BAD8, BAD8, BAD8, BAD8
static const unsigned char VALUES[256] = {
    BAD8, BAD, BAD, SKIP, BAD, BAD, SKIP, BAD, BAD, BAD8, BAD8,
    BAD8, BAD, BAD, BAD, 62, BAD, 62, BAD, 63, /* + - / */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, BAD, BAD, BAD, PAD, BAD, BAD,
    BAD, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, BAD, BAD, BAD, BAD, 63, /* _ */
    BAD, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, BAD, BAD, BAD, BAD, BAD,
    BAD32, BAD32, BAD32, BAD32
};

size_t base64_room(size_t text_size) { return text_size / 4 * 3 + 3; }

/* Whole groups of four; stops before the first that has anything else in it. */
static size_t decode_runs(const unsigned char *in, size_t size, unsigned char *out) {
    size_t at = 0;
    for (; at + 4 <= size; at += 4, out += 3) {
        const unsigned a = VALUES[in[at]], b = VALUES[in[at + 1]];
        const unsigned c = VALUES[in[at + 2]], d = VALUES[in[at + 3]];
        if (((a | b | c | d) & NOT_VALUE) != 0) {
            break;
        }
        const unsigned bits = a << 18 | b << 12 | c << 6 | d;
        out[0] = (unsigned char)(bits >> 16);
        out[1] = (unsigned char)(bits >> 8);
        out[2] = (unsigned char)bits;
    }
    return at;
}

/* What is left of a group at the end: 2 or 3 characters, and the padding that belongs to them or
 * none. */
static bool finish(unsigned bits, unsigned count, unsigned padding, unsigned char *out,
                   size_t *size) {
    if (count == 1 || (padding > 0 && count + padding != 4)) {
        return false;
    }
    if (count >= 2) {
        out[(*size)++] = (unsigned char)(count == 2 ? bits >> 4 : bits >> 10);
    }
    if (count == 3) {
        out[(*size)++] = (unsigned char)(bits >> 2);
    }
    return true;
}

bool base64_decode(struct view text, unsigned char *out, size_t *out_size, size_t *out_bad) {
    const unsigned char *in = (const unsigned char *)text.data;
    size_t at = 0, size = 0;
    unsigned bits = 0, count = 0, padding = 0; /* of the group that is not whole yet */
    while (at < text.size) {
        if (count == 0 && padding == 0) {
            const size_t taken = decode_runs(in + at, text.size - at, out + size);
            at += taken;
            size += taken / 4 * 3;
            if (at == text.size) {
                break;
            }
        }
        const unsigned value = VALUES[in[at]];
        if (value == PAD && count >= 2 && count + padding < 4) {
            padding++;
        } else if (value < NOT_VALUE && padding == 0) {
            bits = bits << 6 | value;
            if (++count == 4) {
                out[size++] = (unsigned char)(bits >> 16);
                out[size++] = (unsigned char)(bits >> 8);
                out[size++] = (unsigned char)bits;
                bits = count = 0;
            }
        } else if (value != SKIP) {
            *out_bad = at;
            return false;
        }
        at++;
    }
    *out_bad = text.size;
    if (!finish(bits, count, padding, out, &size)) {
        return false;
    }
    *out_size = size;
    return true;
}

size_t base64_encoded_size(size_t size) { return (size + 2) / 3 * 4; }

void base64_encode(struct view bytes, char *out) {
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)bytes.data;
    for (size_t at = 0; at < bytes.size; at += 3, out += 4) {
        const size_t left = bytes.size - at;
        const unsigned bits = (unsigned)in[at] << 16 | (left > 1 ? (unsigned)in[at + 1] << 8 : 0) |
                              (left > 2 ? in[at + 2] : 0);
        out[0] = LETTERS[bits >> 18];
        out[1] = LETTERS[bits >> 12 & 63];
        out[2] = left > 1 ? LETTERS[bits >> 6 & 63] : '=';
        out[3] = left > 2 ? LETTERS[bits & 63] : '=';
    }
}

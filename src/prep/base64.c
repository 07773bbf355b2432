/* Base64 (base64.h). Pure. Invariant: never writes more than base64_room bytes. Four characters
 * that are all of the alphabet take one test (decode_runs); line ends, padding and mistakes take
 * the slow way, a character at a time. */
#include "prep/base64.h"

enum { BAD = 0xff, SKIP = 0xfe, PAD = 0xfd, NOT_VALUE = 0xc0 };

/* What each byte stands for, wrapped in X. */
#define BAD8(X) X(BAD), X(BAD), X(BAD), X(BAD), X(BAD), X(BAD), X(BAD), X(BAD)
#define BAD32(X) BAD8(X), BAD8(X), BAD8(X), BAD8(X)
#define EIGHT(X, v)                                                                               \
    X((v)), X((v) + 1), X((v) + 2), X((v) + 3), X((v) + 4), X((v) + 5), X((v) + 6), X((v) + 7)
#define ALPHABET(X)                                                                               \
    BAD8(X), X(BAD), X(BAD), X(SKIP), X(BAD), X(BAD), X(SKIP), X(BAD), X(BAD), /* line ends */    \
    BAD8(X), BAD8(X), BAD8(X),                                                                    \
    X(BAD), X(BAD), X(BAD), X(62), X(BAD), X(62), X(BAD), X(63), /* + - / */                      \
    EIGHT(X, 52), X(60), X(61), X(BAD), X(BAD), X(BAD), X(PAD), X(BAD), X(BAD), /* digits, = */   \
    X(BAD), EIGHT(X, 0), EIGHT(X, 8), EIGHT(X, 16), X(24), X(25), /* A to Z */                    \
    X(BAD), X(BAD), X(BAD), X(BAD), X(63), X(BAD), /* _ */                                        \
    EIGHT(X, 26), EIGHT(X, 34), EIGHT(X, 42), X(50), X(51), /* a to z */                          \
    X(BAD), X(BAD), X(BAD), X(BAD), X(BAD),                                                       \
    BAD32(X), BAD32(X), BAD32(X), BAD32(X)

#define AS_IT_IS(v) (v)
static const unsigned char VALUES[256] = {ALPHABET(AS_IT_IS)};

/* The first to fourth character of a group, as what it adds to the three bytes, the first of them
 * lowest; NO_GROUP where it adds nothing that belongs there. */
enum { NO_GROUP = 1 << 24 };
#define GROUP(v, bits) ((v) >= NOT_VALUE ? NO_GROUP : (bits))
#define FIRST(v) GROUP(v, (v) << 2)
#define SECOND(v) GROUP(v, (v) >> 4 | ((v) & 15) << 12)
#define THIRD(v) GROUP(v, (v) >> 2 << 8 | ((v) & 3) << 22)
#define FOURTH(v) GROUP(v, (v) << 16)
static const uint32_t FIRSTS[256] = {ALPHABET(FIRST)}, SECONDS[256] = {ALPHABET(SECOND)};
static const uint32_t THIRDS[256] = {ALPHABET(THIRD)}, FOURTHS[256] = {ALPHABET(FOURTH)};

size_t base64_room(size_t text_size) { return text_size / 4 * 3 + 3; }

/* Whole groups of four; stops before the first that has anything else in it. */
static size_t decode_runs(const unsigned char *in, size_t size, unsigned char *out) {
    size_t at = 0;
    for (; at + 4 <= size; at += 4, out += 3) {
        const uint32_t group = FIRSTS[in[at]] | SECONDS[in[at + 1]] | THIRDS[in[at + 2]]
            | FOURTHS[in[at + 3]];
        if ((group & NO_GROUP) != 0) {
            break;
        }
        out[0] = (unsigned char)group;
        out[1] = (unsigned char)(group >> 8);
        out[2] = (unsigned char)(group >> 16);
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

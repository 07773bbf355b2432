/* UTF-8 in and out. Any thread. Invariant: what is not UTF-8 is found by utf8_valid_prefix
 * before anything else looks, so utf8_decode may trust its input. Ill-formed input is cut as
 * the Unicode standard advises (maximal subparts), like Rust's and the browsers' decoders. */
#include "prep/unicode_table.h"

size_t utf8_decode(const unsigned char *data, uint32_t *out_code) {
    unsigned lead = data[0];
    if (lead < 0x80) {
        *out_code = lead;
        return 1;
    }
    if (lead < 0xe0) {
        *out_code = (lead & 0x1fu) << 6 | (data[1] & 0x3fu);
        return 2;
    }
    if (lead < 0xf0) {
        *out_code = (lead & 0x0fu) << 12 | (data[1] & 0x3fu) << 6 | (data[2] & 0x3fu);
        return 3;
    }
    *out_code = (lead & 0x07u) << 18 | (data[1] & 0x3fu) << 12 | (data[2] & 0x3fu) << 6
                | (data[3] & 0x3fu);
    return 4;
}

size_t utf8_encode(uint32_t code, unsigned char *out) {
    if (code < 0x80) {
        out[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (unsigned char)(0xc0 | code >> 6);
        out[1] = (unsigned char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (unsigned char)(0xe0 | code >> 12);
        out[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (unsigned char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (unsigned char)(0xf0 | code >> 18);
    out[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (unsigned char)(0x80 | (code & 0x3f));
    return 4;
}

/* Bytes of the sequence at data that fit the pattern of a code point; *out_is_whole when that
 * is all of it. At least 1. */
static size_t sequence_length(const unsigned char *data, size_t size, bool *out_is_whole) {
    unsigned lead = data[0];
    size_t need = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3
                  : lead < 0xf5 ? 4 : 0;
    *out_is_whole = false;
    if (need == 0) {
        return 1;
    }
    /* The second byte rules out overlong forms, surrogates and what lies past U+10FFFF. */
    unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    size_t length = 1;
    while (length < need && length < size && data[length] >= low && data[length] <= high) {
        length++;
        low = 0x80;
        high = 0xbf;
    }
    *out_is_whole = length == need;
    return length;
}

size_t utf8_valid_prefix(struct view text) {
    const unsigned char *data = (const unsigned char *)text.data;
    size_t at = 0;
    while (at < text.size) {
        uint64_t eight;
        if (text.size - at >= sizeof eight) {
            memcpy(&eight, data + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        bool is_whole;
        size_t length = sequence_length(data + at, text.size - at, &is_whole);
        if (!is_whole) {
            return at;
        }
        at += length;
    }
    return at;
}

size_t utf8_bad_length(struct view text) {
    bool is_whole;
    return sequence_length((const unsigned char *)text.data, text.size, &is_whole);
}

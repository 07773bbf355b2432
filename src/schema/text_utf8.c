/* Whether bytes are UTF-8. Pure, any thread. Invariant: no byte at or behind the end is read. */
#include "schema/text_utf8.h"

#include <stdint.h>

/* Bytes of the character that begins at text, 0 where none is valid; left: bytes there are. */
static size_t character_size(const unsigned char *text, size_t left) {
    const unsigned char first = text[0];
    if (first < 0x80) {
        return first == 0 ? 0 : 1;
    }
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || left < size) {
        return 0;
    }
    /* The second byte's range is narrower where shorter forms, surrogates or the end lie beyond. */
    const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size;
}

bool text_utf8_valid(struct view text) {
    const unsigned char *bytes = (const unsigned char *)text.data;
    for (size_t i = 0; i < text.size;) {
        const size_t size = character_size(bytes + i, text.size - i);
        if (size == 0) {
            return false;
        }
        i += size;
    }
    return true;
}

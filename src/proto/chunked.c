/* The chunked transfer coding as a state machine over bytes. Any thread; nothing is allocated.
 *
 * Why not llhttp's: 8.1.0 reads chunk extensions without a limit and takes more line ends than
 * the standard does, and the pre-scan of http_head.c does not see trailers.
 *
 * Invariant: the result depends on the bytes alone, not on how they were cut into feeds. */
#include "proto/chunked.h"

#include "proto/http_head.h"

enum state {
    STATE_SIZE,
    STATE_EXTENSION,
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER_START, /* at the first byte of a trailer line or of the last blank line */
    STATE_TRAILER_NAME,
    STATE_TRAILER,
    STATE_TRAILER_LF,
    STATE_LAST_LF,
    STATE_END,
    STATE_BAD
};

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static int fail(struct chunked *chunked, const char *fault) {
    chunked->fault = fault;
    return STATE_BAD;
}

static int take_size(struct chunked *chunked, char c) {
    const int digit = hex_digit(c);
    if (digit >= 0) {
        if (++chunked->digits > 16)
            return fail(chunked, "a chunk's size has more than 16 digits");
        chunked->left = chunked->left << 4 | (uint64_t)digit;
        return STATE_SIZE;
    }
    if (chunked->digits == 0)
        return fail(chunked, "a chunk does not begin with a hexadecimal size");
    if (c == '\r')
        return STATE_SIZE_LF;
    return c == ';' ? STATE_EXTENSION
                    : fail(chunked, "a chunk's size is followed by neither CR nor ';'");
}

/* A byte of an extension or of a trailer line. */
static int take_extra(struct chunked *chunked, char c, int same, int after_cr) {
    const unsigned char byte = (unsigned char)c;
    if (c == '\r')
        return after_cr;
    if ((byte < 0x20 && c != '\t') || byte == 0x7f)
        return fail(chunked, "a chunk extension or trailer holds a bare line feed or another "
                             "control character");
    if (++chunked->extra_bytes > CHUNKED_MAX_EXTRA_BYTES)
        return fail(chunked, "chunk extensions and trailers are larger than 16384 bytes");
    return same;
}

/* Nobody reads trailers; but a line that cannot be one means that somebody else ends the body
 * elsewhere. */
static int take_trailer_name(struct chunked *chunked, char c, bool is_first) {
    if (is_first && c == '\r')
        return STATE_LAST_LF;
    if (is_first && (c == ' ' || c == '\t'))
        return fail(chunked, "a trailer is a continuation line");
    if (http_is_token_char((unsigned char)c))
        return take_extra(chunked, c, STATE_TRAILER_NAME, STATE_BAD);
    if (c != ':' || is_first)
        return fail(chunked, "a trailer is not \"name: value\"");
    return take_extra(chunked, c, STATE_TRAILER, STATE_BAD);
}

static int after_size(struct chunked *chunked) {
    chunked->digits = 0;
    return chunked->left > 0 ? STATE_DATA : STATE_TRAILER_START;
}

static int step(struct chunked *chunked, char c) {
    switch (chunked->state) {
    case STATE_SIZE:
        return take_size(chunked, c);
    case STATE_EXTENSION:
        return take_extra(chunked, c, STATE_EXTENSION, STATE_SIZE_LF);
    case STATE_SIZE_LF:
        return c == '\n' ? after_size(chunked)
                         : fail(chunked, "a chunk's size line holds a bare carriage return");
    case STATE_DATA_CR:
        return c == '\r' ? STATE_DATA_LF : fail(chunked, "a chunk is longer than its size");
    case STATE_DATA_LF:
        return c == '\n' ? STATE_SIZE : fail(chunked, "a chunk is longer than its size");
    case STATE_TRAILER_START:
        return take_trailer_name(chunked, c, true);
    case STATE_TRAILER_NAME:
        return take_trailer_name(chunked, c, false);
    case STATE_TRAILER:
        return take_extra(chunked, c, STATE_TRAILER, STATE_TRAILER_LF);
    case STATE_TRAILER_LF:
        return c == '\n' ? STATE_TRAILER_START
                         : fail(chunked, "a trailer holds a bare carriage return");
    case STATE_LAST_LF:
        return c == '\n' ? STATE_END
                         : fail(chunked, "the last chunk's end holds a bare carriage return");
    default:
        return chunked->state;
    }
}

enum chunked_event chunked_feed(struct chunked *chunked, const char *bytes, size_t size,
                                size_t *out_used, struct view *out_data) {
    size_t i = 0;
    while (i < size && chunked->state < STATE_END) {
        if (chunked->state == STATE_DATA) {
            const size_t n = size - i < chunked->left ? size - i : (size_t)chunked->left;
            *out_data = (struct view){.data = bytes + i, .size = n};
            chunked->left -= n;
            if (chunked->left == 0)
                chunked->state = STATE_DATA_CR;
            *out_used = i + n;
            return CHUNKED_DATA;
        }
        chunked->state = step(chunked, bytes[i++]);
    }
    *out_used = i;
    if (chunked->state == STATE_END)
        return CHUNKED_END;
    return chunked->state == STATE_BAD ? CHUNKED_BAD : CHUNKED_NEED_MORE;
}

/* JSON strings into a buffer: escapes, and UTF-8 that is checked as it is copied. Invariant:
 * what comes out is always valid JSON and valid UTF-8, whatever bytes went in. */
#include "base/buf.h"

/* Length of the well-formed UTF-8 sequence at the start of text (Unicode table 3-7), or 0.
 * out_bad: when 0, how many bytes one U+FFFD stands for (the "maximal subpart"). */
static size_t utf8_sequence(const unsigned char *text, size_t size, size_t *out_bad) {
    const unsigned char lead = text[0];
    *out_bad = 1;
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    /* The second byte's range excludes overlong forms, surrogates and beyond U+10FFFF. */
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < length; i++) {
        if (i >= size || text[i] < low || text[i] > high) {
            *out_bad = i;
            return 0;
        }
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

static void append_escape(struct buf *buf, unsigned char c) {
    static const char HEX[] = "0123456789abcdef";
    static const char *const SHORT[128] = {['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b",
                                           ['\f'] = "\\f", ['\n'] = "\\n",  ['\r'] = "\\r",
                                           ['\t'] = "\\t"};
    if (SHORT[c] != NULL) {
        buf_append(buf, SHORT[c], 2);
        return;
    }
    const char escape[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};
    buf_append(buf, escape, sizeof(escape));
}

void buf_json_string(struct buf *buf, struct view text) {
    const unsigned char *bytes = (const unsigned char *)text.data;
    size_t plain = 0; /* start of the run that is copied as it stands */
    size_t at = 0;
    buf_char(buf, '"');
    while (at < text.size) {
        const unsigned char c = bytes[at];
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
            at++;
            continue;
        }
        size_t bad = 0;
        const bool is_escaped = c < 0x80;
        const size_t length = is_escaped ? 1 : utf8_sequence(bytes + at, text.size - at, &bad);
        if (!is_escaped && length > 0) {
            at += length;
            continue;
        }
        buf_append(buf, bytes + plain, at - plain);
        if (is_escaped) {
            append_escape(buf, c);
        } else {
            buf_append(buf, "\xEF\xBF\xBD", 3);
        }
        at += is_escaped ? 1 : bad;
        plain = at;
    }
    if (at > plain) {
        buf_append(buf, bytes + plain, at - plain);
    }
    buf_char(buf, '"');
}

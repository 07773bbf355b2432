/* Tokens of protobuf's text format, as its C++ reader takes them. Any thread, the lexer's owner.
 * Invariant: a token's text lies inside the given text, and line_start at or before it. Escapes
 * are checked when a string's bytes are asked for. */
#include "schema/text_lexer.h"

#include <stdarg.h>
#include <stdio.h>

void text_lexer_begin(struct text_lexer *lexer, struct view text) {
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* what some editors begin files with */
    const bool has_mark = text.size >= 3 && memcmp(text.data, byte_order_mark, 3) == 0;
    const char *start = text.size == 0 ? "" : text.data + (has_mark ? 3 : 0);
    *lexer = (struct text_lexer){.next = start,
                                 .end = text.size == 0 ? start : text.data + text.size,
                                 .line_start = start,
                                 .line = 1};
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_octal(char c) { return c >= '0' && c <= '7'; }
static int hex_value(char c) {
    return is_digit(c)              ? c - '0'
           : (c >= 'a' && c <= 'f') ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : -1;
}

enum status text_lexer_fault(const struct text_lexer *lexer, struct err *err, const char *format,
                             ...) {
    char sentence[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (char *c = sentence; *c != '\0'; c++) { /* pieces of the text are quoted in it */
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    return err_set(err, ST_INVALID, "line %u, column %u: %s", lexer->token.line,
                   lexer->token.column, sentence);
}

bool text_lexer_is_symbol(const struct text_lexer *lexer, char symbol) {
    return lexer->token.kind == TEXT_SYMBOL && lexer->token.text.data[0] == symbol;
}

static void skip_space(struct text_lexer *lexer) {
    while (lexer->next < lexer->end) {
        const char c = *lexer->next;
        if (c == '#') {
            while (lexer->next < lexer->end && *lexer->next != '\n') {
                lexer->next++;
            }
        } else if (c == '\n') {
            lexer->line_start = ++lexer->next;
            lexer->line++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
            lexer->next++;
        } else {
            return;
        }
    }
}

/* The character at next, '\0' at the end. */
static char peek(const struct text_lexer *lexer) {
    return lexer->next < lexer->end ? *lexer->next : '\0';
}

static void skip_digits(struct text_lexer *lexer) {
    while (is_digit(peek(lexer))) {
        lexer->next++;
    }
}

/* What follows the digits before the point; true when the number is a float. False also where the
 * exponent has no digits, which is_whole tells. */
static bool read_fraction(struct text_lexer *lexer, bool *out_whole) {
    bool is_float = false;
    if (peek(lexer) == '.') {
        lexer->next++;
        is_float = true;
        skip_digits(lexer);
    }
    if (peek(lexer) == 'e' || peek(lexer) == 'E') {
        lexer->next++;
        is_float = true;
        if (peek(lexer) == '-' || peek(lexer) == '+') {
            lexer->next++;
        }
        *out_whole = is_digit(peek(lexer));
        skip_digits(lexer);
    }
    if (peek(lexer) == 'f' || peek(lexer) == 'F') {
        lexer->next++;
        is_float = true;
    }
    return is_float;
}

static enum status read_number(struct text_lexer *lexer, struct err *err) {
    const char *start = lexer->next;
    const char second = lexer->end - start > 1 ? start[1] : '\0';
    lexer->token.kind = TEXT_INTEGER;
    if (*start == '0' && (second == 'x' || second == 'X')) {
        lexer->next += 2;
        if (hex_value(peek(lexer)) < 0) {
            return text_lexer_fault(lexer, err, "0x is followed by no hexadecimal digit");
        }
        while (hex_value(peek(lexer)) >= 0) {
            lexer->next++;
        }
    } else if (*start == '0' && is_digit(second)) {
        while (is_octal(peek(lexer))) {
            lexer->next++;
        }
        if (is_digit(peek(lexer))) {
            return text_lexer_fault(lexer, err, "a number that begins with 0 is octal, and has "
                                                "no digit 8 or 9: leave the 0 away");
        }
    } else {
        skip_digits(lexer);
        bool is_whole = true;
        if (read_fraction(lexer, &is_whole)) {
            lexer->token.kind = TEXT_FLOAT;
        }
        if (!is_whole) {
            return text_lexer_fault(lexer, err, "the exponent has no digits");
        }
    }
    if (peek(lexer) == '.') {
        return text_lexer_fault(lexer, err, "a number has one decimal point at most, and only "
                                            "where it is decimal");
    }
    if (is_letter(peek(lexer))) {
        return text_lexer_fault(lexer, err, "a letter follows a number: put a space between");
    }
    return ST_OK;
}

/* To the closing quote, in the same line. */
static enum status read_string(struct text_lexer *lexer, struct err *err) {
    const char quote = *lexer->next++;
    bool is_line_over = false;
    while (!is_line_over && lexer->next < lexer->end && *lexer->next != quote) {
        const char c = *lexer->next++;
        if (c == '\0') {
            return text_lexer_fault(lexer, err, "the string holds a zero byte: write \\0");
        }
        is_line_over = c == '\n';
        if (c == '\\' && lexer->next < lexer->end && *lexer->next != '\n') {
            lexer->next++;
        }
    }
    if (is_line_over || lexer->next >= lexer->end) {
        return text_lexer_fault(lexer, err, "the string that begins here does not end in its line: "
                                            "%c is missing, or \\n for a new line", quote);
    }
    lexer->next++;
    lexer->token.kind = TEXT_STRING;
    return ST_OK;
}

static enum status read_token(struct text_lexer *lexer, struct err *err) {
    const char c = *lexer->next;
    if (is_letter(c)) {
        lexer->token.kind = TEXT_IDENTIFIER;
        while (is_letter(peek(lexer)) || is_digit(peek(lexer))) {
            lexer->next++;
        }
        return ST_OK;
    }
    if (is_digit(c) || (c == '.' && lexer->end - lexer->next > 1 && is_digit(lexer->next[1]))) {
        return read_number(lexer, err);
    }
    if (c == '"' || c == '\'') {
        return read_string(lexer, err);
    }
    if (c <= ' ' || c > '~') { /* char may be signed: bytes above 0x7f are in neither way */
        return text_lexer_fault(lexer, err,
                                "byte 0x%02x stands outside of a string or a comment",
                                (unsigned)(unsigned char)c);
    }
    lexer->token.kind = TEXT_SYMBOL;
    lexer->next++;
    return ST_OK;
}

enum status text_lexer_next(struct text_lexer *lexer, struct err *err) {
    skip_space(lexer);
    lexer->token = (struct text_token){
        .kind = TEXT_END,
        .text = {.data = lexer->next},
        .line = lexer->line,
        .column = (uint32_t)(lexer->next - lexer->line_start) + 1};
    if (lexer->next >= lexer->end) {
        return ST_OK;
    }
    const char *start = lexer->next;
    const enum status status = read_token(lexer, err);
    lexer->token.text.size = (size_t)(lexer->next - start);
    return status;
}

/* --- strings --- */

static size_t put_utf8(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Reads exactly digits hexadecimal digits at *at; false when they are not there. */
static bool read_hex(const char **at, const char *end, int digits, uint32_t *out) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        if (*at >= end || hex_value(**at) < 0) {
            return false;
        }
        code = code << 4 | (uint32_t)hex_value(*(*at)++);
    }
    *out = code;
    return true;
}

/* \uXXXX and \UXXXXXXXX, at the letter; a surrogate pair is one character. */
static bool unescape_unicode(const char **at, const char *end, char **out) {
    const int digits = *(*at)++ == 'u' ? 4 : 8;
    uint32_t code, low;
    if (!read_hex(at, end, digits, &code)) {
        return false;
    }
    if (code >= 0xd800 && code < 0xdc00) {
        if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') {
            return false;
        }
        *at += 2;
        if (!read_hex(at, end, 4, &low) || low < 0xdc00 || low > 0xdfff) {
            return false;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code > 0x10ffff || (code >= 0xdc00 && code <= 0xdfff)) {
        return false;
    }
    *out += put_utf8(code, *out);
    return true;
}

/* One escape, *at behind its backslash. Never writes more bytes than it reads. */
static bool unescape_one(const char **at, const char *end, char **out) {
    static const char letters[] = "abfnrtv\\?'\"", bytes[] = "\a\b\f\n\r\t\v\\?'\"";
    const char c = **at;
    const char *letter = c == '\0' ? NULL : strchr(letters, c);
    if (letter != NULL) {
        (*at)++;
        *(*out)++ = bytes[letter - letters];
        return true;
    }
    if (c == 'u' || c == 'U') {
        return unescape_unicode(at, end, out);
    }
    unsigned value = 0;
    int digits = 0;
    if (c == 'x' || c == 'X') {
        for ((*at)++; digits < 2 && *at < end && hex_value(**at) >= 0; digits++) {
            value = value << 4 | (unsigned)hex_value(*(*at)++);
        }
    } else {
        for (; digits < 3 && *at < end && is_octal(**at); digits++) {
            value = value << 3 | (unsigned)(*(*at)++ - '0');
        }
    }
    *(*out)++ = (char)value;
    return digits > 0 && value <= 0xff;
}

enum status text_lexer_unescape(const struct text_lexer *lexer, char *out, size_t *out_size,
                                struct err *err) {
    const char *at = lexer->token.text.data + 1;
    const char *end = lexer->token.text.data + lexer->token.text.size - 1;
    char *to = out;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        const char *escape = at++;
        if (at >= end || !unescape_one(&at, end, &to)) {
            const int shown = (int)(end - escape < 10 ? end - escape : 10);
            return text_lexer_fault(lexer, err, "the string has no valid escape at %.*s", shown,
                                    escape);
        }
    }
    *out_size = (size_t)(to - out);
    return ST_OK;
}

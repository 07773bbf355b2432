/* Tokens of protobuf's text format, with the line and column where each begins. Views into the
 * text; no memory of its own. One thread. */
#ifndef TELLTALE_SCHEMA_TEXT_LEXER_H
#define TELLTALE_SCHEMA_TEXT_LEXER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stdint.h>

enum text_token_kind {
    TEXT_END,
    TEXT_IDENTIFIER,
    TEXT_INTEGER, /* decimal, octal (0...) or hexadecimal (0x...); no sign */
    TEXT_FLOAT,   /* decimal, with a point, an exponent or an f */
    TEXT_STRING,  /* quotes included */
    TEXT_SYMBOL   /* one character */
};

struct text_token {
    enum text_token_kind kind;
    struct view text;
    uint32_t line, column; /* from 1; columns are bytes */
};

struct text_lexer {
    const char *next, *end;
    const char *line_start;
    uint32_t line;
    struct text_token token; /* the present one, after text_lexer_next() */
};

/* text must stay. Moves to no token yet: call text_lexer_next(). */
void text_lexer_begin(struct text_lexer *lexer, struct view text);
/* Moves to the next token. ST_INVALID with "line 3, column 7: ..." in err. */
MUST_CHECK enum status text_lexer_next(struct text_lexer *lexer, struct err *err);
/* "line 3, column 7: " and the sentence; for a fault at the present token. */
enum status text_lexer_fault(const struct text_lexer *lexer, struct err *err, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));
bool text_lexer_is_symbol(const struct text_lexer *lexer, char symbol);

/* The bytes that a string token stands for, written to out, which has room for its text. Gives
 * their number. ST_INVALID: an escape that there is not. */
MUST_CHECK enum status text_lexer_unescape(const struct text_lexer *lexer, char *out,
                                           size_t *out_size, struct err *err);

#endif

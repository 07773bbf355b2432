/* JSON Lines for reading: a file in lines, a line in flat members. Reads as it goes, nothing is
 * copied: a trace of a million requests is a gigabyte. Strict in what it needs (one object a
 * line, every member well formed) and indifferent to members it does not know, nested ones too. */
#ifndef TELLTALE_DIAG_JSONL_H
#define TELLTALE_DIAG_JSONL_H

#include "base/status.h"
#include "base/view.h"
#include <stdint.h>
#include <stdio.h>

enum jsonl_kind { JSONL_TEXT, JSONL_NUMBER, JSONL_BOOLEAN, JSONL_NULL, JSONL_NESTED };

struct jsonl_value {
    enum jsonl_kind kind;
    struct view text;   /* as written: without the quotes of a text, escapes still in it */
    uint64_t integer;   /* a number without sign, fraction and exponent that fits */
    bool is_integer;
    bool is_true;
};

/* One line, member by member. */
struct jsonl {
    const char *at, *end;
    const char *problem; /* NULL: none so far; else the end of a sentence, static */
    bool is_begun;
};
void jsonl_begin(struct jsonl *jsonl, struct view line);
/* False at the end of the object, and where the line is broken: then problem says how. */
bool jsonl_next(struct jsonl *jsonl, struct view *out_key, struct jsonl_value *out_value);
/* The value of a number; 0 for everything else. */
double jsonl_double(const struct jsonl_value *value);
/* A text without its escapes, terminated, cut to what out holds. Returns its length. */
size_t jsonl_text(const struct jsonl_value *value, char *out, size_t out_size);

/* A file, line by line. */
struct line_reader {
    FILE *file;
    char *data;
    size_t capacity, begin, end;
    uint64_t number;   /* of the line given last, from 1 */
    bool is_at_end;
};
enum { LINE_MAX_BYTES = 1 << 20 };
/* ST_NOT_FOUND when there is no such file. line_reader_done is allowed after failure. */
MUST_CHECK enum status line_reader_open(struct line_reader *reader, const char *path,
                                        struct err *err);
/* False at the end (*out_status is ST_OK) or when it failed. The line lives until the next call;
 * out_is_whole: it ended in a newline. Empty lines are passed over. */
bool line_reader_next(struct line_reader *reader, struct view *out_line, bool *out_is_whole,
                      enum status *out_status, struct err *err);
void line_reader_done(struct line_reader *reader);

#endif

/* A line of JSON into a struct, by a table of fields; a file of such lines. */
#ifndef TELLTALE_DIAG_RUN_LINE_H
#define TELLTALE_DIAG_RUN_LINE_H

#include "diag/jsonl.h"
#include "diag/run.h"

enum line_kind {
    LINE_U64, LINE_U32, LINE_U8, /* larger numbers are a mistake */
    LINE_FLOAT,                  /* any number, not negative */
    LINE_BOOLEAN,
    LINE_VALUE,                  /* struct jsonl_value, a text: it points into the line */
    LINE_NESTED                  /* likewise, an object or array, as written */
};

struct line_field {
    const char *name;
    enum line_kind kind;
    bool is_needed;
    size_t offset;
};
enum { LINE_FIELDS_MAX = 64 };

/* Members that are not in the table are passed over. */
MUST_CHECK enum status line_read(const struct line_field *fields, size_t count, struct view line,
                                 void *out, struct err *err);
/* Every line of a file to read_line. A last line that does not end in a newline may be broken:
 * it is counted in run->lines_cut. err gets the file's name and the line's number. */
MUST_CHECK enum status line_read_file(const char *path,
                                      enum status (*read_line)(struct run *, struct view,
                                                               struct err *),
                                      struct run *run, struct err *err);

enum { RUN_PATH_SIZE = 4200 };
MUST_CHECK enum status run_path(const char *directory, const char *name, char *out,
                                struct err *err);

#endif

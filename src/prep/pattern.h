/* A pattern that a text is searched for, over and over: a string, or a regular expression as
 * Hugging Face's tokenizers library means it (Oniguruma's syntax). Const after creation; any number
 * of threads, each with a cursor of its own. */
#ifndef TELLTALE_PREP_PATTERN_H
#define TELLTALE_PREP_PATTERN_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>

struct pattern;

enum pattern_kind {
    PATTERN_STRING,        /* the text itself */
    PATTERN_REGEX,         /* by a scanner where there is one for it */
    PATTERN_REGEX_GENERIC, /* never by a scanner: for tests */
};

/* ST_UNSUPPORTED names what in a regular expression would mean something else here, or nothing. */
MUST_CHECK enum status pattern_create(struct view text, enum pattern_kind kind,
                                      struct pattern **out, struct err *err);
void pattern_free(struct pattern *pattern);
/* Every character belongs to a match: nothing lies between two of them. */
bool pattern_matches_all(const struct pattern *pattern);

struct pattern_cursor {
    const struct pattern *pattern;
    void *match_data;
    const unsigned char *data;
    size_t size, at, last_end;
    bool has_match;
};
/* False: no memory. What the cursor needs lies in arena. */
bool pattern_begin(const struct pattern *pattern, struct arena *arena, struct pattern_cursor *out);
/* From now on bytes of this text (valid UTF-8), from its start. */
void pattern_search(struct pattern_cursor *cursor, const unsigned char *data, size_t size);

enum pattern_found {
    PATTERN_MATCH,
    PATTERN_END,
    PATTERN_FAILED, /* no memory, or more steps than a match may take */
};
/* The next match, bytes [*out_start, *out_end); it may be empty, but not right behind another. */
enum pattern_found pattern_next(struct pattern_cursor *cursor, size_t *out_start, size_t *out_end);

#endif

/* Oniguruma's regular expressions in PCRE2's language. Pure; load time. */
#ifndef TELLTALE_PREP_PATTERN_TRANSLATE_H
#define TELLTALE_PREP_PATTERN_TRANSLATE_H

#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>

struct pattern_text {
    char *data; /* the caller frees it, after a failure too */
    size_t size, capacity;
    bool is_out_of_memory;
};

/* has_categories: PCRE2's general categories are those of pattern_sets.h, and may be named.
 * ST_UNSUPPORTED names what cannot be said. */
MUST_CHECK enum status pattern_translate(struct view regex, bool has_categories,
                                         struct pattern_text *out, struct err *err);

#endif

/* Reading members of a tokenizer.json, for the files that read its sections. where stands at the
 * start of an error; every failure names the member. */
#ifndef TELLTALE_PREP_TOKENIZER_READ_H
#define TELLTALE_PREP_TOKENIZER_READ_H

#include "base/status.h"
#include "base/view.h"
#include "prep/dom.h"
#include <stdbool.h>
#include <stdint.h>

/* For "%.*s" of a name from the file: no error needs more of it. */
#define VIEW_SHORT(v) (int)((v).size < 64 ? (v).size : 64), (v).data

/* ST_UNSUPPORTED names the first member that is not in known, which ends with NULL. */
MUST_CHECK enum status read_members(struct json_value object, const char *where,
                                    const char *const *known, struct err *err);
bool read_is_null(struct json_value object, const char *name); /* or not there */
MUST_CHECK enum status read_bool(struct json_value object, const char *where, const char *name,
                                 bool *out, struct err *err);
MUST_CHECK enum status read_u32(struct json_value object, const char *where, const char *name,
                                uint32_t *out, struct err *err);
MUST_CHECK enum status read_string(struct json_value object, const char *where, const char *name,
                                   struct view *out, struct err *err);
/* The member "type" of a section that is not null. */
MUST_CHECK enum status read_type(struct json_value object, const char *where,
                                 struct view *out, struct err *err);

#endif

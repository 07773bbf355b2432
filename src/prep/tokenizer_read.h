/* Shared by the two files that read a tokenizer.json; nobody else includes this. where stands at
 * the start of an error. */
#ifndef TELLTALE_PREP_TOKENIZER_READ_H
#define TELLTALE_PREP_TOKENIZER_READ_H

#include "prep/tokenizer_parts.h"

/* For "%.*s" of a name from the file: no error needs more of it. */
#define VIEW_SHORT(v) (int)((v).size < 64 ? (v).size : 64), (v).data

struct known_names {
    const char *const *known; /* ends with NULL */
    const char *where;
    struct err *err;
};
enum status read_known_name(void *context, struct view name, struct json_value value);

/* ST_UNSUPPORTED names the first member that is not in known. */
MUST_CHECK enum status read_members(struct json_value object, const char *where,
                                    const char *const *known, struct err *err);
bool read_is_null(struct json_value object, const char *name); /* or not there */
MUST_CHECK enum status read_bool(struct json_value object, const char *where, const char *name,
                                 bool *out, struct err *err);
MUST_CHECK enum status read_u32(struct json_value object, const char *where, const char *name,
                                uint32_t *out, struct err *err);
MUST_CHECK enum status read_string(struct json_value object, const char *where, const char *name,
                                   struct view *out, struct err *err);

MUST_CHECK enum status read_model(struct tokenizer *out, struct json_value root,
                                  struct err *err);
/* After the model and the normalizer. */
MUST_CHECK enum status read_added_tokens(struct tokenizer *out, struct json_value root,
                                         struct err *err);

#endif

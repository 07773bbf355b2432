/* A door from C to simdjson's document tree, for the files read at load (tokenizer.json: half a
 * megabyte of vocabulary). Values are views into the document and die with it. */
#ifndef TELLTALE_PREP_DOM_H
#define TELLTALE_PREP_DOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"
#include "base/view.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_document;
struct json_value { /* simdjson's tape reference, unchanged; zeroed: null */
    const void *document;
    size_t index;
};

/* Parses a copy of text. ST_INVALID says where simdjson gave up; *out untouched on failure. */
MUST_CHECK enum status dom_open(struct view text, struct json_document **out,
                                 struct json_value *out_root, struct err *err);
void dom_close(struct json_document *document);

enum json_kind dom_kind_of(struct json_value value);
struct view dom_string(struct json_value value); /* empty unless a string; may hold NUL bytes */
bool dom_bool(struct json_value value);          /* false unless true */
bool dom_u32(struct json_value value, uint32_t *out); /* false unless an integer in range */
bool dom_double(struct json_value value, double *out); /* false unless a number */
size_t dom_count(struct json_value value);       /* elements or members; 0 for the rest */
/* The last member of that name, as serde keeps it; false when value is no object or has none. */
bool dom_member(struct json_value value, const char *name, struct json_value *out);

/* Walks an object or array in the file's order (name is empty in an array). The visit stops at
 * the first status that is not ST_OK and returns it. */
typedef enum status (*dom_visit_fn)(void *context, struct view name, struct json_value value);
MUST_CHECK enum status dom_each(struct json_value value, dom_visit_fn visit, void *context);

#ifdef __cplusplus
}
#endif

#endif

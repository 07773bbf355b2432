/* Protobuf's text format (config.pbtxt) to any message, as protobuf's own C++ reader takes it:
 * comments, field: value, field { }, field < >, field: [1, 2], field [ { }, { } ], separators ; and
 * ',', strings with escapes that join when they follow each other, enums by name or number, maps as
 * entries of key and value, decimal, octal and hexadecimal numbers, floats with f, inf and nan.
 *
 * A byte order mark at the beginning is passed over. Stricter than that reader, on purpose: a
 * singular field given twice is a fault even where the first value was the default, enum numbers
 * must be known, strings must be UTF-8 without zero bytes, an octal escape must fit a byte.
 * Extensions and Any are refused by name.
 *
 * Map entries that lack a value get an empty one, so that ->value is never NULL; of entries with
 * the same key the last one stays. Pure: any thread, the arena's owner. */
#ifndef TELLTALE_SCHEMA_TEXT_FORMAT_H
#define TELLTALE_SCHEMA_TEXT_FORMAT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

enum {
    TEXT_FORMAT_MAX_BYTES = 4 << 20, /* of a text */
    TEXT_FORMAT_MAX_DEPTH = 32       /* messages in messages */
};

/* One field given in the text. path: names from the outermost message on, joined with dots,
 * without list indexes, map keys and the entries' key and value, as in
 * "dynamic_batching.priority_levels". Valid during the call. */
struct text_field {
    const char *path;
    uint32_t line, column; /* of the field's name; of the element in a list of messages */
};

/* Called for each field in the order of the text, a list of messages once an element. */
typedef void (*text_field_fn)(void *context, const struct text_field *field);

/* Reads text into a message of this type, which lives in arena as do all its parts. on_field may
 * be NULL. A fault is ST_INVALID with "line 3, column 7: ..." and a remedy, ST_TOO_LARGE for a text
 * of more than TEXT_FORMAT_MAX_BYTES; out_message is untouched then. */
MUST_CHECK enum status text_format_parse(struct view text, const ProtobufCMessageDescriptor *type,
                                         text_field_fn on_field, void *context,
                                         struct arena *arena, ProtobufCMessage **out_message,
                                         struct err *err);

#endif

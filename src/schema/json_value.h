/* One scalar of JSON to what a field holds. Internal to the reader, json_format_read.c. */
#ifndef TELLTALE_SCHEMA_JSON_VALUE_H
#define TELLTALE_SCHEMA_JSON_VALUE_H

#include "schema/message.h"
#include "base/status.h"
#include <jansson.h>

/* The value of a field that is no message. name: how faults call it. Strings and bytes are the
 * arena's. */
MUST_CHECK enum status json_value_parse(const json_t *json, const ProtobufCFieldDescriptor *field,
                                        const char *name, struct arena *arena,
                                        union message_value *out, struct err *err);
/* The key of a map's entry: a string whatever the key's type is. */
MUST_CHECK enum status json_value_parse_key(const char *key, const ProtobufCFieldDescriptor *field,
                                            const char *name, struct arena *arena,
                                            union message_value *out, struct err *err);

#endif

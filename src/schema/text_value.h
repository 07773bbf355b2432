/* One scalar value of the text format: the tokens at the lexer to what a field holds. Internal to
 * the reader, text_format.c. */
#ifndef TELLTALE_SCHEMA_TEXT_VALUE_H
#define TELLTALE_SCHEMA_TEXT_VALUE_H

#include "schema/message.h"
#include "schema/text_lexer.h"

/* Reads the value of a field that is no message and moves behind it. name: how faults call the
 * field. Strings and bytes are the arena's. */
MUST_CHECK enum status text_value_parse(struct text_lexer *lexer,
                                        const ProtobufCFieldDescriptor *field, const char *name,
                                        struct arena *arena, union message_value *out,
                                        struct err *err);

#endif

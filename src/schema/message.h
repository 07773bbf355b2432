/* Any message by its descriptor: create one, put values into its fields, read them. What the text
 * format and JSON are written with; code that knows its type uses the generated struct instead.
 *
 * Memory is an arena's; nothing is freed one by one. A message belongs to one thread at a time.
 * message_put() is for messages that message_create() made: the arrays of unpacked ones have no
 * room to grow in. */
#ifndef TELLTALE_SCHEMA_MESSAGE_H
#define TELLTALE_SCHEMA_MESSAGE_H

#include "base/arena.h"
#include "base/view.h"
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* One value of any field type, laid out as protobuf-c keeps it in the struct or the array. */
union message_value {
    int32_t i32; /* enums too */
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
    protobuf_c_boolean boolean;
    char *string;
    ProtobufCBinaryData bytes;
    ProtobufCMessage *message;
};

/* An initialised message of this type; NULL when memory is out. */
ProtobufCMessage *message_create(struct arena *arena, const ProtobufCMessageDescriptor *type);

/* The field of this name, or NULL. */
const ProtobufCFieldDescriptor *message_field(const ProtobufCMessageDescriptor *type,
                                              struct view name);
/* The known field name nearest to one that was mistyped, or NULL. typed is terminated. */
const char *message_nearest_field(const ProtobufCMessageDescriptor *type, const char *typed);
const char *message_nearest_enum(const ProtobufCEnumDescriptor *type, const char *typed);

/* A map is a repeated message of two fields, key and value, that the compiler named after the
 * field; the descriptors of protobuf-c do not say so otherwise. */
bool message_is_map(const ProtobufCFieldDescriptor *field);
bool message_is_map_entry(const ProtobufCMessageDescriptor *type);

/* Sets a field, or adds an element to a repeated one. The member of a oneof that was set before is
 * forgotten. False when memory is out. */
bool message_put(struct arena *arena, ProtobufCMessage *message,
                 const ProtobufCFieldDescriptor *field, union message_value value);

/* How many values the field holds: elements of a repeated one; otherwise 0 or 1, where a field
 * without presence (a number, a text outside of a oneof) always holds one. */
size_t message_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The value at index, below message_count(). */
union message_value message_get(const ProtobufCMessage *message,
                                const ProtobufCFieldDescriptor *field, size_t index);
/* The member of field's oneof that is set, field itself included, or NULL. */
const ProtobufCFieldDescriptor *message_oneof_set(const ProtobufCMessage *message,
                                                  const ProtobufCFieldDescriptor *field);

/* The nearest float; infinity for what rounds beyond the largest. */
float message_float_of(double value);

/* Of entries with the same key the last one stays, as everywhere in protobuf, in every map of this
 * message (not of those inside it). Gives the first field that had such entries through out_field
 * (NULL when none had). False when memory is out. */
bool message_keep_last_entries(struct arena *arena, ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor **out_field);

#endif

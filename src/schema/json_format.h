/* Any message to JSON and back, in the form of Triton's /config and /stats: the names of the .proto
 * file, fields without presence always printed, submessages and members of a oneof only where they
 * are set, enums by name, maps as objects (their keys are strings), bytes in base64.
 *
 * 64-bit integers are numbers. Protobuf's own JSON has them in quotes; Triton turns them back to
 * numbers for /config (but for the dims of CUDA graphs and of initial states, and device_id, which
 * it forgets) and writes /stats itself, with numbers. Here all are numbers. Floats that JSON has no
 * number for are "NaN", "Infinity" and "-Infinity".
 *
 * Pure; any thread, the arena's owner. */
#ifndef TELLTALE_SCHEMA_JSON_FORMAT_H
#define TELLTALE_SCHEMA_JSON_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/view.h"
#include <protobuf-c/protobuf-c.h>

/* Appends the message. Strings that are no UTF-8 have U+FFFD for what is not. As everywhere with a
 * buf, look at out->failed at the end. */
void json_format_write(const ProtobufCMessage *message, struct buf *out);

/* Reads a JSON object into a message of this type, which lives in arena. Takes what protobuf's own
 * reader takes: names as in the .proto file or in lowerCamelCase, 64-bit integers as numbers or
 * strings (above 2^63 - 1 only as strings), enums by name in any case or by number, null for a
 * field that is not set, base64 of either alphabet. Unknown names are faults: "input[0].dimz:
 * ModelInput has no such field: did you mean dims?". ST_INVALID or ST_NO_MEMORY, out_message
 * untouched. */
MUST_CHECK enum status json_format_parse(struct view json, const ProtobufCMessageDescriptor *type,
                                         struct arena *arena, ProtobufCMessage **out_message,
                                         struct err *err);

#endif

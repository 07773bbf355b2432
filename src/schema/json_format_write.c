/* Any message to JSON. Pure. Invariant: what is appended is one whole JSON object unless the buffer
 * failed. The way back is json_format_read.c. */
#include "schema/json_format.h"

#include "schema/message.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void write_message(const ProtobufCMessage *message, struct buf *out);

/* The shortest decimal that reads back as the same number. */
static void write_double(double value, bool is_float, struct buf *out) {
    if (isnan(value)) {
        buf_text(out, "\"NaN\"");
        return;
    }
    if (isinf(value)) {
        buf_text(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    if (value == 0 && signbit(value)) {
        buf_text(out, "-0.0"); /* "-0" is read as a whole number, which has no such zero */
        return;
    }
    char text[40];
    for (int precision = is_float ? 6 : 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        const double again = strtod(text, NULL);
        /* As a double, no float may lie beyond the largest: some readers take it for too large. */
        if (is_float ? (double)(float)again == value && fabs(again) <= (double)FLT_MAX
                     : again == value) {
            break;
        }
    }
    buf_text(out, text);
}

static void write_base64(const ProtobufCBinaryData *bytes, struct buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buf_char(out, '"');
    for (size_t i = 0; i < bytes->len; i += 3) {
        const size_t left = bytes->len - i;
        const uint32_t word = (uint32_t)bytes->data[i] << 16 |
                              (left > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)bytes->data[i + 2] : 0);
        buf_char(out, digits[word >> 18]);
        buf_char(out, digits[word >> 12 & 63]);
        buf_char(out, left > 1 ? digits[word >> 6 & 63] : '=');
        buf_char(out, left > 2 ? digits[word & 63] : '=');
    }
    buf_char(out, '"');
}

static void write_enum(const ProtobufCEnumDescriptor *type, int number, struct buf *out) {
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    if (value == NULL) {
        buf_i64(out, number);
    } else {
        buf_printf(out, "\"%s\"", value->name);
    }
}

static void write_value(const ProtobufCFieldDescriptor *field, union message_value value,
                        struct buf *out) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        buf_i64(out, value.i32);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        buf_i64(out, value.i64);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        buf_u64(out, value.u32);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        buf_u64(out, value.u64);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_double((double)value.f32, true, out);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_double(value.f64, false, out);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        buf_text(out, value.boolean ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(field->descriptor, value.i32, out);
        break;
    case PROTOBUF_C_TYPE_STRING:
        buf_json_string(out, view_of(value.string == NULL ? "" : value.string));
        break;
    case PROTOBUF_C_TYPE_BYTES:
        write_base64(&value.bytes, out);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(value.message, out);
        break;
    }
}

static void write_entry(const ProtobufCMessage *entry, struct buf *out) {
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        write_value(key, message_get(entry, key, 0), out);
    } else { /* object keys are strings */
        buf_char(out, '"');
        write_value(key, message_get(entry, key, 0), out);
        buf_char(out, '"');
    }
    buf_char(out, ':');
    if (message_count(entry, value) == 0) {
        buf_text(out, "{}"); /* an entry off the wire may have left its message out */
    } else {
        write_value(value, message_get(entry, value, 0), out);
    }
}

static void write_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        struct buf *out) {
    const size_t count = message_count(message, field);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        write_value(field, message_get(message, field, 0), out);
        return;
    }
    const bool is_map = message_is_map(field);
    buf_char(out, is_map ? '{' : '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_char(out, ',');
        }
        const union message_value value = message_get(message, field, i);
        if (is_map) {
            write_entry(value.message, out);
        } else {
            write_value(field, value, out);
        }
    }
    buf_char(out, is_map ? '}' : ']');
}

static void write_message(const ProtobufCMessage *message, struct buf *out) {
    buf_char(out, '{');
    const char *separator = "";
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->label != PROTOBUF_C_LABEL_REPEATED && message_count(message, field) == 0) {
            continue;
        }
        buf_printf(out, "%s\"%s\":", separator, field->name);
        write_field(message, field, out);
        separator = ",";
    }
    buf_char(out, '}');
}

void json_format_write(const ProtobufCMessage *message, struct buf *out) {
    write_message(message, out);
}

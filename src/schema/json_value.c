/* Scalars of JSON, a reader a kind of type. Any thread, the arena's owner. Invariant: a number that
 * the field cannot hold exactly is a fault, but for the rounding of floats. */
#include "schema/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static enum status expected(struct err *err, const char *name, const char *what) {
    return err_set(err, ST_INVALID, "%s: %s was expected", name, what);
}

/* A sign and decimal digits, all of text. */
static bool parse_digits(const char *text, bool *out_is_negative, uint64_t *out) {
    *out_is_negative = *text == '-';
    text += *out_is_negative;
    uint64_t value = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

/* A whole number as its size and sign; numbers like 1e3 and 2.0 are whole. */
static bool parse_whole(const json_t *json, bool *out_is_negative, uint64_t *out) {
    if (json_is_string(json)) {
        return strlen(json_string_value(json)) == json_string_length(json) &&
               parse_digits(json_string_value(json), out_is_negative, out);
    }
    if (json_is_integer(json)) {
        const int64_t value = json_integer_value(json);
        *out_is_negative = value < 0;
        *out = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
        return true;
    }
    const double real = json_is_real(json) ? json_real_value(json) : 0.5;
    if (floor(real) != real || fabs(real) >= 0x1p64) {
        return false;
    }
    *out_is_negative = real < 0;
    *out = (uint64_t)fabs(real);
    return true;
}

static enum status read_integer(const json_t *json, int64_t least, uint64_t most, const char *name,
                                uint64_t *out, struct err *err) {
    bool is_negative;
    uint64_t size;
    if (!parse_whole(json, &is_negative, &size)) {
        return expected(err, name, "a whole number");
    }
    if (size > (is_negative ? (uint64_t)0 - (uint64_t)least : most)) {
        return err_set(err, ST_INVALID, "%s: the number must be from %lld to %llu", name,
                       (long long)least, (unsigned long long)most);
    }
    *out = is_negative ? (uint64_t)0 - size : size;
    return ST_OK;
}

static bool parse_double(const json_t *json, double *out) {
    if (json_is_number(json)) {
        *out = json_number_value(json);
        return true;
    }
    if (!json_is_string(json)) {
        return false;
    }
    const char *text = json_string_value(json);
    const bool is_word = strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 ||
                         strcmp(text, "-Infinity") == 0;
    if (!is_word &&
        (*text == '\0' || strspn(text, "0123456789+-.eE") != json_string_length(json))) {
        return false;
    }
    char *end;
    *out = strtod(text, &end);
    return *end == '\0';
}

static enum status read_real(const json_t *json, bool is_float, const char *name,
                             union message_value *out, struct err *err) {
    double value;
    if (!parse_double(json, &value)) {
        return expected(err, name, "a number");
    }
    if (!is_float) {
        out->f64 = value;
        return ST_OK;
    }
    out->f32 = message_float_of(value);
    if (isfinite(value) && !isfinite(out->f32)) {
        return err_set(err, ST_INVALID, "%s: the number is too large for a float", name);
    }
    return ST_OK;
}

static enum status read_enum(const json_t *json, const ProtobufCEnumDescriptor *type,
                             const char *name, union message_value *out, struct err *err) {
    if (json_is_integer(json)) {
        const int64_t number = json_integer_value(json);
        if (number < INT32_MIN || number > INT32_MAX ||
            protobuf_c_enum_descriptor_get_value(type, (int)number) == NULL) {
            return err_set(err, ST_INVALID, "%s: %s has no value %lld: %s is one", name,
                           type->short_name, (long long)number, type->values[0].name);
        }
        out->i32 = (int32_t)number;
        return ST_OK;
    }
    if (!json_is_string(json)) {
        return expected(err, name, "an enum's name");
    }
    const char *text = json_string_value(json);
    for (unsigned i = 0; i < type->n_value_names; i++) {
        if (strcasecmp(type->values_by_name[i].name, text) == 0) {
            out->i32 = type->values[type->values_by_name[i].index].value;
            return ST_OK;
        }
    }
    const char *nearest = message_nearest_enum(type, text);
    return err_set(err, ST_INVALID, "%s: %s has no value %.60s: %s %s%s", name, type->short_name,
                   text, nearest != NULL ? "did you mean" : "one is",
                   nearest != NULL ? nearest : type->values[0].name, nearest != NULL ? "?" : "");
}

static int base64_digit(char c) {
    return c >= 'A' && c <= 'Z'     ? c - 'A'
           : c >= 'a' && c <= 'z'   ? c - 'a' + 26
           : c >= '0' && c <= '9'   ? c - '0' + 52
           : c == '+' || c == '-'   ? 62
           : c == '/' || c == '_'   ? 63
                                    : -1;
}

/* Either alphabet, with or without padding. */
static enum status read_base64(const json_t *json, const char *name, struct arena *arena,
                               ProtobufCBinaryData *out, struct err *err) {
    if (!json_is_string(json)) {
        return expected(err, name, "a string of base64");
    }
    const char *text = json_string_value(json);
    size_t size = json_string_length(json);
    while (size > 0 && text[size - 1] == '=') {
        size--;
    }
    uint8_t *bytes = arena_alloc(arena, size / 4 * 3 + 3);
    if (bytes == NULL) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for %zu bytes", name, size);
    }
    uint32_t word = 0;
    unsigned bits = 0;
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        const int digit = base64_digit(text[i]);
        if (digit < 0) {
            return expected(err, name, "base64");
        }
        word = word << 6 | (uint32_t)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[count++] = (uint8_t)(word >> bits);
        }
    }
    if (size % 4 == 1) {
        return expected(err, name, "base64 of a whole number of bytes");
    }
    *out = (ProtobufCBinaryData){.len = count, .data = bytes};
    return ST_OK;
}

static enum status copy_string(const char *text, size_t size, const char *name,
                               struct arena *arena, char **out, struct err *err) {
    *out = arena_copy(arena, (struct view){text, size});
    return *out == NULL ? err_set(err, ST_NO_MEMORY, "%s: no memory for %zu bytes", name, size)
                        : ST_OK;
}

static enum status read_narrow(const json_t *json, bool is_signed, const char *name,
                               union message_value *out, struct err *err) {
    uint64_t bits = 0;
    const enum status status =
        is_signed ? read_integer(json, INT32_MIN, INT32_MAX, name, &bits, err)
                  : read_integer(json, 0, UINT32_MAX, name, &bits, err);
    out->u32 = (uint32_t)bits; /* two's complement: the low half is the number */
    return status;
}

enum status json_value_parse(const json_t *json, const ProtobufCFieldDescriptor *field,
                             const char *name, struct arena *arena, union message_value *out,
                             struct err *err) {
    *out = (union message_value){.u64 = 0};
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_narrow(json, true, name, out, err);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_narrow(json, false, name, out, err);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_integer(json, INT64_MIN, INT64_MAX, name, &out->u64, err);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(json, 0, UINT64_MAX, name, &out->u64, err);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(json, field->type == PROTOBUF_C_TYPE_FLOAT, name, out, err);
    case PROTOBUF_C_TYPE_BOOL:
        out->boolean = json_is_true(json);
        return json_is_boolean(json) ? ST_OK : expected(err, name, "true or false");
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(json, field->descriptor, name, out, err);
    case PROTOBUF_C_TYPE_STRING:
        if (!json_is_string(json)) {
            return expected(err, name, "a string");
        }
        return copy_string(json_string_value(json), json_string_length(json), name, arena,
                           &out->string, err);
    case PROTOBUF_C_TYPE_BYTES:
        return read_base64(json, name, arena, &out->bytes, err);
    default:
        return err_set(err, ST_INTERNAL, "%s: a message where a scalar is read", name);
    }
}

enum status json_value_parse_key(const char *key, const ProtobufCFieldDescriptor *field,
                                 const char *name, struct arena *arena, union message_value *out,
                                 struct err *err) {
    *out = (union message_value){.u64 = 0};
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        return copy_string(key, strlen(key), name, arena, &out->string, err);
    }
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        out->boolean = strcmp(key, "true") == 0;
        return out->boolean || strcmp(key, "false") == 0
                   ? ST_OK
                   : expected(err, name, "a key true or false");
    }
    json_t *text = json_string(key);
    if (text == NULL) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for a key", name);
    }
    const enum status status = json_value_parse(text, field, name, arena, out, err);
    json_decref(text);
    return status;
}

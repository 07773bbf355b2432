/* Scalars of the text format, a reader a kind of type. Any thread. Invariant: when a reader
 * succeeds, the lexer stands at the token behind the value. */
#include "schema/text_value.h"

#include "schema/text_utf8.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct value_reader {
    struct text_lexer *lexer;
    const ProtobufCFieldDescriptor *field;
    const char *name;
    struct arena *arena;
    struct err *err;
};

/* "name: expected what, not 'token'" */
static enum status expected(const struct value_reader *reader, const char *what) {
    const struct text_token *token = &reader->lexer->token;
    const struct view text = {token->text.data, token->text.size < 40 ? token->text.size : 40};
    if (token->kind == TEXT_END) {
        return text_lexer_fault(reader->lexer, reader->err, "%s: %s is missing at the text's end",
                                reader->name, what);
    }
    return text_lexer_fault(reader->lexer, reader->err, "%s: %s was expected, not %.*s",
                            reader->name, what, VIEW_ARGS(text));
}

/* Whole digits of any base as the lexer took them, up to max. */
static bool digits_value(struct view text, uint64_t max, uint64_t *out) {
    unsigned base = 10;
    size_t i = 0;
    if (text.size > 1 && text.data[0] == '0') {
        const bool is_hex = text.data[1] == 'x' || text.data[1] == 'X';
        base = is_hex ? 16 : 8;
        i = is_hex ? 2 : 1;
    }
    uint64_t value = 0;
    for (; i < text.size; i++) {
        const char c = text.data[i];
        const unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        if (digit > max || value > (max - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    *out = value;
    return true;
}

static enum status take_minus(struct value_reader *reader, bool *out_is_negative) {
    *out_is_negative = text_lexer_is_symbol(reader->lexer, '-');
    return *out_is_negative ? text_lexer_next(reader->lexer, reader->err) : ST_OK;
}

/* A whole number from least (0 or below) to most. */
static enum status read_integer(struct value_reader *reader, int64_t least, uint64_t most,
                                uint64_t *out) {
    bool is_negative;
    enum status status = take_minus(reader, &is_negative);
    if (status != ST_OK) {
        return status;
    }
    if (is_negative && least == 0) {
        return expected(reader, "a number that is not negative");
    }
    if (reader->lexer->token.kind != TEXT_INTEGER) {
        return expected(reader, "a whole number");
    }
    uint64_t value;
    /* -least as unsigned: INT64_MIN has no positive. */
    const uint64_t bound = is_negative ? (uint64_t)0 - (uint64_t)least : most;
    if (!digits_value(reader->lexer->token.text, bound, &value)) {
        return text_lexer_fault(reader->lexer, reader->err,
                                "%s: the number must be from %lld to %llu", reader->name,
                                (long long)least, (unsigned long long)most);
    }
    *out = is_negative ? (uint64_t)0 - value : value;
    return text_lexer_next(reader->lexer, reader->err);
}

static bool is_word(const struct text_token *token, const char *word) {
    return token->text.size == strlen(word) && strncasecmp(token->text.data, word,
                                                           token->text.size) == 0;
}

/* The token's text as a double; decimal whole numbers and floats, f allowed behind. */
static bool decimal_value(const struct text_token *token, double *out) {
    char digits[512]; /* more tell no other double from this one, but for a tie's last digit */
    size_t size = token->text.size;
    const char last = size == 0 ? '\0' : token->text.data[size - 1];
    size -= token->kind == TEXT_FLOAT && (last == 'f' || last == 'F');
    const bool is_other_base =
        token->kind == TEXT_INTEGER && size > 1 && token->text.data[0] == '0';
    if (is_other_base || size >= sizeof digits) {
        return false;
    }
    memcpy(digits, token->text.data, size);
    digits[size] = '\0';
    *out = strtod(digits, NULL); /* too large gives infinity, too small 0 */
    return true;
}

static enum status read_double(struct value_reader *reader, double *out) {
    bool is_negative;
    enum status status = take_minus(reader, &is_negative);
    if (status != ST_OK) {
        return status;
    }
    const struct text_token *token = &reader->lexer->token;
    double value;
    if (token->kind == TEXT_INTEGER || token->kind == TEXT_FLOAT) {
        if (!decimal_value(token, &value)) {
            return expected(reader, "a decimal number");
        }
    } else if (token->kind == TEXT_IDENTIFIER &&
               (is_word(token, "inf") || is_word(token, "infinity"))) {
        value = HUGE_VAL;
    } else if (token->kind == TEXT_IDENTIFIER && is_word(token, "nan")) {
        value = (double)NAN;
    } else {
        return expected(reader, "a number");
    }
    *out = is_negative ? -value : value;
    return text_lexer_next(reader->lexer, reader->err);
}

static enum status read_bool(struct value_reader *reader, protobuf_c_boolean *out) {
    const struct text_token *token = &reader->lexer->token;
    uint64_t number;
    if (token->kind == TEXT_INTEGER && digits_value(token->text, 1, &number)) {
        *out = number != 0;
    } else if (token->kind == TEXT_IDENTIFIER && (view_is(token->text, "true") ||
                                                  view_is(token->text, "True") ||
                                                  view_is(token->text, "t"))) {
        *out = 1;
    } else if (token->kind == TEXT_IDENTIFIER && (view_is(token->text, "false") ||
                                                  view_is(token->text, "False") ||
                                                  view_is(token->text, "f"))) {
        *out = 0;
    } else {
        return expected(reader, "true or false");
    }
    return text_lexer_next(reader->lexer, reader->err);
}

static enum status unknown_enum(struct value_reader *reader, struct view text) {
    const ProtobufCEnumDescriptor *type = reader->field->descriptor;
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)(text.size < 60 ? text.size : 60), text.data);
    const char *nearest = message_nearest_enum(type, typed);
    if (nearest != NULL) {
        return text_lexer_fault(reader->lexer, reader->err,
                                "%s: %s has no value %s: did you mean %s?", reader->name,
                                type->short_name, typed, nearest);
    }
    return text_lexer_fault(reader->lexer, reader->err, "%s: %s has no value %s: %s is one",
                            reader->name, type->short_name, typed, type->values[0].name);
}

static enum status read_enum(struct value_reader *reader, int32_t *out) {
    const ProtobufCEnumDescriptor *type = reader->field->descriptor;
    const struct text_token token = reader->lexer->token;
    if (token.kind == TEXT_IDENTIFIER) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", VIEW_ARGS(token.text));
        const ProtobufCEnumValue *value =
            token.text.size >= sizeof name
                ? NULL
                : protobuf_c_enum_descriptor_get_value_by_name(type, name);
        if (value == NULL) {
            return unknown_enum(reader, token.text);
        }
        *out = value->value;
        return text_lexer_next(reader->lexer, reader->err);
    }
    if (token.kind == TEXT_STRING) {
        return expected(reader, "a name without quotes");
    }
    uint64_t number;
    struct text_lexer before = *reader->lexer;
    const enum status status = read_integer(reader, INT32_MIN, INT32_MAX, &number);
    if (status == ST_OK &&
        protobuf_c_enum_descriptor_get_value(type, (int)(int64_t)number) == NULL) {
        reader->lexer = &before; /* the fault is where the number stands */
        return unknown_enum(reader, before.token.text);
    }
    *out = (int32_t)(int64_t)number;
    return status;
}

/* Appends the bytes of the string token at the lexer to the size bytes at *joined, which has room
 * for *capacity. */
static enum status append_piece(struct value_reader *reader, char **joined, size_t *size,
                                size_t *capacity) {
    /* The token's quotes make room for the zero behind. */
    const size_t needed = *size + reader->lexer->token.text.size;
    if (needed > *capacity) {
        *capacity = needed * (*size == 0 ? 1 : 2);
        char *larger = arena_alloc(reader->arena, *capacity);
        if (larger == NULL) {
            return err_set(reader->err, ST_NO_MEMORY, "%s: no memory for a string", reader->name);
        }
        if (*size > 0) {
            memcpy(larger, *joined, *size);
        }
        *joined = larger;
    }
    size_t piece = 0;
    const enum status status =
        text_lexer_unescape(reader->lexer, *joined + *size, &piece, reader->err);
    *size += piece;
    return status;
}

/* String tokens one behind the other are one string. */
static enum status read_bytes(struct value_reader *reader, bool is_text,
                              ProtobufCBinaryData *out) {
    struct text_lexer *lexer = reader->lexer;
    if (lexer->token.kind != TEXT_STRING) {
        return expected(reader, "a string in quotes");
    }
    struct text_lexer start = *lexer;
    char *joined = NULL;
    size_t size = 0, capacity = 0;
    while (lexer->token.kind == TEXT_STRING) {
        enum status status = append_piece(reader, &joined, &size, &capacity);
        status = status == ST_OK ? text_lexer_next(lexer, reader->err) : status;
        if (status != ST_OK) {
            return status;
        }
    }
    if (is_text && !text_utf8_valid((struct view){joined, size})) {
        return text_lexer_fault(&start, reader->err,
                                "%s: the string must be UTF-8 without zero bytes", reader->name);
    }
    joined[size] = '\0';
    *out = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)joined};
    return ST_OK;
}

static enum status read_signed(struct value_reader *reader, bool is_wide,
                               union message_value *out) {
    uint64_t bits;
    const enum status status = is_wide ? read_integer(reader, INT64_MIN, INT64_MAX, &bits)
                                       : read_integer(reader, INT32_MIN, INT32_MAX, &bits);
    if (status == ST_OK) {
        out->i64 = (int64_t)bits;
        if (!is_wide) {
            out->i32 = (int32_t)(int64_t)bits;
        }
    }
    return status;
}

enum status text_value_parse(struct text_lexer *lexer, const ProtobufCFieldDescriptor *field,
                             const char *name, struct arena *arena, union message_value *out,
                             struct err *err) {
    struct value_reader reader = {lexer, field, name, arena, err};
    enum status status;
    uint64_t bits = 0;
    double real = 0;
    *out = (union message_value){.u64 = 0};
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_signed(&reader, false, out);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_signed(&reader, true, out);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        status = read_integer(&reader, 0, UINT32_MAX, &bits);
        out->u32 = (uint32_t)bits;
        return status;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(&reader, 0, UINT64_MAX, &out->u64);
    case PROTOBUF_C_TYPE_FLOAT:
        status = read_double(&reader, &real);
        out->f32 = message_float_of(real);
        return status;
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_double(&reader, &out->f64);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(&reader, &out->boolean);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(&reader, &out->i32);
    case PROTOBUF_C_TYPE_STRING: {
        ProtobufCBinaryData bytes = {.len = 0};
        status = read_bytes(&reader, true, &bytes);
        out->string = (char *)bytes.data;
        return status;
    }
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(&reader, false, &out->bytes);
    default:
        return err_set(err, ST_INTERNAL, "%s: a message where a scalar is read", name);
    }
}

/* Protobuf's text format to messages: a recursive reader over the lexer's tokens. Any thread, the
 * arena's owner. Invariant: at the head of each read_ function the lexer stands at the first token
 * of what is read, at its end at the first token behind. Numbers and strings are text_value.c's. */
#include "schema/text_format.h"

#include "schema/message.h"
#include "schema/text_lexer.h"
#include "schema/text_value.h"
#include <assert.h>
#include <stdio.h>

enum {
    MAX_FIELDS = 64, /* of a message type; the largest of ours has 26 */
    PATH_BYTES = 512
};

struct text_reader {
    struct text_lexer lexer;
    struct arena *arena;
    struct err *err;
    text_field_fn on_field;
    void *context;
    char path[PATH_BYTES]; /* of the field being read */
    size_t path_size;
    unsigned depth;
};

/* Where each field of one message was first given; 0: not yet. */
struct seen {
    uint32_t line[MAX_FIELDS];
};

static enum status read_message(struct text_reader *reader, ProtobufCMessage *message, char end);

static enum status next(struct text_reader *reader) {
    return text_lexer_next(&reader->lexer, reader->err);
}

static enum status no_memory(struct text_reader *reader) {
    return err_set(reader->err, ST_NO_MEMORY, "%s: no memory for the message", reader->path);
}

/* Takes the symbol if it is there. */
static enum status take(struct text_reader *reader, char symbol, bool *out_is_there) {
    *out_is_there = text_lexer_is_symbol(&reader->lexer, symbol);
    return *out_is_there ? next(reader) : ST_OK;
}

static enum status expected(struct text_reader *reader, const char *what) {
    const struct view text = reader->lexer.token.text;
    if (reader->lexer.token.kind == TEXT_END) {
        return text_lexer_fault(&reader->lexer, reader->err, "%s: %s is missing at the text's end",
                                reader->path, what);
    }
    return text_lexer_fault(&reader->lexer, reader->err, "%s: %s was expected, not %.*s",
                            reader->path, what, (int)(text.size < 40 ? text.size : 40), text.data);
}

static void report_field(struct text_reader *reader, uint32_t line, uint32_t column) {
    if (reader->on_field != NULL) {
        const struct text_field field = {.path = reader->path, .line = line, .column = column};
        reader->on_field(reader->context, &field);
    }
}

static enum status read_submessage(struct text_reader *reader,
                                   const ProtobufCFieldDescriptor *field,
                                   union message_value *out) {
    bool is_angle, is_brace;
    enum status status = take(reader, '<', &is_angle);
    is_brace = false;
    if (status == ST_OK && !is_angle) {
        status = take(reader, '{', &is_brace);
    }
    if (status != ST_OK) {
        return status;
    }
    if (!is_angle && !is_brace) {
        return expected(reader, "{");
    }
    if (reader->depth == TEXT_FORMAT_MAX_DEPTH) {
        return text_lexer_fault(&reader->lexer, reader->err,
                                "%s: messages are nested more than %d deep", reader->path,
                                TEXT_FORMAT_MAX_DEPTH);
    }
    out->message = message_create(reader->arena, field->descriptor);
    if (out->message == NULL) {
        return no_memory(reader);
    }
    reader->depth++;
    status = read_message(reader, out->message, is_angle ? '>' : '}');
    reader->depth--;
    return status;
}

/* One value, or one element of a list, put into the message. */
static enum status read_value(struct text_reader *reader, ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field) {
    union message_value value = {.u64 = 0};
    const enum status status =
        field->type == PROTOBUF_C_TYPE_MESSAGE
            ? read_submessage(reader, field, &value)
            : text_value_parse(&reader->lexer, field, reader->path, reader->arena, &value,
                               reader->err);
    if (status != ST_OK) {
        return status;
    }
    return message_put(reader->arena, message, field, value) ? ST_OK : no_memory(reader);
}

/* [a, b, c], at the token behind the bracket. */
static enum status read_list(struct text_reader *reader, ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field) {
    const bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
    bool is_end;
    enum status status = take(reader, ']', &is_end);
    while (status == ST_OK && !is_end) {
        if (is_message && !message_is_map_entry(message->descriptor)) {
            report_field(reader, reader->lexer.token.line, reader->lexer.token.column);
        }
        status = read_value(reader, message, field);
        if (status == ST_OK) {
            status = take(reader, ']', &is_end);
        }
        if (status == ST_OK && !is_end) {
            bool is_comma;
            status = take(reader, ',', &is_comma);
            if (status == ST_OK && !is_comma) {
                return expected(reader, ", or ]");
            }
        }
    }
    return status;
}

/* Refuses what may be there once only; at the token of the field's name. */
static enum status check_first(struct text_reader *reader, const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field, const struct seen *seen) {
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return ST_OK;
    }
    if (seen->line[field - fields] != 0) {
        const bool is_entry = message_is_map_entry(message->descriptor);
        return text_lexer_fault(&reader->lexer, reader->err,
                                "%s%s%s is given a second time; the first is in line %u: keep one",
                                reader->path, is_entry ? "." : "", is_entry ? field->name : "",
                                seen->line[field - fields]);
    }
    const ProtobufCFieldDescriptor *other = message_oneof_set(message, field);
    if (other != NULL) {
        return text_lexer_fault(&reader->lexer, reader->err,
                                "%s excludes %s, which is given in line %u: keep one",
                                reader->path, other->name, seen->line[other - fields]);
    }
    return ST_OK;
}

static enum status unknown_field(struct text_reader *reader,
                                 const ProtobufCMessageDescriptor *type) {
    char typed[64];
    const struct view name = reader->lexer.token.text;
    snprintf(typed, sizeof typed, "%.*s", (int)(name.size < 60 ? name.size : 60), name.data);
    const char *nearest = message_nearest_field(type, typed);
    const char *dot = reader->path_size > 0 ? "." : "";
    if (nearest != NULL) {
        return text_lexer_fault(&reader->lexer, reader->err,
                                "%s%s%s: %s has no such field: did you mean %s?", reader->path, dot,
                                typed, type->short_name, nearest);
    }
    return text_lexer_fault(&reader->lexer, reader->err,
                            "%s%s%s: %s has no such field: correct the name or remove it",
                            reader->path, dot, typed, type->short_name);
}

/* Puts the field's name behind the path; entries of maps do not show in it. */
static enum status enter_path(struct text_reader *reader, const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field) {
    if (message_is_map_entry(message->descriptor)) {
        return ST_OK;
    }
    const int added =
        snprintf(reader->path + reader->path_size, sizeof reader->path - reader->path_size, "%s%s",
                 reader->path_size > 0 ? "." : "", field->name);
    if (added < 0 || (size_t)added >= sizeof reader->path - reader->path_size) {
        return text_lexer_fault(&reader->lexer, reader->err, "messages are nested too deeply");
    }
    reader->path_size += (size_t)added;
    return ST_OK;
}

/* What follows a field's name: the value, the list, and one separator. */
static enum status read_field_values(struct text_reader *reader, ProtobufCMessage *message,
                                     const ProtobufCFieldDescriptor *field,
                                     const struct text_token *name) {
    bool is_there;
    enum status status = take(reader, ':', &is_there);
    if (status == ST_OK && !is_there && field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return expected(reader, ":");
    }
    bool is_list = false;
    if (status == ST_OK && field->label == PROTOBUF_C_LABEL_REPEATED) {
        status = take(reader, '[', &is_list);
    }
    const bool is_list_of_messages = is_list && field->type == PROTOBUF_C_TYPE_MESSAGE;
    if (!is_list_of_messages && !message_is_map_entry(message->descriptor)) {
        report_field(reader, name->line, name->column);
    }
    if (status == ST_OK) {
        status = is_list ? read_list(reader, message, field) : read_value(reader, message, field);
    }
    if (status == ST_OK) {
        status = take(reader, ';', &is_there);
    }
    return status == ST_OK && !is_there ? take(reader, ',', &is_there) : status;
}

static enum status read_field(struct text_reader *reader, ProtobufCMessage *message,
                              struct seen *seen) {
    const struct text_token name = reader->lexer.token;
    if (text_lexer_is_symbol(&reader->lexer, '[')) {
        return text_lexer_fault(&reader->lexer, reader->err,
                                "a field's name was expected: there are no extensions here");
    }
    if (name.kind != TEXT_IDENTIFIER) {
        return text_lexer_fault(&reader->lexer, reader->err,
                                "%s%sa field's name was expected, not %.*s", reader->path,
                                reader->path_size > 0 ? ": " : "",
                                (int)(name.text.size < 40 ? name.text.size : 40), name.text.data);
    }
    const ProtobufCFieldDescriptor *field = message_field(message->descriptor, name.text);
    if (field == NULL) {
        return unknown_field(reader, message->descriptor);
    }
    const size_t outer_size = reader->path_size;
    enum status status = enter_path(reader, message, field);
    if (status == ST_OK) {
        status = check_first(reader, message, field, seen);
    }
    if (status == ST_OK) {
        seen->line[field - message->descriptor->fields] = name.line;
        status = next(reader);
    }
    if (status == ST_OK) {
        status = read_field_values(reader, message, field, &name);
    }
    reader->path_size = outer_size;
    reader->path[outer_size] = '\0';
    return status;
}

/* An entry without a value has an empty one; keys that come again replace. */
static enum status finish_message(struct text_reader *reader, ProtobufCMessage *message) {
    if (message_is_map_entry(message->descriptor)) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[1];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && message_count(message, field) == 0) {
            const union message_value empty = {
                .message = message_create(reader->arena, field->descriptor)};
            if (empty.message == NULL || !message_put(reader->arena, message, field, empty)) {
                return no_memory(reader);
            }
        }
        return ST_OK;
    }
    const ProtobufCFieldDescriptor *ignored;
    return message_keep_last_entries(reader->arena, message, &ignored) ? ST_OK : no_memory(reader);
}

/* The fields of a message up to its closing symbol, or to the text's end where end is '\0'. */
static enum status read_message(struct text_reader *reader, ProtobufCMessage *message, char end) {
    assert(message->descriptor->n_fields <= MAX_FIELDS);
    struct seen seen = {.line = {0}};
    for (;;) {
        if (end != '\0' && text_lexer_is_symbol(&reader->lexer, end)) {
            const enum status status = next(reader);
            return status == ST_OK ? finish_message(reader, message) : status;
        }
        if (reader->lexer.token.kind == TEXT_END) {
            if (end == '\0') {
                return finish_message(reader, message);
            }
            return text_lexer_fault(&reader->lexer, reader->err,
                                    "%s: %c is missing at the text's end", reader->path, end);
        }
        const enum status status = read_field(reader, message, &seen);
        if (status != ST_OK) {
            return status;
        }
    }
}

enum status text_format_parse(struct view text, const ProtobufCMessageDescriptor *type,
                              text_field_fn on_field, void *context, struct arena *arena,
                              ProtobufCMessage **out_message, struct err *err) {
    if (text.size > TEXT_FORMAT_MAX_BYTES) {
        return err_set(err, ST_TOO_LARGE, "the text has %zu bytes, more than %d", text.size,
                       TEXT_FORMAT_MAX_BYTES);
    }
    struct text_reader reader = {
        .arena = arena, .err = err, .on_field = on_field, .context = context};
    text_lexer_begin(&reader.lexer, text);
    ProtobufCMessage *message = message_create(arena, type);
    if (message == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a %s", type->short_name);
    }
    enum status status = next(&reader);
    if (status == ST_OK) {
        status = read_message(&reader, message, '\0');
    }
    if (status == ST_OK) {
        *out_message = message;
    }
    return status;
}

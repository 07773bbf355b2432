/* JSON to any message: Jansson's document walked along the descriptors. Any thread, the arena's
 * owner. Invariant: path names the value being read, and is as long as before when a read_ function
 * has returned ST_OK. One value's bytes are json_value.c's. */
#include "schema/json_format.h"

#include "schema/json_value.h"
#include "schema/message.h"
#include <jansson.h>
#include <stdio.h>

struct json_reader {
    struct arena *arena;
    struct err *err;
    char path[256]; /* for faults: cut where it is too long */
    size_t path_size;
};

static enum status read_object(struct json_reader *reader, json_t *object,
                               ProtobufCMessage *message);

static enum status no_memory(struct json_reader *reader) {
    return err_set(reader->err, ST_NO_MEMORY, "%s: no memory for the message", reader->path);
}

/* Gives the size to come back to. */
static size_t enter(struct json_reader *reader, const char *format, const char *name,
                    size_t index) {
    const size_t before = reader->path_size;
    const size_t room = sizeof reader->path - before;
    const int added = format == NULL
                          ? snprintf(reader->path + before, room, "[%zu]", index)
                          : snprintf(reader->path + before, room, format, name);
    reader->path_size = added < 0                ? before
                        : (size_t)added >= room ? sizeof reader->path - 1
                                                : before + (size_t)added;
    return before;
}

static void leave(struct json_reader *reader, size_t before) {
    reader->path_size = before;
    reader->path[before] = '\0';
}

/* "max_queue_size" is also "maxQueueSize". */
static bool is_camel_of(const char *name, const char *key) {
    for (; *name != '\0'; name++, key++) {
        char c = *name;
        if (c == '_') {
            c = *++name;
            c = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
            if (c == '\0') {
                return *key == '\0';
            }
        }
        if (*key != c) {
            return false;
        }
    }
    return *key == '\0';
}

static const ProtobufCFieldDescriptor *field_of_key(const ProtobufCMessageDescriptor *type,
                                                    const char *key) {
    const ProtobufCFieldDescriptor *field = message_field(type, view_of(key));
    for (unsigned i = 0; field == NULL && i < type->n_fields; i++) {
        field = is_camel_of(type->fields[i].name, key) ? &type->fields[i] : NULL;
    }
    return field;
}

static enum status unknown_key(struct json_reader *reader, const ProtobufCMessageDescriptor *type,
                               const char *key) {
    const char *nearest = message_nearest_field(type, key);
    const char *dot = reader->path_size > 0 ? "." : "";
    if (nearest != NULL) {
        return err_set(reader->err, ST_INVALID, "%s%s%.60s: %s has no such field: did you mean %s?",
                       reader->path, dot, key, type->short_name, nearest);
    }
    return err_set(reader->err, ST_INVALID,
                   "%s%s%.60s: %s has no such field: correct the name or remove it", reader->path,
                   dot, key, type->short_name);
}

/* A value of the field, or an element of its list. */
static enum status read_one(struct json_reader *reader, json_t *json,
                            const ProtobufCFieldDescriptor *field, union message_value *out) {
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return json_value_parse(json, field, reader->path, reader->arena, out, reader->err);
    }
    if (!json_is_object(json)) {
        return err_set(reader->err, ST_INVALID, "%s: an object was expected", reader->path);
    }
    out->message = message_create(reader->arena, field->descriptor);
    return out->message == NULL ? no_memory(reader) : read_object(reader, json, out->message);
}

static enum status read_entry(struct json_reader *reader, ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field, const char *key,
                              json_t *json) {
    const ProtobufCMessageDescriptor *type = field->descriptor;
    ProtobufCMessage *entry = message_create(reader->arena, type);
    if (entry == NULL) {
        return no_memory(reader);
    }
    union message_value name, value = {.u64 = 0};
    enum status status =
        json_value_parse_key(key, &type->fields[0], reader->path, reader->arena, &name,
                             reader->err);
    if (status == ST_OK) {
        status = read_one(reader, json, &type->fields[1], &value);
    }
    if (status != ST_OK) {
        return status;
    }
    const bool is_put = message_put(reader->arena, entry, &type->fields[0], name) &&
                        message_put(reader->arena, entry, &type->fields[1], value) &&
                        message_put(reader->arena, message, field,
                                    (union message_value){.message = entry});
    return is_put ? ST_OK : no_memory(reader);
}

static enum status read_map(struct json_reader *reader, json_t *json, ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field) {
    if (!json_is_object(json)) {
        return err_set(reader->err, ST_INVALID, "%s: an object was expected", reader->path);
    }
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value) {
        const size_t before = enter(reader, "[\"%.60s\"]", key, 0);
        const enum status status = read_entry(reader, message, field, key, value);
        if (status != ST_OK) {
            return status;
        }
        leave(reader, before);
    }
    return ST_OK;
}

static enum status read_list(struct json_reader *reader, json_t *json, ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field) {
    if (!json_is_array(json)) {
        return err_set(reader->err, ST_INVALID, "%s: a list was expected", reader->path);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        const size_t before = enter(reader, NULL, NULL, i);
        union message_value value = {.u64 = 0};
        const enum status status = read_one(reader, json_array_get(json, i), field, &value);
        if (status != ST_OK) {
            return status;
        }
        if (!message_put(reader->arena, message, field, value)) {
            return no_memory(reader);
        }
        leave(reader, before);
    }
    return ST_OK;
}

static enum status read_field(struct json_reader *reader, json_t *json, ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field) {
    if (message_is_map(field)) {
        return read_map(reader, json, message, field);
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return read_list(reader, json, message, field);
    }
    const ProtobufCFieldDescriptor *other = message_oneof_set(message, field);
    if (other != NULL) {
        return err_set(reader->err, ST_INVALID, "%s excludes %s: keep one", reader->path,
                       other->name);
    }
    union message_value value = {.u64 = 0};
    const enum status status = read_one(reader, json, field, &value);
    if (status != ST_OK) {
        return status;
    }
    return message_put(reader->arena, message, field, value) ? ST_OK : no_memory(reader);
}

static enum status read_object(struct json_reader *reader, json_t *object,
                               ProtobufCMessage *message) {
    bool is_given[64] = {false}; /* the same field may come under both its names */
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const ProtobufCFieldDescriptor *field = field_of_key(type, key);
        if (field == NULL) {
            return unknown_key(reader, type, key);
        }
        const size_t before =
            enter(reader, reader->path_size > 0 ? ".%s" : "%s", field->name, 0);
        bool *given = &is_given[(size_t)(field - type->fields) % 64];
        if (*given) {
            return err_set(reader->err, ST_INVALID, "%s is given twice: keep one", reader->path);
        }
        *given = true;
        const enum status status =
            json_is_null(value) ? ST_OK : read_field(reader, value, message, field);
        if (status != ST_OK) {
            return status;
        }
        leave(reader, before);
    }
    return ST_OK;
}

/* Jansson's sentence, with a remedy where it has one. */
static enum status not_json(const json_error_t *fault, struct err *err) {
    if (json_error_code(fault) == json_error_out_of_memory) {
        return err_set(err, ST_NO_MEMORY, "no memory for the JSON document");
    }
    const bool is_big = json_error_code(fault) == json_error_numeric_overflow;
    return err_set(err, ST_INVALID, "the JSON is not valid at line %d, column %d: %s%s",
                   fault->line, fault->column, fault->text,
                   is_big ? ": write the number in quotes" : "");
}

enum status json_format_parse(struct view json, const ProtobufCMessageDescriptor *type,
                              struct arena *arena, ProtobufCMessage **out_message,
                              struct err *err) {
    json_error_t fault;
    json_t *document = json_loadb(json.size == 0 ? "" : json.data, json.size,
                                  JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (document == NULL) {
        return not_json(&fault, err);
    }
    struct json_reader reader = {.arena = arena, .err = err};
    enum status status = ST_OK;
    ProtobufCMessage *message = message_create(arena, type);
    if (message == NULL) {
        status = no_memory(&reader);
    } else if (!json_is_object(document)) {
        status = err_set(err, ST_INVALID, "the JSON is no object, which a %s is", type->short_name);
    } else {
        status = read_object(&reader, document, message);
    }
    json_decref(document);
    if (status == ST_OK) {
        *out_message = message;
    }
    return status;
}

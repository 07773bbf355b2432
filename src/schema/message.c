/* Any message by its descriptor. Any thread, the message's owner. Invariant: a repeated field's
 * array has room for the next power of two of its elements, so that the count alone says when it
 * must grow. Read text_format.c next for a user. */
#include "schema/message.h"

#include "base/nearest.h"
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a member or a quantifier of a message is. */
static void *member(const ProtobufCMessage *message, unsigned offset) {
    return (char *)message + offset;
}

static size_t value_size(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

ProtobufCMessage *message_create(struct arena *arena, const ProtobufCMessageDescriptor *type) {
    ProtobufCMessage *message = arena_zalloc(arena, type->sizeof_message);
    if (message != NULL) {
        type->message_init(message);
    }
    return message;
}

const ProtobufCFieldDescriptor *message_field(const ProtobufCMessageDescriptor *type,
                                              struct view name) {
    char terminated[128];
    if (name.size >= sizeof terminated || memchr(name.data, '\0', name.size) != NULL) {
        return NULL;
    }
    memcpy(terminated, name.data, name.size);
    terminated[name.size] = '\0';
    return protobuf_c_message_descriptor_get_field_by_name(type, terminated);
}

const char *message_nearest_field(const ProtobufCMessageDescriptor *type, const char *typed) {
    struct nearest search;
    nearest_begin(&search, typed);
    for (unsigned i = 0; i < type->n_fields; i++) {
        nearest_try(&search, type->fields[i].name);
    }
    return search.best;
}

const char *message_nearest_enum(const ProtobufCEnumDescriptor *type, const char *typed) {
    struct nearest search;
    nearest_begin(&search, typed);
    for (unsigned i = 0; i < type->n_value_names; i++) {
        nearest_try(&search, type->values_by_name[i].name);
    }
    return search.best;
}

bool message_is_map_entry(const ProtobufCMessageDescriptor *type) {
    const size_t length = strlen(type->short_name);
    return length > 5 && strcmp(type->short_name + length - 5, "Entry") == 0 &&
           type->n_fields == 2 && strcmp(type->fields[0].name, "key") == 0 &&
           strcmp(type->fields[1].name, "value") == 0;
}

bool message_is_map(const ProtobufCFieldDescriptor *field) {
    return field->label == PROTOBUF_C_LABEL_REPEATED && field->type == PROTOBUF_C_TYPE_MESSAGE &&
           message_is_map_entry(field->descriptor);
}

static bool append(struct arena *arena, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field, const union message_value *value) {
    size_t *count = member(message, field->quantifier_offset);
    void **elements = member(message, field->offset);
    const size_t size = value_size(field->type);
    if ((*count & (*count - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
        char *larger = arena_array(arena, *count == 0 ? 1 : *count * 2, size);
        if (larger == NULL) {
            return false;
        }
        if (*count > 0) {
            memcpy(larger, *elements, *count * size);
        }
        *elements = larger;
    }
    memcpy((char *)*elements + *count * size, value, size);
    (*count)++;
    return true;
}

bool message_put(struct arena *arena, ProtobufCMessage *message,
                 const ProtobufCFieldDescriptor *field, union message_value value) {
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return append(arena, message, field, &value);
    }
    memcpy(member(message, field->offset), &value, value_size(field->type));
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        *(uint32_t *)member(message, field->quantifier_offset) = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0) {
        *(protobuf_c_boolean *)member(message, field->quantifier_offset) = 1;
    }
    return true;
}

size_t message_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return *(const size_t *)member(message, field->quantifier_offset);
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        return *(const uint32_t *)member(message, field->quantifier_offset) == field->id;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(void *const *)member(message, field->offset) != NULL;
    }
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0) {
        return *(const protobuf_c_boolean *)member(message, field->quantifier_offset) != 0;
    }
    return 1;
}

union message_value message_get(const ProtobufCMessage *message,
                                const ProtobufCFieldDescriptor *field, size_t index) {
    assert(index < message_count(message, field));
    const size_t size = value_size(field->type);
    const char *from = member(message, field->offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        from = *(const char *const *)(const void *)from + index * size;
    }
    union message_value value = {.u64 = 0};
    memcpy(&value, from, size);
    return value;
}

const ProtobufCFieldDescriptor *message_oneof_set(const ProtobufCMessage *message,
                                                  const ProtobufCFieldDescriptor *field) {
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) {
        return NULL;
    }
    const uint32_t id = *(const uint32_t *)member(message, field->quantifier_offset);
    return id == 0 ? NULL : protobuf_c_message_descriptor_get_field(message->descriptor, id);
}

float message_float_of(double value) {
    const double half_step = 0x1p103; /* half the distance to the float that there is not */
    if (value > (double)FLT_MAX) {
        return value < (double)FLT_MAX + half_step ? FLT_MAX : HUGE_VALF;
    }
    if (value < -(double)FLT_MAX) {
        return value > -(double)FLT_MAX - half_step ? -FLT_MAX : -HUGE_VALF;
    }
    return (float)value;
}

/* --- entries with the same key --- */

struct entry {
    ProtobufCMessage *message;
    size_t place;
};

/* Keys are strings or whole numbers (bool counts as one). */
static int compare_keys(const ProtobufCMessage *a, const ProtobufCMessage *b) {
    const ProtobufCFieldDescriptor *key = &a->descriptor->fields[0];
    const union message_value left = message_get(a, key, 0), right = message_get(b, key, 0);
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        return strcmp(left.string, right.string);
    }
    return left.u64 < right.u64 ? -1 : left.u64 > right.u64; /* any order will do */
}

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    const int order = compare_keys(a->message, b->message);
    return order != 0 ? order : a->place < b->place ? -1 : 1;
}

/* True through out_found when an entry was dropped; those that stay keep their order. */
static bool keep_last_of_map(struct arena *arena, ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field, bool *out_found) {
    size_t *count = member(message, field->quantifier_offset);
    ProtobufCMessage **entries = *(ProtobufCMessage ***)member(message, field->offset);
    struct entry *sorted = arena_array(arena, *count, sizeof *sorted);
    if (sorted == NULL) {
        return false;
    }
    for (size_t i = 0; i < *count; i++) {
        sorted[i] = (struct entry){.message = entries[i], .place = i};
    }
    qsort(sorted, *count, sizeof *sorted, compare_entries);
    bool is_found = false;
    for (size_t i = 0; i + 1 < *count; i++) {
        if (compare_keys(sorted[i].message, sorted[i + 1].message) == 0) {
            entries[sorted[i].place] = NULL;
            is_found = true;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (entries[i] != NULL) {
            entries[kept++] = entries[i];
        }
    }
    *count = is_found ? kept : *count;
    *out_found = is_found;
    return true;
}

bool message_keep_last_entries(struct arena *arena, ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor **out_field) {
    const ProtobufCFieldDescriptor *first = NULL;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!message_is_map(field) || message_count(message, field) < 2) {
            continue;
        }
        bool is_found = false;
        if (!keep_last_of_map(arena, message, field, &is_found)) {
            return false;
        }
        first = first == NULL && is_found ? field : first;
    }
    *out_field = first;
    return true;
}

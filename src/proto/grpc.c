/* Messages, timeouts, texts of gRPC. Pure.
 *
 * Invariant: a reader holds at most twice what it has received of a message, whatever length the
 * prefix promised: a client that has sent five bytes has cost as much.
 * Read next: h2.h (where the bytes come from), infer_pb.h (what is in a message). */
#include "proto/grpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIRST_BYTES = 4096 };

const char *grpc_code_name(unsigned code) {
    static const char *const NAMES[GRPC_CODE_COUNT] = {
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
        "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
        "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
        "UNAUTHENTICATED"};
    return NAMES[code < GRPC_CODE_COUNT ? code : 2];
}

/* ---- messages ---- */

void grpc_reader_init(struct grpc_reader *reader, uint64_t max_bytes, struct grpc_quota *quota) {
    *reader = (struct grpc_reader){.max_bytes = max_bytes, .quota = quota};
}

void grpc_reader_done(struct grpc_reader *reader) {
    struct grpc_message message = grpc_reader_take(reader);
    grpc_message_free(&message, reader->quota);
}

static enum status begin_message(struct grpc_reader *reader, struct err *err) {
    const unsigned char *prefix = reader->prefix;
    if (prefix[0] > 1)
        return err_set(err, ST_INVALID, "a gRPC message begins with 0 or 1 (compressed), not %u",
                       prefix[0]);
    reader->is_compressed = prefix[0] == 1;
    reader->size = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
                   prefix[4];
    if (reader->size > reader->max_bytes)
        return err_set(err, ST_TOO_LARGE,
                       "the message has %zu bytes, the limit is %llu: raise --grpc-max-message",
                       reader->size, (unsigned long long)reader->max_bytes);
    return ST_OK;
}

static enum status grow(struct grpc_reader *reader, size_t needed, struct err *err) {
    if (needed <= reader->capacity)
        return ST_OK;
    size_t capacity = 2 * needed < FIRST_BYTES ? FIRST_BYTES : 2 * needed;
    if (capacity > reader->size)
        capacity = reader->size;
    struct grpc_quota *quota = reader->quota;
    const size_t more = capacity - reader->capacity;
    if (quota->used_bytes + more > quota->limit_bytes)
        return err_set(err, ST_OVERLOADED,
                       "the messages being received and worked on take %llu bytes: raise "
                       "--grpc-memory or send fewer at once",
                       (unsigned long long)quota->used_bytes);
    char *message = realloc(reader->message, capacity);
    if (!message)
        return err_set(err, ST_NO_MEMORY, "no memory for a message of %zu bytes", reader->size);
    reader->message = message;
    reader->capacity = capacity;
    quota->used_bytes += more;
    return ST_OK;
}

static size_t take_prefix(struct grpc_reader *reader, const char *bytes, size_t size) {
    const size_t left = GRPC_PREFIX_BYTES - reader->prefix_used;
    const size_t part = left < size ? left : size;
    memcpy(reader->prefix + reader->prefix_used, bytes, part);
    reader->prefix_used += (uint32_t)part;
    return part;
}

enum grpc_read grpc_reader_feed(struct grpc_reader *reader, const char *bytes, size_t size,
                                size_t *out_used, enum status *out_status, struct err *err) {
    size_t used = 0;
    enum status status = ST_OK;
    if (reader->prefix_used < GRPC_PREFIX_BYTES) {
        used = take_prefix(reader, bytes, size);
        if (reader->prefix_used == GRPC_PREFIX_BYTES)
            status = begin_message(reader, err);
    }
    const bool has_prefix = reader->prefix_used == GRPC_PREFIX_BYTES;
    if (status == ST_OK && has_prefix) {
        const size_t left = reader->size - reader->received;
        const size_t part = left < size - used ? left : size - used;
        status = grow(reader, reader->received + part, err);
        if (status == ST_OK && part) {
            memcpy(reader->message + reader->received, bytes + used, part);
            reader->received += part;
            used += part;
        }
    }
    *out_used = used;
    if (status != ST_OK) {
        *out_status = status;
        return GRPC_FAILED;
    }
    return has_prefix && reader->received == reader->size ? GRPC_MESSAGE : GRPC_NEED_MORE;
}

struct grpc_message grpc_reader_take(struct grpc_reader *reader) {
    const struct grpc_message message = {.bytes = reader->message,
                                         .size = reader->size,
                                         .capacity = reader->capacity,
                                         .is_compressed = reader->is_compressed};
    grpc_reader_init(reader, reader->max_bytes, reader->quota);
    return message;
}

bool grpc_reader_is_idle(const struct grpc_reader *reader) { return reader->prefix_used == 0; }

char *grpc_message_give(struct grpc_message *message, struct grpc_quota *quota) {
    char *bytes = message->bytes;
    quota->used_bytes -= message->capacity;
    *message = (struct grpc_message){.bytes = NULL};
    return bytes;
}

void grpc_message_free(struct grpc_message *message, struct grpc_quota *quota) {
    free(grpc_message_give(message, quota));
}

void grpc_write_prefix(char out[GRPC_PREFIX_BYTES], bool is_compressed, size_t size) {
    out[0] = is_compressed ? 1 : 0;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (char)(size >> (24 - 8 * i));
}

/* ---- headers ---- */

bool grpc_timeout_parse(struct view text, uint64_t *out_ns) {
    static const struct { char unit; uint64_t ns; } UNITS[] = {
        {'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000},
        {'m', 1000000},       {'u', 1000},        {'n', 1}};
    if (text.size < 2 || text.size > 9)
        return false;
    uint64_t number = 0;
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
        if (text.data[text.size - 1] == UNITS[i].unit) {
            *out_ns = number > UINT64_MAX / 2 / UNITS[i].ns ? UINT64_MAX / 2 /* 292 years */
                                                            : number * UNITS[i].ns;
            return true;
        }
    return false;
}

bool grpc_is_content_type(struct view value) {
    static const char TYPE[] = "application/grpc";
    const size_t size = sizeof TYPE - 1;
    if (value.size < size || strncasecmp(value.data, TYPE, size) != 0)
        return false;
    const struct view rest = {value.data + size, value.size - size};
    if (rest.size == 0 || rest.data[0] == ';')
        return true;
    return rest.size >= 6 && strncasecmp(rest.data, "+proto", 6) == 0 &&
           (rest.size == 6 || rest.data[6] == ';');
}

bool grpc_accepts(struct view list, const char *name) {
    const size_t size = strlen(name);
    size_t at = 0;
    while (at < list.size) {
        while (at < list.size && (list.data[at] == ' ' || list.data[at] == ','))
            at++;
        size_t end = at;
        while (end < list.size && list.data[end] != ',' && list.data[end] != ' ')
            end++;
        if (end - at == size && strncasecmp(list.data + at, name, size) == 0)
            return true;
        at = end;
    }
    return false;
}

void grpc_encode_message(struct buf *out, const char *text) {
    static const char HEX[] = "0123456789ABCDEF";
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at >= 0x20 && *at <= 0x7e && *at != '%') {
            buf_char(out, (char)*at);
            continue;
        }
        buf_char(out, '%');
        buf_char(out, HEX[*at >> 4]);
        buf_char(out, HEX[*at & 15]);
    }
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

size_t grpc_decode_message(char *text, size_t size) {
    size_t to = 0;
    for (size_t at = 0; at < size; at++) {
        const int high = text[at] == '%' && at + 2 < size ? hex_value(text[at + 1]) : -1;
        const int low = high >= 0 ? hex_value(text[at + 2]) : -1;
        if (low >= 0) {
            text[to++] = (char)(high * 16 + low);
            at += 2;
        } else {
            text[to++] = text[at];
        }
    }
    return to;
}

/* The wire format of Protocol Buffers. Pure.
 *
 * Invariant: what pb_next gives lies within the reader's bytes.
 * Read next: infer_pb.c. */
#include "proto/pb.h"

#include <string.h>

struct pb_reader pb_reader_of(struct view message) {
    return (struct pb_reader){.at = message.data, .end = message.data + message.size};
}

static bool fail(struct pb_reader *reader) {
    reader->is_malformed = true;
    reader->at = reader->end;
    return false;
}

bool pb_next_varint(struct pb_reader *reader, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end)
            return shift == 0 ? false : fail(reader);
        const unsigned char byte = (unsigned char)*reader->at++;
        if (shift < 63)
            value |= (uint64_t)(byte & 0x7f) << shift;
        else
            value |= (uint64_t)(byte & 1) << 63; /* bits beyond 64 are dropped, as everybody does */
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return fail(reader);
}

static bool read_fixed(struct pb_reader *reader, size_t size, uint64_t *out) {
    if ((size_t)(reader->end - reader->at) < size)
        return fail(reader);
    uint64_t value = 0;
    memcpy(&value, reader->at, size); /* little endian, as we are */
    reader->at += size;
    *out = value;
    return true;
}

bool pb_next(struct pb_reader *reader, struct pb_field *out) {
    uint64_t tag = 0;
    if (!pb_next_varint(reader, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > 536870911)
        return fail(reader);
    *out = (struct pb_field){.number = (uint32_t)(tag >> 3), .wire = (enum pb_wire)(tag & 7)};
    switch (tag & 7) {
    case PB_VARINT:
        return pb_next_varint(reader, &out->value) || fail(reader);
    case PB_FIXED64:
        return read_fixed(reader, 8, &out->value);
    case PB_FIXED32:
        return read_fixed(reader, 4, &out->value);
    case PB_BYTES:
        break;
    default: /* groups went out with version 2 */
        return fail(reader);
    }
    uint64_t size = 0;
    if (!pb_next_varint(reader, &size) || size > (uint64_t)(reader->end - reader->at))
        return fail(reader);
    out->bytes = (struct view){reader->at, (size_t)size};
    reader->at += size;
    return true;
}

size_t pb_varint_size(uint64_t value) {
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

size_t pb_bytes_size(uint32_t number, size_t size) {
    return pb_varint_size((uint64_t)number << 3) + pb_varint_size(size) + size;
}

size_t pb_number_size(uint32_t number, uint64_t value) {
    return pb_varint_size((uint64_t)number << 3) + pb_varint_size(value);
}

void pb_put_varint(struct buf *out, uint64_t value) {
    char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (char)(value | 0x80);
    bytes[size++] = (char)value;
    buf_append(out, bytes, size);
}

void pb_put_head(struct buf *out, uint32_t number, size_t size) {
    pb_put_varint(out, (uint64_t)number << 3 | PB_BYTES);
    pb_put_varint(out, size);
}

void pb_put_bytes(struct buf *out, uint32_t number, struct view bytes) {
    pb_put_head(out, number, bytes.size);
    buf_append(out, bytes.data, bytes.size);
}

void pb_put_number(struct buf *out, uint32_t number, uint64_t value) {
    pb_put_varint(out, (uint64_t)number << 3 | PB_VARINT);
    pb_put_varint(out, value);
}

/* Protocol Buffers' wire format: fields walked and written one by one, for messages whose bytes
 * must not be copied. Whatever is small goes through schema/ instead. Pure. */
#ifndef TELLTALE_PROTO_PB_H
#define TELLTALE_PROTO_PB_H

#include "base/buf.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_reader {
    const char *at, *end;
    bool is_malformed; /* a field that ends behind the end, a group, number 0 */
};
struct pb_field {
    uint32_t number;
    enum pb_wire wire;
    uint64_t value;    /* of the other three */
    struct view bytes; /* of PB_BYTES */
};

struct pb_reader pb_reader_of(struct view message);
/* False at the end, and where what follows is no field (is_malformed). */
bool pb_next(struct pb_reader *reader, struct pb_field *out);
/* One varint of a packed list. */
bool pb_next_varint(struct pb_reader *reader, uint64_t *out);

size_t pb_varint_size(uint64_t value);
/* Of a field with its tag: a length and so many bytes; a number. */
size_t pb_bytes_size(uint32_t number, size_t size);
size_t pb_number_size(uint32_t number, uint64_t value);
void pb_put_varint(struct buf *out, uint64_t value);
/* Tag and length: size bytes are to follow. */
void pb_put_head(struct buf *out, uint32_t number, size_t size);
void pb_put_bytes(struct buf *out, uint32_t number, struct view bytes);
void pb_put_number(struct buf *out, uint32_t number, uint64_t value);

#endif

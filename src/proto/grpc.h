/* gRPC over HTTP/2: messages cut out of a stream's bytes, and what headers and trailers say.
 * Pure. The codes are status_grpc's (base/status.h). */
#ifndef TELLTALE_PROTO_GRPC_H
#define TELLTALE_PROTO_GRPC_H

#include "base/buf.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    GRPC_PREFIX_BYTES = 5, /* compressed or not, and the length, before every message */
    GRPC_CODE_COUNT = 17
};

/* "DEADLINE_EXCEEDED" for 4; "UNKNOWN" beyond the table. */
const char *grpc_code_name(unsigned code);

/* What a message's memory is taken from: shared by all that are being received. */
struct grpc_quota { uint64_t used_bytes, limit_bytes; };

struct grpc_reader {
    uint64_t max_bytes;        /* of a message */
    struct grpc_quota *quota;
    unsigned char prefix[GRPC_PREFIX_BYTES];
    uint32_t prefix_used;
    bool is_compressed;
    char *message;             /* malloc'ed, grown as bytes come in */
    size_t size;               /* as the prefix says */
    size_t received;
    size_t capacity;           /* counted in quota */
};

enum grpc_read { GRPC_NEED_MORE, GRPC_MESSAGE, GRPC_FAILED };

struct grpc_message {
    char *bytes;               /* malloc'ed; NULL where size is 0 */
    size_t size;
    size_t capacity;           /* counted in the quota until grpc_message_free */
    bool is_compressed;
};

void grpc_reader_init(struct grpc_reader *reader, uint64_t max_bytes, struct grpc_quota *quota);
void grpc_reader_done(struct grpc_reader *reader);
/* *out_used bytes are used: all, unless a message became whole. After GRPC_MESSAGE call
 * grpc_reader_take. GRPC_FAILED: *out_status and err say why, the stream is of no more use. */
enum grpc_read grpc_reader_feed(struct grpc_reader *reader, const char *bytes, size_t size,
                                size_t *out_used, enum status *out_status, struct err *err);
/* The message is the caller's; the reader is ready for the next one. */
struct grpc_message grpc_reader_take(struct grpc_reader *reader);
/* Nothing of a message has been seen since the last one. */
bool grpc_reader_is_idle(const struct grpc_reader *reader);
void grpc_message_free(struct grpc_message *message, struct grpc_quota *quota);
/* Gives back what it was counted for: its memory is then somebody else's, who frees it. */
char *grpc_message_give(struct grpc_message *message, struct grpc_quota *quota);

void grpc_write_prefix(char out[GRPC_PREFIX_BYTES], bool is_compressed, size_t size);

/* "100m" in nanoseconds: up to eight digits and one of H M S m u n. False: no timeout. */
bool grpc_timeout_parse(struct view text, uint64_t *out_ns);
/* "application/grpc", "application/grpc+proto", with or without parameters. */
bool grpc_is_content_type(struct view value);
/* Is the name in "identity, gzip"? */
bool grpc_accepts(struct view accept_encoding, const char *name);
/* grpc-message: percent encoding. */
void grpc_encode_message(struct buf *out, const char *text);
/* The other way round, in place; what is no escape stays. Returns the size. */
size_t grpc_decode_message(char *text, size_t size);

#endif

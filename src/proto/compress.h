/* Content codings gzip and deflate, both ways, bytes to bytes. Any thread; no sockets, no clock.
 *
 * What a client sends is hostile until it is shown otherwise: the output has a cap, and so has the
 * work that a byte of input may cause. A stream must end where its input ends: cut short and
 * followed by something else are faults. */
#ifndef TELLTALE_PROTO_COMPRESS_H
#define TELLTALE_PROTO_COMPRESS_H

#include "base/buf.h"
#include "base/status.h"
#include "base/view.h"
#include <stdint.h>

enum coding {
    CODING_IDENTITY,
    CODING_GZIP,    /* RFC 1952, several members too */
    CODING_DEFLATE, /* RFC 1950 (zlib), as RFC 9110 has it; raw RFC 1951 is read too, as
                       browsers do */
    CODING_OTHER    /* anything else, and more than one after another: not supported */
};

/* Of a Content-Encoding header: "gzip", "x-gzip", "deflate", "identity"; data NULL (there is
 * none) or empty: CODING_IDENTITY. */
enum coding coding_of(struct view content_encoding);
/* What an answer may be coded in, of an Accept-Encoding header: gzip or deflate, the one with the
 * higher q, gzip of equal ones; CODING_IDENTITY where neither is wanted, or identity is wanted more.
 * data NULL: CODING_IDENTITY. */
enum coding coding_choose(struct view accept_encoding);
/* "gzip", "deflate", "identity"; static */
const char *coding_name(enum coding coding);

struct inflate_limits {
    uint64_t max_size;  /* of the output, in bytes */
    uint64_t max_ratio; /* output bytes for one of input, looked at beyond 1 MiB; 0: any (deflate
                           itself reaches 1032, and a tensor of zeros comes near that) */
};

/* Decodes all of body. *out_memory: for the caller to free with free(), laid out like the body of
 * an http_message: HTTP_BODY_HEADROOM bytes before *out_body, 64 zero bytes after it, also when it
 * is empty. coding: gzip or deflate.
 *
 * ST_TOO_LARGE: more output than max_size (no more than that was ever held). ST_INVALID: corrupt,
 * cut short, something behind the end, beyond max_ratio, or more blocks and members than its size
 * can explain (each costs time and may bring nothing). ST_NO_MEMORY. Nothing is left to free
 * then. */
MUST_CHECK enum status inflate_body(enum coding coding, struct view body,
                                    struct inflate_limits limits, char **out_memory,
                                    struct view *out_body, struct err *err);

enum { COMPRESS_FASTEST = 1, COMPRESS_USUAL = 6, COMPRESS_SMALLEST = 9 };

/* Appends the coded form of bytes to out. coding: gzip or deflate. Fails with ST_NO_MEMORY only;
 * out then has its old bytes, and failed set where it was out that could not grow. */
MUST_CHECK enum status deflate_body(enum coding coding, int level, struct view bytes,
                                    struct buf *out, struct err *err);

#endif

/* The chunked transfer coding, bytes to views, for http1.c. Strict: hexadecimal sizes of at most
 * 16 digits, CRLF only, extensions and trailers read over and limited. */
#ifndef TELLTALE_PROTO_CHUNKED_H
#define TELLTALE_PROTO_CHUNKED_H

#include "base/view.h"
#include <stdint.h>

enum { CHUNKED_MAX_EXTRA_BYTES = 16384 }; /* extensions and trailers of one message together */

enum chunked_event {
    CHUNKED_NEED_MORE, /* all bytes are used */
    CHUNKED_DATA,      /* *out_data is a piece of the body */
    CHUNKED_END,       /* the message is complete */
    CHUNKED_BAD        /* chunked->fault says why */
};

struct chunked { /* zeroed: ready for a message */
    int state;
    uint32_t digits;      /* 0 again when the size line has ended */
    uint32_t extra_bytes; /* see CHUNKED_MAX_EXTRA_BYTES */
    uint64_t left;        /* of the present chunk */
    const char *fault;    /* static */
};

enum chunked_event chunked_feed(struct chunked *chunked, const char *bytes, size_t size,
                                size_t *out_used, struct view *out_data);

#endif

/* A growable run of bytes: responses, metrics, JSON Lines. On allocation failure the buffer
 * keeps its bytes, further appends are ignored and `failed` is set: check once at the end. */
#ifndef TELLTALE_BASE_BUF_H
#define TELLTALE_BASE_BUF_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data;
    size_t size;
    size_t capacity;
    bool failed;
};

void buf_init(struct buf *buf); /* empty, no allocation */
void buf_done(struct buf *buf); /* frees; NULL-safe on a zeroed buf */
void buf_clear(struct buf *buf);
void buf_reserve(struct buf *buf, size_t extra);
void buf_append(struct buf *buf, const void *bytes, size_t size);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Decimal integers without printf: the request path uses these. */
void buf_u64(struct buf *buf, uint64_t value);
void buf_i64(struct buf *buf, int64_t value);
/* Nanoseconds as milliseconds with three decimals: 1234567 gives "1.235". */
void buf_ms(struct buf *buf, uint64_t ns);
/* A JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void buf_json_string(struct buf *buf, struct view text);
struct view buf_view(const struct buf *buf);

#endif

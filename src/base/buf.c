/* Growable bytes. One thread at a time. Invariant: once failed is set the bytes never change
 * until buf_clear or buf_done, so a half-written answer cannot look like a whole one.
 * JSON strings are in buf_json.c. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

void buf_init(struct buf *buf) { *buf = (struct buf){.data = NULL}; }

void buf_done(struct buf *buf) {
    free(buf->data);
    buf_init(buf);
}

void buf_clear(struct buf *buf) {
    buf->size = 0;
    buf->failed = false;
}

void buf_reserve(struct buf *buf, size_t extra) {
    if (buf->failed || extra <= buf->capacity - buf->size) {
        return;
    }
    size_t wanted;
    if (__builtin_add_overflow(buf->size, extra, &wanted)) {
        buf->failed = true;
        return;
    }
    size_t capacity = buf->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : buf->capacity;
    while (capacity < wanted && !__builtin_mul_overflow(capacity, 2, &capacity)) {
    }
    capacity = capacity < wanted ? wanted : capacity; /* the doubling overflowed */
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        buf->failed = true;
        return;
    }
    buf->data = data;
    buf->capacity = capacity;
}

void buf_append(struct buf *buf, const void *bytes, size_t size) {
    if (size > buf->capacity - buf->size) { /* no call where there is room: headers are many bits */
        buf_reserve(buf, size);
    }
    if (buf->failed || size == 0) {
        return;
    }
    memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
}

void buf_text(struct buf *buf, const char *text) { buf_append(buf, text, strlen(text)); }
void buf_char(struct buf *buf, char c) { buf_append(buf, &c, 1); }

void buf_printf(struct buf *buf, const char *format, ...) {
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    buf_reserve(buf, 64); /* most of what is printed fits, so it is formatted once */
    const size_t space = buf->failed ? 0 : buf->capacity - buf->size;
    const int length = vsnprintf(space == 0 ? NULL : buf->data + buf->size, space, format, args);
    if (length < 0) {
        buf->failed = true;
    } else if ((size_t)length >= space) {
        buf_reserve(buf, (size_t)length + 1);
        if (!buf->failed) {
            vsnprintf(buf->data + buf->size, (size_t)length + 1, format, again);
        }
    }
    if (!buf->failed) {
        buf->size += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void buf_u64(struct buf *buf, uint64_t value) {
    char digits[20];
    size_t start = sizeof(digits);
    do {
        digits[--start] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    buf_append(buf, digits + start, sizeof(digits) - start);
}

void buf_i64(struct buf *buf, int64_t value) {
    if (value < 0) {
        buf_char(buf, '-');
        buf_u64(buf, 0 - (uint64_t)value);
    } else {
        buf_u64(buf, (uint64_t)value);
    }
}

void buf_ms(struct buf *buf, uint64_t ns) {
    uint64_t us = ns / 1000 + (ns % 1000 >= 500 ? 1 : 0);
    char digits[24];
    size_t start = sizeof(digits);
    for (int place = 0; place < 4 || us > 0; place++) { /* at least 0.000 */
        digits[--start] = (char)('0' + us % 10);
        us /= 10;
        if (place == 2) {
            digits[--start] = '.';
        }
    }
    buf_append(buf, digits + start, sizeof(digits) - start);
}

struct view buf_view(const struct buf *buf) {
    return (struct view){.data = buf->data == NULL ? "" : buf->data, .size = buf->size};
}

/* Data types, shapes and BYTES elements. Pure: nothing is allocated or kept. Invariant: no
 * length in a BYTES tensor is believed before it is compared with the bytes that are left. */
#include "base/tensor.h"

#include <stdio.h>

struct dtype_row {
    const char *name;
    size_t size;
};

static const struct dtype_row ROWS[DTYPE_COUNT] = {
#define X(name, bytes) [DTYPE_##name] = {#name, bytes},
    DTYPE_TABLE(X)
#undef X
};

const char *dtype_name(enum dtype dtype) {
    return (unsigned)dtype < DTYPE_COUNT ? ROWS[dtype].name : "unknown";
}

size_t dtype_size(enum dtype dtype) {
    return (unsigned)dtype < DTYPE_COUNT ? ROWS[dtype].size : 0;
}

bool dtype_parse(struct view name, enum dtype *out_dtype) {
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (view_is(name, ROWS[i].name)) {
            *out_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

bool tensor_elements(const int64_t *shape, uint32_t rank, size_t *out_count) {
    bool has_zero = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            return false;
        }
        has_zero = has_zero || shape[i] == 0;
    }
    size_t count = has_zero ? 0 : 1;
    for (uint32_t i = 0; i < rank && !has_zero; i++) {
        if (__builtin_mul_overflow(count, (size_t)shape[i], &count) || count > PTRDIFF_MAX / 8) {
            return false;
        }
    }
    *out_count = count;
    return true;
}

/* The element at *offset, which moves behind it; false when the data ends too early. */
static bool next_element(const char *data, size_t size, size_t *offset, struct view *out) {
    const size_t left = size - *offset;
    if (left < 4) {
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)data + *offset;
    const size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 |
                          (size_t)bytes[3] << 24;
    if (length > left - 4) {
        return false;
    }
    *out = (struct view){.data = data + *offset + 4, .size = length};
    *offset += 4 + length;
    return true;
}

bool tensor_bytes_at(const struct tensor *tensor, size_t index, struct view *out_element) {
    struct view element = {.data = NULL, .size = 0};
    size_t offset = 0;
    for (size_t i = 0; i <= index; i++) {
        if (!next_element(tensor->data, tensor->size, &offset, &element)) {
            return false;
        }
    }
    *out_element = element;
    return true;
}

bool tensor_bytes_valid(const void *data, size_t size, size_t count) {
    struct view element;
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        if (!next_element(data, size, &offset, &element)) {
            return false;
        }
    }
    return offset == size;
}

char *tensor_shape_text(const int64_t *shape, uint32_t rank, char *out, size_t out_size) {
    size_t used = (size_t)snprintf(out, out_size, "[");
    for (uint32_t i = 0; i < rank; i++) {
        char number[24];
        const int length = snprintf(number, sizeof(number), "%s%lld", i == 0 ? "" : ",",
                                    (long long)shape[i]);
        if (used + (size_t)length + sizeof(",...]") > out_size) {
            snprintf(out + used, out_size - used, "%s...]", i == 0 ? "" : ",");
            return out;
        }
        memcpy(out + used, number, (size_t)length + 1);
        used += (size_t)length;
    }
    snprintf(out + used, out_size - used, "]");
    return out;
}

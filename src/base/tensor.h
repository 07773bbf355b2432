/* Data types and tensors, as the Open Inference Protocol names them. */
#ifndef TELLTALE_BASE_TENSOR_H
#define TELLTALE_BASE_TENSOR_H

#include "base/view.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTYPE_TABLE(X)                                                                         \
    X(BOOL, 1) X(UINT8, 1) X(UINT16, 2) X(UINT32, 4) X(UINT64, 8)                              \
    X(INT8, 1) X(INT16, 2) X(INT32, 4) X(INT64, 8)                                             \
    X(FP16, 2) X(FP32, 4) X(FP64, 8) X(BF16, 2) X(BYTES, 0)

enum dtype {
#define X(name, bytes) DTYPE_##name,
    DTYPE_TABLE(X)
#undef X
    DTYPE_COUNT
};

enum { TENSOR_MAX_RANK = 8 };

const char *dtype_name(enum dtype dtype);       /* "FP32" */
size_t dtype_size(enum dtype dtype);            /* bytes an element; 0 for BYTES */
bool dtype_parse(struct view name, enum dtype *out_dtype);

/* A tensor whose bytes belong to somebody else (usually the request's arena). Row major,
 * little endian. BYTES: data is a sequence of elements, each a uint32 length and its bytes,
 * exactly as in the binary tensor extension. */
struct tensor {
    struct view name;
    enum dtype dtype;
    uint32_t rank;
    int64_t shape[TENSOR_MAX_RANK];
    const void *data;
    size_t size; /* bytes */
};

/* Product of shape (1 for a scalar, 0 when any dimension is 0). False on a negative dimension
 * or on more than PTRDIFF_MAX / 8 elements, so that count * dtype_size() never overflows. */
bool tensor_elements(const int64_t *shape, uint32_t rank, size_t *out_count);
/* Element index of a BYTES tensor: walks; false when data ends too early. */
bool tensor_bytes_at(const struct tensor *tensor, size_t index, struct view *out_element);
/* True when a BYTES tensor's data holds exactly count whole elements. */
bool tensor_bytes_valid(const void *data, size_t size, size_t count);
/* "[2,-1,16]" into out (at least 96 bytes; "[1,...]" when it does not fit); returns out. */
char *tensor_shape_text(const int64_t *shape, uint32_t rank, char *out, size_t out_size);

#endif

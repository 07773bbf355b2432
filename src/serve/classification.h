/* Triton's classification extension: the largest elements of an output as strings. Any thread. */
#ifndef TELLTALE_SERVE_CLASSIFICATION_H
#define TELLTALE_SERVE_CLASSIFICATION_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"

struct class_labels { /* by index; one may be empty */
    const char *const *texts;
    uint32_t count;
};

/* The top largest elements of each row (is_batched: the first dimension counts rows; else all is one
 * row), largest first, of equal ones the one with the lower index, NaN last: BYTES of shape [rows, n]
 * or [n], each "value:index" or, where the index has a label, "value:index:label". n is top or the
 * number of elements, if that is less. out is allocated in arena and has scores' name.
 * ST_INVALID: BYTES, or more than INFER_MAX_CLASSES strings. */
MUST_CHECK enum status classification_make(const struct tensor *scores, uint32_t top,
                                           bool is_batched, struct class_labels labels,
                                           struct arena *arena, struct tensor *out,
                                           struct err *err);

#endif

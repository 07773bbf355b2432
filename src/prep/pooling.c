/* See pooling.h. Any thread; no state. Sums are in double, so that a mean over 512 tokens is the
 * same to the last bit or two whatever the order. */
#include "prep/pooling.h"

#include <math.h>
#include <string.h>

static bool is_real(const int64_t *mask, size_t at) { return mask == NULL || mask[at] != 0; }

/* A strip of columns at a time: the sums fit the first cache, and rows are read in their order. */
static void mean(const float *hidden, size_t length, size_t size, const int64_t *mask, float *out) {
    enum { COLUMNS = 64 };
    size_t count = 0;
    for (size_t t = 0; t < length; t++) count += is_real(mask, t);
    for (size_t from = 0; from < size; from += COLUMNS) {
        const size_t width = size - from < COLUMNS ? size - from : COLUMNS;
        double sums[COLUMNS] = {0};
        for (size_t t = 0; t < length; t++) {
            if (!is_real(mask, t)) continue;
            const float *row = hidden + t * size + from;
            for (size_t c = 0; c < width; c++) sums[c] += row[c];
        }
        for (size_t c = 0; c < width; c++)
            out[from + c] = count > 0 ? (float)(sums[c] / (double)count) : 0;
    }
}

static void copy_token(const float *hidden, size_t length, size_t at, size_t size, float *out) {
    if (at < length) memcpy(out, hidden + at * size, size * sizeof *out);
    else memset(out, 0, size * sizeof *out);
}

static size_t last_real(size_t length, const int64_t *mask) {
    for (size_t t = length; t-- > 0;)
        if (is_real(mask, t)) return t;
    return length;
}

static size_t first_real(size_t length, const int64_t *mask) {
    for (size_t t = 0; t < length; t++) /* not 0 where rows are filled up on the left */
        if (is_real(mask, t)) return t;
    return length;
}

static void normalize(float *vector, size_t size) {
    double sum = 0;
    for (size_t i = 0; i < size; i++) sum += (double)vector[i] * vector[i];
    if (sum == 0) return;
    const double factor = 1 / sqrt(sum);
    for (size_t i = 0; i < size; i++) vector[i] = (float)(vector[i] * factor);
}

void pool_tokens(enum pooling kind, const float *hidden, size_t length, size_t size,
                 const int64_t *mask, bool normalizes, float *out) {
    switch (kind) {
    case POOLING_MEAN: mean(hidden, length, size, mask, out); break;
    case POOLING_CLS: copy_token(hidden, length, first_real(length, mask), size, out); break;
    case POOLING_LAST: copy_token(hidden, length, last_real(length, mask), size, out); break;
    case POOLING_NONE: copy_token(hidden, 1, 0, size, out); break;
    }
    if (normalizes) normalize(out, size);
}

/* See activation.h. Any thread; no state. Invariant: softmax's largest exponent is exp(0), so that
 * no logit overflows; ties go to the lower index everywhere. */
#include "prep/activation.h"

#include <math.h>
#include <string.h>

size_t best_of(const float *values, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (values[i] > values[best] || isnan(values[best])) best = i;
    return best;
}

static void softmax(const float *in, size_t count, float *out) {
    const float largest = count > 0 ? in[best_of(in, count)] : 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        /* The difference of two equal infinities is no number; they are as likely as can be. */
        out[i] = in[i] == largest ? 1.0f : expf(in[i] - largest);
        sum += out[i];
    }
    for (size_t i = 0; i < count; i++) out[i] = (float)(out[i] / sum);
}

static float sigmoid(float x) {
    if (x >= 0) return 1.0f / (1.0f + expf(-x));
    const float e = expf(x); /* exp(-x) would overflow */
    return e / (1.0f + e);
}

void activate(enum activation kind, const float *in, size_t count, float *out) {
    switch (kind) {
    case ACTIVATION_SOFTMAX: softmax(in, count, out); break;
    case ACTIVATION_SIGMOID:
        for (size_t i = 0; i < count; i++) out[i] = sigmoid(in[i]);
        break;
    case ACTIVATION_NONE:
        if (out != in && count > 0) memmove(out, in, count * sizeof *out);
        break;
    }
}

/* Does a come before b? Not-a-number comes last. */
static int is_better(const float *values, uint32_t a, uint32_t b) {
    if (isnan(values[a]) || isnan(values[b])) {
        if (isnan(values[a]) != isnan(values[b])) return isnan(values[b]);
        return a < b;
    }
    if (values[a] != values[b]) return values[a] > values[b];
    return a < b;
}

/* heap[0] is the worst of those kept. */
static void sift_down(const float *values, uint32_t *heap, size_t size, size_t at) {
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < size; child++)
            if (is_better(values, heap[worst], heap[child])) worst = child;
        if (worst == at) return;
        const uint32_t moved = heap[at];
        heap[at] = heap[worst];
        heap[worst] = moved;
        at = worst;
    }
}

void top_k(const float *values, size_t count, size_t k, uint32_t *out_indices) {
    uint32_t *heap = out_indices;
    k = k < count ? k : count;
    if (k == 0) return;
    for (size_t i = 0; i < k; i++) heap[i] = (uint32_t)i;
    for (size_t i = k / 2; i-- > 0;) sift_down(values, heap, k, i);
    for (size_t i = k; i < count; i++) {
        if (!is_better(values, (uint32_t)i, heap[0])) continue;
        heap[0] = (uint32_t)i;
        sift_down(values, heap, k, 0);
    }
    for (size_t size = k; size > 1; size--) { /* the worst goes to the end */
        const uint32_t worst = heap[0];
        heap[0] = heap[size - 1];
        heap[size - 1] = worst;
        sift_down(values, heap, size - 1, 0);
    }
}

/* Scores from logits, and the best of them. Pure. */
#ifndef TELLTALE_PREP_ACTIVATION_H
#define TELLTALE_PREP_ACTIVATION_H

#include <stddef.h>
#include <stdint.h>

#define ACTIVATION_CHOICES "none|softmax|sigmoid"
enum activation { ACTIVATION_NONE, ACTIVATION_SOFTMAX, ACTIVATION_SIGMOID };

/* out may be in. Softmax: exp(x - max) / sum, the sum in double; sigmoid: 1 / (1 + exp(-x)),
 * without overflow. */
void activate(enum activation kind, const float *in, size_t count, float *out);
/* Index of the largest; not-a-number never wins unless there is nothing else. */
size_t best_of(const float *values, size_t count);
/* Indices of the k largest (k <= count), largest first; equal ones in order of index. */
void top_k(const float *values, size_t count, size_t k, uint32_t *out_indices);

#endif

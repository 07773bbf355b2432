/* Token vectors to one vector a text. Pure. */
#ifndef TELLTALE_PREP_POOLING_H
#define TELLTALE_PREP_POOLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOLING_CHOICES "mean|cls|last|none"
enum pooling { POOLING_MEAN, POOLING_CLS, POOLING_LAST, POOLING_NONE }; /* none: (rows, size) in */

/* hidden: (length, size) of one row; mask: (length), 1 for a real token, or NULL: all. Mean: over
 * the real tokens, in double; last: the last real one; cls:
 * the first real one. A row without real tokens
 * gives zeros. out: size floats. normalizes: divided by its L2 norm (a zero vector stays). */
void pool_tokens(enum pooling kind, const float *hidden, size_t length, size_t size,
                 const int64_t *mask, bool normalizes, float *out);

#endif

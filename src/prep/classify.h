/* Logits to probabilities and the best label. Pure. */
#ifndef TELLTALE_PREP_CLASSIFY_H
#define TELLTALE_PREP_CLASSIFY_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stddef.h>

/* out[i] = exp(logits[i] - max) / sum; out may be logits. Returns the index of the largest. */
size_t classify_softmax(const float *logits, size_t count, float *out);

struct labels { struct view *names; size_t count; };
/* One label a line, UTF-8, as in Triton's label_filename; the arena owns them. */
MUST_CHECK enum status labels_load(const char *path, struct arena *arena, struct labels *out,
                                   struct err *err);

#endif

/* A text recogniser's output to text: the best character a step, repeats and blanks dropped
 * (CTC, greedy). Pure. */
#ifndef TELLTALE_PREP_CTC_H
#define TELLTALE_PREP_CTC_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include <stdbool.h>
#include <stdint.h>

struct ctc_characters {
    struct view *names;     /* of class 0, 1, ...; that of the blank is not used */
    size_t count;
    uint32_t blank;
};

/* A character a line, UTF-8 (PaddleOCR's keys): class `blank` is the blank and has no line; after
 * the last line a space when has_space. The names live in arena. */
MUST_CHECK enum status ctc_load(const char *path, uint32_t blank, bool has_space,
                                struct arena *arena, struct ctc_characters *out, struct err *err);

/* values: (steps, classes), probabilities or logits. *out_text in arena; *out_score: mean of the
 * kept steps' values (0 for an empty text), as PaddleOCR counts it. ST_INVALID when classes is not
 * characters->count. */
MUST_CHECK enum status ctc_greedy(const struct ctc_characters *characters, const float *values,
                                  uint32_t steps, uint32_t classes, struct arena *arena,
                                  struct view *out_text, float *out_score, struct err *err);

#endif

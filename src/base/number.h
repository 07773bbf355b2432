/* Numbers as people type them, read strictly: the whole text is the number or it is a mistake.
 * Pure; locale does not matter. On failure out is untouched and err says what is wrong with the
 * text, as the end of a sentence: "'10' has no unit: write 10s or 10ms". */
#ifndef TELLTALE_BASE_NUMBER_H
#define TELLTALE_BASE_NUMBER_H

#include "base/status.h"
#include "base/view.h"
#include <stdint.h>

/* "4096", "1_000", "10k", "64MiB": suffixes k, M, G (powers of 1000), KiB, MiB, GiB (of 1024). */
MUST_CHECK enum status number_uint(struct view text, uint64_t *out, struct err *err);
/* "0.5", "-3", "1e6"; no hexadecimal, infinity or NaN. */
MUST_CHECK enum status number_double(struct view text, double *out, struct err *err);
/* Nanoseconds of "20us", "1.5ms", "10s", "2m", "1h", "100ns"; "0" alone needs no unit. A
 * fraction finer than a nanosecond is a mistake. */
MUST_CHECK enum status number_duration(struct view text, uint64_t *out_ns, struct err *err);
/* The other way round, in the largest unit that keeps it whole: 1500000 gives "1500us". */
char *number_duration_text(uint64_t ns, char *out, size_t out_size);

#endif

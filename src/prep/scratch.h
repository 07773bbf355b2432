/* Buffers that a worker keeps between requests for what a picture needs on its way: they grow to
 * what was needed, so that the next request allocates nothing, and are given back when one was
 * out of the ordinary. One a thread. */
#ifndef TELLTALE_PREP_SCRATCH_H
#define TELLTALE_PREP_SCRATCH_H

#include <stddef.h>

enum scratch_use {
    SCRATCH_BASE64,  /* decoded bytes of a picture's file */
    SCRATCH_PIXELS,  /* decoded picture */
    SCRATCH_TURNED,  /* the same, after EXIF orientation or conversion */
    SCRATCH_RESIZED,
    SCRATCH_PLACED,  /* on its canvas: letterboxed or cropped */
    SCRATCH_WEIGHTS, /* resize: coefficients and the pass between the passes */
    SCRATCH_PASS,
    SCRATCH_ANSWER,  /* postprocessing: candidates, masks */
    SCRATCH_COUNT
};

struct scratch { /* zeroed: empty */
    struct {
        void *data;
        size_t capacity;
    } buffers[SCRATCH_COUNT];
};

/* At least size bytes, aligned to 64, contents unspecified, until the next get of the same use;
 * NULL: no memory. */
void *scratch_get(struct scratch *scratch, enum scratch_use use, size_t size);
/* Frees the buffers larger than most bytes: call when a request is through. */
void scratch_trim(struct scratch *scratch, size_t most);
void scratch_done(struct scratch *scratch);

#endif

/* A worker's buffers (scratch.h). Invariant: capacity is what data has, 0 where it is NULL. A
 * buffer that is too small is freed before the larger one is taken, so that a worker never holds
 * both. */
#include "prep/scratch.h"
#include <stdint.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, LEAST_BYTES = 4096 };

static void drop(struct scratch *scratch, size_t use) {
    free(scratch->buffers[use].data);
    scratch->buffers[use].data = NULL;
    scratch->buffers[use].capacity = 0;
}

void *scratch_get(struct scratch *scratch, enum scratch_use use, size_t size) {
    if (size <= scratch->buffers[use].capacity && scratch->buffers[use].data != NULL) {
        return scratch->buffers[use].data;
    }
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    drop(scratch, use);
    const size_t wanted = size < LEAST_BYTES ? LEAST_BYTES : size;
    const size_t capacity = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    scratch->buffers[use].data = aligned_alloc(ALIGNMENT, capacity);
    scratch->buffers[use].capacity = scratch->buffers[use].data == NULL ? 0 : capacity;
    return scratch->buffers[use].data;
}

void scratch_trim(struct scratch *scratch, size_t most) {
    for (size_t use = 0; use < SCRATCH_COUNT; use++) {
        if (scratch->buffers[use].capacity > most) {
            drop(scratch, use);
        }
    }
}

void scratch_done(struct scratch *scratch) {
    for (size_t use = 0; use < SCRATCH_COUNT; use++) {
        drop(scratch, use);
    }
}

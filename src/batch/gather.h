/* Rows of several jobs to one batch tensor and back. Pure but for the memory it grows. */
#ifndef TELLTALE_BATCH_GATHER_H
#define TELLTALE_BATCH_GATHER_H

#include "batch/batcher.h"

struct gather_buffer {  /* one a model input and instance; grows, never shrinks */
    char *data;
    size_t capacity;
};
void gather_buffer_done(struct gather_buffer *buffer);

struct padding {
    int32_t axis;    /* >= 1; -1: none, and the rest does not count */
    uint32_t length; /* of the axis in the batch */
    int64_t value;
    bool is_left;    /* what is filled up lies before the job's own elements */
};

/* Input `index` of all jobs of the list, one behind the other along dimension 0, the padded axis
 * filled up. Jobs whose data lie side by side in memory in the list's order, a single one above
 * all, and that need no padding are passed through without a copy where the first is aligned to
 * the element's size; the result always is. Otherwise it lies in buffer. ST_INVALID when the
 * jobs' shapes do not fit. */
MUST_CHECK enum status gather_input(const struct job *list, uint32_t index,
                                    const struct padding *padding, struct gather_buffer *buffer,
                                    struct tensor *out, struct err *err);

/* Each job's rows of the batch output `index` into its arena and outputs[index]; where there is a
 * padded axis, it is cut back to the job's own length. ST_INTERNAL when the output has not one
 * row an input row (the model cannot be batched after all). */
MUST_CHECK enum status scatter_output(struct job *list, uint32_t index, const struct tensor *batch,
                                      uint32_t total_rows, const struct padding *padding,
                                      struct err *err);

#endif

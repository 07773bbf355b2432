/* Rows of several jobs to one batch tensor and back. Pure but for the memory it grows. */
#ifndef TELLTALE_BATCH_GATHER_H
#define TELLTALE_BATCH_GATHER_H

#include "batch/batcher.h"

struct gather_buffer {  /* one a model input and instance; grows, never shrinks */
    char *data;
    size_t capacity;
};
void gather_buffer_done(struct gather_buffer *buffer);

/* Input `index` of all jobs of the list, one behind the other along dimension 0, the padded axis
 * (pad_axis >= 1, or -1) filled to padded_length with pad_value. A single job that needs no
 * padding is passed through without a copy where its data is aligned to the element's size; the
 * result always is. ST_INVALID when the jobs' shapes do not fit. */
MUST_CHECK enum status gather_input(const struct job *list, uint32_t index, int32_t pad_axis,
                                    int64_t pad_value, uint32_t padded_length,
                                    struct gather_buffer *buffer, struct tensor *out,
                                    struct err *err);

/* Each job's rows of the batch output `index` into its arena and outputs[index]; where pad_axis
 * >= 1, that axis is cut from padded_length to the job's own length. ST_INTERNAL when the output
 * has not one row an input row (the model cannot be batched after all). */
MUST_CHECK enum status scatter_output(struct job *list, uint32_t index, const struct tensor *batch,
                                      uint32_t total_rows, int32_t pad_axis,
                                      uint32_t padded_length, struct err *err);

#endif

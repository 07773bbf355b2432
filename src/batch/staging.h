/* Where a model's inputs wait to be run: a slab for each input whose rows are all of one size
 * (pictures on a fixed canvas). Whoever prepares a request writes its rows straight there; rows
 * of requests that are prepared one after another lie side by side, and a batch of such requests
 * runs where it lies, without a copy (gather.h).
 *
 * Bounded: when it is full, the request's arena does as well, and the batch is copied together as
 * any other. Rows that are not in use cost no memory until they are used first.
 *
 * Threads: any. Reserving is lock-free. Who reserves writes before the job is pushed; from then
 * on the rows are read only, and the batcher releases them when the batch is through. */
#ifndef TELLTALE_BATCH_STAGING_H
#define TELLTALE_BATCH_STAGING_H

#include "batch/batcher.h"

struct staging;

/* row_bytes: by input of the model, 0 where rows are not of one size; at least one is not.
 * rows: how many there is room for in each slab. */
MUST_CHECK enum status staging_create(const size_t *row_bytes, uint32_t input_count, uint32_t rows,
                                      struct staging **out, struct err *err);
void staging_free(struct staging *staging); /* NULL allowed; nothing is reserved any more */

/* Room for the job's rows (1 where the model is not batched) in all slabs; true at once where it
 * has that already. False when there is none: nothing is reserved then. Best called last, when
 * the rows are about to be written: jobs that are reserved and pushed in one order are the ones
 * that batch without a copy. */
bool staging_reserve(struct staging *staging, struct job *job);
/* The job's rows of an input with row_bytes, one behind the other, aligned to 64 where row_bytes
 * is a multiple of that. */
char *staging_rows(const struct job *job, uint32_t input);
/* By whoever gives up a job that was not pushed. Does nothing where nothing is reserved. */
void staging_release(struct job *job);
void staging_release_list(struct job *list);

/* The list in the order in which rows were reserved; as it was where some job has none. */
struct job *staging_sort(struct job *list);

uint64_t staging_refused(const struct staging *staging); /* times that there was no room */
uint64_t staging_bytes(const struct staging *staging);   /* of all slabs */
uint64_t staging_taken(const struct staging *staging);   /* rows reserved now */

#endif

/* The directory of a run: result.json and client.jsonl (docs/bench.md). Main thread. */
#ifndef TELLTALE_LOAD_RUN_DIR_H
#define TELLTALE_LOAD_RUN_DIR_H

#include "load/sample.h"
#include "report/json_file.h"

struct run_dir;
/* Creates the directory (and those above). One that holds a run already is an error. */
MUST_CHECK enum status run_dir_create(const char *path, struct run_dir **out, struct err *err);
void run_dir_free(struct run_dir *dir); /* NULL allowed */
/* Appends the requests of a step to client.jsonl. */
MUST_CHECK enum status run_dir_samples(struct run_dir *dir, uint32_t step,
                                       const struct sample_list *samples, struct err *err);
MUST_CHECK enum status run_dir_result(struct run_dir *dir, const json_t *result, struct err *err);
/* One request as a line of client.jsonl, line end included. */
void run_dir_line(uint32_t step, const struct sample *sample, struct buf *out);

#endif

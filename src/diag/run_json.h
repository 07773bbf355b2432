/* summary.json and config.json of a run. Either may be missing: then what it says is unknown. */
#ifndef TELLTALE_DIAG_RUN_JSON_H
#define TELLTALE_DIAG_RUN_JSON_H

#include "diag/run.h"
#include <jansson.h>

/* After run_finish: run->model says whose figures are taken. */
MUST_CHECK enum status run_read_summary(const char *directory, struct run *run, struct err *err);
MUST_CHECK enum status run_read_config(const char *directory, struct run *run, struct err *err);
void run_set_summary(struct run *run, const json_t *document);
void run_set_config(struct run *run, const json_t *document);

#endif

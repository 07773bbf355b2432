/* Reads a run's directory: requests.jsonl, batches.jsonl, summary.json, config.json
 * (docs/trace.md), and client.jsonl (docs/bench.md). */
#ifndef TELLTALE_DIAG_RUN_READ_H
#define TELLTALE_DIAG_RUN_READ_H

#include "diag/run.h"

struct run_source {
    const char *directory;
    const char *client;  /* directory of client.jsonl; NULL: the same, if it is there */
    const char *model;   /* NULL: the one with most requests */
    uint32_t step;       /* of the client's; 0: the last */
};

/* out is initialised here and the caller's to free (run_done), after failure too. A file that is
 * missing, other than requests.jsonl, is missing evidence and no failure. err names file and
 * line. */
MUST_CHECK enum status run_read(const struct run_source *source, struct run *out,
                                struct err *err);
/* One line of requests.jsonl, batches.jsonl, client.jsonl into run. The lines of requests come
 * before those of the client. err says what is wrong with the line. */
MUST_CHECK enum status run_read_request(struct run *run, struct view line, struct err *err);
MUST_CHECK enum status run_read_batch(struct run *run, struct view line, struct err *err);

#endif

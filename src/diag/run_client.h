/* The client's side of a run: client.jsonl of telltale bench (docs/bench.md), joined with the
 * server's requests by id. */
#ifndef TELLTALE_DIAG_RUN_CLIENT_H
#define TELLTALE_DIAG_RUN_CLIENT_H

#include "diag/run.h"

struct run_client;
/* Indexes the run's requests by id; the run must not grow until run_client_free. */
MUST_CHECK enum status run_client_create(struct run *run, struct run_client **out,
                                         struct err *err);
void run_client_free(struct run_client *client); /* NULL allowed */
MUST_CHECK enum status run_client_read(struct run_client *client, const char *path,
                                       struct err *err);
MUST_CHECK enum status run_client_line(struct run_client *client, struct view line,
                                       struct err *err);

#endif

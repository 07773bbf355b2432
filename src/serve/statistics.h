/* Triton's statistics extension: GET /v2/models/stats and /v2/models/M/stats. */
#ifndef TELLTALE_SERVE_STATISTICS_H
#define TELLTALE_SERVE_STATISTICS_H

#include "measure/trace_stats.h"
#include "serve/server.h"

/* served NULL: all models. Loop thread only. */
MUST_CHECK enum status statistics_write(struct server *server, const struct served_model *served,
                                        struct err *err);

/* Triton's four durations, from our stages. */
struct triton_durations {
    uint64_t success, failure;
    uint64_t request_ns, queue_ns, input_ns, infer_ns, output_ns;
};
struct triton_durations statistics_durations(const struct trace_stats *stats);

#endif

/* summary.json: what is known of a run when it ends, for all its requests and not only those
 * that were written. docs/trace.md describes it. */
#ifndef TELLTALE_MEASURE_TRACE_SUMMARY_H
#define TELLTALE_MEASURE_TRACE_SUMMARY_H

#include "base/buf.h"
#include "measure/trace.h"
#include "measure/trace_dir.h"
#include "measure/trace_stats.h"

struct trace_summary {
    const struct tracer_config *config;
    const struct trace_dir *dir;
    uint64_t start_ns, end_ns, start_unix_ns;
    uint64_t dropped, dropped_unknown_model;
    const struct histogram *loop_turn_ns, *loop_turn_cpu_ns; /* NULL: there is no loop */
    struct trace_stats *const *models; /* settled */
    unsigned model_count;
};

void trace_summary_write(struct buf *out, const struct trace_summary *summary);

#endif

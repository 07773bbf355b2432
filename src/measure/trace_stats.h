/* What the tracer adds up for one model: read under tracer_stats_lock. */
#ifndef TELLTALE_MEASURE_TRACE_STATS_H
#define TELLTALE_MEASURE_TRACE_STATS_H

#include "base/status.h"
#include "measure/histogram.h"
#include "measure/step.h"
#include <stdbool.h>

enum { TRACE_MAX_BATCH = 4096 };

struct trace_record;
struct batch_record;

struct trace_stats {
    const char *model;
    uint64_t by_status[ST_COUNT];
    struct histogram total_ns;               /* successful and failed requests alike */
    struct histogram stage_ns[STAGE_COUNT];  /* 2 digits */
    uint64_t stage_sum_ns[STAGE_COUNT];      /* successful requests */
    uint64_t step_sum_ns[STEP_COUNT];        /* all requests */
    uint64_t step_requests[STEP_COUNT];      /* that had it */
    uint32_t step_max_ns[STEP_COUNT];
    uint64_t total_sum_ns;                   /* successful requests */
    struct histogram lock_wait_ns;
    uint64_t rows;      /* of successful requests: Triton's inference_count */
    uint64_t batches;   /* Triton's execution_count */
    struct histogram batch_requests; /* batch sizes in requests */
    struct histogram queue_requests; /* waiting when a batch was taken, its own included */
    uint64_t by_reason[REASON_COUNT];        /* of batches */
    uint64_t real_elements, padded_elements;
    uint64_t bytes_in, bytes_out;
    uint64_t busy_ns;   /* sum of batches' taken..outputs ready */
    uint64_t execute_ns; /* sum of batches' inputs ready..executed */
    uint64_t batches_failed;
    uint64_t batches_simulated;
    uint64_t stamps_out_of_order; /* requests with a stamp that went back: our bug */
};

/* What follows is for the tracer. model is not copied. Failure leaves nothing to free. */
MUST_CHECK enum status trace_stats_init(struct trace_stats *stats, const char *model);
void trace_stats_done(struct trace_stats *stats);
/* n records of this model, at most HISTOGRAM_MANY. durations (STAGE_COUNT a record), totals_ns
 * and are_ordered as trace_durations_checked() gives them. Stages that took no time are not put
 * into their histograms here: most of a request's are such, and trace_stats_settle catches up. */
void trace_stats_requests(struct trace_stats *stats, const struct trace_record *records,
                          const uint64_t *durations, const uint64_t *totals_ns,
                          const bool *are_ordered, unsigned n);
void trace_stats_batch(struct trace_stats *stats, const struct batch_record *record);
/* Before anybody reads: counts the zeros, so that each stage has as many values as there were
 * requests. */
void trace_stats_settle(struct trace_stats *stats);

#endif

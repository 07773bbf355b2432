/* What the tracer adds up for one model: read under tracer_stats_lock. */
#ifndef TELLTALE_MEASURE_TRACE_STATS_H
#define TELLTALE_MEASURE_TRACE_STATS_H

#include "base/status.h"
#include "measure/histogram.h"
#include "measure/stage.h"

enum { TRACE_MAX_BATCH = 4096 };

struct trace_stats {
    const char *model;
    uint64_t by_status[ST_COUNT];
    struct histogram total_ns;               /* successful and failed requests alike */
    struct histogram stage_ns[STAGE_COUNT];  /* 2 digits */
    uint64_t stage_sum_ns[STAGE_COUNT];      /* successful requests */
    uint64_t total_sum_ns;                   /* successful requests */
    struct histogram lock_wait_ns;
    uint64_t rows;      /* Triton's inference_count */
    uint64_t batches;   /* Triton's execution_count */
    struct histogram batch_requests; /* batch sizes in requests */
    uint64_t by_reason[REASON_COUNT];
    uint64_t real_elements, padded_elements;
    uint64_t bytes_in, bytes_out;
    uint64_t busy_ns;   /* sum of batches' taken..outputs ready */
    uint64_t execute_ns; /* sum of batches' inputs ready..executed */
};

#endif

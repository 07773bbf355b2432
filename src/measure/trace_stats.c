/* One model's sums and histograms.
 *
 * Thread: the tracer's writer thread adds, anybody reads, both under the tracer's lock.
 * Invariant: after trace_stats_settle every stage's histogram has total_ns.count values.
 * Next: tracer.c (who calls), trace_summary.c (who prints them at the end). */
#include "measure/trace_stats.h"

#include "measure/trace.h"

enum { STAGE_DIGITS = 2, TOTAL_DIGITS = 3 };

/* A request that took longer than an hour is counted as saturated; its maximum is exact. */
static const uint64_t highest_ns = 3600ull * 1000 * 1000 * 1000;

static const uint64_t highest_queue = 1000000; /* --queue-limit's own limit */

enum status trace_stats_init(struct trace_stats *stats, const char *model) {
    *stats = (struct trace_stats){.model = model};
    int ok = histogram_init(&stats->total_ns, TOTAL_DIGITS, highest_ns);
    for (unsigned i = 0; ok && i < STAGE_COUNT; i++) {
        ok = histogram_init(&stats->stage_ns[i], STAGE_DIGITS, highest_ns);
    }
    ok = ok && histogram_init(&stats->lock_wait_ns, STAGE_DIGITS, highest_ns);
    ok = ok && histogram_init(&stats->batch_requests, TOTAL_DIGITS, TRACE_MAX_BATCH);
    ok = ok && histogram_init(&stats->queue_requests, STAGE_DIGITS, highest_queue);
    if (ok) return ST_OK;
    trace_stats_done(stats);
    return ST_NO_MEMORY;
}

void trace_stats_done(struct trace_stats *stats) {
    histogram_done(&stats->total_ns);
    for (unsigned i = 0; i < STAGE_COUNT; i++) histogram_done(&stats->stage_ns[i]);
    histogram_done(&stats->lock_wait_ns);
    histogram_done(&stats->batch_requests);
    histogram_done(&stats->queue_requests);
}

static void add_steps(struct trace_stats *stats, const uint32_t *step_ns) {
    for (unsigned i = 0; i < STEP_COUNT; i++) {
        stats->step_sum_ns[i] += step_ns[i];
        stats->step_requests[i] += step_ns[i] != 0;
        if (step_ns[i] > stats->step_max_ns[i]) stats->step_max_ns[i] = step_ns[i];
    }
}

void trace_stats_requests(struct trace_stats *stats, const struct trace_record *records,
                          const uint64_t *durations, const uint64_t *totals_ns,
                          const bool *are_ordered, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const struct trace_record *record = &records[i];
        const enum status status = record->status < ST_COUNT ? record->status : ST_INTERNAL;
        stats->by_status[status]++;
        if (record->lock_wait_ns != 0) histogram_record(&stats->lock_wait_ns, record->lock_wait_ns);
        stats->bytes_in += record->bytes_in;
        stats->bytes_out += record->bytes_out;
        stats->stamps_out_of_order += !are_ordered[i];
        histogram_record(&stats->total_ns, totals_ns[i]);
        add_steps(stats, record->step_ns);
        if (status != ST_OK) continue;
        stats->rows += record->rows;
        stats->total_sum_ns += totals_ns[i];
        const uint64_t *own = &durations[(size_t)i * STAGE_COUNT];
        for (unsigned s = 0; s < STAGE_COUNT; s++) stats->stage_sum_ns[s] += own[s];
    }
    for (unsigned s = 0; s < STAGE_COUNT; s++)
        histogram_record_many(&stats->stage_ns[s], durations + s, STAGE_COUNT, n);
}

static uint64_t interval(uint64_t begin_ns, uint64_t end_ns) {
    return begin_ns != 0 && end_ns > begin_ns ? end_ns - begin_ns : 0;
}

void trace_stats_batch(struct trace_stats *stats, const struct batch_record *record) {
    stats->batches++;
    histogram_record(&stats->batch_requests, record->requests);
    histogram_record(&stats->queue_requests, (uint64_t)record->requests + record->waiting);
    if (record->reason < REASON_COUNT) stats->by_reason[record->reason]++;
    stats->real_elements += record->real_elements;
    stats->padded_elements += record->padded_elements;
    stats->busy_ns += interval(record->taken_ns, record->outputs_ready_ns);
    stats->execute_ns += interval(record->inputs_ready_ns, record->executed_ns);
    stats->batches_failed += record->failed != 0;
    stats->batches_simulated += record->simulated != 0;
}

static void settle(struct histogram *histogram, uint64_t requests) {
    if (histogram->count < requests) histogram_record_n(histogram, 0, requests - histogram->count);
}

void trace_stats_settle(struct trace_stats *stats) {
    const uint64_t requests = stats->total_ns.count;
    for (unsigned i = 0; i < STAGE_COUNT; i++) settle(&stats->stage_ns[i], requests);
    settle(&stats->lock_wait_ns, requests);
}

/* Which requests are written to the trace's files. Pure: no clock, no files, no thread of its
 * own; whoever owns it says when a window ends.
 *
 * The rule, window by window and model by model:
 *   slow     the slowest slow_share of the window's requests, at least one;
 *   uniform  whole batches (a request that was never batched is a batch of its own), each with
 *            the same probability: uniform_share, or as much more as it takes for
 *            SAMPLE_UNITS_MIN of them to be expected in a window;
 *   batch    the requests that shared a batch with one of the above, in this window or in the
 *            one before or after it.
 * Batch records are few beside requests, and what the instances did is only known from all of
 * them: a window with at most every_batch_max has all written; a busier one those of the requests
 * written.
 *
 * Batches are sampled instead of requests because a written request brings its batch along
 * anyway: this way the sample is as large as what is written, and each request still has the
 * same probability, though those of a batch are alike.
 *
 * Memory: SAMPLE_WINDOW_MAX records of each kind in two windows, about 28 MiB when in full
 * use. A window that reaches it ends early; nothing is lost. */
#ifndef TELLTALE_MEASURE_TRACE_SAMPLE_H
#define TELLTALE_MEASURE_TRACE_SAMPLE_H

#include "measure/trace_json.h"

enum { SAMPLE_WINDOW_MAX = 32768, SAMPLE_UNITS_MIN = 30 };

struct trace_sample_config {
    bool all; /* everything, at once */
    double uniform_share, slow_share; /* 0: none of them */
    uint64_t seed;
    uint32_t every_batch_max; /* a window with at most so many batches has all of them written */
    void (*write_request)(void *ctx, const struct trace_record *record, struct sampling sampling);
    void (*write_batch)(void *ctx, const struct batch_record *record);
    void *ctx;
};

struct trace_sample;
/* NULL: no memory. */
struct trace_sample *trace_sample_create(const struct trace_sample_config *config);
void trace_sample_free(struct trace_sample *sample); /* writes nothing; NULL allowed */
/* Copies the record. total_ns as trace_durations() gives it. May end the window. */
void trace_sample_request(struct trace_sample *sample, const struct trace_record *record,
                          uint64_t total_ns);
void trace_sample_batch(struct trace_sample *sample, const struct batch_record *record);
/* From the next end of a window on. */
void trace_sample_set_uniform(struct trace_sample *sample, double uniform_share);
/* Ends the window: calls write_* for what is chosen. */
void trace_sample_close(struct trace_sample *sample);

#endif

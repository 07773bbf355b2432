/* Batch sizes, dispatch reasons, padding, the cost of an execution; rate, utilisation. Any
 * thread. A batch counts as often as its weight says: with a sampled trace, large batches and
 * those of slow requests would otherwise be over-represented. Read next: evidence.c. */
#include "diag/evidence_batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIT_MIN_BATCHES = 8, DISPERSION_MIN_WINDOWS = 50 };

struct sized {
    uint32_t size;
    float weight;
};

static int by_size(const void *a, const void *b) {
    const struct sized *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static uint32_t size_quantile(const struct sized *sizes, size_t count, double weight,
                              double share) {
    double passed = 0;
    for (size_t i = 0; i < count; i++) {
        passed += sizes[i].weight;
        if (passed >= share * weight) return sizes[i].size;
    }
    return count > 0 ? sizes[count - 1].size : 0;
}

static void add_batch(struct batch_evidence *out, const struct run_batch *batch, double *real,
                      double *padded) {
    const double weight = batch->weight;
    out->count += weight;
    out->size += weight * batch->requests;
    out->waiting += weight * batch->waiting;
    if (batch->max_batch > 0) out->fill += weight * batch->rows / batch->max_batch;
    if (batch->reason < REASON_COUNT) out->reason_share[batch->reason] += weight;
    if (batch->padded_elements > 0) {
        *real += weight * (double)batch->real_elements;
        *padded += weight * (double)batch->padded_elements;
    }
    out->busy_ns += weight * run_span_ns(batch->taken_ns, batch->outputs_ready_ns);
    out->inline_ns += weight * (double)batch->inline_ns;
    out->execute_ns += weight * run_span_ns(batch->inputs_ready_ns, batch->executed_ns);
    out->cpu_ns += weight * (double)batch->cpu_ns;
    out->run_delay_ns += weight * (double)batch->run_delay_ns;
}

static void divide(struct batch_evidence *out) {
    if (out->count <= 0) return;
    double *sums[] = {&out->size, &out->fill, &out->waiting, &out->busy_ns, &out->inline_ns,
                      &out->execute_ns, &out->cpu_ns, &out->run_delay_ns};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) *sums[i] /= out->count;
    for (unsigned i = 0; i < REASON_COUNT; i++) out->reason_share[i] /= out->count;
}

static double fit_x(const struct run_batch *batch, bool is_by_elements) {
    return is_by_elements ? (double)batch->padded_elements : (double)batch->rows;
}

static void fit_cost(const struct run *run, struct cost_fit *out) {
    double n = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < run->batch_count && !out->is_by_elements; i++)
        out->is_by_elements = run->batches[i].padded_elements > 0;
    for (int pass = 0; pass < 2; pass++) { /* means first: the squares would cancel */
        const double x_mean = n > 0 ? x_sum / n : 0, y_mean = n > 0 ? y_sum / n : 0;
        for (size_t i = 0; i < run->batch_count; i++) {
            const struct run_batch *batch = &run->batches[i];
            if (batch->failed || batch->executed_ns < batch->inputs_ready_ns) continue;
            const double x = fit_x(batch, out->is_by_elements);
            const double y = (double)(batch->executed_ns - batch->inputs_ready_ns);
            if (pass == 0) {
                n++;
                x_sum += x;
                y_sum += y;
                continue;
            }
            xx += (x - x_mean) * (x - x_mean);
            xy += (x - x_mean) * (y - y_mean);
            yy += (y - y_mean) * (y - y_mean);
        }
    }
    out->batches = (uint64_t)n;
    if (n < FIT_MIN_BATCHES) return;
    out->b_ns = xx > 0 ? fmax(xy / xx, 0) : 0; /* one size only: the mean is what is known */
    out->a_ns = y_sum / n - out->b_ns * x_sum / n;
    const double left = fmax(yy - out->b_ns * xy, 0);
    out->r2 = yy > 0 ? fmax(1 - left / yy, 0) : 0;
    out->residual_ns = sqrt(left / n);
    out->is_known = true;
}

static void set_kinds(struct evidence *evidence) {
    const struct run *run = evidence->run;
    evidence->is_simulated = run->config.simulate[0] != 0;
    evidence->is_inline = strcmp(run->config.preprocess, "inline") == 0;
    evidence->is_timer = strcmp(run->config.policy, "timer") == 0;
    for (size_t i = 0; i < run->batch_count; i++) {
        if (run->batches[i].simulated) evidence->is_simulated = true;
        if (run->batches[i].inline_ns > 0) evidence->is_inline = true;
        if (run->config.policy[0] == 0 && run->batches[i].reason == REASON_TIMER)
            evidence->is_timer = true;
    }
}

enum status evidence_of_batches(struct evidence *evidence, struct err *err) {
    const struct run *run = evidence->run;
    struct batch_evidence *out = &evidence->batches;
    struct sized *sizes = malloc((run->batch_count + 1) * sizeof *sizes);
    if (sizes == NULL)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu batches", run->batch_count);
    double real = 0, padded = 0;
    size_t count = 0;
    out->written = run->batch_count;
    for (size_t i = 0; i < run->batch_count; i++) {
        const struct run_batch *batch = &run->batches[i];
        if (batch->max_batch > out->max_batch) out->max_batch = batch->max_batch;
        if (batch->weight <= 0) continue;
        add_batch(out, batch, &real, &padded);
        sizes[count++] = (struct sized){batch->requests, batch->weight};
    }
    if (count > 0) qsort(sizes, count, sizeof *sizes, by_size);
    out->size_p50 = size_quantile(sizes, count, out->count, 0.5);
    out->size_p99 = size_quantile(sizes, count, out->count, 0.99);
    if (padded > 0) out->padding_waste = 1 - real / padded;
    divide(out);
    free(sizes);
    fit_cost(run, &evidence->fit);
    set_kinds(evidence);
    return ST_OK;
}

/* Index of dispersion of the arrivals in windows of ten batches' time: 1 for a Poisson process,
 * larger for bursts. Needs every request. */
static double dispersion_of(const struct evidence *evidence) {
    const struct run *run = evidence->run;
    const double window_ns = fmax(evidence->batches.busy_ns * 10, 10e6);
    const double windows = floor(evidence->span_ns / window_ns);
    if (evidence->slow_rule != SLOW_OF_ALL || windows < DISPERSION_MIN_WINDOWS) return 0;
    uint32_t *counts = calloc((size_t)windows, sizeof *counts);
    if (counts == NULL) return 0;
    for (size_t i = 0; i < run->count; i++) {
        const double at = (double)(run->requests[i].start_ns - evidence->from_ns) / window_ns;
        if (at < windows) counts[(size_t)at]++;
    }
    double sum = 0, squares = 0;
    for (size_t i = 0; i < (size_t)windows; i++) sum += counts[i];
    const double mean = sum / windows;
    for (size_t i = 0; i < (size_t)windows; i++)
        squares += (counts[i] - mean) * (counts[i] - mean);
    free(counts);
    return mean > 0 ? squares / windows / mean : 0;
}

/* Requests that ended in success: counted where somebody counted them, else as the sample's
 * weights have it. */
static double request_count(const struct evidence *evidence) {
    const struct run *run = evidence->run;
    if (run->joined > 0 && run->step_ok >= run->joined) return (double)run->step_ok;
    if (run->joined == 0 && run->summary.ok >= run->count) return (double)run->summary.ok;
    return evidence->all.weight;
}

void evidence_of_load(struct evidence *evidence) {
    const struct run *run = evidence->run;
    evidence->from_ns = UINT64_MAX;
    for (size_t i = 0; i < run->count; i++) {
        const struct run_request *request = &run->requests[i];
        const uint64_t end_ns = request->start_ns + request->total_ns;
        if (request->start_ns < evidence->from_ns) evidence->from_ns = request->start_ns;
        if (end_ns > evidence->to_ns) evidence->to_ns = end_ns;
    }
    evidence->span_ns =
        evidence->to_ns > evidence->from_ns ? (double)(evidence->to_ns - evidence->from_ns) : 1;
    const double count = request_count(evidence);
    struct batch_evidence *batches = &evidence->batches;
    evidence->rate = count / (evidence->span_ns / 1e9);
    evidence->in_flight = count * evidence->all.total_ns / evidence->span_ns;
    batches->count *= count / evidence->all.weight;
    evidence->utilisation =
        batches->count > 0
            ? batches->count * batches->busy_ns / (evidence->span_ns * evidence->instances)
            : -1;
    if (evidence->utilisation > 1) evidence->utilisation = 1;
    evidence->dispersion = dispersion_of(evidence);
}

/* Adds a step up. Pure but for memory; any thread. Invariant: quantiles are exact, taken from
 * all samples; shares of stages and of what is outside the server add up to 1.
 * Read next: bench_result.c and bench_show.c, which print it. */
#include "load/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t (*sample_value)(const struct sample *sample);
typedef bool (*sample_filter)(const struct sample *sample);

static bool is_measured(const struct sample *s) {
    return s->phase == PHASE_MEASURE && s->outcome != OUTCOME_CANCELLED;
}
static bool is_timed(const struct sample *s) { return is_measured(s) && sample_has_latency(s); }
static bool is_sent(const struct sample *s) { return is_timed(s) && s->sent_ns != 0; }
static bool is_error(const struct sample *s) {
    return is_measured(s) && (s->outcome == OUTCOME_REFUSED || s->outcome == OUTCOME_CONNECTION);
}
static bool has_server(const struct sample *s) { return is_timed(s) && s->server_total_ns != 0; }
static bool has_tokens(const struct sample *s) { return is_measured(s) && s->tokens != 0; }
static bool has_answer(const struct sample *s) {
    return is_measured(s) && s->outcome == OUTCOME_OK;
}
static uint64_t value_server(const struct sample *s) { return s->server_total_ns; }
static uint64_t value_bytes_out(const struct sample *s) { return s->bytes_out; }
static uint64_t value_bytes_in(const struct sample *s) { return s->bytes_in; }
static uint64_t value_tokens(const struct sample *s) { return s->tokens; }
/* The client's and the server's clocks differ by rounding: never below 0. */
static uint64_t value_outside(const struct sample *s) {
    uint64_t latency_ns = sample_latency_ns(s);
    return latency_ns > s->server_total_ns ? latency_ns - s->server_total_ns : 0;
}

/* values: room for all samples. */
static struct distribution collect(const struct sample_list *list, sample_filter filter,
                                   sample_value value, uint64_t *values) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (filter(&list->items[i])) values[count++] = value(&list->items[i]);
    return distribution_of(values, count);
}

/* The list is in the order of completion, which is close enough to that of sending. sorted: room
 * for all samples, too. */
static struct distribution collect_in_time(const struct sample_list *list, sample_filter filter,
                                           sample_value value, uint64_t *values,
                                           uint64_t *sorted) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (filter(&list->items[i])) values[count++] = value(&list->items[i]);
    return distribution_in_time(values, count, sorted);
}

static void count_outcomes(const struct step_result *result, struct step_summary *out) {
    uint64_t in_window = 0, planned = 0;
    for (size_t i = 0; i < result->samples.count; i++) {
        const struct sample *s = &result->samples.items[i];
        if (s->phase != PHASE_MEASURE) continue;
        if (s->outcome == OUTCOME_CANCELLED) {
            out->cancelled++;
            continue;
        }
        out->requests++;
        if (s->planned_ns < result->end_ns) planned++;
        if (s->outcome == OUTCOME_TIMEOUT) out->timeouts++;
        else if (s->outcome != OUTCOME_OK) out->failed++;
        else out->ok++;
        if (s->outcome == OUTCOME_OK && s->done_ns <= result->end_ns) in_window++;
    }
    out->window_s = (double)(result->end_ns - result->start_ns) / 1e9;
    if (out->window_s <= 0) return;
    out->qps = (double)in_window / out->window_s;
    out->offered = (double)planned / out->window_s;
}

/* Latency from which the slowest 1 % of those with the server's account begin. */
static uint64_t tail_threshold(const struct sample_list *list, uint64_t *values,
                               uint64_t *out_count) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (has_server(&list->items[i])) values[count++] = sample_latency_ns(&list->items[i]);
    if (count == 0) return UINT64_MAX;
    quantile_sort(values, count);
    size_t tail = (count + 99) / 100;
    *out_count = tail;
    return values[count - tail];
}

struct sums { double latency_ns, tail_latency_ns; };

static struct sums sum_latency(const struct sample_list *list, uint64_t threshold_ns) {
    struct sums sums = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct sample *s = &list->items[i];
        if (!has_server(s)) continue;
        double latency_ns = (double)sample_latency_ns(s);
        sums.latency_ns += latency_ns;
        if (sample_latency_ns(s) >= threshold_ns) sums.tail_latency_ns += latency_ns;
    }
    return sums;
}

/* stage: STAGE_COUNT stands for "outside the server". */
static struct stage_summary sum_stage(const struct sample_list *list, int stage,
                                      uint64_t threshold_ns, struct sums sums,
                                      uint64_t *values) {
    struct stage_summary out = {0};
    size_t count = 0;
    double sum = 0, tail = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sample *s = &list->items[i];
        if (!has_server(s)) continue;
        double ns = stage == STAGE_COUNT ? (double)value_outside(s)
                                         : (double)s->stage_us[stage] * 1000;
        values[count++] = (uint64_t)llround(ns);
        sum += ns;
        if (sample_latency_ns(s) >= threshold_ns) tail += ns;
    }
    if (count == 0) return out;
    quantile_sort(values, count);
    out.is_seen = sum > 0;
    out.mean_ns = sum / (double)count;
    out.p99_ns = quantile_sorted(values, count, 0.99);
    out.share = sums.latency_ns > 0 ? sum / sums.latency_ns : 0;
    out.tail_share = sums.tail_latency_ns > 0 ? tail / sums.tail_latency_ns : 0;
    return out;
}

static void sum_stages(const struct step_result *result, struct step_summary *out,
                       uint64_t *values) {
    const struct sample_list *list = &result->samples;
    out->server_total = collect(list, has_server, value_server, values);
    out->with_server = out->server_total.count;
    uint64_t threshold_ns = tail_threshold(list, values, &out->tail_count);
    struct sums sums = sum_latency(list, threshold_ns);
    for (int i = 0; i < STAGE_COUNT; i++)
        out->stages[i] = sum_stage(list, i, threshold_ns, sums, values);
    out->outside = sum_stage(list, STAGE_COUNT, threshold_ns, sums, values);
}

static void read_lateness(const struct histogram *histogram, struct distribution *out) {
    *out = (struct distribution){.count = histogram->count};
    if (histogram->count == 0) return;
    out->min = histogram->min;
    out->max = histogram->max;
    out->mean = histogram_mean(histogram);
    for (int i = 0; i < QUANTILE_COUNT; i++)
        out->at[i] = histogram_quantile(histogram, quantile_share((enum quantile)i));
}

static void judge(const struct step_result *result, struct step_summary *out) {
    uint64_t lateness_ns = out->lateness.at[QUANTILE_P99];
    uint64_t latency_ns = out->latency.at[QUANTILE_P99];
    out->is_valid = false;
    if (result->samples.failed)
        snprintf(out->reason, sizeof out->reason, "memory ran out: not every request was kept");
    else if (out->generator_cpu >= 0.95)
        snprintf(out->reason, sizeof out->reason,
                 "the load generator used %.0f %% of a processor and was the limit; use fewer "
                 "clients or a lower rate, or several generators",
                 out->generator_cpu * 100);
    else if (out->lateness.count > 0 && quantile_lateness_spoils(lateness_ns, latency_ns))
        snprintf(out->reason, sizeof out->reason,
                 "the load generator itself sent late: P99 of its lateness is %.2f ms, the "
                 "measured P99 is %.2f ms; leave it a free processor or lower the rate",
                 (double)lateness_ns / 1e6, (double)latency_ns / 1e6);
    else
        out->is_valid = true;
}

enum status summary_of(const struct step_result *result, struct step_summary *out,
                       struct err *err) {
    const struct sample_list *list = &result->samples;
    uint64_t *values = malloc(2 * (list->count + 1) * sizeof *values);
    if (values == NULL)
        return err_set(err, ST_NO_MEMORY, "out of memory for the figures of %zu requests",
                       list->count);
    *out = (struct step_summary){
        .config = result->config,
        .unsent = result->unsent,
        .is_interrupted = result->is_interrupted,
        .is_hopeless = result->is_hopeless,
        .error_kinds = result->error_kinds,
    };
    memcpy(out->errors, result->errors, sizeof out->errors);
    count_outcomes(result, out);
    uint64_t *sorted = values + list->count + 1;
    out->latency = collect_in_time(list, is_timed, sample_latency_ns, values, sorted);
    out->service = collect_in_time(list, is_sent, sample_service_ns, values, sorted);
    out->failed_latency = collect(list, is_error, sample_latency_ns, values);
    out->in_flight = out->qps * out->latency.mean / 1e9;
    out->in_flight_sent = out->qps * out->service.mean / 1e9;
    out->bytes_out = collect(list, is_sent, value_bytes_out, values);
    out->bytes_in = collect(list, has_answer, value_bytes_in, values);
    out->tokens = collect(list, has_tokens, value_tokens, values);
    sum_stages(result, out, values);
    free(values);
    read_lateness(&result->lateness_ns, &out->lateness);
    double elapsed_ns = (double)(result->drained_ns - result->start_ns);
    if (elapsed_ns > 0) {
        out->client_cpu = (double)result->process_cpu_ns / elapsed_ns;
        out->generator_cpu = (double)result->thread_cpu_ns / elapsed_ns;
    }
    judge(result, out);
    return ST_OK;
}

void summary_add_server(struct step_summary *summary, const struct scrape *before,
                        const struct scrape *after, double elapsed_s) {
    if (elapsed_s <= 0) return;
    if (before->has_cpu && after->has_cpu) {
        summary->has_server_cpu = true;
        summary->server_cpu = (after->cpu_s - before->cpu_s) / elapsed_s;
    }
    /* 0 is how a server says that its back end cannot tell. */
    if (before->has_device && after->has_device && after->device_busy_s > 0) {
        summary->has_device = true;
        summary->instances = after->has_instances && after->instances > 0 ? after->instances : 1;
        summary->device_busy = (after->device_busy_s - before->device_busy_s) / elapsed_s;
    }
}

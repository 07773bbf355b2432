/* What a bench run shows on the terminal. Main thread. Invariant: a figure that is not known or
 * not to be believed is "-", and one with too few requests behind it begins with "~".
 * Read next: report/table.h. */
#include "load/bench.h"

#include "report/table.h"

#include <stdio.h>

void bench_show_intro(const struct bench *bench, struct buf *out) {
    const struct bench_model *model = &bench->model;
    const struct distribution *bytes = &bench->input_bytes, *tokens = &bench->input_tokens;
    if (bench_is_simulated(bench))
        buf_text(out, "SIMULATED: no model runs; the figures are those of a simulated "
                      "accelerator\n");
    buf_printf(out, "model    %s", model->name);
    if (model->version != NULL && *model->version != 0)
        buf_printf(out, ", version %s", model->version);
    if (model->platform != NULL && *model->platform != 0) buf_printf(out, ", %s", model->platform);
    if (model->sha256 != NULL && *model->sha256 != 0)
        buf_printf(out, ", sha256 %.12s", model->sha256);
    if (bench->engine != NULL) buf_text(out, "\ntarget   in this process\n");
    else {
        buf_printf(out, "\ntarget   %s", bench->config.url);
        if (*model->server != 0)
            buf_printf(out, " (%s %s)", model->server, model->server_version);
        buf_char(out, '\n');
    }
    buf_printf(out, "inputs   %zu from %s; bytes min %llu, P50 %llu, mean %.0f, P99 %llu, max %llu\n",
               bench->inputs.count, bench->inputs.source, (unsigned long long)bytes->min,
               (unsigned long long)bytes->at[QUANTILE_P50], bytes->mean,
               (unsigned long long)bytes->at[QUANTILE_P99], (unsigned long long)bytes->max);
    if (tokens->count > 0)
        buf_printf(out, "         tokens min %llu, P50 %llu, mean %.0f, P99 %llu, max %llu\n",
                   (unsigned long long)tokens->min, (unsigned long long)tokens->at[QUANTILE_P50],
                   tokens->mean, (unsigned long long)tokens->at[QUANTILE_P99],
                   (unsigned long long)tokens->max);
    if (bench_is_demo(bench))
        buf_text(out, "         random inputs: the figures are those of a demo, not of real "
                      "requests\n");
}

/* "16", "500/s", "500/s by 200" */
static void load_text(const struct step_config *config, char *out, size_t out_size) {
    if (config->mode == LOAD_CLOSED) snprintf(out, out_size, "%u client%s", config->concurrency,
                                            config->concurrency == 1 ? "" : "s");
    else if (config->mode == LOAD_OPEN) snprintf(out, out_size, "%.0f/s", config->rate);
    else snprintf(out, out_size, "%.0f/s, %u users", config->rate, config->concurrency);
}

static void quantile_cell(struct table *table, const struct distribution *values,
                          enum quantile quantile) {
    char text[32];
    enum quantile_trust trust = quantile_trust(values->count, quantile_share(quantile));
    table_ms((double)values->at[quantile] / 1e6, text, sizeof text);
    if (trust == QUANTILE_ABSENT) table_cell(table, "-");
    else table_cell(table, "%s%s", trust == QUANTILE_ROUGH ? "~" : "", text);
}

static void ms_cell(struct table *table, double ns, bool is_known) {
    char text[32];
    table_cell(table, "%s", is_known ? table_ms(ns / 1e6, text, sizeof text) : "-");
}

static void step_row(struct table *table, const struct step_summary *step) {
    char load[64];
    const struct distribution *latency = &step->latency;
    load_text(&step->config, load, sizeof load);
    table_row(table);
    table_cell(table, "%s%s", load, step->is_interrupted ? " (interrupted)" : "");
    table_cell(table, "%llu", (unsigned long long)step->requests);
    table_cell(table, "%llu", (unsigned long long)(step->failed + step->timeouts));
    table_cell(table, "%.1f", step->qps);
    ms_cell(table, latency->mean, latency->count > 0);
    quantile_cell(table, latency, QUANTILE_P50);
    quantile_cell(table, latency, QUANTILE_P90);
    quantile_cell(table, latency, QUANTILE_P99);
    quantile_cell(table, latency, QUANTILE_P99_9);
    ms_cell(table, (double)latency->max, latency->count > 0);
    quantile_cell(table, &step->service, QUANTILE_P99);
    table_cell(table, "%.1f", step->in_flight);
    table_cell(table, "%.2f", step->client_cpu);
    if (step->has_server_cpu) table_cell(table, "%.2f", step->server_cpu);
    else table_cell(table, "-");
    if (step->has_device && step->device_busy > 0)
        table_cell(table, "%.0f %%", step->device_busy * 100);
    else table_cell(table, "-");
}

static void show_steps(const struct bench *bench, struct buf *out) {
    struct table *table = table_create();
    table_column(table, "load", TABLE_LEFT);
    static const char *const HEADINGS[] = {"requests", "errors", "QPS",      "mean ms", "P50",
                                           "P90",      "P99",    "P99.9",    "max",     "svc P99",
                                           "in flight", "CPU",   "srv CPU", "device"};
    for (size_t i = 0; i < sizeof HEADINGS / sizeof HEADINGS[0]; i++)
        table_column(table, HEADINGS[i], TABLE_RIGHT);
    for (size_t i = 0; i < bench->step_count; i++) step_row(table, &bench->steps[i]);
    if (!table_write(table, "", out)) out->failed = true;
    table_free(table);
}

/* "1.20 to 1.35"; "from 1.20" where there are too few requests for an upper bound. */
static void interval_cell(struct table *table, const struct interval *interval) {
    char low[32], high[32];
    table_ms((double)interval->low / 1e6, low, sizeof low);
    table_ms((double)interval->high / 1e6, high, sizeof high);
    if (interval->has_low && interval->has_high) table_cell(table, "%s to %s", low, high);
    else if (interval->has_low) table_cell(table, "from %s", low);
    else if (interval->has_high) table_cell(table, "up to %s", high);
    else table_cell(table, "-");
}

static void show_intervals(const struct bench *bench, struct buf *out) {
    static const char *const HEADINGS[QUANTILE_COUNT] = {"P50", "P90", "P95", "P99", "P99.9"};
    struct table *table = table_create();
    table_column(table, "95 % intervals", TABLE_LEFT);
    for (int i = 0; i < QUANTILE_COUNT; i++) table_column(table, HEADINGS[i], TABLE_RIGHT);
    bool has_any = false;
    for (size_t i = 0; i < bench->step_count; i++) {
        const struct distribution *latency = &bench->steps[i].latency;
        char load[64];
        if (!latency->has_intervals) continue;
        has_any = true;
        load_text(&bench->steps[i].config, load, sizeof load);
        table_row(table);
        table_cell(table, "%s", load);
        for (int k = 0; k < QUANTILE_COUNT; k++) interval_cell(table, &latency->interval[k]);
    }
    if (has_any) {
        buf_char(out, '\n');
        if (!table_write(table, "", out)) out->failed = true;
    }
    table_free(table);
}

static void stage_row(struct table *table, const char *name, const struct stage_summary *stage) {
    table_row(table);
    table_cell(table, "  %s", name);
    ms_cell(table, stage->mean_ns, true);
    ms_cell(table, (double)stage->p99_ns, true);
    table_cell(table, "%.1f %%", stage->share * 100);
    table_cell(table, "%.1f %%", stage->tail_share * 100);
}

static void show_stages(const struct bench *bench, struct buf *out) {
    struct table *table = table_create();
    table_column(table, "where the time went", TABLE_LEFT);
    table_column(table, "mean ms", TABLE_RIGHT);
    table_column(table, "P99", TABLE_RIGHT);
    table_column(table, "share", TABLE_RIGHT);
    table_column(table, "of slowest 1 %", TABLE_RIGHT);
    bool has_any = false;
    for (size_t i = 0; i < bench->step_count; i++) {
        const struct step_summary *step = &bench->steps[i];
        if (step->with_server == 0) continue;
        char load[64];
        has_any = true;
        load_text(&step->config, load, sizeof load);
        table_row(table);
        table_cell(table, "%s", load);
        for (int k = 0; k < STAGE_COUNT; k++)
            if (step->stages[k].is_seen)
                stage_row(table, stage_name((enum stage)k), &step->stages[k]);
        stage_row(table, "outside the server", &step->outside);
    }
    if (has_any) {
        buf_char(out, '\n');
        if (!table_write(table, "", out)) out->failed = true;
    }
    table_free(table);
}

static void show_notes(const struct bench *bench, struct buf *out) {
    for (size_t i = 0; i < bench->step_count; i++) {
        const struct step_summary *step = &bench->steps[i];
        char load[64];
        load_text(&step->config, load, sizeof load);
        for (uint32_t k = 0; k < step->error_kinds; k++) {
            const struct step_error *error = &step->errors[k];
            buf_printf(out, "%s: %llu x %s", load, (unsigned long long)error->count,
                       outcome_name(error->outcome));
            if (error->http != 0) buf_printf(out, " %d", error->http);
            buf_printf(out, ": %s\n", error->detail);
        }
        if (!step->is_valid)
            buf_printf(out, "NOT VALID: %s: %s\n", load, step->reason);
    }
}

static bool has_rough(const struct bench *bench) {
    for (size_t i = 0; i < bench->step_count; i++)
        if (quantile_trust(bench->steps[i].latency.count, 0.999) != QUANTILE_FIRM) return true;
    return false;
}

void bench_show_tables(const struct bench *bench, struct buf *out) {
    if (bench->step_count == 0) return;
    buf_char(out, '\n');
    show_steps(bench, out);
    buf_text(out, "Latency in ms from the planned send (closed loop: from the send); svc: from the "
                  "actual send. CPU in processors.\n");
    if (has_rough(bench))
        buf_text(out, "~: too few requests for a 95 % upper bound (P99 needs 299, P99.9 2995); -: "
                      "too few to tell it from the maximum, or not known.\n");
    show_intervals(bench, out);
    show_stages(bench, out);
    show_notes(bench, out);
    if (bench_is_simulated(bench)) buf_text(out, "SIMULATED accelerator.\n");
}

/* result.json of a bench run; docs/bench.md says what the fields mean. Main thread.
 * Invariant: a field that is not known is null or absent, never 0. */
#include "load/bench.h"

#include "load/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RESULT_VERSION = 1 };

/* {"p99": [low, high], ...}; null: more values are needed before there is such a bound. */
static json_t *intervals_of(const struct distribution *values, double unit) {
    json_t *out = json_object();
    for (int i = 0; i < QUANTILE_COUNT; i++) {
        const struct interval *interval = &values->interval[i];
        json_t *bounds = json_array();
        json_array_append_new(bounds, interval->has_low
                                          ? report_json_number((double)interval->low / unit)
                                          : json_null());
        json_array_append_new(bounds, interval->has_high
                                          ? report_json_number((double)interval->high / unit)
                                          : json_null());
        json_object_set_new(out, quantile_name((enum quantile)i), bounds);
    }
    return out;
}

json_t *bench_result_distribution(const struct distribution *values, double unit) {
    if (values->count == 0) return json_null();
    json_t *out = json_object(), *needs = json_object();
    json_object_set_new(out, "count", json_integer((json_int_t)values->count));
    json_object_set_new(out, "min", report_json_number((double)values->min / unit));
    json_object_set_new(out, "mean", report_json_number(values->mean / unit));
    for (int i = 0; i < QUANTILE_COUNT; i++) {
        enum quantile quantile = (enum quantile)i;
        enum quantile_trust trust = quantile_trust(values->count, quantile_share(quantile));
        json_object_set_new(out, quantile_name(quantile),
                            trust == QUANTILE_ABSENT ? json_null()
                                                     : report_json_number((double)values->at[i] / unit));
        if (trust != QUANTILE_FIRM)
            json_object_set_new(needs, quantile_name(quantile),
                                json_integer((json_int_t)quantile_needs(quantile_share(quantile))));
    }
    json_object_set_new(out, "max", report_json_number((double)values->max / unit));
    if (values->has_intervals) json_object_set_new(out, "ci95", intervals_of(values, unit));
    if (json_object_size(needs) > 0) json_object_set_new(out, "too_few", needs);
    else json_decref(needs);
    return out;
}

static json_t *distribution_ms(const struct distribution *values) {
    return bench_result_distribution(values, 1e6);
}

static json_t *errors_of(const struct step_summary *step) {
    json_t *out = json_array();
    for (uint32_t i = 0; i < step->error_kinds; i++) {
        const struct step_error *error = &step->errors[i];
        json_t *item = json_object();
        json_object_set_new(item, "kind", report_json_text(outcome_name(error->outcome)));
        if (error->http != 0) json_object_set_new(item, "http", json_integer(error->http));
        json_object_set_new(item, "count", json_integer((json_int_t)error->count));
        json_object_set_new(item, "first", report_json_text(error->detail));
        json_array_append_new(out, item);
    }
    return out;
}

static json_t *stage_of(const struct stage_summary *stage) {
    json_t *out = json_object();
    json_object_set_new(out, "mean_ms", report_json_ms(stage->mean_ns));
    json_object_set_new(out, "p99_ms", report_json_ms((double)stage->p99_ns));
    json_object_set_new(out, "share", report_json_number(stage->share));
    json_object_set_new(out, "tail_share", report_json_number(stage->tail_share));
    return out;
}

static json_t *server_of(const struct step_summary *step) {
    if (step->with_server == 0) return json_null();
    json_t *out = json_object(), *stages = json_object();
    json_object_set_new(out, "requests", json_integer((json_int_t)step->with_server));
    json_object_set_new(out, "tail_requests", json_integer((json_int_t)step->tail_count));
    json_object_set_new(out, "total_ms", distribution_ms(&step->server_total));
    for (int i = 0; i < STAGE_COUNT; i++)
        if (step->stages[i].is_seen)
            json_object_set_new(stages, stage_name((enum stage)i), stage_of(&step->stages[i]));
    json_object_set_new(out, "stages", stages);
    json_object_set_new(out, "outside", stage_of(&step->outside));
    return out;
}

static json_t *config_of(const struct step_config *config) {
    json_t *out = json_object();
    bool has_rate = config->mode != LOAD_CLOSED, has_clients = config->mode != LOAD_OPEN;
    json_object_set_new(out, "step", json_integer(config->number));
    json_object_set_new(out, "mode", report_json_text(load_mode_name(config->mode)));
    json_object_set_new(out, "concurrency",
                        has_clients ? json_integer(config->concurrency) : json_null());
    json_object_set_new(out, "rate", has_rate ? report_json_number(config->rate) : json_null());
    return out;
}

json_t *bench_result_step(const struct step_summary *step) {
    json_t *out = config_of(&step->config), *cpu = json_object();
    json_object_set_new(out, "window_s", report_json_number(step->window_s));
    json_object_set_new(out, "requests", json_integer((json_int_t)step->requests));
    json_object_set_new(out, "ok", json_integer((json_int_t)step->ok));
    json_object_set_new(out, "failed", json_integer((json_int_t)step->failed));
    json_object_set_new(out, "timeouts", json_integer((json_int_t)step->timeouts));
    json_object_set_new(out, "timeouts_unsent", json_integer((json_int_t)step->unsent));
    json_object_set_new(out, "cancelled", json_integer((json_int_t)step->cancelled));
    json_object_set_new(out, "errors", errors_of(step));
    json_object_set_new(out, "qps", report_json_number(step->qps));
    json_object_set_new(out, "offered_qps", report_json_number(step->offered));
    json_object_set_new(out, "latency_ms", distribution_ms(&step->latency));
    json_object_set_new(out, "service_ms", distribution_ms(&step->service));
    json_object_set_new(out, "failed_latency_ms", distribution_ms(&step->failed_latency));
    json_object_set_new(out, "in_flight", report_json_number(step->in_flight));
    json_object_set_new(out, "in_flight_sent", report_json_number(step->in_flight_sent));
    json_object_set_new(out, "server", server_of(step));
    json_object_set_new(cpu, "client", report_json_number(step->client_cpu));
    json_object_set_new(cpu, "generator", report_json_number(step->generator_cpu));
    json_object_set_new(cpu, "server",
                        step->has_server_cpu ? report_json_number(step->server_cpu) : json_null());
    json_object_set_new(out, "cpu", cpu);
    json_object_set_new(out, "device",
                        step->has_device ? json_pack("{s:f,s:f}", "busy", step->device_busy,
                                                     "instances", step->instances)
                                         : json_null());
    json_object_set_new(out, "lateness_ms", distribution_ms(&step->lateness));
    json_object_set_new(out, "bytes_out", bench_result_distribution(&step->bytes_out, 1));
    json_object_set_new(out, "bytes_in", bench_result_distribution(&step->bytes_in, 1));
    json_object_set_new(out, "tokens", bench_result_distribution(&step->tokens, 1));
    json_object_set_new(out, "valid", json_boolean(step->is_valid));
    if (!step->is_valid) json_object_set_new(out, "reason", report_json_text(step->reason));
    json_object_set_new(out, "interrupted", json_boolean(step->is_interrupted));
    return out;
}

static json_t *host_of(void) {
    struct host host;
    host_read(&host);
    json_t *out = json_object();
    json_object_set_new(out, "cpu", report_json_text(host.cpu));
    json_object_set_new(out, "processors", json_integer(host.processors));
    json_object_set_new(out, "processors_usable", json_integer(host.processors_usable));
    json_object_set_new(out, "memory_bytes", json_integer((json_int_t)host.memory_bytes));
    json_object_set_new(out, "kernel", report_json_text(host.kernel));
    return out;
}

static const char *sent_as(const struct bench *bench) {
    const struct inputs *inputs = &bench->inputs;
    if (inputs->as_tokens) return "token ids";
    if (inputs->kind == INPUT_TEXT) return "text";
    if (inputs->kind != INPUT_IMAGE) return "tensors";
    return bench->engine == NULL && !inputs->is_binary ? "pictures in base64" : "pictures";
}

static json_t *input_of(const struct bench *bench) {
    const struct inputs *inputs = &bench->inputs;
    bool is_sequential = bench->config.order == ORDER_SEQUENTIAL;
    json_t *out = json_object();
    json_object_set_new(out, "kind", report_json_text(input_kind_name(inputs->kind)));
    json_object_set_new(out, "source", report_json_text(inputs->source));
    json_object_set_new(out, "count", json_integer((json_int_t)inputs->count));
    json_object_set_new(out, "order", report_json_text(is_sequential ? "sequential" : "shuffled"));
    json_object_set_new(out, "sent_as", report_json_text(sent_as(bench)));
    json_object_set_new(out, "format",
                        bench->engine != NULL ? json_null()
                                              : report_json_text(inputs->is_binary ? "binary" : "json"));
    json_object_set_new(out, "bytes", bench_result_distribution(&bench->input_bytes, 1));
    json_object_set_new(out, "tokens", bench_result_distribution(&bench->input_tokens, 1));
    json_object_set_new(out, "demo", json_boolean(bench_is_demo(bench)));
    return out;
}

/* In process alone: a server does not say. */
static json_t *weights_of_model(const struct bench *bench) {
    if (bench->served == NULL || !bench->served->model->weights.is_known) return json_null();
    const struct weights *weights = &bench->served->model->weights;
    json_t *out = json_object();
    json_object_set_new(out, "values", json_integer((json_int_t)weights->values));
    json_object_set_new(out, "subnormal", json_integer((json_int_t)weights->subnormal));
    json_object_set_new(out, "external_tensors", json_integer((json_int_t)weights->external));
    if (!bench->config.engine.denormal_as_zero && weights_may_be_slow(weights)) {
        char warning[480];
        weights_warning(weights, bench->model.name, warning, sizeof warning);
        json_object_set_new(out, "warning", report_json_text(warning));
    }
    return out;
}

static json_t *model_of(const struct bench *bench) {
    const struct bench_model *model = &bench->model;
    json_t *out = json_object();
    const char *const fields[][2] = {{"name", model->name},
                                     {"version", model->version},
                                     {"platform", model->platform},
                                     {"sha256", model->sha256}};
    for (size_t i = 0; i < 4; i++)
        json_object_set_new(out, fields[i][0],
                            fields[i][1] == NULL || *fields[i][1] == 0 ? json_null()
                                                                       : report_json_text(fields[i][1]));
    json_object_set_new(out, "weights", weights_of_model(bench));
    return out;
}

static json_t *target_of(const struct bench *bench) {
    json_t *out = json_object();
    json_object_set_new(out, "kind", report_json_text(bench->engine != NULL ? "in process" : "http"));
    if (bench->config.url != NULL) json_object_set_new(out, "url", report_json_text(bench->config.url));
    json_object_set_new(out, "server", report_json_text(bench->model.server));
    json_object_set_new(out, "server_version", report_json_text(bench->model.server_version));
    json_object_set_new(out, "simulated", json_boolean(bench_is_simulated(bench)));
    if (bench->target != NULL && bench->target->connections_peak > 0)
        json_object_set_new(out, "connections_peak",
                            json_integer(bench->target->connections_peak));
    return out;
}

/* Text that other code wrote as JSON: members without braces where is_members. */
static json_t *from_text(struct buf *text, bool is_members) {
    struct buf whole;
    buf_init(&whole);
    if (is_members) buf_char(&whole, '{');
    buf_append(&whole, text->data, text->size);
    if (is_members) buf_char(&whole, '}');
    json_t *out = whole.failed || text->failed ? NULL
                                               : json_loadb(whole.data, whole.size, 0, NULL);
    buf_done(&whole);
    return out == NULL ? json_null() : out;
}

static json_t *options_of(const struct bench *bench) {
    struct buf text;
    buf_init(&text);
    options_write_json(&BENCH_COMMAND, &bench->config, &text);
    json_t *out = from_text(&text, true);
    buf_done(&text);
    return out;
}

static json_t *engine_of(const struct bench *bench) {
    if (bench->engine == NULL) return json_null();
    struct buf text;
    buf_init(&text);
    engine_describe(bench->engine, &text);
    json_t *out = from_text(&text, false);
    buf_done(&text);
    return out;
}

static json_t *created_of(uint64_t wall_ns) {
    char text[32];
    time_t seconds = (time_t)(wall_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return report_json_text(text);
}

/* The first reason why a step does not count. */
static const char *invalid_reason(const struct bench *bench) {
    for (size_t i = 0; i < bench->step_count; i++)
        if (!bench->steps[i].is_valid) return bench->steps[i].reason;
    return NULL;
}

json_t *bench_result(const struct bench *bench) {
    json_t *out = json_object(), *words = json_array(), *steps = json_array();
    json_object_set_new(out, "format", report_json_text("telltale-bench"));
    json_object_set_new(out, "version", json_integer(RESULT_VERSION));
    json_object_set_new(out, "telltale", report_json_text(TELLTALE_VERSION));
    json_object_set_new(out, "created", created_of(bench->began_wall_ns));
    for (int i = 0; i < bench->argc; i++) json_array_append_new(words, report_json_text(bench->argv[i]));
    json_object_set_new(out, "command_line", words);
    json_object_set_new(out, "simulated", json_boolean(bench_is_simulated(bench)));
    json_object_set_new(out, "target", target_of(bench));
    json_object_set_new(out, "model", model_of(bench));
    json_object_set_new(out, "engine", engine_of(bench));
    json_object_set_new(out, "input", input_of(bench));
    json_object_set_new(out, "host", host_of());
    json_object_set_new(out, "options", options_of(bench));
    const char *reason = invalid_reason(bench);
    json_object_set_new(out, "valid", json_boolean(reason == NULL));
    if (reason != NULL) json_object_set_new(out, "reason", report_json_text(reason));
    json_object_set_new(out, "interrupted", json_boolean(bench->is_interrupted));
    for (size_t i = 0; i < bench->step_count; i++)
        json_array_append_new(steps, bench_result_step(&bench->steps[i]));
    json_object_set_new(out, "steps", steps);
    return out;
}

/* The report as JSON, format 1 (docs/explain.md). Any thread. Invariant: a member is never left
 * out; what is not known is null. Read next: report/json_file.h. */
#include "diag/explain_print.h"
#include "report/json_file.h"

#include <math.h>

enum { FORMAT = 1 };

/* Three decimals below the microsecond are noise. */
static json_t *rounded(double value) { return report_json_number(round(value * 1e6) / 1e6); }
static json_t *ms(double ns) { return rounded(ns / 1e6); }
static json_t *whole(uint64_t value) { return json_integer((json_int_t)value); }

static void put(json_t *object, const char *key, json_t *value) {
    /* Takes the reference, also when it fails. What memory was missing for is not silently left
     * out: the object says "failed". */
    if (json_object_set_new(object, key, value) != 0)
        json_object_set_new(object, "failed", json_true());
}

static json_t *known_text(const char *text) {
    return *text == 0 ? json_null() : report_json_text(text);
}

static json_t *run_of(const char *directory, const struct evidence *evidence) {
    const struct run *run = evidence->run;
    json_t *out = json_object();
    put(out, "directory", report_json_text(directory));
    put(out, "model", report_json_text(run->model));
    json_t *models = json_array();
    for (uint32_t i = 0; i < run->model_count; i++)
        json_array_append_new(models, report_json_text(run->models[i]));
    put(out, "models", models);
    put(out, "simulated", json_boolean(evidence->is_simulated));
    put(out, "requests_read", whole(run->count));
    put(out, "requests_total", run->summary.is_known ? whole(run->summary.requests) : json_null());
    put(out, "batches_read", whole(evidence->batches.written));
    put(out, "warm_up", whole(run->warm_up));
    put(out, "not_ok", whole(run->not_ok));
    put(out, "dropped", whole(run->summary.dropped));
    put(out, "complete",
        run->summary.is_known ? json_boolean(run->summary.is_complete) : json_null());
    put(out, "client_joined", run->client_lines > 0 ? whole(run->joined) : json_null());
    put(out, "client_step", run->joined > 0 ? whole(run->step) : json_null());
    put(out, "residual_max_ns", rounded(run->residual_max_ns));
    return out;
}

static json_t *config_of(const struct run_config *config) {
    if (!config->is_known) return json_null();
    json_t *out = json_object();
    put(out, "queue", known_text(config->queue));
    put(out, "policy", known_text(config->policy));
    put(out, "preprocess", known_text(config->preprocess));
    put(out, "backend", known_text(config->backend));
    put(out, "simulate", known_text(config->simulate));
    put(out, "model_sha256", known_text(config->sha256));
    put(out, "max_batch", whole(config->max_batch));
    put(out, "max_delay_us", whole(config->max_delay_us));
    put(out, "instances", whole(config->instances));
    put(out, "intra_op_threads", whole(config->intra_op_threads));
    put(out, "workers", whole(config->workers));
    put(out, "processors", whole(config->processors));
    return out;
}

static json_t *load_of(const struct evidence *evidence) {
    json_t *out = json_object();
    put(out, "requests_per_s", rounded(evidence->rate));
    put(out, "span_s", rounded(evidence->span_ns / 1e9));
    put(out, "in_flight", rounded(evidence->in_flight));
    put(out, "instances", whole(evidence->instances));
    put(out, "utilisation",
        evidence->utilisation < 0 ? json_null() : rounded(evidence->utilisation));
    put(out, "dispersion", evidence->dispersion > 0 ? rounded(evidence->dispersion) : json_null());
    put(out, "p50_ms", ms((double)evidence->p50_ns));
    put(out, "p99_ms", ms((double)evidence->p99_ns));
    return out;
}

static json_t *parts_of(const struct group *group) {
    json_t *out = json_object();
    for (unsigned i = 0; i < PART_COUNT; i++)
        put(out, part_name((enum part)i), ms(group->part_ns[i]));
    return out;
}

static json_t *steps_of(const struct group *group) {
    json_t *out = json_object();
    for (unsigned i = 0; i < STEP_COUNT; i++)
        put(out, step_name((enum step)i), ms(group->step_ns[i]));
    return out;
}

static json_t *queue_of(const struct group *group) {
    json_t *out = json_object(), *holders = json_object(), *activities = json_object();
    put(out, "wait_ms", ms(group->queue_ns));
    put(out, "hold_ms", ms(group->part_ns[STAGE_BATCH_HOLD]));
    put(out, "instance_wait_ms", ms(group->part_ns[STAGE_INSTANCE_WAIT]));
    put(out, "wake_ms", ms(group->wake_ns));
    put(out, "enqueue_ms", ms(group->part_ns[STAGE_BATCH_ENQUEUE]));
    put(out, "lock_wait_ms", ms(group->lock_wait_ns));
    for (unsigned i = HOLDER_LOOP; i < HOLDER_COUNT; i++)
        put(holders, holder_name((enum holder)i), ms(group->holder_ns[i]));
    put(out, "lock_wait_by_holder_ms", holders);
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++)
        put(activities, activity_name((enum activity)i),
            group->queue_ns > 0 ? rounded(group->activity_ns[i] / group->queue_ns) : json_null());
    put(out, "instances_meanwhile", activities);
    return out;
}

static json_t *reasons_of(const double *shares) {
    json_t *out = json_object();
    for (unsigned i = 0; i < REASON_COUNT; i++)
        put(out, reason_name((enum reason)i), rounded(shares[i]));
    return out;
}

static json_t *group_json(const struct group *group) {
    json_t *out = json_object();
    put(out, "requests", whole(group->requests));
    put(out, "from_ms", ms((double)group->from_ns));
    put(out, "to_ms", ms((double)group->to_ns));
    put(out, "total_ms", ms(group->whole_ns));
    put(out, "server_total_ms", ms(group->total_ns));
    put(out, "stages_ms", parts_of(group));
    put(out, "steps_ms", steps_of(group));
    put(out, "queue", queue_of(group));
    put(out, "reasons", reasons_of(group->reason_share));
    put(out, "batch_size", rounded(group->batch_size));
    put(out, "tokens", rounded(group->tokens));
    put(out, "padded", rounded(group->padded));
    put(out, "bytes_in", rounded(group->bytes_in));
    put(out, "bytes_out", rounded(group->bytes_out));
    put(out, "run_delay_ms", ms(group->run_delay_ns));
    put(out, "cpu_ms", ms(group->cpu_ns));
    return out;
}

static json_t *stages_json(const struct evidence *evidence) {
    const double excess_ns = evidence_excess_ns(evidence);
    json_t *out = json_array();
    for (unsigned i = 0; i < PART_COUNT; i++) {
        const double slow = evidence->slow.part_ns[i], middle = evidence->middle.part_ns[i];
        json_t *row = json_object();
        put(row, "stage", json_string(part_name((enum part)i)));
        put(row, "slow_ms", ms(slow));
        put(row, "middle_ms", ms(middle));
        put(row, "excess_ms", ms(slow - middle));
        put(row, "share_of_slow", rounded(slow / evidence->slow.whole_ns));
        put(row, "share_of_excess",
            excess_ns > 0 ? rounded((slow - middle) / excess_ns) : json_null());
        json_array_append_new(out, row);
    }
    return out;
}

static json_t *evidence_json(const struct evidence *evidence) {
    static const char *const RULES[] = {"all", "window", "uniform"};
    json_t *out = json_object();
    put(out, "slow_share", rounded(evidence->slow_share));
    put(out, "slow_rule", json_string(RULES[evidence->slow_rule]));
    put(out, "excess_ms", ms(evidence_excess_ns(evidence)));
    put(out, "stages", stages_json(evidence));
    put(out, "slow", group_json(&evidence->slow));
    put(out, "middle", group_json(&evidence->middle));
    json_t *slowest = json_array();
    for (uint32_t i = 0; i < evidence->slowest_count; i++)
        json_array_append_new(
            slowest, report_json_text(
                         run_id(evidence->run, &evidence->run->requests[evidence->slowest[i]])));
    put(out, "slowest", slowest);
    return out;
}

static json_t *batches_json(const struct evidence *evidence) {
    const struct batch_evidence *batches = &evidence->batches;
    const struct cost_fit *fit = &evidence->fit;
    if (batches->count <= 0) return json_null();
    json_t *out = json_object(), *cost = json_null();
    put(out, "size_mean", rounded(batches->size));
    put(out, "size_p50", whole(batches->size_p50));
    put(out, "size_p99", whole(batches->size_p99));
    put(out, "max_batch", whole(batches->max_batch));
    put(out, "waiting_behind", rounded(batches->waiting));
    put(out, "reasons", reasons_of(batches->reason_share));
    put(out, "padding_waste", rounded(batches->padding_waste));
    put(out, "busy_ms", ms(batches->busy_ns));
    put(out, "inline_ms", ms(batches->inline_ns));
    put(out, "execute_ms", ms(batches->execute_ns));
    put(out, "run_delay_ms", ms(batches->run_delay_ns));
    put(out, "cpu_ms", ms(batches->cpu_ns));
    if (fit->is_known) {
        cost = json_object();
        put(cost, "a_ms", ms(fit->a_ns));
        put(cost, "b_us", rounded(fit->b_ns / 1e3));
        put(cost, "by", json_string(fit->is_by_elements ? "padded_elements" : "rows"));
        put(cost, "r2", rounded(fit->r2));
        put(cost, "residual_ms", ms(fit->residual_ns));
        put(cost, "batches", whole(fit->batches));
    }
    put(out, "cost", cost);
    return out;
}

static json_t *interval_json(const struct interval *interval) {
    json_t *out = json_array();
    json_array_append_new(out, rounded(interval->low));
    json_array_append_new(out, rounded(interval->high));
    return out;
}

static json_t *finding_json(const struct finding *finding, bool stands) {
    json_t *out = json_object(), *figures = json_object();
    put(out, "cause", json_string(finding->cause->name));
    put(out, "title", json_string(finding->cause->title));
    put(out, "kind", json_string(finding->cause->kind == CAUSE_FAULT ? "fault" : "ordinary"));
    put(out, "slow_ms", ms(finding->slow_ns));
    put(out, "middle_ms", ms(finding->middle_ns));
    put(out, "share_of_slow", rounded(finding->share_of_total));
    put(out, "share_of_excess", rounded(finding->share_of_excess));
    put(out, "ranked_by", json_string(finding->is_by_excess ? "excess" : "slow"));
    put(out, "share_of_slow_95",
        finding->is_large ? interval_json(&finding->total_interval) : json_null());
    put(out, "share_of_excess_95",
        finding->is_large ? interval_json(&finding->excess_interval) : json_null());
    for (size_t i = 0; i < finding->figure_count; i++)
        put(figures, finding->figures[i].key, rounded(finding->figures[i].value));
    put(out, "figures", figures);
    put(out, "option", known_text(finding->cause->option));
    put(out, "advice", known_text(finding->advice));
    put(out, "expected_slow_ms", finding->expected_ns > 0 ? ms(finding->expected_ns) : json_null());
    put(out, "why_not", stands            ? json_null()
                        : !finding->holds ? known_text(finding->why_not)
                        : !finding->is_large ? json_string("it explains too little")
                                             : json_string("what it explains may be chance"));
    return out;
}

enum status explain_json(const char *directory, const struct evidence *evidence,
                         const struct findings *findings, struct buf *out) {
    json_t *document = json_object(), *standing = json_array(), *rest = json_array();
    json_t *notes = json_array();
    put(document, "format", json_integer(FORMAT));
    put(document, "telltale", json_string(TELLTALE_VERSION));
    put(document, "verdict", json_string(verdict_name(findings->verdict)));
    put(document, "cause", findings->verdict == VERDICT_NONE
                               ? json_null() : json_string(findings->items[0].cause->name));
    for (size_t i = 0; i < findings->count; i++)
        json_array_append_new(i < findings->standing ? standing : rest,
                              finding_json(&findings->items[i], i < findings->standing));
    put(document, "findings", standing);
    for (size_t i = 0; i < findings->note_count; i++)
        json_array_append_new(notes, report_json_text(findings->notes[i]));
    put(document, "notes", notes);
    put(document, "run", run_of(directory, evidence));
    put(document, "config", config_of(&evidence->run->config));
    put(document, "load", load_of(evidence));
    put(document, "evidence", evidence_json(evidence));
    put(document, "batches", batches_json(evidence));
    put(document, "not_blamed", rest);
    put(document, "time_blocks", whole(findings->blocks));
    const enum status status = json_file_print(document, out);
    json_decref(document);
    return status;
}

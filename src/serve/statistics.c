/* The statistics extension in Triton's form, from the tracer's sums. Loop thread only.
 *
 * Invariant: queue + input + infer + output never exceed the request's total, because they are
 * sums of disjoint stages.
 * Read next: measure/trace_stats.h, metrics.c. */
#include "serve/statistics.h"

struct triton_durations statistics_durations(const struct trace_stats *stats) {
    struct triton_durations out = {.success = stats->by_status[ST_OK],
                                   .request_ns = stats->total_sum_ns,
                                   .input_ns = stats->stage_sum_ns[STAGE_INPUT_COPY],
                                   .infer_ns = stats->stage_sum_ns[STAGE_EXECUTE],
                                   .output_ns = stats->stage_sum_ns[STAGE_OUTPUT_COPY]};
    for (int status = ST_OK + 1; status < ST_COUNT; status++)
        out.failure += stats->by_status[status];
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (stage_is_queue((enum stage)stage))
            out.queue_ns += stats->stage_sum_ns[stage];
    return out;
}

static void write_duration(struct buf *out, const char *name, uint64_t count, uint64_t ns) {
    buf_text(out, "\"");
    buf_text(out, name);
    buf_text(out, "\":{\"count\":");
    buf_u64(out, count);
    buf_text(out, ",\"ns\":");
    buf_u64(out, ns);
    buf_char(out, '}');
}

static void write_model(struct server *server, const struct served_model *served) {
    struct buf *out = &server->body;
    struct tracer *tracer = engine_tracer(server->engine);
    const struct trace_stats *stats = tracer_stats_lock(tracer, served->trace_model);
    const struct triton_durations sums = statistics_durations(stats);
    const uint64_t rows = stats->rows;
    const uint64_t batches = stats->batches;
    tracer_stats_unlock(tracer);

    buf_text(out, "{\"name\":");
    buf_json_string(out, view_of(served->model->name));
    buf_text(out, ",\"version\":");
    buf_json_string(out, view_of(served->model->version));
    buf_text(out, ",\"last_inference\":0,\"inference_count\":");
    buf_u64(out, rows);
    buf_text(out, ",\"execution_count\":");
    buf_u64(out, batches);
    buf_text(out, ",\"inference_stats\":{");
    write_duration(out, "success", sums.success, sums.request_ns);
    buf_char(out, ',');
    write_duration(out, "fail", sums.failure, 0);
    buf_char(out, ',');
    write_duration(out, "queue", sums.success, sums.queue_ns);
    buf_char(out, ',');
    write_duration(out, "compute_input", sums.success, sums.input_ns);
    buf_char(out, ',');
    write_duration(out, "compute_infer", sums.success, sums.infer_ns);
    buf_char(out, ',');
    write_duration(out, "compute_output", sums.success, sums.output_ns);
    buf_text(out, ",\"cache_hit\":{\"count\":0,\"ns\":0},\"cache_miss\":{\"count\":0,\"ns\":0}},"
                  "\"batch_stats\":[]}");
}

enum status statistics_write(struct server *server, const struct served_model *served,
                             struct err *err) {
    buf_text(&server->body, "{\"model_stats\":[");
    if (served) {
        write_model(server, served);
    } else {
        struct engine_models models;
        const enum status status = engine_models_get(server->engine, &models, err);
        if (status != ST_OK)
            return status;
        for (size_t i = 0; i < models.count; i++) {
            if (i)
                buf_char(&server->body, ',');
            write_model(server, models.items[i]);
        }
        engine_models_done(&models);
    }
    buf_text(&server->body, "]}");
    return ST_OK;
}

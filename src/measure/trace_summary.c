/* summary.json, by hand: a fixed shape, written once.
 *
 * Thread: whoever ends the tracer, after its writer thread has stopped.
 * Next: docs/trace.md (what the members mean). */
#include "measure/trace_summary.h"

#include "measure/trace_json.h"
#include <stdio.h>

static void key(struct buf *out, const char *name) {
    buf_json_string(out, view_of(name));
    buf_char(out, ':');
}

static void member_u64(struct buf *out, const char *name, uint64_t value) {
    key(out, name);
    buf_u64(out, value);
    buf_char(out, ',');
}

static void member_bool(struct buf *out, const char *name, bool value) {
    key(out, name);
    buf_text(out, value ? "true," : "false,");
}

static void member_double(struct buf *out, const char *name, double value) {
    key(out, name);
    buf_printf(out, "%.6g,", value);
}

/* Every member above ends in a comma; the last one's goes when the object closes. */
static void close_object(struct buf *out, const char *end) {
    if (out->size > 0 && out->data[out->size - 1] == ',' && !out->failed) out->size--;
    buf_text(out, end);
}

static void distribution(struct buf *out, const char *name, const struct histogram *histogram) {
    key(out, name);
    buf_char(out, '{');
    member_u64(out, "count", histogram->count);
    member_u64(out, "sum", (uint64_t)histogram->sum);
    key(out, "mean");
    buf_printf(out, "%.1f,", histogram_mean(histogram));
    member_u64(out, "min", histogram->min);
    member_u64(out, "p50", histogram_quantile(histogram, 0.5));
    member_u64(out, "p90", histogram_quantile(histogram, 0.9));
    member_u64(out, "p99", histogram_quantile(histogram, 0.99));
    member_u64(out, "p999", histogram_quantile(histogram, 0.999));
    member_u64(out, "max", histogram->max);
    close_object(out, "},");
}

static void batches(struct buf *out, const struct trace_stats *stats) {
    key(out, "batches");
    buf_char(out, '{');
    member_u64(out, "count", stats->batches);
    member_u64(out, "failed", stats->batches_failed);
    member_u64(out, "simulated", stats->batches_simulated);
    distribution(out, "requests", &stats->batch_requests);
    distribution(out, "queue", &stats->queue_requests);
    key(out, "by_reason");
    buf_char(out, '{');
    for (unsigned i = 0; i < REASON_COUNT; i++) {
        member_u64(out, reason_name((enum reason)i), stats->by_reason[i]);
    }
    close_object(out, "},");
    member_u64(out, "real_elements", stats->real_elements);
    member_u64(out, "padded_elements", stats->padded_elements);
    member_u64(out, "busy_ns", stats->busy_ns);
    member_u64(out, "execute_ns", stats->execute_ns);
    close_object(out, "},");
}

/* Those that some request had. */
static void steps(struct buf *out, const struct trace_stats *stats) {
    key(out, "steps");
    buf_char(out, '{');
    for (unsigned i = 0; i < STEP_COUNT; i++) {
        if (stats->step_requests[i] == 0) continue;
        char name[40];
        snprintf(name, sizeof name, "%s_ns", step_name((enum step)i));
        key(out, name);
        buf_char(out, '{');
        member_u64(out, "count", stats->step_requests[i]);
        member_u64(out, "sum", stats->step_sum_ns[i]);
        member_u64(out, "max", stats->step_max_ns[i]);
        close_object(out, "},");
    }
    close_object(out, "},");
}

static void model(struct buf *out, const struct trace_stats *stats) {
    buf_char(out, '{');
    key(out, "model");
    buf_json_string(out, view_of(stats->model));
    buf_char(out, ',');
    member_u64(out, "requests", stats->total_ns.count);
    key(out, "by_status");
    buf_char(out, '{');
    for (unsigned i = 0; i < ST_COUNT; i++) {
        if (i == ST_OK || stats->by_status[i] > 0) {
            member_u64(out, trace_json_status(i), stats->by_status[i]);
        }
    }
    close_object(out, "},");
    member_u64(out, "rows", stats->rows);
    member_u64(out, "bytes_in", stats->bytes_in);
    member_u64(out, "bytes_out", stats->bytes_out);
    distribution(out, "total_ns", &stats->total_ns);
    key(out, "stages");
    buf_char(out, '{');
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_ns", stage_name((enum stage)i));
        distribution(out, name, &stats->stage_ns[i]);
    }
    close_object(out, "},");
    key(out, "stage_sum_ok_ns");
    buf_char(out, '{');
    member_u64(out, "total_ns", stats->total_sum_ns);
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_ns", stage_name((enum stage)i));
        member_u64(out, name, stats->stage_sum_ns[i]);
    }
    close_object(out, "},");
    steps(out, stats);
    distribution(out, "lock_wait_ns", &stats->lock_wait_ns);
    batches(out, stats);
    member_u64(out, "stamps_out_of_order", stats->stamps_out_of_order);
    close_object(out, "}");
}

static void sampling(struct buf *out, const struct tracer_config *config) {
    key(out, "sampling");
    buf_char(out, '{');
    member_bool(out, "all", config->all);
    member_double(out, "slow_share", config->slow_share);
    member_double(out, "uniform_share", config->uniform_share);
    member_u64(out, "window_ns", config->window_ns);
    close_object(out, "},");
}

static void written(struct buf *out, const struct trace_dir *dir) {
    key(out, "written");
    buf_char(out, '{');
    member_u64(out, "requests", dir->requests.lines);
    member_u64(out, "batches", dir->batches.lines);
    member_u64(out, "bytes", dir->requests.bytes + dir->batches.bytes);
    member_bool(out, "complete", !dir->is_stopped);
    key(out, "error");
    buf_json_string(out, view_of(dir->error.text));
    close_object(out, "},");
}

void trace_summary_write(struct buf *out, const struct trace_summary *summary) {
    buf_char(out, '{');
    member_u64(out, "format", 1);
    key(out, "version");
    buf_text(out, "\"" TELLTALE_VERSION "\",");
    member_u64(out, "start_unix_ns", summary->start_unix_ns);
    member_u64(out, "start_ns", summary->start_ns);
    member_u64(out, "end_ns", summary->end_ns);
    member_u64(out, "dropped", summary->dropped);
    member_u64(out, "dropped_unknown_model", summary->dropped_unknown_model);
    sampling(out, summary->config);
    written(out, summary->dir);
    if (summary->loop_turn_ns != NULL) {
        distribution(out, "loop_turn_ns", summary->loop_turn_ns);
        distribution(out, "loop_turn_cpu_ns", summary->loop_turn_cpu_ns);
    }
    key(out, "models");
    buf_char(out, '[');
    for (unsigned i = 0; i < summary->model_count; i++) {
        buf_text(out, "\n");
        model(out, summary->models[i]);
        buf_char(out, ',');
    }
    close_object(out, "]}\n");
}

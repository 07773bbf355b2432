/* The metrics page: what is counted a model, Triton's names first. Loop thread only.
 *
 * Invariant: durations come from the tracer's sums, so that the page, the trace files and the
 * statistics extension agree; they lag by as much as the tracer's writer does.
 * Read next: metrics.c, statistics.c, docs/metrics.md. */
#include "measure/prom.h"
#include "serve/metrics.h"
#include "serve/statistics.h"
#include <inttypes.h>
#include <stdio.h>

#define COUNT_OF(table) (unsigned)(sizeof(table) / sizeof(table)[0])

static const uint64_t SECONDS_BOUNDS[] = {/* ns */
    10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000};
static const uint64_t BATCH_BOUNDS[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024};
static const uint64_t QUEUE_BOUNDS[] = {1,  2,  4,   8,   16,  32,   64,   128,
                                        256, 512, 1024, 2048, 4096, 8192, 16384, 65536};

/* A model's figures while its families are written: label room for one more. */
struct view_of_model {
    const struct served_model *served;
    const struct trace_stats *stats; /* locked only during each write */
    struct batcher_stats batcher;
    struct prom_label labels[4];
};

typedef void (*family_fn)(struct buf *out, const char *name, struct view_of_model *view);

struct family {
    const char *name, *type, *help;
    family_fn write;
};

static void value(struct buf *out, const char *name, struct view_of_model *view, uint64_t number) {
    prom_u64(out, name, view->labels, 2, number);
}

static void request_success(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->stats->by_status[ST_OK]);
}

static void request_failure(struct buf *out, const char *name, struct view_of_model *view) {
    static const char *const REASONS[] = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
    uint64_t counts[4] = {0};
    for (int status = ST_OK + 1; status < ST_COUNT; status++) {
        int reason = 3;
        if (status == ST_CANCELLED)
            reason = 1;
        else if (status == ST_INTERNAL || status == ST_IO)
            reason = 2;
        else if (status_is_retryable((enum status)status))
            reason = 0;
        counts[reason] += view->stats->by_status[status];
    }
    for (int i = 0; i < 4; i++) {
        view->labels[2] = (struct prom_label){"reason", REASONS[i]};
        prom_u64(out, name, view->labels, 3, counts[i]);
    }
}

static void inference_count(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->stats->rows);
}

static void exec_count(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->stats->batches);
}

static void request_us(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, statistics_durations(view->stats).request_ns / 1000);
}

static void queue_us(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, statistics_durations(view->stats).queue_ns / 1000);
}

static void input_us(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, statistics_durations(view->stats).input_ns / 1000);
}

static void infer_us(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, statistics_durations(view->stats).infer_ns / 1000);
}

static void output_us(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, statistics_durations(view->stats).output_ns / 1000);
}

static void waiting(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->batcher.waiting);
}

static void by_status(struct buf *out, const char *name, struct view_of_model *view) {
    for (int status = 0; status < ST_COUNT; status++) {
        view->labels[2] = (struct prom_label){"status", status_name((enum status)status)};
        prom_u64(out, name, view->labels, 3, view->stats->by_status[status]);
    }
}

static void request_seconds(struct buf *out, const char *name, struct view_of_model *view) {
    prom_histogram(out, name, view->labels, 2, &view->stats->total_ns, SECONDS_BOUNDS,
                   COUNT_OF(SECONDS_BOUNDS), 1e9);
}

static void stage_seconds(struct buf *out, const char *name, struct view_of_model *view) {
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        view->labels[2] = (struct prom_label){"stage", stage_name((enum stage)stage)};
        prom_histogram(out, name, view->labels, 3, &view->stats->stage_ns[stage], SECONDS_BOUNDS,
                       COUNT_OF(SECONDS_BOUNDS), 1e9);
    }
}

static void step_seconds(struct buf *out, const char *name, struct view_of_model *view) {
    for (int step = 0; step < STEP_COUNT; step++) {
        view->labels[2] = (struct prom_label){"step", step_name((enum step)step)};
        prom_double(out, name, view->labels, 3, (double)view->stats->step_sum_ns[step] / 1e9);
    }
}

static void step_requests(struct buf *out, const char *name, struct view_of_model *view) {
    for (int step = 0; step < STEP_COUNT; step++) {
        view->labels[2] = (struct prom_label){"step", step_name((enum step)step)};
        prom_u64(out, name, view->labels, 3, view->stats->step_requests[step]);
    }
}

static void batch_size(struct buf *out, const char *name, struct view_of_model *view) {
    prom_histogram(out, name, view->labels, 2, &view->stats->batch_requests, BATCH_BOUNDS,
                   COUNT_OF(BATCH_BOUNDS), 1);
}

static void queue_depth(struct buf *out, const char *name, struct view_of_model *view) {
    prom_histogram(out, name, view->labels, 2, &view->stats->queue_requests, QUEUE_BOUNDS,
                   COUNT_OF(QUEUE_BOUNDS), 1);
}

static void batches(struct buf *out, const char *name, struct view_of_model *view) {
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        view->labels[2] = (struct prom_label){"reason", reason_name((enum reason)reason)};
        prom_u64(out, name, view->labels, 3, view->stats->by_reason[reason]);
    }
}

static void real_elements(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->stats->real_elements);
}

static void padded_elements(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->stats->padded_elements);
}

static void refused(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->batcher.refused);
}

static void wakes(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->batcher.wake_calls);
}

static void instances(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->batcher.instances);
}

static void busy_instances(struct buf *out, const char *name, struct view_of_model *view) {
    value(out, name, view, view->batcher.busy_instances);
}

static void instance_busy(struct buf *out, const char *name, struct view_of_model *view) {
    prom_double(out, name, view->labels, 2, (double)view->stats->busy_ns / 1e9);
}

static void device_busy(struct buf *out, const char *name, struct view_of_model *view) {
    prom_double(out, name, view->labels, 2, (double)view->batcher.device_busy_ns / 1e9);
}

/* Buckets of powers of two ns, every second one from 256 ns to about 1 s. */
static void lock_histogram(struct buf *out, const char *name, struct view_of_model *view,
                           const uint64_t *buckets, uint64_t unlisted, uint64_t sum_ns) {
    char full[96];
    char le[32];
    uint64_t below = unlisted;
    (void)snprintf(full, sizeof full, "%s_bucket", name);
    for (unsigned i = 0; i < LOCK_BUCKETS; i++) {
        below += buckets[i];
        if (i % 2 == 0 || i < 7 || i > 29)
            continue;
        (void)snprintf(le, sizeof le, "%.9g", (double)(UINT64_C(2) << i) / 1e9);
        view->labels[3] = (struct prom_label){"le", le};
        prom_u64(out, full, view->labels, 4, below);
    }
    view->labels[3] = (struct prom_label){"le", "+Inf"};
    prom_u64(out, full, view->labels, 4, below);
    (void)snprintf(full, sizeof full, "%s_sum", name);
    prom_double(out, full, view->labels, 3, (double)sum_ns / 1e9);
    (void)snprintf(full, sizeof full, "%s_count", name);
    prom_u64(out, full, view->labels, 3, below);
}

static void lock_wait(struct buf *out, const char *name, struct view_of_model *view) {
    for (int role = 0; view->batcher.has_lock && role < ROLE_COUNT; role++) {
        const struct lock_stats *lock = &view->batcher.lock[role];
        if (lock->acquisitions == 0)
            continue;
        view->labels[2] = (struct prom_label){"role", role_name((enum role)role)};
        /* An acquisition that found the lock free waited for nothing. */
        lock_histogram(out, name, view, lock->wait_buckets, lock->acquisitions - lock->contended,
                       lock->wait_ns);
    }
}

static void lock_hold(struct buf *out, const char *name, struct view_of_model *view) {
    for (int role = 0; view->batcher.has_lock && role < ROLE_COUNT; role++) {
        const struct lock_stats *lock = &view->batcher.lock[role];
        if (lock->acquisitions == 0)
            continue;
        view->labels[2] = (struct prom_label){"role", role_name((enum role)role)};
        lock_histogram(out, name, view, lock->hold_buckets, 0, lock->hold_ns);
    }
}

static const struct family FAMILIES[] = {
    {"nv_inference_request_success", "counter", "Successful inference requests.", request_success},
    {"nv_inference_request_failure", "counter", "Failed inference requests by reason.",
     request_failure},
    {"nv_inference_count", "counter", "Inferences: rows run, a batch of n counts n.",
     inference_count},
    {"nv_inference_exec_count", "counter", "Batches run.", exec_count},
    {"nv_inference_request_duration_us", "counter",
     "Total time of successful requests in microseconds.", request_us},
    {"nv_inference_queue_duration_us", "counter",
     "Time in the queue: batch_enqueue, batch_hold, instance_wait and dispatch, in microseconds.",
     queue_us},
    {"nv_inference_compute_input_duration_us", "counter", "Stage input_copy in microseconds.",
     input_us},
    {"nv_inference_compute_infer_duration_us", "counter", "Stage execute in microseconds.",
     infer_us},
    {"nv_inference_compute_output_duration_us", "counter", "Stage output_copy in microseconds.",
     output_us},
    {"nv_inference_pending_request_count", "gauge", "Requests waiting for an instance.", waiting},
    {"telltale_requests_total", "counter", "Inference requests by outcome.", by_status},
    {"telltale_request_duration_seconds", "histogram",
     "First byte of the request to last byte of the answer handed to the kernel.",
     request_seconds},
    {"telltale_stage_duration_seconds", "histogram", "Time of requests by stage.", stage_seconds},
    {"telltale_step_seconds_total", "counter",
     "Time in each step of the pipelines' preprocessing and postprocessing.", step_seconds},
    {"telltale_step_requests_total", "counter", "Requests that had the step.", step_requests},
    {"telltale_batch_size", "histogram", "Requests in a batch.", batch_size},
    {"telltale_queue_depth", "histogram",
     "Requests waiting when a batch was taken, its own included.", queue_depth},
    {"telltale_batches_total", "counter", "Batches by the reason they were dispatched.", batches},
    {"telltale_padding_elements_real_total", "counter",
     "Elements on the padded axis (tokens) that requests brought.", real_elements},
    {"telltale_padding_elements_padded_total", "counter",
     "Elements on the padded axis that were run, padding included.", padded_elements},
    {"telltale_queue_length", "gauge", "Requests waiting for an instance.", waiting},
    {"telltale_queue_refused_total", "counter", "Requests refused because the queue was full.",
     refused},
    {"telltale_wake_calls_total", "counter",
     "System calls that producers made to wake an instance.", wakes},
    {"telltale_instances", "gauge", "Instances of the model.", instances},
    {"telltale_instances_busy", "gauge", "Instances running a batch now.", busy_instances},
    {"telltale_instance_busy_seconds_total", "counter",
     "Sum over the instances of the time from a batch taken to its outputs ready.", instance_busy},
    {"telltale_device_busy_seconds_total", "counter",
     "Time the device was busy; 0 where the back end cannot tell.", device_busy},
    {"telltale_lock_wait_seconds", "histogram",
     "Waits for the queue's lock by role of the waiting thread (queue=mutex).", lock_wait},
    {"telltale_lock_hold_seconds", "histogram",
     "Holds of the queue's lock by role of the holding thread (queue=mutex).", lock_hold},
};

void metrics_write_models(struct server *server) {
    struct tracer *tracer = engine_tracer(server->engine);
    struct engine_models models = {.items = NULL}; /* none, where memory is out */
    struct err err;
    if (engine_models_get(server->engine, &models, &err) != ST_OK)
        models.count = 0;
    for (unsigned i = 0; i < COUNT_OF(FAMILIES); i++) {
        prom_family(&server->body, FAMILIES[i].name, FAMILIES[i].type, FAMILIES[i].help);
        for (size_t m = 0; m < models.count; m++) {
            struct view_of_model view = {.served = models.items[m]};
            engine_stats(view.served, &view.batcher);
            view.labels[0] = (struct prom_label){"model", view.served->model->name};
            view.labels[1] = (struct prom_label){"version", view.served->model->version};
            view.stats = tracer_stats_lock(tracer, view.served->trace_model);
            FAMILIES[i].write(&server->body, FAMILIES[i].name, &view);
            tracer_stats_unlock(tracer);
        }
    }
    engine_models_done(&models);
}

/* The arrays of a run: growing them, choosing a model, linking requests with batches. Any
 * thread, one run at a time. Invariant after run_finish: batches are in order of their numbers,
 * and requests[i].batch_index is the batch of that number or NO_BATCH. Read next: run_read.c. */
#include "diag/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *part_name(enum part part) {
    if (part == PART_NETWORK) return "network";
    if (part == PART_GENERATOR) return "generator";
    return stage_name((enum stage)part);
}

const char *holder_name(enum holder holder) {
    static const char *const NAMES[HOLDER_COUNT] = {"none", "loop", "worker", "instance", "other"};
    return (unsigned)holder < HOLDER_COUNT ? NAMES[holder] : "other";
}

void run_init(struct run *run) {
    *run = (struct run){0};
    buf_init(&run->ids);
}

void run_done(struct run *run) {
    free(run->requests);
    free(run->batches);
    buf_done(&run->ids);
    *run = (struct run){0};
}

/* NULL when memory is out; the old array is then still the caller's. */
static void *grown(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return items;
    const size_t wanted = *capacity == 0 ? 1024 : *capacity + *capacity / 2;
    if (wanted > SIZE_MAX / item_size) return NULL;
    void *more = realloc(items, wanted * item_size);
    if (more != NULL) *capacity = wanted;
    return more;
}

bool run_add_request(struct run *run, const struct run_request *request) {
    void *items = grown(run->requests, run->count, &run->capacity, sizeof *run->requests);
    if (items == NULL) return false;
    run->requests = items;
    run->requests[run->count++] = *request;
    return true;
}

bool run_add_batch(struct run *run, const struct run_batch *batch) {
    void *items =
        grown(run->batches, run->batch_count, &run->batch_capacity, sizeof *run->batches);
    if (items == NULL) return false;
    run->batches = items;
    run->batches[run->batch_count++] = *batch;
    return true;
}

double run_span_ns(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? (double)(to_ns - from_ns) : 0;
}

const char *run_id(const struct run *run, const struct run_request *request) {
    return request->id < run->ids.size ? run->ids.data + request->id : "";
}

static int by_number(const void *a, const void *b) {
    const struct run_batch *x = a, *y = b;
    return (x->batch > y->batch) - (x->batch < y->batch);
}

static int32_t find_batch(const struct run *run, uint64_t number) {
    size_t low = 0, high = run->batch_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (run->batches[middle].batch < number) low = middle + 1;
        else high = middle;
    }
    return low < run->batch_count && run->batches[low].batch == number ? (int32_t)low : NO_BATCH;
}

static enum status choose_model(struct run *run, const char *name, uint16_t *out, struct err *err) {
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < run->model_count; i++) {
        if (name != NULL && strcmp(run->models[i], name) == 0) {
            *out = (uint16_t)i;
            return ST_OK;
        }
        if (run->model_requests[i] > run->model_requests[chosen]) chosen = i;
    }
    if (name != NULL)
        return err_set(err, ST_NOT_FOUND,
                       "no request of a model '%s' is in the trace; there is%s %s", name,
                       run->model_count > 1 ? " for example" : "",
                       run->model_count > 0 ? run->models[chosen] : "none");
    *out = (uint16_t)chosen;
    return ST_OK;
}

/* What cannot be compared stays out: other models, and what did not end in success (a timeout's
 * stages say where it was given up, not what an answer takes). */
static void keep_comparable(struct run *run, uint16_t model) {
    size_t kept = 0;
    for (size_t i = 0; i < run->count; i++) {
        const struct run_request *request = &run->requests[i];
        if (request->model != model) continue;
        if (!request->is_ok) run->not_ok++;
        else run->requests[kept++] = *request;
    }
    run->count = kept;
    kept = 0;
    for (size_t i = 0; i < run->batch_count; i++)
        if (run->batches[i].model == model) run->batches[kept++] = run->batches[i];
    run->batch_count = kept;
}

enum status run_finish(struct run *run, const char *model, struct err *err) {
    uint16_t chosen = 0;
    if (run->batch_count > INT32_MAX)
        return err_set(err, ST_TOO_LARGE, "more batches than can be looked at at once");
    const enum status status = choose_model(run, model, &chosen, err);
    if (status != ST_OK) return status;
    if (run->model_count > 0) snprintf(run->model, sizeof run->model, "%s", run->models[chosen]);
    keep_comparable(run, chosen);
    if (run->batch_count > 0)
        qsort(run->batches, run->batch_count, sizeof *run->batches, by_number);
    for (size_t i = 0; i < run->count; i++) {
        struct run_request *request = &run->requests[i];
        request->batch_index = request->batch == 0 ? NO_BATCH : find_batch(run, request->batch);
        if (request->batch_index == NO_BATCH || request->batch_size == 0) continue;
        run->batches[request->batch_index].weight += request->weight / (float)request->batch_size;
    }
    return ST_OK;
}

void run_join(struct run_request *request, uint64_t latency_ns, uint64_t service_ns,
              uint32_t step) {
    const double total = (double)request->total_ns;
    const double network = (double)service_ns > total ? (double)service_ns - total : 0;
    const double generator = latency_ns > service_ns ? (double)(latency_ns - service_ns) : 0;
    request->part_ns[PART_NETWORK] = (float)network;
    request->part_ns[PART_GENERATOR] = (float)generator;
    request->whole_ns = total + network + generator;
    request->step = (uint16_t)(step == 0 ? 1 : step);
}

void run_keep_step(struct run *run) {
    size_t kept = 0;
    if (run->step == 0) run->step = run->steps;
    for (size_t i = 0; i < run->count; i++)
        if (run->requests[i].step != 0) run->joined++;
    if (run->joined == 0) return;
    run->joined = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (run->requests[i].step != run->step) run->not_joined++;
        else run->requests[kept++] = run->requests[i];
    }
    run->count = run->joined = kept;
}

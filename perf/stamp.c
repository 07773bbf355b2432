/* perf/stamp: what a stamp of the trace costs, recording included. Each round plays requests as the
 * server traces them: a clock read for each stamp, the record into the thread's ring, the writer
 * thread's part of it (durations, histograms and, in the second line, the sampling and writing
 * of files). Counted is the processor time of the whole process, less the same loop without any
 * of it, over the number of stamps.
 *
 * Rounds are interleaved; medians. Nothing may be dropped: a dropped record is cheap. */
#include "base/clock.h"
#include "measure/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STAMPS = 13,     /* of a request that brings tensors: no preprocess, no postprocess */
    BURST = 4096,    /* records between two waits for the writer thread; a ring holds 16384 */
    BURSTS = 50,
    REPEATS = 9
};

static const enum at ORDER[STAMPS] = {
    AT_START,      AT_RECEIVED,  AT_DECODED,      AT_ENQUEUED,     AT_INSTANCE_FREE,
    AT_BATCH_READY, AT_TAKEN,    AT_INPUTS_READY, AT_EXECUTED,     AT_OUTPUTS_READY,
    AT_ENCODE_START, AT_ENCODED, AT_SENT};

enum kind { NOTHING, CLOCK, RECORDED, WRITTEN, KIND_COUNT };

struct setting {
    struct tracer *tracer; /* NULL: nothing is recorded */
    struct trace_ring *ring;
    uint16_t model;
    uint64_t number;
};

/* Keeps the compiler from dropping what nobody reads. */
static void keep(const void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

static void play(struct setting *setting, enum kind kind) {
    struct trace_record record = {.model = setting->model, .batch_size = 8, .rows = 1};
    for (unsigned i = 0; i < BURST; i++) {
        record.batch = ++setting->number / 8;
        for (unsigned s = 0; s < STAMPS; s++)
            record.at[ORDER[s]] = kind == NOTHING ? setting->number + s : mono_ns();
        keep(&record);
        trace_request(setting->ring, &record);
    }
    if (setting->tracer != NULL) tracer_sync(setting->tracer);
}

/* ns of processor time a request. */
static double measure(struct setting *setting, enum kind kind) {
    const uint64_t before = process_cpu_ns();
    for (unsigned i = 0; i < BURSTS; i++) play(setting, kind);
    return (double)(process_cpu_ns() - before) / ((double)BURST * BURSTS);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}

static void open_tracer(struct setting *setting, const char *directory) {
    struct err err = {""};
    const struct tracer_config config = {
        .directory = directory, .uniform_share = 0.01, .slow_share = 0.01};
    if (tracer_create(&config, &setting->tracer, &err) != ST_OK) {
        fprintf(stderr, "perf_stamp: %s\n", err.text);
        exit(1);
    }
    setting->model = tracer_model(setting->tracer, "model");
    setting->ring = tracer_ring(setting->tracer);
    if (setting->ring == NULL) exit(1);
}

static void remove_run(const char *directory) {
    static const char *const FILES[] = {"requests.jsonl", "batches.jsonl", "summary.json"};
    char path[256];
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, FILES[i]);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

static void goal(const char *name, double figure) {
    printf("%s %.1f ns goal <=150 %s\n", name, figure, figure <= 150 ? "ok" : "short");
}

int main(void) {
    static const char *const LABELS[KIND_COUNT] = {
        "the loop alone", "and a clock read a stamp", "and recorded: ring, histograms",
        "and written: --trace DIR"};
    char directory[] = "/tmp/telltale-stamp-XXXXXX";
    if (mkdtemp(directory) == NULL) return 1;
    struct setting settings[KIND_COUNT] = {{NULL, NULL, 0, 0}};
    open_tracer(&settings[RECORDED], NULL);
    open_tracer(&settings[WRITTEN], directory);
    double ns[KIND_COUNT][REPEATS], middle[KIND_COUNT];
    for (int r = 0; r < REPEATS; r++)
        for (int k = 0; k < KIND_COUNT; k++) ns[k][r] = measure(&settings[k], (enum kind)k);
    printf("%d stamps a request, %d requests, %d interleaved repeats, medians of processor time\n",
           STAMPS, BURST * BURSTS, REPEATS);
    for (int k = 0; k < KIND_COUNT; k++) {
        middle[k] = median(ns[k]);
        printf("  %-32s %7.1f ns a request %7.1f ns a stamp\n", LABELS[k], middle[k],
               k == NOTHING ? 0.0 : (middle[k] - middle[NOTHING]) / (STAMPS));
    }
    uint64_t dropped = 0;
    for (int k = RECORDED; k <= WRITTEN; k++) {
        dropped += tracer_dropped(settings[k].tracer);
        tracer_free(settings[k].tracer);
    }
    remove_run(directory);
    if (dropped != 0) {
        fprintf(stderr, "perf_stamp: %llu records were dropped: the figures are too good\n",
                (unsigned long long)dropped);
        return 1;
    }
    goal("stamp.recorded", (middle[RECORDED] - middle[NOTHING]) / (STAMPS));
    goal("stamp.written", (middle[WRITTEN] - middle[NOTHING]) / (STAMPS));
    return 0;
}

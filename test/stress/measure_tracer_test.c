/* Four threads write as fast as they can while a fifth reads statistics and registers models:
 * what is neither counted nor said to be dropped would be lost. Meant for TSan. */
#include "measure/trace.h"
#include "measure/trace_stats.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WRITERS = 4, REQUESTS_EACH = 100000, REQUESTS_A_BATCH = 8 };

struct writer {
    struct tracer *tracer;
    pthread_t thread;
    unsigned index;
    uint64_t sum_ns; /* of all totals written, dropped ones included */
};

struct seen {
    uint64_t count, sum_ns; /* by the writer thread only */
};

static void on_record(void *ctx, const struct trace_record *record) {
    struct seen *seen = ctx;
    seen->count++;
    seen->sum_ns += record->at[AT_SENT] - record->at[AT_START];
}

static void *write_records(void *argument) {
    struct writer *writer = argument;
    struct trace_ring *ring = tracer_ring(writer->tracer);
    const uint16_t model = tracer_model(writer->tracer, writer->index % 2 ? "odd" : "even");
    assert_non_null(ring);
    uint64_t random = writer->index + 1;
    for (uint64_t i = 0; i < REQUESTS_EACH; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t start = 1000 + i;
        const uint64_t total = 1 + (random >> 44);
        const uint64_t batch = 1 + (i / REQUESTS_A_BATCH) * WRITERS + writer->index;
        const struct trace_record record = {
            .id = "stress",
            .model = model,
            .batch = batch,
            .batch_size = REQUESTS_A_BATCH,
            .rows = 1,
            .at = {[AT_START] = start,
                   [AT_EXECUTED] = start + total / 2,
                   [AT_SENT] = start + total}};
        trace_request(ring, &record);
        writer->sum_ns += total;
        if (i % REQUESTS_A_BATCH == 0) {
            trace_batch(ring, &(struct batch_record){.batch = batch, .model = model,
                                                     .requests = REQUESTS_A_BATCH});
        }
    }
    return NULL;
}

struct reader {
    struct tracer *tracer;
    atomic_bool is_done;
};

static void *read_statistics(void *argument) {
    struct reader *reader = argument;
    uint64_t last = 0;
    for (unsigned i = 0; !atomic_load_explicit(&reader->is_done, memory_order_relaxed); i++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", i % 10);
        const uint16_t model = tracer_model(reader->tracer, i % 2 ? "even" : name);
        const struct trace_stats *stats = tracer_stats_lock(reader->tracer, model);
        assert_non_null(stats);
        if (i % 2) {
            assert_true(stats->total_ns.count >= last);
            last = stats->total_ns.count;
            assert_int_equal(stats->stage_ns[STAGE_EXECUTE].count, last);
        }
        tracer_stats_unlock(reader->tracer);
        (void)tracer_dropped(reader->tracer);
        tracer_sync(reader->tracer);
    }
    return NULL;
}

/* Requests and batches of both models that reached the statistics. */
static void count_all(struct tracer *tracer, uint64_t *out_requests, uint64_t *out_batches,
                      uint64_t *out_sum_ns) {
    static const char *const names[] = {"even", "odd"};
    for (unsigned i = 0; i < 2; i++) {
        const uint16_t model = tracer_model(tracer, names[i]);
        const struct trace_stats *stats = tracer_stats_lock(tracer, model);
        *out_requests += stats->total_ns.count;
        *out_batches += stats->batches;
        *out_sum_ns += stats->total_sum_ns;
        uint64_t stages_ns = 0;
        for (unsigned s = 0; s < STAGE_COUNT; s++) stages_ns += stats->stage_sum_ns[s];
        assert_int_equal(stages_ns, stats->total_sum_ns);
        assert_int_equal(stats->rows, stats->total_ns.count);
        tracer_stats_unlock(tracer);
    }
}

static void run(uint32_t ring_records, const char *directory, bool must_drop_nothing) {
    struct seen seen = {.count = 0};
    const struct tracer_config config = {.directory = directory,
                                         .uniform_share = 0.01,
                                         .slow_share = 0.01,
                                         .window_ns = 20000000,
                                         .ring_records = ring_records,
                                         .on_record = on_record,
                                         .ctx = &seen};
    struct tracer *tracer = NULL;
    struct err err;
    assert_int_equal(tracer_create(&config, &tracer, &err), ST_OK);
    struct writer writers[WRITERS];
    struct reader reader = {.tracer = tracer};
    pthread_t reading;
    assert_int_equal(pthread_create(&reading, NULL, read_statistics, &reader), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.tracer = tracer, .index = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_records, &writers[i]), 0);
    }
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        sum_ns += writers[i].sum_ns;
    }
    atomic_store_explicit(&reader.is_done, true, memory_order_relaxed);
    pthread_join(reading, NULL);
    tracer_sync(tracer);
    uint64_t requests = 0, batches = 0, counted_ns = 0;
    count_all(tracer, &requests, &batches, &counted_ns);
    const uint64_t dropped = tracer_dropped(tracer);
    tracer_free(tracer);

    const uint64_t sent = WRITERS * REQUESTS_EACH;
    assert_int_equal(requests + batches + dropped, sent + sent / REQUESTS_A_BATCH);
    assert_int_equal(seen.count, requests);
    assert_int_equal(seen.sum_ns, counted_ns);
    assert_true(counted_ns <= sum_ns);
    if (must_drop_nothing) {
        assert_int_equal(dropped, 0);
        assert_int_equal(counted_ns, sum_ns);
    }
}

static void nothing_is_lost_that_is_not_counted_as_dropped(void **state) {
    (void)state;
    run(64, NULL, false);
}

static void nothing_is_lost_when_the_rings_are_large_enough(void **state) {
    (void)state;
    run(131072, NULL, true);
}

static void nothing_is_lost_while_files_are_written(void **state) {
    (void)state;
    char directory[] = "/tmp/telltale-stress-XXXXXX";
    assert_non_null(mkdtemp(directory));
    run(4096, directory, false);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_that_is_not_counted_as_dropped),
        cmocka_unit_test(nothing_is_lost_when_the_rings_are_large_enough),
        cmocka_unit_test(nothing_is_lost_while_files_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which requests are written: the rule of trace_sample.h. */
#include "measure/trace_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { SEEN_MAX = 200000 };

/* What the sampler wrote. */
struct written {
    size_t count, batch_count;
    struct sampling how[SEEN_MAX];
    struct trace_record record[SEEN_MAX];
    uint64_t batch[SEEN_MAX];
};
static struct written *written;

static void on_request(void *ctx, const struct trace_record *record, struct sampling sampling) {
    struct written *to = ctx;
    assert_true(to->count < SEEN_MAX);
    to->record[to->count] = *record;
    to->how[to->count++] = sampling;
}

static void on_batch(void *ctx, const struct batch_record *record) {
    struct written *to = ctx;
    assert_true(to->batch_count < SEEN_MAX);
    to->batch[to->batch_count++] = record->batch;
}

static int setup(void **state) {
    (void)state;
    written = calloc(1, sizeof *written);
    return written == NULL;
}

static int teardown(void **state) {
    (void)state;
    free(written);
    return 0;
}

static struct trace_sample *create(double slow_share, double uniform_share) {
    const struct trace_sample_config config = {.slow_share = slow_share,
                                               .uniform_share = uniform_share,
                                               .seed = 1,
                                               .write_request = on_request,
                                               .write_batch = on_batch,
                                               .ctx = written};
    struct trace_sample *sample = trace_sample_create(&config);
    assert_non_null(sample);
    return sample;
}

static void add(struct trace_sample *sample, uint64_t number, uint64_t total_ns, uint64_t batch,
                uint32_t batch_size) {
    struct trace_record record = {.batch = batch,
                                  .batch_size = batch_size,
                                  .at = {[AT_START] = 1, [AT_SENT] = 1 + total_ns}};
    snprintf(record.id, sizeof record.id, "%llu", (unsigned long long)number);
    trace_sample_request(sample, &record, total_ns);
}

static size_t count_of(enum sampled why) {
    size_t count = 0;
    for (size_t i = 0; i < written->count; i++) count += written->how[i].why == why;
    return count;
}

static void writes_exactly_the_slowest_share(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    /* A permutation of 0..9999, so that the slowest are everywhere. */
    for (uint64_t i = 0; i < 10000; i++) add(sample, i, i * 7919 % 10000, 0, 1);
    assert_int_equal(written->count, 0);
    trace_sample_close(sample);
    assert_int_equal(written->count, 100);
    for (size_t i = 0; i < written->count; i++) {
        assert_int_equal(written->how[i].why, SAMPLED_SLOW);
        assert_true(written->record[i].at[AT_SENT] - 1 >= 9900);
    }
    trace_sample_free(sample);
}

static void equal_times_do_not_make_the_slow_more_than_their_share(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    for (uint64_t i = 0; i < 5000; i++) add(sample, i, 1000, 0, 1);
    trace_sample_close(sample);
    assert_int_equal(written->count, 50);
    trace_sample_free(sample);
}

static void writes_at_least_one_slow_request_of_each_model(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    for (uint64_t i = 0; i < 6; i++) {
        struct trace_record record = {.model = i % 3 == 2 ? 900 : (uint16_t)(i % 3)};
        trace_sample_request(sample, &record, 100 + i);
    }
    trace_sample_close(sample);
    assert_int_equal(written->count, 3);
    trace_sample_close(sample); /* an empty window writes nothing */
    assert_int_equal(written->count, 3);
    trace_sample_free(sample);
}

static void brings_the_whole_batch_of_a_slow_request(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    for (uint64_t batch = 1; batch <= 50; batch++) {
        for (uint64_t i = 0; i < 2; i++) add(sample, batch, 10 + (batch == 33 && i == 1), batch, 2);
        trace_sample_batch(sample, &(struct batch_record){.batch = batch});
    }
    trace_sample_close(sample);
    assert_int_equal(written->count, 2);
    assert_int_equal(count_of(SAMPLED_SLOW), 1);
    assert_int_equal(count_of(SAMPLED_BATCH), 1);
    assert_int_equal(written->record[0].batch, 33);
    assert_int_equal(written->record[1].batch, 33);
    assert_int_equal(written->batch_count, 1);
    assert_int_equal(written->batch[0], 33);
    trace_sample_free(sample);
}

static void every_batch_is_written_where_there_are_few(void **state) {
    (void)state;
    const struct trace_sample_config config = {.slow_share = 0.01, .seed = 1, .every_batch_max = 50,
                                               .write_request = on_request,
                                               .write_batch = on_batch, .ctx = written};
    struct trace_sample *sample = trace_sample_create(&config);
    assert_non_null(sample);
    for (uint64_t batch = 1; batch <= 50; batch++) {
        add(sample, batch, 10 + batch, batch, 1);
        trace_sample_batch(sample, &(struct batch_record){.batch = batch});
    }
    trace_sample_close(sample);
    assert_int_equal(written->batch_count, 50);
    for (uint64_t batch = 51; batch <= 101; batch++) {
        add(sample, batch, 10 + batch, batch, 1);
        trace_sample_batch(sample, &(struct batch_record){.batch = batch});
    }
    trace_sample_close(sample);
    assert_int_equal(written->batch_count, 51);
    trace_sample_free(sample);
}

static void a_batch_is_whole_across_the_end_of_a_window(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    /* Batch 7's members: an ordinary one, then the end of the window, then the slow one, the
     * end of the next, and a late one with the batch's record. */
    add(sample, 1, 10, 7, 3);
    add(sample, 2, 500, 1, 1);
    trace_sample_close(sample);
    assert_int_equal(written->count, 1);
    add(sample, 3, 900, 7, 3);
    trace_sample_close(sample);
    assert_int_equal(written->count, 3);
    assert_int_equal(written->how[2].why, SAMPLED_BATCH);
    assert_string_equal(written->record[2].id, "1");
    add(sample, 4, 20, 7, 3);
    add(sample, 5, 800, 8, 1);
    trace_sample_batch(sample, &(struct batch_record){.batch = 7});
    trace_sample_close(sample);
    assert_int_equal(written->count, 5);
    assert_int_equal(written->batch_count, 1);
    trace_sample_close(sample);
    trace_sample_close(sample);
    assert_int_equal(written->count, 5); /* nothing twice */
    assert_int_equal(written->batch_count, 1);
    trace_sample_free(sample);
}

static void the_uniform_sample_has_its_share_of_whole_batches(void **state) {
    (void)state;
    struct trace_sample *sample = create(0, 0.05);
    uint64_t batch = 0;
    for (unsigned window = 0; window < 5; window++) {
        for (unsigned b = 0; b < 2000; b++) {
            batch++;
            for (unsigned i = 0; i < 8; i++) add(sample, batch, 100 + i, batch, 8);
        }
        trace_sample_close(sample);
    }
    /* 10,000 batches at 5 %: 500 expected, standard deviation 22. */
    assert_int_equal(written->count % 8, 0);
    assert_in_range(written->count / 8, 400, 600);
    assert_int_equal(count_of(SAMPLED_UNIFORM), written->count);
    for (size_t i = 0; i < written->count; i++) {
        assert_true(written->how[i].share > 0.0499 && written->how[i].share < 0.0501);
    }
    trace_sample_free(sample);
}

static void a_few_tens_a_window_are_sampled_where_there_are_as_many(void **state) {
    (void)state;
    struct trace_sample *sample = create(0, 0.01);
    for (uint64_t i = 0; i < 20; i++) add(sample, i, 100, 0, 1);
    trace_sample_close(sample);
    assert_int_equal(written->count, 20); /* fewer than the minimum: all of them */
    assert_true(written->how[0].share == 1.0);
    written->count = 0;
    for (unsigned window = 0; window < 20; window++) {
        for (uint64_t i = 0; i < 300; i++) add(sample, i, 100, 0, 1);
        trace_sample_close(sample);
    }
    /* 600 expected, standard deviation 23. */
    assert_in_range(written->count, 500, 700);
    assert_true(written->how[0].share > 0.0999 && written->how[0].share < 0.1001);
    trace_sample_free(sample);
}

static void a_slow_request_is_still_a_member_of_the_sample(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0.01);
    for (uint64_t i = 0; i < 25; i++) add(sample, i, 100 + i, 0, 1);
    trace_sample_close(sample);
    assert_int_equal(count_of(SAMPLED_SLOW), 1);
    for (size_t i = 0; i < written->count; i++) assert_true(written->how[i].is_uniform);
    trace_sample_free(sample);
}

static void a_full_window_ends_early_and_loses_nothing(void **state) {
    (void)state;
    struct trace_sample *sample = create(0.01, 0);
    for (uint64_t i = 0; i < SAMPLE_WINDOW_MAX; i++) add(sample, i, i, 0, 1);
    assert_int_equal(written->count, (SAMPLE_WINDOW_MAX + 99) / 100);
    for (uint64_t i = 0; i < SAMPLE_WINDOW_MAX; i++) {
        trace_sample_batch(sample, &(struct batch_record){.batch = i + 1});
    }
    add(sample, 1, 5, 3, 1);
    trace_sample_close(sample);
    assert_int_equal(written->batch_count, 1); /* from the window that the batches ended */
    trace_sample_free(sample);
}

static void everything_is_written_at_once_when_all_is_asked_for(void **state) {
    (void)state;
    const struct trace_sample_config config = {
        .all = true, .write_request = on_request, .write_batch = on_batch, .ctx = written};
    struct trace_sample *sample = trace_sample_create(&config);
    assert_non_null(sample);
    add(sample, 1, 5, 3, 1);
    trace_sample_batch(sample, &(struct batch_record){.batch = 3});
    assert_int_equal(count_of(SAMPLED_ALL), 1);
    assert_int_equal(written->batch_count, 1);
    assert_true(written->how[0].share == 1.0 && written->how[0].is_uniform);
    trace_sample_close(sample);
    trace_sample_free(sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(writes_exactly_the_slowest_share),
        TEST(equal_times_do_not_make_the_slow_more_than_their_share),
        TEST(writes_at_least_one_slow_request_of_each_model),
        TEST(brings_the_whole_batch_of_a_slow_request),
        TEST(every_batch_is_written_where_there_are_few),
        TEST(a_batch_is_whole_across_the_end_of_a_window),
        TEST(the_uniform_sample_has_its_share_of_whole_batches),
        TEST(a_few_tens_a_window_are_sampled_where_there_are_as_many),
        TEST(a_slow_request_is_still_a_member_of_the_sample),
        TEST(a_full_window_ends_early_and_loses_nothing),
        TEST(everything_is_written_at_once_when_all_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

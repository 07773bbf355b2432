/* Stamps to durations: the sum is the total, whatever the stamps. */
#include "measure/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const enum stage stage_of[AT_COUNT] = {
#define X(name, stage) [AT_##name] = STAGE_##stage,
    AT_TABLE(X)
#undef X
};

static uint64_t sum_of(const uint64_t *durations) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < STAGE_COUNT; i++) sum += durations[i];
    return sum;
}

/* The definition in trace.h, said again in the plainest way. */
static uint64_t expected_durations(const struct trace_record *record, uint64_t *out) {
    for (unsigned i = 0; i < STAGE_COUNT; i++) out[i] = 0;
    uint64_t start = 0;
    uint64_t last = 0;
    for (unsigned i = 0; i < AT_COUNT; i++) {
        if (record->at[i] == 0) continue;
        if (start == 0) {
            start = last = record->at[i];
        } else if (record->at[i] > last) {
            out[stage_of[i]] += record->at[i] - last;
            last = record->at[i];
        }
    }
    return last - start;
}

static void stages_sum_to_the_total_for_random_stamps(void **state) {
    (void)state;
    uint64_t seed = 2024;
    for (unsigned round = 0; round < 50000; round++) {
        struct trace_record record = {.batch = 1};
        const uint64_t shape = next_random(&seed);
        uint64_t now = 1 + next_random(&seed) % 1000000;
        bool may_go_back = shape % 4 == 0;
        bool goes_back = false;
        uint64_t highest = 0;
        for (unsigned i = 0; i < AT_COUNT; i++) {
            if (next_random(&seed) % 4 == 0) continue;       /* missing */
            if (next_random(&seed) % 4 != 0) now += next_random(&seed) % 100000; /* or equal */
            if (may_go_back && next_random(&seed) % 8 == 0) now -= now > 5000 ? 4999 : 0;
            record.at[i] = now;
            goes_back |= now < highest;
            highest = now > highest ? now : highest;
        }
        uint64_t got[STAGE_COUNT], expected[STAGE_COUNT];
        bool is_ordered = goes_back;
        const uint64_t total = trace_durations_checked(&record, got, &is_ordered);
        assert_int_equal(total, expected_durations(&record, expected));
        assert_memory_equal(got, expected, sizeof got);
        assert_int_equal(sum_of(got), total);
        assert_int_equal(trace_end(&record), highest);
        assert_int_equal(is_ordered, !goes_back);
    }
}

static void gives_each_interval_to_the_stage_that_ends_it(void **state) {
    (void)state;
    for (unsigned i = 1; i < AT_COUNT; i++) {
        struct trace_record record = {.at = {[AT_START] = 1000, [AT_SENT] = 9000}};
        record.at[i] = 4000;
        if (i == AT_SENT) record.at[i] = 9000;
        uint64_t got[STAGE_COUNT];
        assert_int_equal(trace_durations(&record, got), 8000);
        if (i == AT_SENT) {
            assert_int_equal(got[STAGE_SEND], 8000);
        } else {
            assert_int_equal(got[stage_of[i]], 3000);
            assert_int_equal(got[STAGE_SEND], 5000);
        }
    }
}

static void ends_at_the_last_stamp_when_nothing_was_sent(void **state) {
    (void)state;
    const struct trace_record record = {
        .at = {[AT_START] = 50, [AT_RECEIVED] = 80, [AT_DECODED] = 95}};
    uint64_t got[STAGE_COUNT];
    assert_int_equal(trace_durations(&record, got), 45);
    assert_int_equal(got[STAGE_RECEIVE], 30);
    assert_int_equal(got[STAGE_DECODE], 15);
}

static void nothing_stamped_is_no_time(void **state) {
    (void)state;
    const struct trace_record record = {.batch = 0};
    uint64_t got[STAGE_COUNT];
    assert_int_equal(trace_durations(&record, got), 0);
    assert_int_equal(sum_of(got), 0);
}

static void queue_is_tritons_four_stages(void **state) {
    (void)state;
    unsigned queue_stages = 0;
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        assert_true(stage_name(i)[0] != '\0' && stage_help(i)[0] != '\0');
        queue_stages += stage_is_queue(i);
    }
    assert_int_equal(queue_stages, 4);
    assert_true(stage_is_queue(STAGE_BATCH_ENQUEUE) && stage_is_queue(STAGE_DISPATCH));
    assert_false(stage_is_queue(STAGE_PREPROCESS_WAIT));
    assert_string_equal(stage_name(STAGE_BATCH_HOLD), "batch_hold");
    assert_string_equal(stage_name(STAGE_COUNT), "unknown");
    assert_string_equal(reason_name(REASON_TIMER), "timer");
    assert_string_equal(reason_name(REASON_COUNT), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_sum_to_the_total_for_random_stamps),
        cmocka_unit_test(gives_each_interval_to_the_stage_that_ends_it),
        cmocka_unit_test(ends_at_the_last_stamp_when_nothing_was_sent),
        cmocka_unit_test(nothing_stamped_is_no_time),
        cmocka_unit_test(queue_is_tritons_four_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What becomes of a finished record: cut where it was let go, Server-Timing, the slow log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/exchange.h"
#include "serve/server_timing.h"
#include "serve/slow_log.h"
#include "serve/statistics.h"

/* Stamps 1000, 2000, ... up to and including `last`; no inline preprocessing, a
 * small body. */
static struct trace_record record_until(enum at last) {
    struct trace_record record = {.id = "r-1", .status_http = 200};
    uint64_t now = 0;
    for (int at = 0; at <= (int)last; at++)
        if (at != AT_DECODE_START && at != AT_INLINE_START && at != AT_INLINE_END && at != AT_INPUTS_START)
            record.at[at] = now += 1000;
    return record;
}

static void assert_sums(const struct trace_record *record, uint64_t *durations) {
    uint64_t sum = 0;
    const uint64_t total = trace_durations(record, durations);
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        sum += durations[stage];
    assert_int_equal(sum, total);
    assert_int_equal(total, record->at[AT_SENT] - record->at[AT_START]);
}

static void gives_the_time_until_the_cut_to_the_stage_under_way(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_OUTPUTS_READY);
    uint64_t durations[STAGE_COUNT];
    const uint64_t left_ns = record.at[AT_INPUTS_READY] + 300; /* while it was executing */
    exchange_cut_trace(&record, left_ns);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_EXECUTE], 300);
    assert_int_equal(durations[STAGE_OUTPUT_COPY], 0);
    assert_int_equal(record.at[AT_SENT], left_ns);
}

static void counts_a_dropped_request_as_waiting_for_an_instance(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_ENQUEUED);
    uint64_t durations[STAGE_COUNT];
    exchange_cut_trace(&record, record.at[AT_ENQUEUED] + 70000);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_INSTANCE_WAIT], 70000);
}

static void counts_a_large_body_dropped_before_a_worker_took_it_as_waiting_for_one(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_RECEIVED);
    uint64_t durations[STAGE_COUNT];
    exchange_cut_trace(&record, record.at[AT_RECEIVED] + 4000);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_PREPROCESS_WAIT], 4000);
    assert_int_equal(durations[STAGE_DECODE], 0);
}

static void counts_a_large_body_dropped_while_a_worker_decoded_it_as_decoding(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_RECEIVED);
    uint64_t durations[STAGE_COUNT];
    const uint64_t received_ns = record.at[AT_RECEIVED];
    record.at[AT_DECODE_START] = received_ns + 1000;
    record.at[AT_DECODED] = record.at[AT_PREPROCESS_START] = received_ns + 9000;
    exchange_cut_trace(&record, received_ns + 3000);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_PREPROCESS_WAIT], 1000);
    assert_int_equal(durations[STAGE_DECODE], 2000);
}

static void counts_a_text_dropped_before_a_worker_took_it_as_waiting_for_one(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_DECODED);
    uint64_t durations[STAGE_COUNT];
    exchange_cut_trace(&record, record.at[AT_DECODED] + 5000);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_PREPROCESS_WAIT], 5000);
}

static void leaves_a_finished_request_its_stages(void **state) {
    (void)state;
    struct trace_record record = record_until(AT_POSTPROCESS_END);
    uint64_t durations[STAGE_COUNT];
    exchange_cut_trace(&record, record.at[AT_POSTPROCESS_END] + 400);
    assert_sums(&record, durations);
    assert_int_equal(durations[STAGE_EXECUTE], 1000);
    assert_int_equal(durations[STAGE_OTHER], 400);
}

static void writes_server_timing_without_empty_stages(void **state) {
    (void)state;
    const uint64_t durations[STAGE_COUNT] = {[STAGE_RECEIVE] = 12345, [STAGE_EXECUTE] = 4000000};
    struct buf out;
    buf_init(&out);
    server_timing_write(&out, durations, 4012345);
    buf_char(&out, '\0');
    assert_string_equal(out.data, "Server-Timing: total;dur=4.012, receive;dur=0.012, "
                                  "execute;dur=4.000\r\n");
    buf_done(&out);
}

static void the_slow_log_tells_stages_shares_batch_and_tokens(void **state) {
    (void)state;
    struct trace_record record = {.id = "x", .status_http = 200, .batch_size = 12,
                                  .reason = REASON_TIMER, .tokens = 96, .padded = 128,
                                  .lock_wait_ns = 2000000, .lock_holder = ROLE_WORKER};
    record.at[AT_START] = 1000000;
    record.at[AT_RECEIVED] = 26000000;
    record.at[AT_SENT] = 101000000;
    struct buf out;
    buf_init(&out);
    slow_log_format(&out, &record, "m");
    buf_char(&out, '\0');
    assert_string_equal(out.data,
                        "slow request x model m status 200 total 100.000 ms: receive 25.000 ms "
                        "(25.0 %), send 75.000 ms (75.0 %); batch of 12 (timer); 96 tokens padded "
                        "to 128; lock wait 2.000 ms (held by worker)");
    buf_done(&out);
}

static void triton_s_queue_is_four_of_our_stages(void **state) {
    (void)state;
    struct trace_stats stats = {.total_sum_ns = 1000};
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        stats.stage_sum_ns[stage] = UINT64_C(1) << stage;
    stats.by_status[ST_OK] = 3;
    stats.by_status[ST_INVALID] = 2;
    stats.by_status[ST_TIMEOUT] = 1;
    const struct triton_durations sums = statistics_durations(&stats);
    assert_int_equal(sums.queue_ns, 1 << STAGE_BATCH_ENQUEUE | 1 << STAGE_BATCH_HOLD |
                                        1 << STAGE_INSTANCE_WAIT | 1 << STAGE_DISPATCH);
    assert_int_equal(sums.infer_ns, 1 << STAGE_EXECUTE);
    assert_int_equal(sums.success, 3);
    assert_int_equal(sums.failure, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_time_until_the_cut_to_the_stage_under_way),
        cmocka_unit_test(counts_a_dropped_request_as_waiting_for_an_instance),
        cmocka_unit_test(counts_a_large_body_dropped_before_a_worker_took_it_as_waiting_for_one),
        cmocka_unit_test(counts_a_large_body_dropped_while_a_worker_decoded_it_as_decoding),
        cmocka_unit_test(counts_a_text_dropped_before_a_worker_took_it_as_waiting_for_one),
        cmocka_unit_test(leaves_a_finished_request_its_stages),
        cmocka_unit_test(writes_server_timing_without_empty_stages),
        cmocka_unit_test(the_slow_log_tells_stages_shares_batch_and_tokens),
        cmocka_unit_test(triton_s_queue_is_four_of_our_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

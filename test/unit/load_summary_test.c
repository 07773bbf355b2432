/* Quantiles, and what a step's samples add up to. */
#include "load/bench.h"
#include "load/summary.h"

#include "load/plan.h"
#include "load/run_dir.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MS = 1000000 };

static void quantiles_equal_those_of_counting(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1, 0);
    for (size_t count = 1; count < 1200; count = count * 3 / 2 + 1) {
        uint64_t values[1200];
        for (size_t i = 0; i < count; i++) values[i] = rng_below(&rng, 300);
        struct distribution found = distribution_of(values, count);
        for (int q = 0; q < QUANTILE_COUNT; q++) {
            double share = quantile_share((enum quantile)q);
            size_t below = 0, at_most = 0;
            for (size_t i = 0; i < count; i++) {
                below += values[i] < found.at[q];
                at_most += values[i] <= found.at[q];
            }
            assert_true((double)at_most >= share * (double)count - 1e-6);
            assert_true((double)below < share * (double)count);
        }
        assert_int_equal(found.min, values[0]);
        assert_int_equal(found.max, values[count - 1]);
    }
}

static void a_quantile_says_when_too_few_requests_stand_behind_it(void **state) {
    (void)state;
    assert_int_equal(quantile_needs(0.99), 299);
    assert_int_equal(quantile_needs(0.999), 2995);
    assert_int_equal(quantile_trust(99, 0.99), QUANTILE_ABSENT);
    assert_int_equal(quantile_trust(100, 0.99), QUANTILE_ROUGH);
    assert_int_equal(quantile_trust(298, 0.99), QUANTILE_ROUGH);
    assert_int_equal(quantile_trust(299, 0.99), QUANTILE_FIRM);
    assert_int_equal(quantile_trust(999, 0.999), QUANTILE_ABSENT);
    assert_int_equal(quantile_trust(1000, 0.999), QUANTILE_ROUGH);
}

static void lateness_spoils_a_run_above_1_ms_and_a_tenth_of_its_p99(void **state) {
    (void)state;
    assert_false(quantile_lateness_spoils(1 * MS, 2 * MS));
    assert_true(quantile_lateness_spoils(1 * MS + 1, 2 * MS));
    assert_false(quantile_lateness_spoils(9 * MS, 90 * MS));
    assert_true(quantile_lateness_spoils(9 * MS + 1, 90 * MS));
}

static struct step_result begin(void) {
    struct step_result result = {
        .config = {.number = 1, .mode = LOAD_OPEN, .rate = 100},
        .start_ns = 1000 * (uint64_t)MS,
        .end_ns = 2000 * (uint64_t)MS,
        .drained_ns = 2000 * (uint64_t)MS,
    };
    assert_true(histogram_init(&result.lateness_ns, 2, 3600000000000u));
    return result;
}

static struct sample *add(struct step_result *result, uint64_t planned_ms, uint64_t waited_ms,
                          uint64_t service_ms, enum outcome outcome) {
    struct sample sample = {
        .planned_ns = planned_ms * MS,
        .sent_ns = (planned_ms + waited_ms) * MS,
        .done_ns = (planned_ms + waited_ms + service_ms) * MS,
        .phase = PHASE_MEASURE,
        .outcome = (uint8_t)outcome,
    };
    sample_list_add(&result->samples, &sample);
    return &result->samples.items[result->samples.count - 1];
}

static void counts_outcomes_and_leaves_quick_errors_out_of_latency(void **state) {
    (void)state;
    struct step_result result = begin();
    struct step_summary summary;
    for (unsigned i = 0; i < 10; i++) add(&result, 1000 + i, 0, 10, OUTCOME_OK);
    add(&result, 1995, 0, 10, OUTCOME_OK); /* answered after the window */
    add(&result, 1100, 5, 100, OUTCOME_TIMEOUT);
    add(&result, 1200, 0, 1, OUTCOME_REFUSED);
    add(&result, 1300, 0, 1, OUTCOME_CONNECTION);
    add(&result, 1400, 0, 1, OUTCOME_CANCELLED);
    add(&result, 900, 0, 500, OUTCOME_OK)->phase = PHASE_WARMUP;
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    assert_int_equal(summary.requests, 14);
    assert_int_equal(summary.ok, 11);
    assert_int_equal(summary.timeouts, 1);
    assert_int_equal(summary.failed, 2);
    assert_int_equal(summary.cancelled, 1);
    assert_int_equal(summary.latency.count, 12);
    assert_int_equal(summary.latency.max, 105 * MS);
    assert_int_equal(summary.service.max, 100 * MS);
    assert_int_equal(summary.failed_latency.count, 2);
    assert_true(fabs(summary.qps - 10) < 1e-9); /* the eleventh came after the second was over */
    assert_true(fabs(summary.in_flight - summary.qps * summary.latency.mean / 1e9) < 1e-9);
    assert_true(summary.is_valid);
    step_result_done(&result);
}

static void stages_and_what_is_outside_add_up_to_the_whole(void **state) {
    (void)state;
    struct step_result result = begin();
    struct step_summary summary;
    for (unsigned i = 0; i < 200; i++) {
        /* the slowest two in a hundred wait in the server's queue */
        unsigned queue_ms = i % 100 == 99 ? 50 : 0;
        struct sample *sample = add(&result, 1000 + i, 1, 10 + queue_ms, OUTCOME_OK);
        sample->has_stages = true;
        sample->server_total_ns = (8 + queue_ms) * (uint64_t)MS;
        sample->stage_us[STAGE_EXECUTE] = 8000;
        sample->stage_us[STAGE_INSTANCE_WAIT] = (float)queue_ms * 1000;
    }
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    double share = summary.outside.share, tail = summary.outside.tail_share;
    for (int i = 0; i < STAGE_COUNT; i++) {
        share += summary.stages[i].share;
        tail += summary.stages[i].tail_share;
    }
    assert_true(fabs(share - 1) < 1e-6);
    assert_true(fabs(tail - 1) < 1e-6);
    assert_int_equal(summary.tail_count, 2);
    /* 50 of 61 ms */
    assert_true(fabs(summary.stages[STAGE_INSTANCE_WAIT].tail_share - 50.0 / 61) < 1e-6);
    assert_true(fabs(summary.outside.mean_ns - 3 * MS) < 1);
    assert_false(summary.stages[STAGE_DECODE].is_seen);
    step_result_done(&result);
}

static void a_late_or_busy_generator_makes_the_step_invalid(void **state) {
    (void)state;
    struct step_result result = begin();
    struct step_summary summary;
    for (unsigned i = 0; i < 100; i++) {
        add(&result, 1000 + i, 0, 20, OUTCOME_OK);
        histogram_record(&result.lateness_ns, i < 95 ? 1000 : 5 * MS);
    }
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    assert_false(summary.is_valid);
    assert_non_null(strstr(summary.reason, "late"));
    histogram_clear(&result.lateness_ns);
    result.thread_cpu_ns = 949 * (uint64_t)MS;
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    assert_true(summary.is_valid);
    result.thread_cpu_ns = 950 * (uint64_t)MS;
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    assert_false(summary.is_valid);
    assert_non_null(strstr(summary.reason, "processor"));
    step_result_done(&result);
}

static void an_empty_step_has_no_figures(void **state) {
    (void)state;
    struct step_result result = begin();
    struct step_summary summary;
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    assert_int_equal(summary.latency.count, 0);
    assert_int_equal(summary.with_server, 0);
    step_result_done(&result);
}

static void server_counters_become_shares_and_absent_ones_stay_absent(void **state) {
    (void)state;
    static const char BEFORE[] = "# HELP process_cpu_seconds_total x\n"
                                 "process_cpu_seconds_total 1.5\n"
                                 "telltale_device_busy_seconds_total{model=\"m\",version=\"1\"} 2\n"
                                 "telltale_device_busy_seconds_total{model=\"other\"} 100\n";
    static const char AFTER[] = "process_cpu_seconds_total 2.5\n"
                                "telltale_device_busy_seconds_total{version=\"1\",model=\"m\"} 3.5\n"
                                "telltale_instances{model=\"m\"} 1\nrubbish\n{\n";
    struct scrape before, after, nothing = {0};
    struct step_summary summary = {0};
    scrape_parse(view_of(BEFORE), "m", &before);
    scrape_parse(view_of(AFTER), "m", &after);
    summary_add_server(&summary, &nothing, &after, 2);
    assert_false(summary.has_server_cpu || summary.has_device);
    summary_add_server(&summary, &before, &after, 2);
    assert_true(fabs(summary.server_cpu - 0.5) < 1e-9);
    assert_true(fabs(summary.device_busy - 0.75) < 1e-9);
}

static void a_line_of_the_client_log_leaves_out_what_is_not_known(void **state) {
    (void)state;
    struct buf line;
    buf_init(&line);
    struct sample sample = {.planned_ns = 10, .sent_ns = 12, .first_byte_ns = 20, .done_ns = 25,
                            .server_total_ns = 7, .number = 3, .input = 4, .bytes_out = 100,
                            .bytes_in = 50, .http = 200, .phase = PHASE_MEASURE,
                            .has_stages = true};
    sample.stage_us[STAGE_EXECUTE] = 0.005f;
    run_dir_line(2, &sample, &line);
    buf_char(&line, 0);
    assert_string_equal(line.data,
                        "{\"step\":2,\"phase\":\"measure\",\"id\":\"b2-3\",\"input\":4,"
                        "\"planned_ns\":10,\"sent_ns\":12,\"first_byte_ns\":20,\"done_ns\":25,"
                        "\"latency_ns\":15,\"service_ns\":13,\"status\":\"ok\",\"http\":200,"
                        "\"bytes_out\":100,\"bytes_in\":50,\"server_total_ns\":7,"
                        "\"stages_ns\":{\"execute\":5}}\n");
    buf_clear(&line);
    sample = (struct sample){.planned_ns = 1, .done_ns = 9, .outcome = OUTCOME_TIMEOUT,
                             .phase = PHASE_WARMUP};
    run_dir_line(1, &sample, &line);
    buf_char(&line, 0);
    assert_string_equal(line.data,
                        "{\"step\":1,\"phase\":\"warmup\",\"id\":\"w1-0\",\"input\":0,"
                        "\"planned_ns\":1,\"done_ns\":9,\"latency_ns\":8,\"status\":\"timeout\","
                        "\"bytes_out\":0,\"bytes_in\":0}\n");
    buf_done(&line);
}

static void a_distribution_names_the_quantiles_with_too_few_values(void **state) {
    (void)state;
    uint64_t values[150];
    for (size_t i = 0; i < 150; i++) values[i] = (i + 1) * MS;
    struct distribution found = distribution_of(values, 150);
    json_t *json = bench_result_distribution(&found, MS);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(12));
    assert_string_equal(text, "{\"count\":150,\"min\":1.0,\"mean\":75.5,\"p50\":75.0,"
                              "\"p90\":135.0,\"p95\":143.0,\"p99\":149.0,\"p999\":null,"
                              "\"max\":150.0,\"too_few\":{\"p99\":299,\"p999\":2995}}");
    free(text);
    json_decref(json);
}

static void intervals_are_written_and_an_absent_bound_is_null(void **state) {
    (void)state;
    uint64_t values[300], sorted[300];
    for (size_t i = 0; i < 300; i++) values[i] = (i * 7 % 300 + 1) * MS;
    struct distribution found = distribution_in_time(values, 300, sorted);
    assert_int_equal(values[1], 8 * MS); /* left as they were */
    json_t *json = bench_result_distribution(&found, MS);
    json_t *ci = json_object_get(json, "ci95");
    json_t *median = json_object_get(ci, "p50"), *p99 = json_object_get(ci, "p99");
    assert_true(json_number_value(json_array_get(median, 0)) < 150);
    assert_true(json_number_value(json_array_get(median, 1)) > 150);
    assert_true(json_number_value(json_array_get(p99, 0)) < 297);
    assert_true(json_is_null(json_array_get(p99, 1)));
    json_decref(json);
}

static void a_step_in_result_json_is_null_where_nothing_is_known(void **state) {
    (void)state;
    struct step_result result = begin();
    struct step_summary summary;
    snprintf(result.errors[0].detail, sizeof result.errors[0].detail, "full");
    result.errors[0].outcome = OUTCOME_REFUSED;
    result.errors[0].http = 503;
    result.errors[0].count = 1;
    result.error_kinds = 1;
    add(&result, 1200, 0, 1, OUTCOME_REFUSED);
    assert_int_equal(summary_of(&result, &summary, NULL), ST_OK);
    json_t *step = bench_result_step(&summary);
    const char *const nulls[] = {"concurrency", "latency_ms", "server", "device", "tokens",
                                 "lateness_ms"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        assert_true(json_is_null(json_object_get(step, nulls[i])));
    assert_true(json_is_null(json_object_get(json_object_get(step, "cpu"), "server")));
    assert_int_equal(json_integer_value(json_object_get(step, "failed")), 1);
    json_t *error = json_array_get(json_object_get(step, "errors"), 0);
    assert_int_equal(json_integer_value(json_object_get(error, "http")), 503);
    assert_string_equal(json_string_value(json_object_get(error, "first")), "full");
    json_decref(step);
    step_result_done(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_equal_those_of_counting),
        cmocka_unit_test(a_quantile_says_when_too_few_requests_stand_behind_it),
        cmocka_unit_test(lateness_spoils_a_run_above_1_ms_and_a_tenth_of_its_p99),
        cmocka_unit_test(counts_outcomes_and_leaves_quick_errors_out_of_latency),
        cmocka_unit_test(stages_and_what_is_outside_add_up_to_the_whole),
        cmocka_unit_test(a_late_or_busy_generator_makes_the_step_invalid),
        cmocka_unit_test(an_empty_step_has_no_figures),
        cmocka_unit_test(server_counters_become_shares_and_absent_ones_stay_absent),
        cmocka_unit_test(a_distribution_names_the_quantiles_with_too_few_values),
        cmocka_unit_test(intervals_are_written_and_an_absent_bound_is_null),
        cmocka_unit_test(a_step_in_result_json_is_null_where_nothing_is_known),
        cmocka_unit_test(a_line_of_the_client_log_leaves_out_what_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

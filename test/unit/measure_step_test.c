/* The steps of preprocessing and postprocessing: names, files, sums. */
#include "measure/step.h"
#include "measure/trace_json.h"
#include "measure/trace_stats.h"
#include "measure/trace_summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

static json_t *line_of(const struct trace_record *record) {
    struct buf out;
    buf_init(&out);
    trace_json_request(&out, record, view_of("\"m\""), (struct sampling){.why = SAMPLED_ALL});
    assert_false(out.failed);
    json_t *line = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(line);
    buf_done(&out);
    return line;
}

static void every_step_belongs_to_preprocess_or_postprocess_and_has_a_name(void **state) {
    (void)state;
    for (int i = 0; i < STEP_COUNT; i++) {
        const enum stage stage = step_stage((enum step)i);
        assert_true(stage == STAGE_PREPROCESS || stage == STAGE_POSTPROCESS);
        assert_true(strlen(step_name((enum step)i)) > 0 && strlen(step_help((enum step)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(step_name((enum step)i), step_name((enum step)j));
    }
}

static void a_line_has_the_steps_that_happened_and_no_others(void **state) {
    (void)state;
    struct trace_record record = {.id = "r-1"};
    json_t *line = line_of(&record);
    assert_int_equal(json_object_size(json_object_get(line, "steps")), 0);
    assert_true(json_is_object(json_object_get(line, "steps")));
    json_decref(line);

    record.step_ns[STEP_IMAGE_DECODE] = UINT32_MAX;
    record.step_ns[STEP_DETOKENIZE] = 7;
    line = line_of(&record);
    const json_t *steps = json_object_get(line, "steps");
    assert_int_equal(json_object_size(steps), 2);
    assert_int_equal(json_integer_value(json_object_get(steps, "image_decode")), UINT32_MAX);
    assert_int_equal(json_integer_value(json_object_get(steps, "detokenize")), 7);
    json_decref(line);
}

static void a_line_with_every_step_is_whole(void **state) {
    (void)state;
    struct trace_record record = {.id = "r-1"};
    for (int i = 0; i < STEP_COUNT; i++) record.step_ns[i] = UINT32_MAX - (uint32_t)i;
    json_t *line = line_of(&record);
    const json_t *steps = json_object_get(line, "steps");
    assert_int_equal(json_object_size(steps), STEP_COUNT);
    for (int i = 0; i < STEP_COUNT; i++)
        assert_int_equal(json_integer_value(json_object_get(steps, step_name((enum step)i))),
                         UINT32_MAX - (uint32_t)i);
    assert_int_equal(json_integer_value(json_object_get(line, "taken_ns")), 0);
    json_decref(line);
}

static void every_step_is_in_the_manual(void **state) {
    (void)state;
    FILE *in = fopen(TEST_SOURCE_DIR "/docs/trace.md", "r");
    assert_non_null(in);
    static char manual[1 << 16];
    manual[fread(manual, 1, sizeof manual - 1, in)] = '\0';
    fclose(in);
    for (int i = 0; i < STEP_COUNT; i++) {
        char row[160];
        snprintf(row, sizeof row, "| `%s` | %s | %s |", step_name((enum step)i),
                 stage_name(step_stage((enum step)i)), step_help((enum step)i));
        if (strstr(manual, row) == NULL) fail_msg("docs/trace.md does not have %s", row);
    }
}

static void a_step_s_sum_counts_the_requests_that_had_it(void **state) {
    (void)state;
    struct trace_stats stats;
    assert_int_equal(trace_stats_init(&stats, "m"), ST_OK);
    const struct trace_record records[] = {
        {.step_ns = {[STEP_RESIZE] = 30, [STEP_CTC] = 4}},
        {.step_ns = {[STEP_RESIZE] = 50}, .status = ST_TIMEOUT},
        {.status = ST_OK}};
    const uint64_t durations[3 * STAGE_COUNT] = {0}, totals_ns[3] = {0};
    const bool are_ordered[3] = {true, true, true};
    trace_stats_requests(&stats, records, durations, totals_ns, are_ordered, 3);
    assert_int_equal(stats.step_sum_ns[STEP_RESIZE], 80);
    assert_int_equal(stats.step_requests[STEP_RESIZE], 2);
    assert_int_equal(stats.step_max_ns[STEP_RESIZE], 50);
    assert_int_equal(stats.step_requests[STEP_CTC], 1);
    assert_int_equal(stats.step_requests[STEP_BASE64], 0);

    struct buf out;
    buf_init(&out);
    struct trace_stats *const models[] = {&stats};
    const struct tracer_config config = {.all = true};
    const struct trace_dir dir = {.is_stopped = false};
    trace_summary_write(&out, &(struct trace_summary){
                                  .config = &config, .dir = &dir, .models = models, .model_count = 1});
    json_t *summary = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(summary);
    const json_t *steps =
        json_object_get(json_array_get(json_object_get(summary, "models"), 0), "steps");
    assert_int_equal(json_object_size(steps), 2);
    const json_t *resize = json_object_get(steps, "resize_ns");
    assert_int_equal(json_integer_value(json_object_get(resize, "count")), 2);
    assert_int_equal(json_integer_value(json_object_get(resize, "sum")), 80);
    assert_int_equal(json_integer_value(json_object_get(resize, "max")), 50);
    json_decref(summary);
    buf_done(&out);
    trace_stats_done(&stats);
}

/* A large body: received by the loop, waits for a worker, is decoded there, preprocessed at once. */
static void decoding_on_a_worker_begins_when_the_worker_takes_it(void **state) {
    (void)state;
    struct trace_record record = {.at = {[AT_START] = 100, [AT_RECEIVED] = 110,
                                         [AT_DECODE_START] = 150, [AT_DECODED] = 180,
                                         [AT_PREPROCESS_START] = 180, [AT_PREPROCESS_END] = 200}};
    uint64_t durations[STAGE_COUNT];
    assert_int_equal(trace_durations(&record, durations), 100);
    assert_int_equal(durations[STAGE_RECEIVE], 10);
    assert_int_equal(durations[STAGE_PREPROCESS_WAIT], 40);
    assert_int_equal(durations[STAGE_DECODE], 30);
    assert_int_equal(durations[STAGE_PREPROCESS], 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_belongs_to_preprocess_or_postprocess_and_has_a_name),
        cmocka_unit_test(a_line_has_the_steps_that_happened_and_no_others),
        cmocka_unit_test(a_line_with_every_step_is_whole),
        cmocka_unit_test(every_step_is_in_the_manual),
        cmocka_unit_test(a_step_s_sum_counts_the_requests_that_had_it),
        cmocka_unit_test(decoding_on_a_worker_begins_when_the_worker_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

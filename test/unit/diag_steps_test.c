/* What explain makes of the steps of preprocessing and postprocessing: reading them, blaming
 * pictures, base64 and the workers that carry both, and saying what a stage consists of. */
#include "diag/run_read.h"
#include "diag_story.h"
#include "measure/trace_json.h"

#include <math.h>

/* A picture of 640x480 in base64: 6 ms of work for 2 ms of model. */
static struct made picture(void) {
    struct made made = calm();
    made.bytes_in = 100000;
    made.pictures = made.scalable_jpegs = 1;
    made.tokens = made.rows_length = 0;
    made.stage_ns[STAGE_DECODE] = 0.2 * MS;
    made.stage_ns[STAGE_PREPROCESS] = 6 * MS;
    made.step_ns[STEP_BASE64] = 0.2 * MS;
    made.step_ns[STEP_IMAGE_DECODE] = 4.2 * MS;
    made.step_ns[STEP_RESIZE] = 1.1 * MS;
    made.step_ns[STEP_PIXELS] = 0.3 * MS;
    return made;
}

static struct made grown(const struct made *from, double by) {
    struct made made = *from;
    made.bytes_in = (uint32_t)(made.bytes_in * by);
    made.stage_ns[STAGE_DECODE] *= by;
    made.stage_ns[STAGE_PREPROCESS] *= by;
    for (int i = 0; i < STEP_COUNT; i++) made.step_ns[i] *= by;
    return made;
}

static bool is_noted(const struct findings *findings, const char *text) {
    for (size_t i = 0; i < findings->note_count; i++)
        if (strstr(findings->notes[i], text) != NULL) return true;
    return false;
}

static enum status read_line(struct run *run, const char *steps, struct err *err) {
    struct buf line;
    const struct trace_record record = {.id = "r-1", .at = {[AT_START] = 1, [AT_SENT] = 9}};
    buf_init(&line);
    trace_json_request(&line, &record, view_of("\"m\""), (struct sampling){.why = SAMPLED_ALL});
    buf_char(&line, 0);
    char *at = strstr(line.data, "\"steps\":{}"); /* the tracer writes it of a plain request */
    assert_non_null(at);
    struct buf changed;
    buf_init(&changed);
    buf_append(&changed, line.data, (size_t)(at - line.data));
    buf_text(&changed, steps);
    const char *rest = at + strlen("\"steps\":{}");
    buf_append(&changed, rest, strlen(rest) - 1); /* without the newline */
    const enum status status = run_read_request(run, buf_view(&changed), err);
    buf_done(&line);
    buf_done(&changed);
    return status;
}

static void steps_are_read_and_those_of_a_later_version_passed_over(void **state) {
    (void)state;
    struct run run;
    struct err err = {""};
    run_init(&run);
    assert_int_equal(read_line(&run, "\"steps\":{\"base64\":20,\"sharpen\":5,\"ctc\":7}", &err),
                     ST_OK);
    assert_int_equal((int)run.requests[0].step_ns[STEP_BASE64], 20);
    assert_int_equal((int)run.requests[0].step_ns[STEP_CTC], 7);
    assert_int_equal((int)run.requests[0].step_ns[STEP_RESIZE], 0);
    assert_int_equal(read_line(&run, "\"older\":0", &err), ST_OK);
    assert_int_equal((int)run.requests[1].step_ns[STEP_BASE64], 0);
    run_done(&run);
}

static void steps_that_are_no_durations_are_named(void **state) {
    (void)state;
    static const struct { const char *steps, *error;
    } CASES[] = {{"\"steps\":[1]", "steps: it is not a JSON object"},
                 {"\"steps\":7", "steps is not an object"},
                 {"\"steps\":{\"resize\":-1}", "steps: resize is not an integer"},
                 {"\"steps\":{\"resize\":1.5}", "steps: resize is not an integer"},
                 {"\"steps\":{\"resize\":{}}", "steps: resize is not an integer"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct run run;
        struct err err = {""};
        run_init(&run);
        assert_int_equal(read_line(&run, CASES[i].steps, &err), ST_INVALID);
        if (strstr(err.text, CASES[i].error) == NULL) fail_msg("%s", err.text);
        run_done(&run);
    }
}

static void larger_pictures_are_blamed_and_jpeg_scaling_advised(void **state) {
    (void)state;
    const struct made usual = picture(), slow = grown(&usual, 4);
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = assert_only(story, "pictures");
    assert_non_null(strstr(findings->items[0].advice, "jpeg_scaling in pipeline.yaml decodes"));
    assert_true(findings->items[0].share_of_excess > 0.8);
    assert_false(stands(findings, "tokenizing"));
    story_free(story);
}

static void the_same_pictures_that_take_longer_are_starved_workers(void **state) {
    (void)state;
    const struct made usual = picture();
    struct made slow = grown(&usual, 4);
    slow.bytes_in = usual.bytes_in;
    slow.stage_ns[STAGE_DECODE] = usual.stage_ns[STAGE_DECODE];
    slow.step_ns[STEP_BASE64] = usual.step_ns[STEP_BASE64];
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "workers_starved");
    story_free(story);
}

static void large_bodies_of_base64_are_the_wire_s_and_binary_is_advised(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.bytes_in = 40 * usual.bytes_in;
    slow.stage_ns[STAGE_DECODE] = 3 * MS;
    slow.stage_ns[STAGE_PREPROCESS] = 3.2 * MS;
    slow.step_ns[STEP_BASE64] = 3 * MS;
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = assert_only(story, "request_body");
    assert_non_null(strstr(findings->items[0].advice, "in binary"));
    assert_non_null(strstr(findings->items[0].advice, "raw body"));
    assert_true(findings->items[0].slow_ns > 5.5 * MS);
    story_free(story);
}

static void workers_that_decode_pictures_are_told_how_to_spare_it(void **state) {
    (void)state;
    const struct made usual = picture();
    struct made slow = usual;
    slow.stage_ns[STAGE_PREPROCESS_WAIT] = 20 * MS;
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = assert_only(story, "workers_saturated");
    assert_non_null(strstr(findings->items[0].advice, "jpeg_scaling in pipeline.yaml decodes"));
    story_free(story);
}

/* PNGs, small JPEGs, or the option is on already. */
static void jpeg_scaling_is_not_advised_where_it_would_change_nothing(void **state) {
    (void)state;
    struct made usual = picture(), larger, waiting;
    usual.scalable_jpegs = 0;
    larger = grown(&usual, 4);
    waiting = usual;
    waiting.stage_ns[STAGE_PREPROCESS_WAIT] = 20 * MS;
    const struct { const struct made *slow; const char *cause; } CASES[] = {
        {&larger, "pictures"}, {&waiting, "workers_saturated"}};
    for (size_t i = 0; i < 2; i++) {
        struct story *story = story_of(&usual, CASES[i].slow);
        const struct findings *findings = assert_only(story, CASES[i].cause);
        assert_non_null(strstr(findings->items[0].advice, "jpeg_scaling would not help"));
        assert_non_null(strstr(findings->items[0].advice, "smaller pictures"));
        story_free(story);
    }
    usual.pictures = 0; /* a trace of before there were counts: not known */
    larger.pictures = 0;
    struct story *story = story_of(&usual, &larger);
    assert_non_null(strstr(assert_only(story, "pictures")->items[0].advice, "where they are large JPEGs"));
    story_free(story);
}

/* What the tracer writes, explain reads. */
static void pictures_are_counted_in_the_line(void **state) {
    (void)state;
    struct buf line;
    struct run run;
    struct err err;
    const struct trace_record record = {.id = "r-1", .at = {[AT_START] = 1, [AT_SENT] = 9},
                                        .pictures = 3, .scalable_jpegs = 2};
    buf_init(&line);
    run_init(&run);
    trace_json_request(&line, &record, view_of("\"m\""), (struct sampling){.why = SAMPLED_ALL});
    line.size--; /* the newline */
    assert_int_equal(run_read_request(&run, buf_view(&line), &err), ST_OK);
    assert_int_equal(run.requests[0].pictures, 3);
    assert_int_equal(run.requests[0].scalable_jpegs, 2);
    run_done(&run);
    buf_done(&line);
}

/* Nobody is slower for it than anybody else, so it is no cause; but it is worth knowing. */
static void decoding_that_everybody_does_is_noted(void **state) {
    (void)state;
    struct made usual = picture();
    usual.period_ns = 12 * MS;
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    assert_int_equal(findings->verdict, VERDICT_NONE);
    assert_true(is_noted(findings, "decoding pictures is 48 %"));
    assert_false(is_noted(findings, "JSON and base64"));
    story_free(story);

    usual.stage_ns[STAGE_DECODE] = 4 * MS;
    story = story_of(&usual, &usual);
    assert_true(is_noted(judge(story), "JSON and base64 are 3"));
    story_free(story);
}

static void the_report_takes_the_stages_apart(void **state) {
    (void)state;
    struct made usual = picture();
    usual.stage_ns[STAGE_POSTPROCESS] = 1 * MS;
    usual.step_ns[STEP_DETECT] = 0.5 * MS;
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    struct buf text, json;
    buf_init(&text);
    buf_init(&json);
    assert_true(explain_print("run1", &story->evidence, findings, &text));
    buf_char(&text, 0);
    const char *steps = strstr(text.data, "\nSteps    preprocess, slow ");
    assert_non_null(steps);
    assert_non_null(strstr(steps, "image_decode 7"));
    assert_true(strstr(steps, "image_decode") < strstr(steps, "resize"));
    assert_true(strstr(steps, "resize") < strstr(steps, "pixels"));
    assert_non_null(strstr(steps, "postprocess, slow "));
    assert_non_null(strstr(steps, "detect 5"));
    assert_null(strstr(steps, "tokenize"));
    assert_int_equal(explain_json("run1", &story->evidence, findings, &json), ST_OK);
    json_t *document = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *slow = json_object_get(json_object_get(document, "evidence"), "slow");
    const json_t *steps_ms = json_object_get(slow, "steps_ms");
    assert_int_equal(json_object_size(steps_ms), STEP_COUNT);
    assert_true(fabs(json_number_value(json_object_get(steps_ms, "image_decode")) - 4.2) < 0.01);
    json_decref(document);
    buf_done(&text);
    buf_done(&json);
    story_free(story);
}

static void a_run_without_pipelines_says_nothing_of_steps(void **state) {
    (void)state;
    const struct made usual = calm();
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    struct buf text;
    buf_init(&text);
    assert_true(explain_print("run1", &story->evidence, findings, &text));
    buf_char(&text, 0);
    assert_null(strstr(text.data, "Steps"));
    buf_done(&text);
    story_free(story);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_read_and_those_of_a_later_version_passed_over),
        cmocka_unit_test(steps_that_are_no_durations_are_named),
        cmocka_unit_test(jpeg_scaling_is_not_advised_where_it_would_change_nothing),
        cmocka_unit_test(pictures_are_counted_in_the_line),
        cmocka_unit_test(larger_pictures_are_blamed_and_jpeg_scaling_advised),
        cmocka_unit_test(the_same_pictures_that_take_longer_are_starved_workers),
        cmocka_unit_test(large_bodies_of_base64_are_the_wire_s_and_binary_is_advised),
        cmocka_unit_test(workers_that_decode_pictures_are_told_how_to_spare_it),
        cmocka_unit_test(decoding_that_everybody_does_is_noted),
        cmocka_unit_test(the_report_takes_the_stages_apart),
        cmocka_unit_test(a_run_without_pipelines_says_nothing_of_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What explain says of runs whose cause is known (diag_story.h). */
#include "diag_story.h"

static void calm_run_has_no_cause(void **state) {
    (void)state;
    const struct made usual = calm();
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    assert_int_equal(findings->verdict, VERDICT_NONE);
    assert_int_equal(findings->faults, 0);
    assert_non_null(strstr(findings->notes[0], "busy 40 %"));
    story_free(story);
}

static void timer_that_holds_everybody_is_blamed_by_share_of_total(void **state) {
    (void)state;
    struct made usual = calm();
    usual.stage_ns[STAGE_BATCH_HOLD] = 20 * MS;
    usual.reason = REASON_TIMER;
    usual.period_ns = 30 * MS;
    struct story *story = story_of(&usual, &usual);
    story->run.config.max_delay_us = 20000;
    const struct findings *findings = assert_only(story, "timer_too_long");
    assert_false(findings->items[0].is_by_excess);
    assert_true(findings->items[0].share_of_total > 0.85);
    assert_true(findings->items[0].expected_ns < 3.5 * MS);
    assert_true(story->evidence.slow.activity_ns[ACTIVITY_IDLE] >
                0.95 * story->evidence.slow.queue_ns);
    story_free(story);
}

static void timer_that_holds_some_is_blamed_by_excess(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_BATCH_HOLD] = 2 * MS;
    slow.reason = REASON_TIMER;
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = assert_only(story, "timer_too_long");
    assert_true(findings->items[0].is_by_excess);
    story_free(story);
}

/* Batches that fill just before the timer: held all the same, with an instance free. */
static void timer_is_blamed_for_batches_that_filled_in_time(void **state) {
    (void)state;
    struct made usual = calm();
    usual.stage_ns[STAGE_BATCH_HOLD] = 15 * MS;
    usual.reason = REASON_FULL;
    usual.period_ns = 30 * MS;
    struct story *story = story_of(&usual, &usual);
    strcpy(story->run.config.policy, "timer");
    story->run.config.is_known = true;
    story->run.config.max_delay_us = 20000;
    assert_true(stands(judge(story), "timer_too_long"));
    story_free(story);
}

/* The slow ones ran eight to a batch, the others alone. */
static bool are_large_batches_blamed_under(const char *policy) {
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_EXECUTE] = usual.stage_ns[STAGE_EXECUTE] * 8;
    struct story *story = story_of(&usual, &slow);
    for (size_t i = 0; i < story->run.batch_count; i++) {
        struct run_batch *batch = &story->run.batches[i];
        if (batch->executed_ns - batch->inputs_ready_ns < 4 * usual.stage_ns[STAGE_EXECUTE]) continue;
        batch->rows = batch->requests = 8;
        batch->padded_elements *= 8;
        batch->real_elements *= 8;
    }
    for (size_t i = 7; i < story->run.count; i += SLOW_EVERY) story->run.requests[i].batch_size = 8;
    strcpy(story->run.config.policy, policy);
    story->run.config.is_known = true;
    const bool are_blamed = stands(judge(story), "large_batches");
    story_free(story);
    return are_blamed;
}

static void large_batches_are_blamed_unless_a_timer_gathers_them(void **state) {
    (void)state;
    assert_true(are_large_batches_blamed_under("eager"));
    assert_false(are_large_batches_blamed_under("timer"));
}

static void holding_without_the_timer_is_not_the_timer(void **state) {
    (void)state;
    struct made usual = calm();
    usual.stage_ns[STAGE_BATCH_HOLD] = 2 * MS;
    usual.reason = REASON_GAP;
    struct story *story = story_of(&usual, &usual);
    assert_only(story, "holding");
    story_free(story);
}

static void tokenizer_in_the_instance_is_blamed_with_the_waits_it_causes(void **state) {
    (void)state;
    struct made usual = calm();
    usual.batch_size = 8;
    usual.period_ns = 12 * MS;
    usual.inline_ns = 8 * MS;
    usual.stage_ns[STAGE_PREPROCESS] = 1 * MS;
    usual.stage_ns[STAGE_PREPROCESS_WAIT] = 7 * MS;
    usual.stage_ns[STAGE_EXECUTE] = 0.5 * MS;
    struct story *story = story_of(&usual, &usual);
    /* what lies between taken and inputs ready is 8 ms in the record, as it is in a real one */
    for (size_t i = 0; i < story->run.batch_count; i++) {
        struct run_batch *batch = &story->run.batches[i];
        batch->inputs_ready_ns += 8000000;
        batch->executed_ns += 8000000;
        batch->outputs_ready_ns += 8000000;
    }
    const struct findings *findings = assert_only(story, "tokenizer_inline");
    assert_true(findings->items[0].share_of_total > 0.8);
    assert_false(stands(findings, "workers_saturated"));
    story_free(story);
}

static void waiting_for_workers_is_not_the_inline_tokenizer(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_PREPROCESS_WAIT] = 9 * MS;
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "workers_saturated");
    story_free(story);
}

static void contended_lock_is_blamed_and_its_holder_named(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_BATCH_ENQUEUE] = 6 * MS;
    slow.lock_wait_ns = 5.6 * MS;
    struct story *story = story_of(&usual, &slow);
    strcpy(story->run.config.queue, "mutex");
    const struct findings *findings = assert_only(story, "lock_contention");
    assert_non_null(strstr(findings->items[0].advice, "worker"));
    story_free(story);
}

static void lock_that_nobody_waits_for_is_not_blamed_and_that_is_said(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_BATCH_HOLD] = 9 * MS;
    slow.reason = REASON_TIMER;
    slow.lock_wait_ns = 500;
    struct story *story = story_of(&usual, &slow);
    strcpy(story->run.config.queue, "mutex");
    const struct findings *findings = assert_only(story, "timer_too_long");
    bool is_said = false;
    for (size_t i = 0; i < findings->note_count; i++)
        if (strstr(findings->notes[i], "the queue's lock was waited for 0.5 us of") != NULL)
            is_said = true;
    assert_true(is_said);
    story_free(story);
}

static struct made busy(void) {
    struct made made = calm();
    made.stage_ns[STAGE_INSTANCE_WAIT] = 12 * MS;
    made.batch_size = 32;
    made.period_ns = 2.05 * MS;
    made.reason = REASON_FULL;
    made.waiting = 100;
    return made;
}

static void full_batches_on_busy_instances_are_saturation(void **state) {
    (void)state;
    const struct made usual = busy();
    struct story *story = story_of(&usual, &usual);
    assert_only(story, "instances_saturated");
    story_free(story);
}

static void busy_instances_with_room_in_batches_are_no_fault(void **state) {
    (void)state;
    struct made usual = busy();
    usual.batch_size = 4;
    usual.waiting = 0;
    usual.reason = REASON_EAGER;
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    assert_int_equal(findings->verdict, VERDICT_NONE);
    assert_true(stands(findings, "busy_instance"));
    assert_false(stands(findings, "instances_saturated"));
    story_free(story);
}

static void long_inputs_are_told_from_slow_execution(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.tokens = slow.rows_length = 500;
    slow.stage_ns[STAGE_EXECUTE] = 10 * MS;
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = assert_only(story, "long_inputs");
    assert_true(findings->items[0].share_of_excess > 0.9);
    story_free(story);
}

static void execution_that_size_does_not_explain_is_told_from_long_inputs(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_EXECUTE] = 10 * MS;
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "execution_varies");
    story_free(story);
}

static void short_texts_beside_long_ones_are_padding(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.rows_length = 500;
    slow.stage_ns[STAGE_EXECUTE] = 10 * MS;
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "padding");
    story_free(story);
}

static void waiting_for_a_processor_is_told_from_execution(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_EXECUTE] = 8 * MS;
    slow.run_delay_ns = 6 * MS;
    slow.stage_ns[STAGE_DISPATCH] = 3 * MS;
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "processor_wait");
    story_free(story);
}

static void what_only_the_client_saw_is_not_the_servers(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.network_ns = 9 * MS;
    struct story *story = story_of(&usual, &slow);
    assert_only(story, "network");
    story_free(story);
}

static void bodies_answers_and_readers_are_told_apart(void **state) {
    (void)state;
    const struct { enum stage stage; const char *cause;
    } CASES[] = {{STAGE_RECEIVE, "request_body"}, {STAGE_DECODE, "request_body"},
                 {STAGE_ENCODE, "encoding"},      {STAGE_SEND, "slow_readers"},
                 {STAGE_OTHER, "hand_over"},      {STAGE_PREPROCESS, "workers_starved"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct made usual = calm();
        struct made slow = usual;
        slow.stage_ns[CASES[i].stage] = 9 * MS;
        struct story *story = story_of(&usual, &slow);
        assert_only(story, CASES[i].cause);
        story_free(story);
    }
}

static void two_causes_of_one_size_are_inconclusive(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_SEND] = 5 * MS;
    slow.stage_ns[STAGE_BATCH_HOLD] = 5 * MS;
    slow.reason = REASON_TIMER;
    struct story *story = story_of(&usual, &slow);
    const struct findings *findings = judge(story);
    assert_int_equal(findings->verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(findings->faults, 2);
    assert_true(stands(findings, "slow_readers") && stands(findings, "timer_too_long"));
    story_free(story);
}

static void shares_of_the_excess_add_up(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_SEND] = 5 * MS;
    slow.network_ns = 2 * MS;
    struct story *story = story_of(&usual, &slow);
    judge(story);
    double excess = 0, whole = 0;
    for (unsigned i = 0; i < PART_COUNT; i++) {
        excess += story->evidence.slow.part_ns[i] - story->evidence.middle.part_ns[i];
        whole += story->evidence.slow.part_ns[i];
    }
    assert_true(excess / evidence_excess_ns(&story->evidence) > 0.99999);
    assert_true(excess / evidence_excess_ns(&story->evidence) < 1.00001);
    assert_true(whole / story->evidence.slow.whole_ns > 0.99999);
    assert_int_equal(story->evidence.slow.requests, REQUESTS / SLOW_EVERY);
    story_free(story);
}

static void intervals_are_the_same_for_the_same_seed_and_hold_the_share(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made slow = usual;
    slow.stage_ns[STAGE_SEND] = 5 * MS;
    struct story *story = story_of(&usual, &slow);
    const struct finding first = judge(story)->items[0];
    findings_of(&story->evidence, 1, &story->findings);
    const struct finding again = story->findings.items[0];
    assert_true(first.total_interval.low == again.total_interval.low);
    assert_true(first.total_interval.low <= first.share_of_total);
    assert_true(first.total_interval.high >= first.share_of_total);
    assert_true(first.total_interval.high > first.total_interval.low);
    assert_true(story->findings.blocks >= 20);
    story_free(story);
}

static void sampled_runs_take_slow_as_slow_and_weigh_the_middle(void **state) {
    (void)state;
    const struct made usual = calm();
    struct made quick = usual, slow = usual;
    quick.stage_ns[STAGE_EXECUTE] = 1 * MS;
    slow.stage_ns[STAGE_SEND] = 9 * MS;
    struct story *story = story_of(&usual, &slow);
    story->run.summary.is_all = false;
    for (size_t i = 0; i < story->run.count; i++) {
        struct run_request *request = &story->run.requests[i];
        const bool is_slow = i % SLOW_EVERY == 7;
        request->sampled = is_slow ? SAMPLED_SLOW : SAMPLED_UNIFORM;
        request->weight = is_slow ? 0 : 1;
    }
    /* as many quick ones as usual ones, but each stands for nine: they are the middle */
    for (uint64_t i = 0; i < REQUESTS; i++) {
        add(&story->run, &quick, REQUESTS + i);
        story->run.requests[story->run.count - 1].weight = 9;
        story->run.requests[story->run.count - 1].sampled = SAMPLED_UNIFORM;
    }
    judge(story);
    assert_int_equal(story->evidence.slow_rule, SLOW_BY_WINDOW);
    assert_int_equal(story->evidence.slow.requests, REQUESTS / SLOW_EVERY);
    assert_true(story->evidence.middle.to_ns < 1.5 * MS);
    assert_first(&story->findings, "slow_readers");
    story_free(story);
}

static void too_few_requests_are_said_with_the_remedy(void **state) {
    (void)state;
    struct run run;
    struct evidence evidence = {0};
    struct err err = {""};
    const struct made usual = calm();
    run_init(&run);
    for (uint64_t i = 0; i < 10; i++) add(&run, &usual, i);
    assert_int_equal(run_finish(&run, NULL, &err), ST_OK);
    assert_int_equal(evidence_create(&run, 0.01, &evidence, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "--trace-all"));
    run_done(&run);
}

static void activities_of_an_interval_add_up_to_it(void **state) {
    (void)state;
    struct run run;
    struct err err = {""};
    run_init(&run);
    run.summary.is_all = true;
    const struct run_batch batches[] = {
        {.batch = 1, .free_ns = 50, .taken_ns = 100, .inline_ns = 20, .inputs_ready_ns = 130,
         .executed_ns = 200, .outputs_ready_ns = 210},
        {.batch = 2, .free_ns = 215, .taken_ns = 300, .inputs_ready_ns = 310, .executed_ns = 400,
         .outputs_ready_ns = 400}};
    assert_true(run_add_batch(&run, &batches[1]));
    assert_true(run_add_batch(&run, &batches[0]));
    assert_int_equal(run_finish(&run, NULL, &err), ST_OK);
    struct timeline timeline;
    assert_int_equal(timeline_create(&run, &timeline, &err), ST_OK);
    double out[ACTIVITY_COUNT];
    timeline_overlap(&timeline, 60, 350, out);
    assert_int_equal((int)out[ACTIVITY_IDLE], 40 + 85);
    assert_int_equal((int)out[ACTIVITY_TOKENIZING], 20);
    assert_int_equal((int)out[ACTIVITY_COPYING], 10 + 10 + 10);
    assert_int_equal((int)out[ACTIVITY_EXECUTING], 70 + 40);
    assert_int_equal((int)out[ACTIVITY_ANSWERING], 5);
    assert_int_equal((int)out[ACTIVITY_UNKNOWN], 0);
    timeline_overlap(&timeline, 0, 1000, out);
    assert_int_equal((int)out[ACTIVITY_UNKNOWN], 50 + 600);
    assert_null(timeline_busy_with(&timeline, 0, 250));
    assert_int_equal(timeline_busy_with(&timeline, 0, 150)->batch, 1);
    timeline_done(&timeline);
    run_done(&run);
}

static void both_reports_say_the_same_cause(void **state) {
    (void)state;
    struct made usual = calm();
    usual.stage_ns[STAGE_BATCH_HOLD] = 20 * MS;
    usual.reason = REASON_TIMER;
    struct story *story = story_of(&usual, &usual);
    const struct findings *findings = judge(story);
    struct buf text, json;
    buf_init(&text);
    buf_init(&json);
    assert_true(explain_print("run1", &story->evidence, findings, &text));
    assert_int_equal(explain_json("run1", &story->evidence, findings, &json), ST_OK);
    buf_char(&text, 0);
    assert_non_null(strstr(text.data, "Verdict  the batch timer is too long"));
    assert_non_null(strstr(text.data, "batch_hold"));
    json_t *document = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    assert_int_equal(json_integer_value(json_object_get(document, "format")), 1);
    assert_string_equal(json_string_value(json_object_get(document, "cause")), "timer_too_long");
    assert_string_equal(json_string_value(json_object_get(document, "verdict")), "cause");
    assert_null(json_object_get(document, "failed"));
    const json_t *stages = json_object_get(json_object_get(document, "evidence"), "stages");
    assert_int_equal(json_array_size(stages), PART_COUNT);
    assert_int_equal(json_array_size(json_object_get(document, "findings")) +
                         json_array_size(json_object_get(document, "not_blamed")),
                     cause_count());
    json_decref(document);
    buf_done(&text);
    buf_done(&json);
    story_free(story);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calm_run_has_no_cause),
        cmocka_unit_test(timer_that_holds_everybody_is_blamed_by_share_of_total),
        cmocka_unit_test(timer_that_holds_some_is_blamed_by_excess),
        cmocka_unit_test(timer_is_blamed_for_batches_that_filled_in_time),
        cmocka_unit_test(large_batches_are_blamed_unless_a_timer_gathers_them),
        cmocka_unit_test(holding_without_the_timer_is_not_the_timer),
        cmocka_unit_test(tokenizer_in_the_instance_is_blamed_with_the_waits_it_causes),
        cmocka_unit_test(waiting_for_workers_is_not_the_inline_tokenizer),
        cmocka_unit_test(contended_lock_is_blamed_and_its_holder_named),
        cmocka_unit_test(lock_that_nobody_waits_for_is_not_blamed_and_that_is_said),
        cmocka_unit_test(full_batches_on_busy_instances_are_saturation),
        cmocka_unit_test(busy_instances_with_room_in_batches_are_no_fault),
        cmocka_unit_test(long_inputs_are_told_from_slow_execution),
        cmocka_unit_test(execution_that_size_does_not_explain_is_told_from_long_inputs),
        cmocka_unit_test(short_texts_beside_long_ones_are_padding),
        cmocka_unit_test(waiting_for_a_processor_is_told_from_execution),
        cmocka_unit_test(what_only_the_client_saw_is_not_the_servers),
        cmocka_unit_test(bodies_answers_and_readers_are_told_apart),
        cmocka_unit_test(two_causes_of_one_size_are_inconclusive),
        cmocka_unit_test(shares_of_the_excess_add_up),
        cmocka_unit_test(intervals_are_the_same_for_the_same_seed_and_hold_the_share),
        cmocka_unit_test(sampled_runs_take_slow_as_slow_and_weigh_the_middle),
        cmocka_unit_test(too_few_requests_are_said_with_the_remedy),
        cmocka_unit_test(both_reports_say_the_same_cause),
        cmocka_unit_test(activities_of_an_interval_add_up_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

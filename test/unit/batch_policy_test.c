/* batch/policy.h: decisions as a pure function of counts, ages and instants. */
#include "batch/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MS 1000000ull
#define US 1000ull

static struct policy_view view_at(uint64_t now_ns, uint32_t rows, uint64_t oldest_ns) {
    return (struct policy_view){.now_ns = now_ns, .rows = rows, .oldest_ns = oldest_ns,
                                .newest_ns = oldest_ns, .free_ns = 0, .deadline_ns = UINT64_MAX};
}

static void eager_takes_what_waits(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_EAGER, .max_batch = 32};
    struct policy_state learned = {0};
    struct policy_view view = view_at(10 * MS, 3, 9 * MS);
    view.free_ns = 9500 * US;
    const struct policy_decision decision = policy_decide(&config, &learned, &view);
    assert_true(decision.dispatch);
    assert_int_equal(decision.reason, REASON_EAGER);
    assert_int_equal(decision.ready_ns, 9500 * US);
}

static void timer_waits_for_the_oldest(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_TIMER, .max_batch = 32, .max_delay_ns = 20 * MS};
    struct policy_state learned = {0};
    struct policy_view view = view_at(10 * MS, 3, 9 * MS);
    struct policy_decision decision = policy_decide(&config, &learned, &view);
    assert_false(decision.dispatch);
    assert_int_equal(decision.wait_until_ns, 29 * MS);
    view.now_ns = 29 * MS + 40 * US; /* woken late: ready was when the time was up */
    decision = policy_decide(&config, &learned, &view);
    assert_true(decision.dispatch);
    assert_int_equal(decision.reason, REASON_TIMER);
    assert_int_equal(decision.ready_ns, 29 * MS);
}

static void full_batch_starts_under_every_policy(void **state) {
    (void)state;
    for (int kind = 0; kind < POLICY_KIND_COUNT; kind++) {
        const struct policy_config config = {
            .kind = (enum policy_kind)kind, .max_batch = 8, .max_delay_ns = 1000 * MS};
        struct policy_state learned = {.exec_ns = 4.0 * MS};
        struct policy_view view = view_at(10 * MS, 8, 9 * MS);
        const struct policy_decision decision = policy_decide(&config, &learned, &view);
        assert_true(decision.dispatch);
        assert_int_equal(decision.reason, REASON_FULL);
    }
}

static void adaptive_does_not_hold_before_it_knows_the_model(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    struct policy_state learned = {0};
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    assert_true(policy_decide(&config, &learned, &view).dispatch);
}

static void adaptive_does_not_hold_for_a_fast_model(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    struct policy_state learned = {.exec_ns = 100.0 * US}; /* 3 % of it is 3 us */
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    assert_true(policy_decide(&config, &learned, &view).dispatch);
}

static void adaptive_holds_while_requests_keep_coming(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    struct policy_state learned = {.exec_ns = 4.0 * MS}; /* gap 120 us */
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    view.free_ns = 10 * MS;
    struct policy_decision decision = policy_decide(&config, &learned, &view);
    assert_false(decision.dispatch);
    assert_int_equal(decision.wait_until_ns, 10 * MS + 120 * US);
    view.now_ns = 10 * MS + 50 * US; /* one more came: the gap begins anew */
    view.newest_ns = view.now_ns;
    view.rows = 2;
    decision = policy_decide(&config, &learned, &view);
    assert_false(decision.dispatch);
    assert_int_equal(decision.wait_until_ns, 10 * MS + 170 * US);
    view.now_ns = 10 * MS + 171 * US;
    decision = policy_decide(&config, &learned, &view);
    assert_true(decision.dispatch);
    assert_int_equal(decision.reason, REASON_GAP);
    assert_int_equal(decision.ready_ns, 10 * MS + 170 * US);
}

static void adaptive_holds_at_most_four_gaps(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 1000};
    struct policy_state learned = {.exec_ns = 4.0 * MS};
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    uint64_t held_until = 0;
    for (uint64_t at = 0; at < 2000; at += 50) { /* a steady stream, 50 us apart */
        view.now_ns = view.newest_ns = 10 * MS + at * US;
        view.rows++;
        if (policy_decide(&config, &learned, &view).dispatch) break;
        held_until = at;
    }
    assert_in_range(held_until, 400, 480);
}

static void adaptive_stops_holding_when_it_does_not_pay(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    struct policy_state learned = {.exec_ns = 4.0 * MS};
    uint64_t at = 100 * MS;
    unsigned held = 0;
    for (unsigned i = 0; i < 320; i++, at += 100 * MS) { /* lone requests, far apart */
        struct policy_view view = view_at(at, 1, at);
        view.free_ns = at - 50 * MS;
        if (policy_decide(&config, &learned, &view).dispatch) continue;
        held++;
        view.now_ns = at + 121 * US;
        assert_true(policy_decide(&config, &learned, &view).dispatch);
    }
    assert_in_range(held, 16, 80); /* the first tries, then one in sixteen */
}

static void maximum_delay_caps_the_adaptive_hold(void **state) {
    (void)state;
    const struct policy_config config = {
        .kind = POLICY_ADAPTIVE, .max_batch = 32, .max_delay_ns = 30 * US};
    struct policy_state learned = {.exec_ns = 4.0 * MS};
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    assert_int_equal(policy_decide(&config, &learned, &view).wait_until_ns, 10 * MS + 30 * US);
}

static void deadline_ends_a_hold_in_time_for_the_execution(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_TIMER, .max_batch = 32, .max_delay_ns = 100 * MS};
    struct policy_state learned = {.exec_ns = 4.0 * MS};
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    view.deadline_ns = 30 * MS;
    struct policy_decision decision = policy_decide(&config, &learned, &view);
    assert_int_equal(decision.wait_until_ns, 25 * MS);
    view.now_ns = 25 * MS;
    decision = policy_decide(&config, &learned, &view);
    assert_true(decision.dispatch);
    assert_int_equal(decision.reason, REASON_DEADLINE);
}

static void draining_holds_nothing(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_TIMER, .max_batch = 32, .max_delay_ns = 100 * MS};
    struct policy_state learned = {0};
    struct policy_view view = view_at(10 * MS, 1, 10 * MS);
    view.is_draining = true;
    assert_int_equal(policy_decide(&config, &learned, &view).reason, REASON_DRAIN);
}

static void a_held_batch_is_not_passed_over_for_ever(void **state) {
    (void)state;
    const struct policy_config config = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    const struct policy_state learned = {.exec_ns = 4.0 * MS};
    assert_true(policy_may_pass_over(&config, &learned, 10 * MS, 13 * MS));
    assert_false(policy_may_pass_over(&config, &learned, 10 * MS, 15 * MS));
}

static void learns_the_cost_of_a_batch(void **state) {
    (void)state;
    struct policy_state learned = {0};
    double a, b;
    assert_false(policy_cost(&learned, &a, &b));
    for (unsigned i = 0; i < 200; i++) {
        const double elements = 100 + (i * 37) % 900;
        policy_learn(&learned, (uint64_t)(2.0 * MS + 1000 * elements), elements);
    }
    assert_true(policy_cost(&learned, &a, &b));
    assert_in_range((uint64_t)a, 1900 * US, 2100 * US);
    assert_in_range((uint64_t)b, 950, 1050);
}

static void no_batch_grows_beyond_what_pays(void **state) {
    (void)state;
    const struct policy_config adaptive = {.kind = POLICY_ADAPTIVE, .max_batch = 32};
    const struct policy_config eager = {.kind = POLICY_EAGER, .max_batch = 32};
    struct policy_state processor = {0}, device = {0}, noisy = {0};
    assert_int_equal(policy_useful_rows(&adaptive, &processor, 100), 32);
    for (unsigned i = 0; i < 200; i++) {
        const double elements = 100 + (i * 37) % 900;
        policy_learn(&processor, (uint64_t)(0.2 * MS + 13000 * elements), elements);
        policy_learn(&device, (uint64_t)(4.0 * MS + 500 * elements), elements);
        policy_learn(&noisy, (uint64_t)(1.0 * MS + 1000 * elements + (i % 7 == 0 ? 9.0 * MS : 0)), elements);
    }
    /* 0.2 ms to start, 1.3 ms a row of 100: the fourth row brings 5 % of a row's cost */
    assert_in_range(policy_useful_rows(&adaptive, &processor, 100), 3, 4);
    assert_int_equal(policy_useful_rows(&adaptive, &device, 100), 32);
    assert_int_equal(policy_useful_rows(&adaptive, &noisy, 100), 32);
    assert_int_equal(policy_useful_rows(&eager, &processor, 100), 32);
}

static void merges_buckets_only_where_padding_is_cheaper_than_a_start(void **state) {
    (void)state;
    struct policy_state dear_start = {0}, dear_tokens = {0};
    for (unsigned i = 0; i < 100; i++) {
        const double elements = 100 + (i * 37) % 900;
        policy_learn(&dear_start, (uint64_t)(4.0 * MS + 1 * elements), elements);
        policy_learn(&dear_tokens, (uint64_t)(0.01 * MS + 13000 * elements), elements);
    }
    assert_true(policy_should_merge(&dear_start, 4, 128, 4, 16));
    assert_false(policy_should_merge(&dear_tokens, 4, 128, 4, 16));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_takes_what_waits),
        cmocka_unit_test(timer_waits_for_the_oldest),
        cmocka_unit_test(full_batch_starts_under_every_policy),
        cmocka_unit_test(adaptive_does_not_hold_before_it_knows_the_model),
        cmocka_unit_test(adaptive_does_not_hold_for_a_fast_model),
        cmocka_unit_test(adaptive_holds_while_requests_keep_coming),
        cmocka_unit_test(adaptive_holds_at_most_four_gaps),
        cmocka_unit_test(adaptive_stops_holding_when_it_does_not_pay),
        cmocka_unit_test(maximum_delay_caps_the_adaptive_hold),
        cmocka_unit_test(deadline_ends_a_hold_in_time_for_the_execution),
        cmocka_unit_test(draining_holds_nothing),
        cmocka_unit_test(a_held_batch_is_not_passed_over_for_ever),
        cmocka_unit_test(learns_the_cost_of_a_batch),
        cmocka_unit_test(no_batch_grows_beyond_what_pays),
        cmocka_unit_test(merges_buckets_only_where_padding_is_cheaper_than_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

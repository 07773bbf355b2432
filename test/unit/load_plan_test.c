/* Arrival schedules: the same seed gives the same plan, and the gaps are what was asked for. */
#include "load/plan.h"
#include "load/users.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { SECOND = 1000000000 };

static void poisson_arrivals_have_the_mean_and_spread_of_their_rate(void **state) {
    (void)state;
    struct plan plan;
    assert_int_equal(plan_create(ARRIVALS_POISSON, 1000, 100ull * SECOND, 1, &plan, NULL), ST_OK);
    /* 100,000 expected, standard deviation 316 */
    assert_in_range(plan.count, 98500, 101500);
    double sum = 0, squares = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < plan.count; i++) {
        assert_true(plan.at_ns[i] >= last && plan.at_ns[i] < 100ull * SECOND);
        double gap = (double)(plan.at_ns[i] - last);
        last = plan.at_ns[i];
        sum += gap;
        squares += gap * gap;
    }
    double mean = sum / (double)plan.count;
    double deviation = sqrt(squares / (double)plan.count - mean * mean);
    assert_true(fabs(mean - 1e6) < 0.02e6);
    assert_true(fabs(deviation / mean - 1) < 0.03); /* exponential: equal to the mean */
    plan_done(&plan);
}

static void the_same_seed_gives_the_same_plan_and_another_does_not(void **state) {
    (void)state;
    struct plan a, b, c;
    assert_int_equal(plan_create(ARRIVALS_POISSON, 500, 2ull * SECOND, 7, &a, NULL), ST_OK);
    assert_int_equal(plan_create(ARRIVALS_POISSON, 500, 2ull * SECOND, 7, &b, NULL), ST_OK);
    assert_int_equal(plan_create(ARRIVALS_POISSON, 500, 2ull * SECOND, 8, &c, NULL), ST_OK);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.at_ns, b.at_ns, a.count * sizeof *a.at_ns);
    assert_true(a.at_ns[0] != c.at_ns[0]);
    plan_done(&a);
    plan_done(&b);
    plan_done(&c);
}

static void constant_arrivals_are_evenly_spaced_from_the_start(void **state) {
    (void)state;
    struct plan plan;
    assert_int_equal(plan_create(ARRIVALS_CONSTANT, 200, SECOND, 1, &plan, NULL), ST_OK);
    assert_int_equal(plan.count, 200);
    for (size_t i = 0; i < plan.count; i++) assert_int_equal(plan.at_ns[i], i * 5000000);
    plan_done(&plan);
}

static void a_plan_that_is_too_long_is_an_error(void **state) {
    (void)state;
    struct plan plan;
    struct err err = {0};
    assert_int_equal(plan_create(ARRIVALS_POISSON, 1e6, 3600ull * SECOND, 1, &plan, &err),
                     ST_TOO_LARGE);
    assert_non_null(strstr(err.text, "--duration"));
}

static void paced_users_offer_the_rate_together_and_differ_from_each_other(void **state) {
    (void)state;
    enum { USERS = 200, RATE = 1800, SECONDS = 60 };
    uint64_t total = 0, first[USERS];
    for (uint32_t user = 0; user < USERS; user++) {
        struct user_plan plan, again;
        user_plan_init(&plan, ARRIVALS_POISSON, RATE, USERS, user, 3);
        user_plan_init(&again, ARRIVALS_POISSON, RATE, USERS, user, 3);
        uint64_t at = first[user] = user_plan_next(&plan);
        assert_int_equal(at, user_plan_next(&again));
        for (; at < (uint64_t)SECONDS * SECOND; at = user_plan_next(&plan)) total++;
        for (uint32_t other = 0; other < user; other++) assert_true(first[other] != first[user]);
    }
    /* 108,000 expected, standard deviation 329 */
    assert_in_range(total, 106500, 109500);
}

static void constant_users_take_turns(void **state) {
    (void)state;
    for (uint32_t user = 0; user < 4; user++) {
        struct user_plan plan;
        user_plan_init(&plan, ARRIVALS_CONSTANT, 100, 4, user, 1);
        assert_int_equal(user_plan_next(&plan), user * 10000000u);
        assert_int_equal(user_plan_next(&plan), user * 10000000u + 40000000u);
    }
}

static void random_numbers_below_a_limit_stay_below_and_reach_all(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 9, 0);
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint64_t value = rng_below(&rng, 7);
        assert_true(value < 7);
        seen[value]++;
        double share = rng_uniform(&rng);
        assert_true(share > 0 && share <= 1);
    }
    for (int i = 0; i < 7; i++) assert_in_range(seen[i], 850, 1150);
}

static void waiting_users_come_in_order_of_their_instants(void **state) {
    (void)state;
    enum { COUNT = 257 };
    struct users users;
    struct rng rng;
    rng_seed(&rng, 4, 0);
    assert_int_equal(users_create(COUNT, &users, NULL), ST_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        users.items[i].wake_ns = rng_below(&rng, 100);
        users_push(&users, i);
    }
    uint64_t last = 0;
    uint32_t user, taken = 0;
    for (; users_first(&users, &user); taken++) {
        assert_true(users.items[user].wake_ns >= last);
        last = users.items[user].wake_ns;
        users_pop(&users);
    }
    assert_int_equal(taken, COUNT);
    users_done(&users);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poisson_arrivals_have_the_mean_and_spread_of_their_rate),
        cmocka_unit_test(the_same_seed_gives_the_same_plan_and_another_does_not),
        cmocka_unit_test(constant_arrivals_are_evenly_spaced_from_the_start),
        cmocka_unit_test(a_plan_that_is_too_long_is_an_error),
        cmocka_unit_test(paced_users_offer_the_rate_together_and_differ_from_each_other),
        cmocka_unit_test(constant_users_take_turns),
        cmocka_unit_test(random_numbers_below_a_limit_stay_below_and_reach_all),
        cmocka_unit_test(waiting_users_come_in_order_of_their_instants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

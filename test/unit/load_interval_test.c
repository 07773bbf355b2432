/* Do the intervals hold what they promise? Queues with a known truth are simulated many times, and
 * the runs counted whose interval has it. */
#include "load/interval.h"
#include "load/plan.h"
#include "load/quantile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_BATCH = 8 };
static const double START_COST = 4, ROW_COST = 1; /* of a batch, in units of time */

/* One server that takes all who wait, at most 8, each time it is free; Poisson arrivals at a share
 * of what it can carry. Latencies in thousandths, in the order of arrival. */
static void simulate(struct rng *rng, double load, uint64_t *latency, size_t count) {
    const double rate = load * MAX_BATCH / (START_COST + ROW_COST * MAX_BATCH);
    double *arrival = malloc(count * sizeof *arrival);
    double now = 0, free_at = 0;
    assert_non_null(arrival);
    for (size_t i = 0; i < count; i++)
        arrival[i] = now += rng_exponential(rng, 1 / rate);
    for (size_t at = 0; at < count;) {
        if (free_at < arrival[at]) free_at = arrival[at];
        size_t end = at;
        while (end < count && end - at < MAX_BATCH && arrival[end] <= free_at) end++;
        free_at += START_COST + ROW_COST * (double)(end - at);
        for (; at < end; at++) latency[at] = (uint64_t)((free_at - arrival[at]) * 1000);
    }
    free(arrival);
}

/* From the empty queue's beginning on nothing is kept. */
enum { SETTLING = 2000 };

struct coverage { double batched, binomial; }; /* shares of the runs */

static struct coverage coverage_of(double load, double share, size_t count, int runs) {
    enum { TRUTH = 3000000 };
    uint64_t *values = malloc(TRUTH * sizeof *values);
    uint64_t *sorted = malloc((count + SETTLING) * sizeof *sorted);
    struct coverage out = {0};
    struct rng rng;
    assert_true(values && sorted);
    rng_seed(&rng, 7, 0);
    simulate(&rng, load, values, TRUTH);
    quantile_sort(values, TRUTH);
    const uint64_t truth = quantile_sorted(values, TRUTH, share);
    for (int run = 0; run < runs; run++) {
        rng_seed(&rng, 7, 1 + (uint64_t)run);
        simulate(&rng, load, values, count + SETTLING);
        memcpy(sorted, values + SETTLING, count * sizeof *sorted);
        quantile_sort(sorted, count);
        const struct interval found = interval_of(values + SETTLING, sorted, count, share);
        const struct interval plain = interval_binomial(sorted, count, share);
        out.batched += (!found.has_low || found.low <= truth) &&
                       (!found.has_high || found.high >= truth);
        out.binomial += plain.low <= truth && plain.high >= truth;
    }
    free(values);
    free(sorted);
    out.batched /= runs;
    out.binomial /= runs;
    printf("load %.1f, P%g of %zu: batched %.3f, binomial %.3f\n", load, share * 100, count,
           out.batched, out.binomial);
    return out;
}

static void the_truth_is_inside_as_often_as_promised(void **state) {
    (void)state;
    assert_true(coverage_of(0.3, 0.99, 10000, 200).batched >= 0.92);
    assert_true(coverage_of(0.5, 0.5, 2000, 200).batched >= 0.90);
    const struct coverage busy = coverage_of(0.7, 0.99, 10000, 200);
    assert_true(busy.batched >= 0.87);
    assert_true(busy.binomial <= 0.65); /* the case is a hard one: the usual interval fails it */
}

static void binomial_ranks_are_those_of_the_tables(void **state) {
    (void)state;
    uint64_t sorted[5000];
    for (size_t i = 0; i < 5000; i++) sorted[i] = i + 1;
    /* Median of 10: the 2nd and the 9th, 97.9 %. Of 20: 6th and 15th, 95.9 %. */
    struct interval found = interval_binomial(sorted, 10, 0.5);
    assert_true(found.has_low && found.has_high && found.low == 2 && found.high == 9);
    found = interval_binomial(sorted, 20, 0.5);
    assert_true(found.low == 6 && found.high == 15);
    /* P99: an upper bound needs 0.99^n <= 0.025, which is 368 values. */
    assert_false(interval_binomial(sorted, 367, 0.99).has_high);
    found = interval_binomial(sorted, 368, 0.99);
    assert_true(found.has_high && found.high == 368);
    /* Where the normal approximation takes over, it agrees within a rank. */
    found = interval_binomial(sorted, 5000, 0.95);
    assert_true(found.low >= 4718 && found.low <= 4720 && found.high >= 4781 && found.high <= 4783);
    assert_false(interval_binomial(sorted, 1, 0.5).has_low);
    assert_false(interval_binomial(sorted, 0, 0.5).has_high);
}

/* All slow ones at the end: nothing is independent, and nothing certain. */
static void a_run_that_changes_has_a_wide_interval(void **state) {
    (void)state;
    uint64_t values[4000], mixed[4000], sorted[4000];
    struct rng rng;
    rng_seed(&rng, 3, 0);
    for (size_t i = 0; i < 4000; i++) values[i] = sorted[i] = mixed[i] = i;
    for (size_t i = 3999; i > 0; i--) {
        const size_t other = rng_below(&rng, i + 1);
        const uint64_t kept = mixed[i];
        mixed[i] = mixed[other];
        mixed[other] = kept;
    }
    const struct interval calm = interval_of(mixed, sorted, 4000, 0.5);
    const struct interval trend = interval_of(values, sorted, 4000, 0.5);
    assert_int_equal(calm.batches, 20);
    assert_int_equal(trend.batches, 5);
    assert_true(calm.high - calm.low < 300);
    assert_true(!trend.has_low || !trend.has_high || trend.high - trend.low > 3000);
}

static void equal_values_have_an_interval_without_width(void **state) {
    (void)state;
    uint64_t values[1000];
    for (size_t i = 0; i < 1000; i++) values[i] = 5;
    const struct interval found = interval_of(values, values, 1000, 0.99);
    assert_true(found.has_low && found.has_high && found.low == 5 && found.high == 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binomial_ranks_are_those_of_the_tables),
        cmocka_unit_test(a_run_that_changes_has_a_wide_interval),
        cmocka_unit_test(equal_values_have_an_interval_without_width),
        cmocka_unit_test(the_truth_is_inside_as_often_as_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

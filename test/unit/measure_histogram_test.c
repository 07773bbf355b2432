/* Histograms against exact order statistics. */
#include "measure/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Log-uniform from 1 ns to about 18 s: every bucket gets something. */
static uint64_t random_duration(uint64_t *state) {
    return next_random(state) >> (30 + next_random(state) % 34);
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

enum { VALUES = 20000 };
static const double quantiles[] = {0, 0.001, 0.07, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

static void quantiles_are_within_the_promised_error(void **state) {
    (void)state;
    uint64_t *values = malloc(VALUES * sizeof *values);
    assert_non_null(values);
    for (unsigned digits = 1; digits <= 4; digits++) {
        struct histogram histogram;
        assert_true(histogram_init(&histogram, digits, 3600ull * 1000000000));
        uint64_t seed = 42 + digits;
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = random_duration(&seed);
            histogram_record(&histogram, values[i]);
        }
        qsort(values, VALUES, sizeof *values, by_value);
        for (size_t q = 0; q < QUANTILES; q++) {
            size_t rank = (size_t)ceil(quantiles[q] * VALUES - 1e-7);
            if (rank < 1) rank = 1;
            const uint64_t exact = values[rank - 1];
            const uint64_t got = histogram_quantile(&histogram, quantiles[q]);
            assert_true(got >= exact);
            assert_true((double)(got - exact) <= (double)exact * pow(10, -(double)digits));
        }
        histogram_done(&histogram);
    }
    free(values);
}

static void takes_the_rank_that_the_quantile_names_exactly(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 1000000));
    for (uint64_t i = 1; i <= 100; i++) histogram_record(&histogram, i);
    /* In floating point 0.07 * 100 is above 7. */
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(histogram_quantile(&histogram, i / 100.0), i);
    }
    assert_int_equal(histogram_quantile(&histogram, 0.501), 51);
    histogram_done(&histogram);
}

static void a_quantile_is_never_above_the_maximum(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 2, 3600ull * 1000000000));
    uint64_t seed = 7;
    for (unsigned i = 0; i < 2000; i++) {
        histogram_record(&histogram, random_duration(&seed));
        for (size_t q = 0; q < QUANTILES; q++) {
            const uint64_t got = histogram_quantile(&histogram, quantiles[q]);
            assert_true(got <= histogram.max && got >= histogram.min);
        }
        assert_int_equal(histogram_quantile(&histogram, 1), histogram.max);
    }
    histogram_done(&histogram);
}

static void merging_equals_recording_together(void **state) {
    (void)state;
    struct histogram a, b, both;
    assert_true(histogram_init(&a, 3, 1000000000));
    assert_true(histogram_init(&b, 3, 1000000000));
    assert_true(histogram_init(&both, 3, 1000000000));
    uint64_t seed = 99;
    for (unsigned i = 0; i < 5000; i++) {
        const uint64_t value = random_duration(&seed); /* some are above the range */
        histogram_record(i % 3 == 0 ? &a : &b, value);
        histogram_record(&both, value);
    }
    histogram_add(&a, &b);
    assert_int_equal(a.count, both.count);
    assert_int_equal(a.min, both.min);
    assert_int_equal(a.max, both.max);
    assert_int_equal(a.saturated, both.saturated);
    assert_true(both.saturated > 0);
    assert_memory_equal(a.counts, both.counts, both.counts_size * sizeof *both.counts);
    /* An empty one changes nothing, the minimum included. */
    histogram_clear(&b);
    histogram_add(&a, &b);
    assert_int_equal(a.min, both.min);
    histogram_done(&a);
    histogram_done(&b);
    histogram_done(&both);
}

/* Figures of HdrHistogram for the range 1 ns to one hour. */
static void recording_many_equals_recording_one_by_one(void **state) {
    (void)state;
    enum { STRIDE = 3, MANY = HISTOGRAM_MANY };
    const uint64_t highest = 1000000;
    struct histogram many;
    struct histogram single;
    assert_true(histogram_init(&many, 2, highest));
    assert_true(histogram_init(&single, 2, highest));
    uint64_t values[MANY * STRIDE];
    uint64_t seed = 4;
    for (unsigned round = 0; round < 20; round++) {
        uint64_t value = 0;
        for (unsigned i = 0; i < MANY; i++) {
            /* Runs of equal values, zeros, and values above the range. */
            if (next_random(&seed) % 3 != 0) value = next_random(&seed) % (highest * 2);
            if (next_random(&seed) % 8 == 0) value = 0;
            for (unsigned s = 0; s < STRIDE; s++) values[i * STRIDE + s] = s == 1 ? value : 7;
            if (value != 0) histogram_record(&single, value);
        }
        histogram_record_many(&many, values + 1, STRIDE, MANY);
    }
    assert_true(single.saturated > 0);
    assert_int_equal(many.count, single.count);
    assert_int_equal(many.saturated, single.saturated);
    assert_int_equal(many.min, single.min);
    assert_int_equal(many.max, single.max);
    assert_true(many.sum == single.sum);
    assert_memory_equal(many.counts, single.counts, single.counts_size * sizeof *single.counts);
    histogram_done(&many);
    histogram_done(&single);
}

static void has_as_many_counts_as_hdrhistogram(void **state) {
    (void)state;
    static const uint32_t sizes[] = {624, 4608, 33792};
    for (unsigned digits = 1; digits <= 3; digits++) {
        struct histogram histogram;
        assert_true(histogram_init(&histogram, digits, 3600ull * 1000000000));
        assert_int_equal(histogram.counts_size, sizes[digits - 1]);
        histogram_done(&histogram);
    }
}

static void counts_values_above_the_range_as_saturated(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 1000000));
    histogram_record(&histogram, 1000000);
    assert_int_equal(histogram.saturated, 0);
    histogram_record(&histogram, UINT64_MAX);
    histogram_record_n(&histogram, 5000000, 2);
    assert_int_equal(histogram.saturated, 3);
    assert_int_equal(histogram.count, 4);
    assert_true(histogram.max == UINT64_MAX);
    assert_true(histogram_quantile(&histogram, 0.9) == UINT64_MAX);
    assert_true(histogram_quantile(&histogram, 0.25) <= 1001000);
    assert_int_equal(histogram_count_below(&histogram, 2000000), 1);
    histogram_done(&histogram);
}

static void counts_what_lies_at_or_below_a_bound(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 3600ull * 1000000000));
    for (uint64_t i = 1; i <= 1000; i++) histogram_record(&histogram, i);
    assert_int_equal(histogram_count_below(&histogram, 0), 0);
    assert_int_equal(histogram_count_below(&histogram, 1), 1);
    assert_int_equal(histogram_count_below(&histogram, 500), 500);
    assert_int_equal(histogram_count_below(&histogram, 1000), 1000);
    assert_int_equal(histogram_count_below(&histogram, UINT64_MAX), 1000);
    const uint64_t bounds[] = {0, 10, 10, 999, 5000};
    const uint64_t expected[] = {0, 10, 10, 999, 1000};
    uint64_t got[5];
    histogram_counts_below(&histogram, bounds, 5, got);
    assert_memory_equal(got, expected, sizeof got);
    histogram_done(&histogram);
}

static void an_empty_histogram_gives_zeros(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 1000000));
    histogram_record(&histogram, 17);
    histogram_record(&histogram, 19);
    assert_true(histogram_mean(&histogram) == 18.0);
    histogram_clear(&histogram);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
    assert_true(histogram_mean(&histogram) == 0.0);
    assert_int_equal(histogram_count_below(&histogram, 100), 0);
    histogram_record_n(&histogram, 5, 0);
    assert_int_equal(histogram.count, 0);
    histogram_record(&histogram, 0);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
    assert_int_equal(histogram.min, 0);
    histogram_done(&histogram);
    histogram_done(&histogram);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_the_promised_error),
        cmocka_unit_test(takes_the_rank_that_the_quantile_names_exactly),
        cmocka_unit_test(a_quantile_is_never_above_the_maximum),
        cmocka_unit_test(merging_equals_recording_together),
        cmocka_unit_test(recording_many_equals_recording_one_by_one),
        cmocka_unit_test(has_as_many_counts_as_hdrhistogram),
        cmocka_unit_test(counts_values_above_the_range_as_saturated),
        cmocka_unit_test(counts_what_lies_at_or_below_a_bound),
        cmocka_unit_test(an_empty_histogram_gives_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

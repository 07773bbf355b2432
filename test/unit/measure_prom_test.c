/* Prometheus text: exact for small cases, and to promtool's liking where it is installed. */
#include "measure/prom.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void assert_text(struct buf *buf, const char *expected) {
    buf_char(buf, '\0');
    assert_false(buf->failed);
    assert_string_equal(buf->data, expected);
    buf_done(buf);
}

static void escapes_label_values_and_help(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    prom_family(&out, "requests_total", "counter", "a \\ and\na \"quote\"");
    const struct prom_label labels[] = {{"model", "a\"b\\c\nd"}, {"version", "1"}};
    prom_u64(&out, "requests_total", labels, 2, 18446744073709551615u);
    assert_text(&out, "# HELP requests_total a \\\\ and\\na \"quote\"\n"
                      "# TYPE requests_total counter\n"
                      "requests_total{model=\"a\\\"b\\\\c\\nd\",version=\"1\"} "
                      "18446744073709551615\n");
}

static void writes_numbers_that_are_not_finite_in_prometheus_words(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    prom_double(&out, "a", NULL, 0, NAN);
    prom_double(&out, "b", NULL, 0, INFINITY);
    prom_double(&out, "c", NULL, 0, -INFINITY);
    prom_double(&out, "d", NULL, 0, 0.25);
    assert_text(&out, "a NaN\nb +Inf\nc -Inf\nd 0.25\n");
}

static void buckets_are_cumulative_and_end_in_inf(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 3600ull * 1000000000));
    histogram_record(&histogram, 500000);   /* 0.5 ms */
    histogram_record(&histogram, 1500000);
    histogram_record_n(&histogram, 30000000, 2);
    const uint64_t bounds[] = {1000000, 10000000, 20000000};
    const struct prom_label label = {"stage", "execute"};
    struct buf out;
    buf_init(&out);
    prom_histogram(&out, "stage_seconds", &label, 1, &histogram, bounds, 3, 1e9);
    prom_histogram(&out, "bare", NULL, 0, &histogram, bounds, 1, 1e9);
    assert_text(&out, "stage_seconds_bucket{stage=\"execute\",le=\"0.001\"} 1\n"
                      "stage_seconds_bucket{stage=\"execute\",le=\"0.01\"} 2\n"
                      "stage_seconds_bucket{stage=\"execute\",le=\"0.02\"} 2\n"
                      "stage_seconds_bucket{stage=\"execute\",le=\"+Inf\"} 4\n"
                      "stage_seconds_sum{stage=\"execute\"} 0.062\n"
                      "stage_seconds_count{stage=\"execute\"} 4\n"
                      "bare_bucket{le=\"0.001\"} 1\n"
                      "bare_bucket{le=\"+Inf\"} 4\n"
                      "bare_sum 0.062\n"
                      "bare_count 4\n");
    histogram_done(&histogram);
}

static void writes_more_bounds_than_fit_at_once(void **state) {
    (void)state;
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 1000000));
    uint64_t bounds[200];
    for (uint64_t i = 0; i < 200; i++) {
        bounds[i] = i + 1;
        histogram_record(&histogram, i + 1);
    }
    struct buf out;
    buf_init(&out);
    prom_histogram(&out, "n", NULL, 0, &histogram, bounds, 200, 1);
    buf_char(&out, '\0');
    assert_non_null(strstr(out.data, "n_bucket{le=\"64\"} 64\nn_bucket{le=\"65\"} 65\n"));
    assert_non_null(strstr(out.data, "n_bucket{le=\"200\"} 200\nn_bucket{le=\"+Inf\"} 200\n"));
    buf_done(&out);
    histogram_done(&histogram);
}

static void promtool_finds_nothing_to_say(void **state) {
    (void)state;
    if (system("command -v promtool >/dev/null 2>&1") != 0) skip();
    struct histogram histogram;
    assert_true(histogram_init(&histogram, 3, 3600ull * 1000000000));
    for (uint64_t i = 1; i < 5000; i++) histogram_record(&histogram, i * 12345);
    static const uint64_t bounds[] = {1000000, 2500000, 10000000, 50000000, 1000000000};
    struct buf out;
    buf_init(&out);
    const struct prom_label model[] = {{"model", "späm \"x\"\\"}, {"stage", "batch_hold"}};
    prom_family(&out, "telltale_stage_duration_seconds", "histogram", "Time of a stage.");
    prom_histogram(&out, "telltale_stage_duration_seconds", model, 2, &histogram, bounds, 5, 1e9);
    prom_family(&out, "telltale_requests_total", "counter", "Requests.");
    prom_u64(&out, "telltale_requests_total", model, 1, 17);
    prom_family(&out, "telltale_queue_length", "gauge", "Requests in the queue.");
    prom_double(&out, "telltale_queue_length", NULL, 0, 3);

    FILE *promtool = popen("promtool check metrics", "w");
    assert_non_null(promtool);
    assert_int_equal(fwrite(out.data, 1, out.size, promtool), out.size);
    assert_int_equal(pclose(promtool), 0);
    buf_done(&out);
    histogram_done(&histogram);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_label_values_and_help),
        cmocka_unit_test(writes_numbers_that_are_not_finite_in_prometheus_words),
        cmocka_unit_test(buckets_are_cumulative_and_end_in_inf),
        cmocka_unit_test(writes_more_bounds_than_fit_at_once),
        cmocka_unit_test(promtool_finds_nothing_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Softmax and label files. */
#include "prep/classify.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

static void probabilities_sum_to_one_and_the_largest_logit_wins(void **state) {
    (void)state;
    const float logits[] = {1.0f, 3.0f, 2.0f};
    float out[3];
    assert_int_equal(classify_softmax(logits, 3, out), 1);
    assert_true(fabsf(out[0] - 0.09003057f) < 1e-6f);
    assert_true(fabsf(out[1] - 0.66524096f) < 1e-6f);
    assert_true(fabsf(out[2] - 0.24472847f) < 1e-6f);
}

static void large_logits_do_not_overflow(void **state) {
    (void)state;
    float values[] = {1e30f, -1e30f, 1e30f};
    assert_int_equal(classify_softmax(values, 3, values), 0);
    assert_true(values[0] == 0.5f && values[1] == 0.0f && values[2] == 0.5f);
    float infinite[] = {0.0f, INFINITY};
    assert_int_equal(classify_softmax(infinite, 2, infinite), 1);
    assert_true(infinite[0] == 0.0f && infinite[1] == 1.0f);
}

static void not_a_number_does_not_win(void **state) {
    (void)state;
    float values[] = {NAN, 1.0f};
    assert_int_equal(classify_softmax(values, 2, values), 1);
}

static char *write_file(const char *text) {
    static char path[64];
    (void)snprintf(path, sizeof path, "/tmp/prep_classify_XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    (void)close(file);
    return path;
}

static void labels_are_lines_with_or_without_the_last_end(void **state) {
    (void)state;
    char *path = write_file("ham\r\nspam\n\nr\xc3\xa9sum\xc3\xa9");
    struct arena arena;
    arena_init(&arena);
    struct labels labels;
    struct err err;
    assert_int_equal(labels_load(path, &arena, &labels, &err), ST_OK);
    assert_int_equal(labels.count, 4);
    assert_true(view_is(labels.names[0], "ham"));
    assert_true(view_is(labels.names[1], "spam"));
    assert_true(view_is(labels.names[2], ""));
    assert_true(view_is(labels.names[3], "r\xc3\xa9sum\xc3\xa9"));
    arena_done(&arena);
    (void)unlink(path);
}

static void missing_label_file_is_named(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct labels labels;
    struct err err;
    assert_int_equal(labels_load("/nonexistent/labels.txt", &arena, &labels, &err),
                     ST_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/labels.txt"));
    arena_done(&arena);
}

static void label_file_that_is_none_is_refused(void **state) {
    (void)state;
    char *path = write_file("ham\n\xff\xfe\n");
    struct arena arena;
    arena_init(&arena);
    struct labels labels;
    struct err err;
    assert_int_equal(labels_load(path, &arena, &labels, &err), ST_INVALID);
    assert_non_null(strstr(err.text, ":2: is not UTF-8"));
    assert_int_equal(labels_load("/dev/null", &arena, &labels, &err), ST_INVALID);
    assert_string_equal(err.text, "/dev/null is empty: a name a line is expected");
    assert_int_equal(labels_load("/tmp", &arena, &labels, &err), ST_IO);
    assert_string_equal(err.text, "/tmp: Is a directory");
    arena_done(&arena);
    (void)unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_sum_to_one_and_the_largest_logit_wins),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(not_a_number_does_not_win),
        cmocka_unit_test(labels_are_lines_with_or_without_the_last_end),
        cmocka_unit_test(missing_label_file_is_named),
        cmocka_unit_test(label_file_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

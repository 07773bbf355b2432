/* The largest elements of an output as strings: order, ties, types, rows, labels, limits. */
#include "serve/classification.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct tensor out;
    struct err err;
    char text[4096]; /* the strings, a blank between them */
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    arena_init(&f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    arena_done(&f->arena);
    free(f);
    return 0;
}

static struct tensor vector(enum dtype dtype, const void *data, int64_t count) {
    return (struct tensor){.name = view_of("scores"), .dtype = dtype, .rank = 1, .shape = {count},
                           .data = data, .size = (size_t)count * dtype_size(dtype)};
}

static const char *classes(struct fixture *f, struct tensor scores, uint32_t top, bool is_batched,
                           struct class_labels labels) {
    size_t used = 0;
    struct view element;
    if (classification_make(&scores, top, is_batched, labels, &f->arena, &f->out, &f->err) != ST_OK)
        return f->err.text;
    for (size_t i = 0; tensor_bytes_at(&f->out, i, &element) && used < sizeof f->text - 64; i++)
        used += (size_t)snprintf(f->text + used, sizeof f->text - used, "%s%.*s", i ? " " : "",
                                 VIEW_ARGS(element));
    return f->text;
}

static const struct class_labels NONE = {.texts = NULL};

static void the_largest_come_first_and_equal_ones_by_index(void **state) {
    struct fixture *f = *state;
    const float scores[] = {0.5F, 2.0F, 0.25F, 2.0F, -1.0F, 0.5F};
    assert_string_equal(classes(f, vector(DTYPE_FP32, scores, 6), 3, false, NONE),
                        "2.000000:1 2.000000:3 0.500000:0");
    assert_int_equal(f->out.rank, 1);
    assert_int_equal(f->out.shape[0], 3);
    assert_string_equal(classes(f, vector(DTYPE_FP32, scores, 6), 5, false, NONE),
                        "2.000000:1 2.000000:3 0.500000:0 0.500000:5 0.250000:2");
}

static void more_than_there_are_gives_all(void **state) {
    struct fixture *f = *state;
    const int32_t scores[] = {-5, 7};
    assert_string_equal(classes(f, vector(DTYPE_INT32, scores, 2), 10, false, NONE), "7:1 -5:0");
    assert_int_equal(f->out.shape[0], 2);
}

static void each_row_of_a_batch_has_its_own(void **state) {
    struct fixture *f = *state;
    const uint8_t scores[] = {1, 9, 3, 8, 2, 4};
    struct tensor rows = vector(DTYPE_UINT8, scores, 6);
    rows.rank = 3;
    rows.shape[0] = 2;
    rows.shape[1] = 3;
    rows.shape[2] = 1;
    assert_string_equal(classes(f, rows, 2, true, NONE), "9:1 3:2 8:0 4:2");
    assert_int_equal(f->out.rank, 2);
    assert_int_equal(f->out.shape[0], 2);
    assert_int_equal(f->out.shape[1], 2);
    assert_string_equal(classes(f, rows, 2, false, NONE), "9:1 8:3");
}

static void labels_follow_the_index(void **state) {
    struct fixture *f = *state;
    static const char *const TEXTS[] = {"cat", "", "a: b"};
    const struct class_labels labels = {.texts = TEXTS, .count = 3};
    const int8_t scores[] = {1, 2, 3, 4};
    assert_string_equal(classes(f, vector(DTYPE_INT8, scores, 4), 4, false, labels),
                        "4:3 3:2:a: b 2:1 1:0:cat");
}

static void small_probabilities_keep_their_digits(void **state) {
    struct fixture *f = *state;
    const double scores[] = {1.5e-9, 0.1, 0.0, -0.0, 1e20};
    assert_string_equal(classes(f, vector(DTYPE_FP64, scores, 5), 5, false, NONE),
                        "1e+20:4 0.100000:1 1.5e-09:0 0.000000:2 -0.000000:3");
}

static void large_integers_are_told_apart(void **state) {
    struct fixture *f = *state;
    const uint64_t big[] = {UINT64_C(9223372036854775808), UINT64_C(9223372036854775809), 1};
    assert_string_equal(classes(f, vector(DTYPE_UINT64, big, 3), 2, false, NONE),
                        "9223372036854775809:1 9223372036854775808:0");
    const int64_t both[] = {INT64_MIN, INT64_MAX, INT64_MAX - 1};
    assert_string_equal(classes(f, vector(DTYPE_INT64, both, 3), 3, false, NONE),
                        "9223372036854775807:1 9223372036854775806:2 -9223372036854775808:0");
}

static void half_precision_is_read_and_nan_comes_last(void **state) {
    struct fixture *f = *state;
    const uint16_t half[] = {0x3c00, 0x4000, 0xc000, 0x7e00, 0x7c00, 0x0001}; /* 1 2 -2 NaN inf */
    assert_string_equal(classes(f, vector(DTYPE_FP16, half, 6), 6, false, NONE),
                        "inf:4 2.000000:1 1.000000:0 5.96046448e-08:5 -2.000000:2 nan:3");
    const uint16_t brain[] = {0x3f80, 0x4000, 0xbf80};
    assert_string_equal(classes(f, vector(DTYPE_BF16, brain, 3), 1, false, NONE), "2.000000:1");
}

static void an_output_without_elements_has_no_classes(void **state) {
    struct fixture *f = *state;
    struct tensor empty = vector(DTYPE_FP32, "", 0);
    assert_string_equal(classes(f, empty, 3, false, NONE), "");
    assert_int_equal(f->out.shape[0], 0);
    empty.rank = 2;
    empty.shape[1] = 5; /* no rows */
    assert_string_equal(classes(f, empty, 3, true, NONE), "");
    const float one = 4;
    struct tensor scalar = vector(DTYPE_FP32, &one, 1);
    scalar.rank = 0;
    assert_string_equal(classes(f, scalar, 3, true, NONE), "4.000000:0");
}

static void many_elements_give_what_sorting_gives(void **state) {
    struct fixture *f = *state;
    enum { COUNT = 5000, TOP = 100 };
    static float scores[COUNT];
    uint32_t seed = 1;
    for (int i = 0; i < COUNT; i++) {
        seed = seed * 1664525 + 1013904223;
        scores[i] = (float)(seed >> 20); /* with ties */
    }
    (void)classes(f, vector(DTYPE_FP32, scores, COUNT), TOP, false, NONE);
    bool is_taken[COUNT] = {false};
    for (size_t i = 0; i < TOP; i++) {
        struct view element;
        int best = -1;
        assert_true(tensor_bytes_at(&f->out, i, &element));
        for (int j = 0; j < COUNT; j++)
            if (!is_taken[j] && (best < 0 || scores[j] > scores[best]))
                best = j;
        is_taken[best] = true;
        char text[64];
        (void)snprintf(text, sizeof text, "%.*s", VIEW_ARGS(element));
        assert_int_equal(strtol(strchr(text, ':') + 1, NULL, 10), best);
    }
}

static void bytes_and_too_many_are_refused(void **state) {
    struct fixture *f = *state;
    assert_string_equal(classes(f, vector(DTYPE_BYTES, "", 0), 1, false, NONE),
                        "output scores: classification needs numbers, it is BYTES");
    static uint8_t zeros[2000000];
    struct tensor rows = vector(DTYPE_UINT8, zeros, 2000000);
    rows.rank = 2;
    rows.shape[0] = 1000001;
    rows.shape[1] = 1;
    rows.size = 1000001;
    assert_string_equal(classes(f, rows, 1, true, NONE),
                        "output scores: 1 classes of each of 1000001 rows are more than the limit of "
                        "1000000");
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_largest_come_first_and_equal_ones_by_index),
        CASE(more_than_there_are_gives_all),
        CASE(each_row_of_a_batch_has_its_own),
        CASE(labels_follow_the_index),
        CASE(small_probabilities_keep_their_digits),
        CASE(large_integers_are_told_apart),
        CASE(half_precision_is_read_and_nan_comes_last),
        CASE(an_output_without_elements_has_no_classes),
        CASE(many_elements_give_what_sorting_gives),
        CASE(bytes_and_too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* batch/gather.h and batch/buckets.h: rows to a batch and back, jobs into buckets. */
#include "batch/buckets.h"
#include "batch/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* A job with one INT64 input (1, length) of ids first, first+1, ... */
struct fixture {
    struct job job;
    struct trace_record trace;
    struct tensor input, output;
    struct arena arena;
    int64_t ids[64];
};

static struct job *job_of(struct fixture *f, uint32_t length, int64_t first) {
    *f = (struct fixture){0};
    arena_init(&f->arena);
    for (uint32_t i = 0; i < length; i++) f->ids[i] = first + i;
    f->input = (struct tensor){.name = view_of("input_ids"), .dtype = DTYPE_INT64, .rank = 2,
                               .shape = {1, length}, .data = f->ids, .size = length * 8};
    f->job = (struct job){.inputs = &f->input, .outputs = &f->output, .arena = &f->arena,
                          .trace = &f->trace, .rows = 1, .length = length};
    return &f->job;
}

static void pads_to_the_longest(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10)->next = job_of(&b, 5, 20);
    assert_int_equal(gather_input(&a.job, 0, 1, 7, 5, &buffer, &batch, NULL), ST_OK);
    const int64_t expected[] = {10, 11, 12, 7, 7, 20, 21, 22, 23, 24};
    assert_int_equal(batch.shape[0], 2);
    assert_int_equal(batch.shape[1], 5);
    assert_int_equal(batch.size, sizeof expected);
    assert_memory_equal(batch.data, expected, sizeof expected);
    gather_buffer_done(&buffer);
}

static void passes_a_lone_job_through_without_a_copy(void **state) {
    (void)state;
    struct fixture a;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    assert_int_equal(gather_input(job_of(&a, 3, 10), 0, 1, 7, 3, &buffer, &batch, NULL), ST_OK);
    assert_ptr_equal(batch.data, a.ids);
}

static void copies_a_lone_job_whose_data_is_not_aligned(void **state) {
    (void)state;
    struct fixture a;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10);
    char *body = (char *)a.ids;
    memmove(body + 1, body, 24);
    a.input.data = body + 1;
    assert_int_equal(gather_input(&a.job, 0, 1, 7, 3, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    assert_int_equal(batch.size, 24);
    assert_memory_equal(batch.data, body + 1, 24);
    a.input.rank = 0; /* a scalar of a model that is not batched */
    a.input.size = 8;
    assert_int_equal(gather_input(&a.job, 0, -1, 0, 0, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    assert_memory_equal(batch.data, body + 1, 8);
    a.input.shape[0] = 0; /* no element at all */
    a.input.rank = 1;
    a.input.size = 0;
    assert_int_equal(gather_input(&a.job, 0, -1, 0, 0, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    gather_buffer_done(&buffer);
}

static void refuses_shapes_that_do_not_fit(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10)->next = job_of(&b, 5, 20);
    assert_int_equal(gather_input(&a.job, 0, -1, 0, 0, &buffer, &batch, NULL), ST_INVALID);
    gather_buffer_done(&buffer);
}

static void scatters_rows_and_cuts_the_padding(void **state) {
    (void)state;
    struct fixture a, b;
    job_of(&a, 2, 0)->next = job_of(&b, 3, 0);
    float values[2 * 3 * 2];
    for (int i = 0; i < 12; i++) values[i] = (float)i;
    const struct tensor batch = {.name = view_of("hidden"), .dtype = DTYPE_FP32, .rank = 3,
                                 .shape = {2, 3, 2}, .data = values, .size = sizeof values};
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, 1, 3, NULL), ST_OK);
    assert_int_equal(a.output.shape[1], 2);
    assert_int_equal(a.output.size, 4 * sizeof(float));
    assert_memory_equal(a.output.data, values, 4 * sizeof(float));
    assert_int_equal(b.output.shape[1], 3);
    assert_memory_equal(b.output.data, values + 6, 6 * sizeof(float));
    arena_done(&a.arena);
    arena_done(&b.arena);
}

static void scatters_strings_by_element(void **state) {
    (void)state;
    struct fixture a, b;
    job_of(&a, 1, 0)->next = job_of(&b, 1, 0);
    const char bytes[] = "\3\0\0\0one\5\0\0\0three";
    const struct tensor batch = {.name = view_of("s"), .dtype = DTYPE_BYTES, .rank = 1,
                                 .shape = {2}, .data = bytes, .size = sizeof bytes - 1};
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, -1, 0, NULL), ST_OK);
    assert_int_equal(a.output.size, 7);
    assert_int_equal(b.output.size, 9);
    assert_memory_equal((const char *)b.output.data + 4, "three", 5);
    arena_done(&a.arena);
    arena_done(&b.arena);
}

static void notices_a_model_that_cannot_be_batched(void **state) {
    (void)state;
    struct fixture a, b;
    struct err err;
    job_of(&a, 1, 0)->next = job_of(&b, 1, 0);
    float value = 1;
    const struct tensor batch = {.name = view_of("sum"), .dtype = DTYPE_FP32, .rank = 1,
                                 .shape = {1}, .data = &value, .size = 4};
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, -1, 0, &err), ST_INTERNAL);
    assert_non_null(strstr(err.text, "--max-batch 0"));
}

static void length_classes_waste_at_most_a_third(void **state) {
    (void)state;
    uint32_t first = 1;
    for (uint32_t length = 2; length < 5000; length++) {
        if (buckets_length_class(length) != buckets_length_class(first)) first = length;
        if (length > 12) assert_true(3 * (length - first) <= length);
    }
    assert_int_equal(buckets_length_class(0), 0);
}

static const struct batcher_config PADDED = {.input_count = 1, .is_batched = true, .pad_axis = {1}};

static void keeps_lengths_apart_and_takes_the_oldest_first(void **state) {
    (void)state;
    struct fixture f[3];
    struct buckets buckets;
    struct policy_state learned = {0};
    struct job *dropped;
    buckets_init(&buckets);
    const uint32_t lengths[] = {40, 3, 41};
    for (int i = 0; i < 3; i++) {
        job_of(&f[i], lengths[i], 0);
        f[i].trace.at[AT_ENQUEUED] = 100 + (uint64_t)i;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = buckets_take(&buckets, buckets_oldest(&buckets), &learned, 32, 0, &dropped);
    assert_ptr_equal(list, &f[0].job);
    assert_ptr_equal(list->next, &f[2].job);
    assert_null(list->next->next);
    list = buckets_take(&buckets, buckets_oldest(&buckets), &learned, 32, 0, &dropped);
    assert_ptr_equal(list, &f[1].job);
    assert_null(buckets_oldest(&buckets));
    buckets_done(&buckets);
}

static void drops_the_cancelled_and_the_late(void **state) {
    (void)state;
    struct fixture f[3];
    struct buckets buckets;
    struct policy_state learned = {0};
    struct job *dropped;
    buckets_init(&buckets);
    for (int i = 0; i < 3; i++) {
        job_of(&f[i], 3, 0);
        if (i == 1) flag_raise(&f[i].job.is_cancelled);
        if (i == 2) f[i].job.deadline_ns = 50;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = buckets_take(&buckets, buckets_oldest(&buckets), &learned, 32, 60, &dropped);
    assert_ptr_equal(list, &f[0].job);
    assert_null(list->next);
    assert_ptr_equal(dropped, &f[1].job);
    assert_int_equal(dropped->status, ST_CANCELLED);
    assert_int_equal(dropped->next->status, ST_TIMEOUT);
    buckets_done(&buckets);
}

static void never_takes_more_rows_than_allowed(void **state) {
    (void)state;
    struct fixture f[5];
    struct buckets buckets;
    struct policy_state learned = {0};
    struct job *dropped;
    buckets_init(&buckets);
    for (int i = 0; i < 5; i++) {
        job_of(&f[i], 3, 0)->rows = 3;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = buckets_take(&buckets, buckets_oldest(&buckets), &learned, 8, 0, &dropped);
    uint32_t rows = 0;
    for (; list != NULL; list = list->next) rows += list->rows;
    assert_int_equal(rows, 6);
    assert_int_equal(buckets.jobs, 3);
    buckets_done(&buckets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads_to_the_longest),
        cmocka_unit_test(passes_a_lone_job_through_without_a_copy),
        cmocka_unit_test(copies_a_lone_job_whose_data_is_not_aligned),
        cmocka_unit_test(refuses_shapes_that_do_not_fit),
        cmocka_unit_test(scatters_rows_and_cuts_the_padding),
        cmocka_unit_test(scatters_strings_by_element),
        cmocka_unit_test(notices_a_model_that_cannot_be_batched),
        cmocka_unit_test(length_classes_waste_at_most_a_third),
        cmocka_unit_test(keeps_lengths_apart_and_takes_the_oldest_first),
        cmocka_unit_test(drops_the_cancelled_and_the_late),
        cmocka_unit_test(never_takes_more_rows_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static const struct padding NONE = {.axis = -1};

static struct padding padding_of(uint32_t length, bool is_left) {
    return (struct padding){.axis = 1, .length = length, .value = 7, .is_left = is_left};
}

static void pads_to_the_longest(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10)->next = job_of(&b, 5, 20);
    const struct padding padding = padding_of(5, false);
    assert_int_equal(gather_input(&a.job, 0, &padding, &buffer, &batch, NULL), ST_OK);
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
    const struct padding padding = padding_of(3, false);
    assert_int_equal(gather_input(job_of(&a, 3, 10), 0, &padding, &buffer, &batch, NULL), ST_OK);
    assert_ptr_equal(batch.data, a.ids);
}

/* Three jobs whose rows are parts of one array, as in a staged slab. */
static void splits(struct fixture f[3], const int64_t *rows, uint32_t length) {
    for (uint32_t i = 0; i < 3; i++) {
        job_of(&f[i], length, 0);
        f[i].input.data = rows + (size_t)i * length;
        if (i > 0) f[i - 1].job.next = &f[i].job;
    }
}

static void jobs_that_lie_side_by_side_run_where_they_lie(void **state) {
    (void)state;
    struct fixture f[3];
    struct gather_buffer buffer = {0};
    struct tensor batch;
    const int64_t rows[6] = {1, 2, 3, 4, 5, 6};
    const struct padding padding = padding_of(2, false);
    splits(f, rows, 2);
    assert_int_equal(gather_input(&f[0].job, 0, &padding, &buffer, &batch, NULL), ST_OK);
    assert_ptr_equal(batch.data, rows);
    assert_int_equal(batch.shape[0], 3);
    assert_int_equal(batch.shape[1], 2);
    assert_int_equal(batch.size, sizeof rows);
    assert_null(buffer.data);
}

static void jobs_in_another_order_or_with_a_gap_are_copied(void **state) {
    (void)state;
    struct fixture f[3];
    struct gather_buffer buffer = {0};
    struct tensor batch;
    const int64_t rows[6] = {1, 2, 3, 4, 5, 6};
    splits(f, rows, 2);
    f[0].job.next = &f[2].job; /* the middle one is not in this batch */
    f[2].job.next = NULL;
    assert_int_equal(gather_input(&f[0].job, 0, &NONE, &buffer, &batch, NULL), ST_OK);
    assert_memory_equal(batch.data, ((int64_t[]){1, 2, 5, 6}), 32);
    splits(f, rows, 2);
    f[1].job.next = &f[0].job;
    f[0].job.next = NULL;
    assert_int_equal(gather_input(&f[1].job, 0, &NONE, &buffer, &batch, NULL), ST_OK);
    assert_memory_equal(batch.data, ((int64_t[]){3, 4, 1, 2}), 32);
    gather_buffer_done(&buffer);
}

static void jobs_side_by_side_that_need_padding_are_copied(void **state) {
    (void)state;
    struct fixture f[3];
    struct gather_buffer buffer = {0};
    struct tensor batch;
    const int64_t rows[3] = {1, 2, 3};
    const struct padding padding = padding_of(2, false);
    splits(f, rows, 1);
    assert_int_equal(gather_input(&f[0].job, 0, &padding, &buffer, &batch, NULL), ST_OK);
    assert_int_equal(batch.size, 48);
    assert_memory_equal(batch.data, ((int64_t[]){1, 7, 2, 7, 3, 7}), 48);
    gather_buffer_done(&buffer);
}

static void side_by_side_but_not_aligned_is_copied(void **state) {
    (void)state;
    struct fixture f[3];
    struct gather_buffer buffer = {0};
    struct tensor batch;
    int64_t rows[7] = {0};
    splits(f, rows, 2);
    for (int i = 0; i < 3; i++) f[i].input.data = (const char *)f[i].input.data + 4;
    assert_int_equal(gather_input(&f[0].job, 0, &NONE, &buffer, &batch, NULL), ST_OK);
    assert_ptr_equal(batch.data, buffer.data);
    assert_memory_equal(batch.data, (const char *)rows + 4, 48);
    gather_buffer_done(&buffer);
}

static void pads_on_the_left_where_asked(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10)->next = job_of(&b, 5, 20);
    a.job.rows = 2; /* of 1 and 2 elements, (2, 2) when filled up by its owner */
    a.input.shape[0] = 2;
    a.input.shape[1] = 2;
    a.input.size = 32;
    a.ids[3] = 13;
    const struct padding padding = padding_of(5, true);
    assert_int_equal(gather_input(&a.job, 0, &padding, &buffer, &batch, NULL), ST_OK);
    const int64_t expected[] = {7, 7, 7, 10, 11, 7, 7, 7, 12, 13, 20, 21, 22, 23, 24};
    assert_int_equal(batch.size, sizeof expected);
    assert_memory_equal(batch.data, expected, sizeof expected);
    gather_buffer_done(&buffer);
}

/* (1, length, 2) FP32, as of the states of an encoder before. */
static void fills_real_numbers_with_zeros(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    const float one[2] = {1, 2}, two[4] = {3, 4, 5, 6};
    job_of(&a, 1, 0)->next = job_of(&b, 2, 0);
    a.input = (struct tensor){
        .dtype = DTYPE_FP32, .rank = 3, .shape = {1, 1, 2}, .data = one, .size = sizeof one};
    b.input = (struct tensor){
        .dtype = DTYPE_FP32, .rank = 3, .shape = {1, 2, 2}, .data = two, .size = sizeof two};
    for (int left = 0; left < 2; left++) {
        const struct padding padding = {.axis = 1, .length = 2, .is_left = left == 1};
        assert_int_equal(gather_input(&a.job, 0, &padding, &buffer, &batch, NULL), ST_OK);
        const float filled[2][8] = {{1, 2, 0, 0, 3, 4, 5, 6}, {0, 0, 1, 2, 3, 4, 5, 6}};
        assert_memory_equal(batch.data, filled[left], 32);
    }
    gather_buffer_done(&buffer);
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
    const struct padding padding = padding_of(3, false);
    assert_int_equal(gather_input(&a.job, 0, &padding, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    assert_int_equal(batch.size, 24);
    assert_memory_equal(batch.data, body + 1, 24);
    a.input.rank = 0; /* a scalar of a model that is not batched */
    a.input.size = 8;
    assert_int_equal(gather_input(&a.job, 0, &NONE, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    assert_memory_equal(batch.data, body + 1, 8);
    a.input.shape[0] = 0; /* no element at all */
    a.input.rank = 1;
    a.input.size = 0;
    assert_int_equal(gather_input(&a.job, 0, &NONE, &buffer, &batch, NULL), ST_OK);
    assert_int_equal((uintptr_t)batch.data % 8, 0);
    gather_buffer_done(&buffer);
}

static void refuses_shapes_that_do_not_fit(void **state) {
    (void)state;
    struct fixture a, b;
    struct gather_buffer buffer = {0};
    struct tensor batch;
    job_of(&a, 3, 10)->next = job_of(&b, 5, 20);
    assert_int_equal(gather_input(&a.job, 0, &NONE, &buffer, &batch, NULL), ST_INVALID);
    gather_buffer_done(&buffer);
}

static void scatters_rows_and_cuts_the_padding(void **state) {
    (void)state;
    struct fixture a, b;
    const struct padding padding = padding_of(3, false);
    job_of(&a, 2, 0)->next = job_of(&b, 3, 0);
    float values[2 * 3 * 2];
    for (int i = 0; i < 12; i++) values[i] = (float)i;
    const struct tensor batch = {.name = view_of("hidden"), .dtype = DTYPE_FP32, .rank = 3,
                                 .shape = {2, 3, 2}, .data = values, .size = sizeof values};
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, &padding, NULL), ST_OK);
    assert_int_equal(a.output.shape[1], 2);
    assert_int_equal(a.output.size, 4 * sizeof(float));
    assert_memory_equal(a.output.data, values, 4 * sizeof(float));
    assert_int_equal(b.output.shape[1], 3);
    assert_memory_equal(b.output.data, values + 6, 6 * sizeof(float));
    arena_done(&a.arena);
    arena_done(&b.arena);
}

static void cuts_the_padding_on_the_left(void **state) {
    (void)state;
    struct fixture a, b;
    const struct padding padding = padding_of(3, true);
    job_of(&a, 2, 0)->next = job_of(&b, 3, 0);
    a.job.rows = 2;
    float values[3 * 3 * 2];
    for (int i = 0; i < 18; i++) values[i] = (float)i;
    const struct tensor batch = {.name = view_of("hidden"), .dtype = DTYPE_FP32, .rank = 3,
                                 .shape = {3, 3, 2}, .data = values, .size = sizeof values};
    assert_int_equal(scatter_output(&a.job, 0, &batch, 3, &padding, NULL), ST_OK);
    const float own[] = {2, 3, 4, 5, 8, 9, 10, 11};
    assert_int_equal(a.output.shape[0], 2);
    assert_int_equal(a.output.shape[1], 2);
    assert_int_equal(a.output.size, sizeof own);
    assert_memory_equal(a.output.data, own, sizeof own);
    assert_memory_equal(b.output.data, values + 12, 6 * sizeof(float));
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
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, &NONE, NULL), ST_OK);
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
    assert_int_equal(scatter_output(&a.job, 0, &batch, 2, &NONE, &err), ST_INTERNAL);
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

static struct job *take(struct buckets *buckets, uint32_t max_rows, uint64_t now_ns,
                        struct job **out_dropped) {
    const struct policy_state learned = {0};
    const struct bucket_taking taking = {.max_rows = max_rows, .now_ns = now_ns};
    return buckets_take(buckets, buckets_oldest(buckets), &learned, &taking, out_dropped);
}

static void keeps_lengths_apart_and_takes_the_oldest_first(void **state) {
    (void)state;
    struct fixture f[3];
    struct buckets buckets;
    struct job *dropped;
    buckets_init(&buckets);
    const uint32_t lengths[] = {40, 3, 41};
    for (int i = 0; i < 3; i++) {
        job_of(&f[i], lengths[i], 0);
        f[i].trace.at[AT_ENQUEUED] = 100 + (uint64_t)i;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = take(&buckets, 32, 0, &dropped);
    assert_ptr_equal(list, &f[0].job);
    assert_ptr_equal(list->next, &f[2].job);
    assert_null(list->next->next);
    list = take(&buckets, 32, 0, &dropped);
    assert_ptr_equal(list, &f[1].job);
    assert_null(buckets_oldest(&buckets));
    buckets_done(&buckets);
}

static void drops_the_cancelled_and_the_late(void **state) {
    (void)state;
    struct fixture f[3];
    struct buckets buckets;
    struct job *dropped;
    buckets_init(&buckets);
    for (int i = 0; i < 3; i++) {
        job_of(&f[i], 3, 0);
        if (i == 1) flag_raise(&f[i].job.is_cancelled);
        if (i == 2) f[i].job.deadline_ns = 50;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = take(&buckets, 32, 60, &dropped);
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
    struct job *dropped;
    buckets_init(&buckets);
    for (int i = 0; i < 5; i++) {
        job_of(&f[i], 3, 0)->rows = 3;
        assert_true(buckets_put(&buckets, &PADDED, &f[i].job));
    }
    struct job *list = take(&buckets, 8, 0, &dropped);
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
        cmocka_unit_test(jobs_that_lie_side_by_side_run_where_they_lie),
        cmocka_unit_test(jobs_in_another_order_or_with_a_gap_are_copied),
        cmocka_unit_test(jobs_side_by_side_that_need_padding_are_copied),
        cmocka_unit_test(side_by_side_but_not_aligned_is_copied),
        cmocka_unit_test(pads_on_the_left_where_asked),
        cmocka_unit_test(fills_real_numbers_with_zeros),
        cmocka_unit_test(refuses_shapes_that_do_not_fit),
        cmocka_unit_test(scatters_rows_and_cuts_the_padding),
        cmocka_unit_test(cuts_the_padding_on_the_left),
        cmocka_unit_test(scatters_strings_by_element),
        cmocka_unit_test(notices_a_model_that_cannot_be_batched),
        cmocka_unit_test(length_classes_waste_at_most_a_third),
        cmocka_unit_test(keeps_lengths_apart_and_takes_the_oldest_first),
        cmocka_unit_test(drops_the_cancelled_and_the_late),
        cmocka_unit_test(never_takes_more_rows_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* batch/staging.h, alone and through a batcher with a simulated device: rows written where the
 * batch runs them, released when it is through, and copied as ever where that cannot be. */
#include "batch/batcher.h"
#include "batch/staging.h"
#include "sync/parker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WIDTH = 16, ROW_BYTES = WIDTH * sizeof(float), MAX_BATCH = 4 };

static void rows_have_the_same_place_in_all_slabs(void **state) {
    (void)state;
    const size_t row_bytes[] = {64, 0, 100};
    struct staging *staging = NULL;
    struct job a = {.rows = 2}, b = {.rows = 0};
    assert_int_equal(staging_create(row_bytes, 3, 8, &staging, NULL), ST_OK);
    assert_int_equal(staging_bytes(staging), 8 * 164);
    assert_true(staging_reserve(staging, &a));
    assert_true(staging_reserve(staging, &b)); /* not batched: one row */
    assert_int_equal((uintptr_t)staging_rows(&a, 0) % 64, 0);
    assert_ptr_equal(staging_rows(&b, 0), staging_rows(&a, 0) + 2 * 64);
    assert_ptr_equal(staging_rows(&b, 2), staging_rows(&a, 2) + 2 * 100);
    staging_release(&a);
    staging_release(&a); /* once is enough */
    staging_release(&b);
    staging_free(staging);
}

static void a_job_reserves_once_and_is_refused_when_full(void **state) {
    (void)state;
    const size_t row_bytes[] = {16};
    struct staging *staging = NULL;
    struct job a = {.rows = 2}, b = {.rows = 1};
    assert_int_equal(staging_create(row_bytes, 1, 2, &staging, NULL), ST_OK);
    assert_true(staging_reserve(staging, &a));
    assert_true(staging_reserve(staging, &a)); /* has it */
    assert_false(staging_reserve(staging, &b));
    assert_null(b.staging);
    assert_int_equal(staging_refused(staging), 1);
    staging_release(&a);
    assert_true(staging_reserve(staging, &b));
    staging_release(&b);
    staging_free(staging);
}

static void jobs_are_sorted_as_they_were_reserved(void **state) {
    (void)state;
    enum { JOBS = 9 };
    const size_t row_bytes[] = {16};
    struct staging *staging = NULL;
    struct job jobs[JOBS];
    assert_int_equal(staging_create(row_bytes, 1, JOBS, &staging, NULL), ST_OK);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.rows = 1};
        assert_true(staging_reserve(staging, &jobs[i]));
    }
    const int order[JOBS] = {3, 0, 8, 1, 7, 2, 6, 4, 5};
    for (int i = 0; i < JOBS; i++)
        jobs[order[i]].next = i + 1 < JOBS ? &jobs[order[i + 1]] : NULL;
    struct job *list = staging_sort(&jobs[order[0]]);
    for (int i = 0; i < JOBS; i++, list = list->next) assert_ptr_equal(list, &jobs[i]);
    assert_null(list);
    staging_release_list(&jobs[0]);
    for (int i = 0; i < JOBS; i++) assert_null(jobs[i].staging);
    staging_free(staging);
}

static void jobs_that_are_not_all_staged_stay_as_they_are(void **state) {
    (void)state;
    const size_t row_bytes[] = {16};
    struct staging *staging = NULL;
    struct job a = {.rows = 1}, b = {.rows = 1}, c = {.rows = 1};
    assert_int_equal(staging_create(row_bytes, 1, 8, &staging, NULL), ST_OK);
    assert_true(staging_reserve(staging, &a));
    assert_true(staging_reserve(staging, &b));
    b.next = &a;
    a.next = &c;
    assert_ptr_equal(staging_sort(&b), &b);
    assert_ptr_equal(b.next, &a);
    assert_null(staging_sort(NULL));
    staging_release_list(&b);
    staging_free(staging);
}

/* ---- through a batcher: OUTPUT0 = INPUT0 + 1, (batch, 16) FP32 ---- */

struct served {
    struct model *model;
    struct batcher *batcher;
    struct counter batch_ids;
    struct mpsc done; /* job->node: the batcher is through with it */
    struct parker parker;
    int64_t taken;
};

struct sent {
    struct job job;
    struct arena arena;
    struct trace_record trace;
    struct tensor input;
    float own[3 * WIDTH]; /* where there is no room in the slab */
    float first;
};

static void on_done(struct job *list, void *ctx) {
    struct served *served = ctx;
    while (list != NULL) {
        struct job *job = list;
        list = list->next;
        mpsc_push(&served->done, &job->node);
    }
    parker_wake(&served->parker, 1);
}

/* A timer that does not fire: batches start when they are full, so what is in them is known. */
static void serve(struct served *served, const char *device, uint32_t queue_limit) {
    struct err err = {""};
    *served = (struct served){0};
    mpsc_init(&served->done);
    parker_init(&served->parker);
    const struct session_config session = {.simulate = device, .intra_op_threads = 1};
    assert_int_equal(model_simulated(NULL, &served->model, &err), ST_OK);
    assert_int_equal(model_open(served->model, &backend_sim, &session, &err), ST_OK);
    struct batcher_config config = {
        .policy = {.kind = POLICY_TIMER, .max_batch = MAX_BATCH, .max_delay_ns = 3600000000000u},
        .is_batched = true, .instances = 1, .queue_limit = queue_limit, .on_done = on_done,
        .ctx = served, .batch_ids = &served->batch_ids, .staged_row_bytes = {ROW_BYTES}};
    for (int i = 0; i < MODEL_MAX_IO; i++) config.pad_axis[i] = config.output_pad_axis[i] = -1;
    assert_int_equal(batcher_create(served->model, &config, &served->batcher, &err), ST_OK);
    assert_non_null(batcher_staging(served->batcher));
}

static void stop(struct served *served) {
    batcher_free(served->batcher);
    model_free(served->model);
}

static void prepare(struct served *served, struct sent *sent, uint32_t rows, float first,
                    bool stages) {
    *sent = (struct sent){.first = first};
    arena_init(&sent->arena);
    sent->job = (struct job){
        .inputs = &sent->input, .arena = &sent->arena, .trace = &sent->trace, .rows = rows};
    float *to = sent->own;
    if (stages) {
        assert_true(staging_reserve(batcher_staging(served->batcher), &sent->job));
        to = (float *)(void *)staging_rows(&sent->job, 0);
    }
    for (uint32_t i = 0; i < rows * WIDTH; i++) to[i] = first + (float)i;
    sent->input = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                  .shape = {rows, WIDTH}, .data = to,
                                  .size = (size_t)rows * ROW_BYTES};
}

static void push(struct served *served, struct sent *sent) {
    assert_int_equal(batcher_push(served->batcher, &sent->job, true), ST_OK);
}

static void wait_for(struct served *served, int64_t count) {
    while (served->taken < count) {
        const uint32_t key = parker_prepare(&served->parker);
        struct mpsc_node *node = mpsc_take_all(&served->done);
        if (node == NULL) parker_wait(&served->parker, key, UINT64_MAX);
        else parker_cancel(&served->parker);
        for (; node != NULL; node = node->next) served->taken++;
    }
}

static void check_answer(struct sent *sent) {
    assert_int_equal(sent->job.status, ST_OK);
    assert_null(sent->job.staging); /* released */
    const struct tensor *output = &sent->job.outputs[0];
    assert_int_equal(output->shape[0], sent->job.rows);
    const float *values = output->data;
    for (uint32_t i = 0; i < sent->job.rows * WIDTH; i++)
        assert_true(values[i] == sent->first + (float)i + 1);
    arena_done(&sent->arena);
}

static struct batcher_stats stats_of(struct served *served) {
    struct batcher_stats stats;
    batcher_stats(served->batcher, &stats);
    return stats;
}

static void staged_jobs_run_where_they_lie(void **state) {
    (void)state;
    struct served served;
    struct sent sent[3];
    serve(&served, "a=0us,b=0us", 100);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3; i++)
            prepare(&served, &sent[i], i == 0 ? 2 : 1, (float)(1000 * round + 100 * i), true);
        push(&served, &sent[2]); /* in another order than they were written */
        push(&served, &sent[0]);
        push(&served, &sent[1]);
        wait_for(&served, 3 * (round + 1));
        for (int i = 0; i < 3; i++) check_answer(&sent[i]);
    }
    const struct batcher_stats stats = stats_of(&served);
    assert_int_equal(stats.batches_in_place, 20);
    assert_int_equal(stats.batches_copied, 0);
    assert_int_equal(stats.copied_bytes, 0);
    assert_int_equal(stats.staging_refused, 0);
    stop(&served);
}

static void a_job_that_is_not_staged_has_its_batch_copied(void **state) {
    (void)state;
    struct served served;
    struct sent sent[4];
    serve(&served, "a=0us,b=0us", 100);
    for (int i = 0; i < 4; i++) {
        prepare(&served, &sent[i], 1, (float)(100 * i), i != 1);
        push(&served, &sent[i]);
    }
    wait_for(&served, 4);
    for (int i = 0; i < 4; i++) check_answer(&sent[i]);
    const struct batcher_stats stats = stats_of(&served);
    assert_int_equal(stats.batches_copied, 1);
    assert_int_equal(stats.copied_bytes, 4 * ROW_BYTES);
    stop(&served);
}

/* Each job is run again by itself: where it lies, and its rows are released after that. */
static void a_batch_that_fails_runs_job_by_job_where_it_lies(void **state) {
    (void)state;
    struct served served;
    struct sent sent[4];
    serve(&served, "a=0us,b=0us,fail=nan", 100);
    for (int i = 0; i < 4; i++)
        prepare(&served, &sent[i], 1, i == 2 ? NAN : (float)(100 * i), true);
    for (int i = 0; i < 4; i++) push(&served, &sent[i]);
    wait_for(&served, 4);
    assert_int_equal(sent[2].job.status, ST_INTERNAL);
    assert_null(sent[2].job.staging);
    arena_done(&sent[2].arena);
    for (int i = 0; i < 4; i++)
        if (i != 2) check_answer(&sent[i]);
    const struct batcher_stats stats = stats_of(&served);
    assert_int_equal(stats.batches_in_place, 5);
    assert_int_equal(stats.batches_copied, 0);
    stop(&served);
}

/* What is refused, cancelled or late gives its rows back as well, or the slab would fill up. */
static void jobs_that_never_run_release_their_rows(void **state) {
    (void)state;
    struct served served;
    struct sent cancelled, late, refused;
    serve(&served, "a=0us,b=0us", 2);
    prepare(&served, &cancelled, 3, 0, true);
    flag_raise(&cancelled.job.is_cancelled);
    prepare(&served, &late, 1, 0, true);
    late.job.deadline_ns = 1;
    prepare(&served, &refused, 1, 0, true);
    push(&served, &cancelled);
    push(&served, &late);
    wait_for(&served, 2);
    assert_int_equal(cancelled.job.status, ST_CANCELLED);
    assert_int_equal(late.job.status, ST_TIMEOUT);
    assert_null(cancelled.job.staging);
    assert_null(late.job.staging);
    struct sent held[2]; /* the queue is full with these: the timer holds them */
    for (int i = 0; i < 2; i++) {
        prepare(&served, &held[i], 1, 0, false);
        push(&served, &held[i]);
    }
    assert_int_equal(batcher_push(served.batcher, &refused.job, true), ST_OVERLOADED);
    assert_null(refused.job.staging);
    batcher_drain(served.batcher);
    wait_for(&served, 4);
    for (int i = 0; i < 2; i++) check_answer(&held[i]);
    stop(&served);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_same_place_in_all_slabs),
        cmocka_unit_test(a_job_reserves_once_and_is_refused_when_full),
        cmocka_unit_test(jobs_are_sorted_as_they_were_reserved),
        cmocka_unit_test(jobs_that_are_not_all_staged_stay_as_they_are),
        cmocka_unit_test(staged_jobs_run_where_they_lie),
        cmocka_unit_test(a_job_that_is_not_staged_has_its_batch_copied),
        cmocka_unit_test(a_batch_that_fails_runs_job_by_job_where_it_lies),
        cmocka_unit_test(jobs_that_never_run_release_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

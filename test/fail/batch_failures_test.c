/* A batcher that cannot start its instances, or has no memory, is not there at all and can be
 * tried again; a queue that cannot grow gives the job back and keeps the others. */
#include "memory.h"

#include "batch/batcher.h"
#include "batch/buckets.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the above */
#include <cmocka.h>

static struct counter batch_ids;

static void count_done(struct job *list, void *ctx) {
    (void)list;
    (void)ctx;
}

static struct model *open_model(void) {
    struct model *model = NULL;
    const struct session_config config = {.simulate = "a=0.01ms,b=0.001ms", .intra_op_threads = 1};
    assert_int_equal(model_simulated(NULL, &model, NULL), ST_OK);
    assert_int_equal(model_open(model, &backend_sim, &config, NULL), ST_OK);
    return model;
}

static struct batcher_config config_of(enum queue_kind queue, struct tracer *tracer) {
    struct batcher_config config = {.queue = queue, .policy = {.max_batch = 4}, .is_batched = true,
                                    .instances = 3, .queue_limit = 10, .on_done = count_done,
                                    .tracer = tracer, .batch_ids = &batch_ids};
    for (int i = 0; i < MODEL_MAX_IO; i++) {
        config.pad_axis[i] = config.output_pad_axis[i] = -1;
    }
    return config;
}

static void a_batcher_without_all_its_threads_does_not_start(void **state) {
    (void)state;
    struct model *model = open_model();
    for (int queue = 0; queue < QUEUE_KIND_COUNT; queue++) {
        const struct batcher_config config = config_of(queue, NULL);
        for (long threads = 0; threads <= 4; threads++) { /* the timekeeper's and three instances' */
            struct batcher *batcher = NULL;
            struct err err = {.text = ""};
            atomic_store(&threads_left, threads);
            const enum status status = batcher_create(model, &config, &batcher, &err);
            atomic_store(&threads_left, -1);
            if (threads == 4) {
                assert_int_equal(status, ST_OK);
                batcher_free(batcher);
                continue;
            }
            assert_int_equal(status, ST_NO_MEMORY);
            assert_null(batcher);
            assert_non_null(strstr(err.text, threads == 0 ? "cannot start the timekeeper"
                                                          : "cannot start instance"));
        }
    }
    model_free(model);
}

static void a_batcher_survives_every_allocation_that_fails(void **state) {
    (void)state;
    struct model *model = open_model();
    const struct tracer_config tracing = {.ring_records = 16};
    struct tracer *tracer = NULL;
    assert_int_equal(tracer_create(&tracing, &tracer, NULL), ST_OK);
    for (int queue = 0; queue < QUEUE_KIND_COUNT; queue++) {
        struct batcher_config config = config_of(queue, tracer);
        config.staged_row_bytes[0] = 1000;
        struct shortage shortage = {0};
        while (shortage_next(&shortage)) {
            struct batcher *batcher = NULL;
            struct err err = {.text = ""};
            memory_runs_out(&shortage);
            const enum status status = batcher_create(model, &config, &batcher, &err);
            memory_is_back(&shortage);
            if (status == ST_OK) {
                assert_int_equal(shortage.refused, 0);
                batcher_free(batcher);
                continue;
            }
            assert_int_equal(status, ST_NO_MEMORY);
            assert_null(batcher);
            assert_true(err.text[0] != '\0');
        }
        assert_true(shortage.runs >= 20); /* a batcher, 3 instances with a ring and a slot each */
    }
    tracer_free(tracer);
    model_free(model);
}

enum { CLASSES = 40 };

/* Jobs of ever greater length: each wants a bucket of its own. */
static void a_queue_that_cannot_grow_gives_the_job_back(void **state) {
    (void)state;
    struct batcher_config config = config_of(QUEUE_RING, NULL);
    config.input_count = 1;
    config.pad_axis[0] = 1;
    static struct job jobs[CLASSES];
    static struct trace_record traces[CLASSES];
    const struct tensor input = {.dtype = DTYPE_INT64, .rank = 2, .shape = {1, 8}};
    struct buckets buckets;
    buckets_init(&buckets);
    uint32_t length = 8, put = 0, given_back = 0;
    for (uint32_t i = 0; i < CLASSES && length < UINT32_MAX / 2; i++) {
        jobs[i] = (struct job){.inputs = &input, .trace = &traces[i], .rows = 1, .length = length};
        traces[i].at[AT_ENQUEUED] = i + 1;
        struct shortage none_left = {0};
        memory_runs_out(&none_left);
        const bool is_put = buckets_put(&buckets, &config, &jobs[i]);
        memory_is_back(&none_left);
        if (!is_put) {
            given_back++;
            assert_int_equal(buckets.jobs, put);
            assert_true(buckets_put(&buckets, &config, &jobs[i])); /* memory is back */
        }
        put++;
        length = length % 3 == 0 ? length / 3 * 4 : length / 2 * 3;
    }
    assert_true(given_back >= 2); /* the first buckets, and the first growth */
    assert_int_equal(buckets.jobs, put);
    assert_ptr_equal(buckets_oldest(&buckets)->first, &jobs[0]);
    buckets_done(&buckets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batcher_without_all_its_threads_does_not_start),
        cmocka_unit_test(a_batcher_survives_every_allocation_that_fails),
        cmocka_unit_test(a_queue_that_cannot_grow_gives_the_job_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The journey of requests through the engine on the simulated accelerator: every answer belongs
 * to its request, whatever the queue, the policy and the faults around it. */
#include "base/clock.h"
#include "engine/engine.h"
#include "sync/parker.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WIDTH = 16 };

struct waiter {
    struct mpsc answers; /* request->done_node: publishes what the engine wrote */
    int64_t taken;
    struct parker parker;
};

static struct engine_config config_of(const char *simulate) {
    return (struct engine_config){.simulate = simulate, .max_batch = 8, .intra_op_threads = 1,
                                  .queue_limit = 100000, .trace_sample = 0.01, .workers = 2};
}

static struct engine *engine_of(const struct engine_config *config) {
    struct engine *engine = NULL;
    struct err err = {""};
    const enum status status = engine_create(config, &engine, &err);
    if (status != ST_OK) fprintf(stderr, "engine_create: %s\n", err.text);
    assert_int_equal(status, ST_OK);
    return engine;
}

static void on_done(struct request *request) {
    struct waiter *waiter = request->owner;
    mpsc_push(&waiter->answers, &request->done_node);
    parker_wake(&waiter->parker, 1);
}

static void waiter_init(struct waiter *waiter) {
    mpsc_init(&waiter->answers);
    parker_init(&waiter->parker);
    waiter->taken = 0;
}

static void wait_for(struct waiter *waiter, int64_t count) {
    while (waiter->taken < count) {
        const uint32_t key = parker_prepare(&waiter->parker);
        struct mpsc_node *node = mpsc_take_all(&waiter->answers);
        if (node == NULL) parker_wait(&waiter->parker, key, UINT64_MAX);
        else parker_cancel(&waiter->parker);
        for (; node != NULL; node = node->next) waiter->taken++;
    }
}

/* One plain request: rows x 16 floats, value in each. */
struct plain {
    struct request request;
    struct tensor input;
    float values[4 * WIDTH];
};

static void plain_init(struct plain *plain, struct engine *engine, struct waiter *waiter,
                       uint32_t rows, float value) {
    request_init(&plain->request);
    for (uint32_t i = 0; i < rows * WIDTH; i++) plain->values[i] = value;
    plain->input = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                   .shape = {rows, WIDTH}, .data = plain->values,
                                   .size = rows * WIDTH * sizeof(float)};
    plain->request.model = engine_only(engine);
    plain->request.inputs = &plain->input;
    plain->request.input_count = 1;
    plain->request.on_done = on_done;
    plain->request.owner = waiter;
    plain->request.trace.at[AT_START] = plain->request.trace.at[AT_RECEIVED] =
        plain->request.trace.at[AT_DECODED] = mono_ns();
}

static void assert_answered(const struct plain *plain) {
    const struct request *request = &plain->request;
    assert_int_equal(request->status, ST_OK);
    assert_int_equal(request->output_count, 1);
    assert_int_equal(request->outputs[0].size, plain->input.size);
    const float *out = request->outputs[0].data;
    for (size_t i = 0; i < request->outputs[0].size / sizeof(float); i++)
        assert_true(out[i] == plain->values[i] + 1);
}

static void assert_stages_add_up(const struct request *request) {
    uint64_t stages[STAGE_COUNT], sum = 0;
    const uint64_t total = trace_durations(&request->trace, stages);
    for (int i = 0; i < STAGE_COUNT; i++) sum += stages[i];
    assert_int_equal(sum, total);
    for (int i = 1; i < AT_COUNT; i++)
        if (request->trace.at[i] != 0)
            for (int j = 0; j < i; j++) assert_true(request->trace.at[j] <= request->trace.at[i]);
}

static void submit_many(const struct engine_config *config, unsigned count) {
    struct engine *engine = engine_of(config);
    struct waiter waiter;
    waiter_init(&waiter);
    struct plain *all = calloc(count, sizeof *all);
    for (unsigned i = 0; i < count; i++) {
        plain_init(&all[i], engine, &waiter, 1 + i % 4, (float)i);
        assert_int_equal(engine_submit(engine, &all[i].request), ST_OK);
        if (i % 5 == 0) engine_flush(engine);
    }
    engine_flush(engine);
    wait_for(&waiter, count);
    for (unsigned i = 0; i < count; i++) {
        assert_answered(&all[i]);
        assert_stages_add_up(&all[i].request);
        assert_true(all[i].request.trace.batch > 0);
        request_done(&all[i].request);
    }
    engine_free(engine);
    free(all);
}

static void answers_belong_to_their_requests(void **state) {
    (void)state;
    for (int queue = 0; queue < QUEUE_KIND_COUNT; queue++)
        for (int policy = 0; policy < POLICY_KIND_COUNT; policy++)
            for (unsigned instances = 1; instances <= 3; instances += 2) {
                struct engine_config config = config_of("a=0.1ms,b=0.01ms");
                config.queue = queue;
                config.policy = policy;
                config.instances = instances;
                config.max_delay_us = policy == POLICY_TIMER ? 1000 : 0;
                submit_many(&config, 500);
            }
}

static void one_bad_request_does_not_fail_its_batch(void **state) {
    (void)state;
    struct engine_config config = config_of("a=5ms,b=0ms,fail=nan");
    struct engine *engine = engine_of(&config);
    struct waiter waiter;
    waiter_init(&waiter);
    struct plain all[20];
    for (unsigned i = 0; i < 20; i++) {
        plain_init(&all[i], engine, &waiter, 1, i == 13 ? NAN : (float)i);
        assert_int_equal(engine_submit(engine, &all[i].request), ST_OK);
    }
    engine_flush(engine);
    wait_for(&waiter, 20);
    for (unsigned i = 0; i < 20; i++) {
        if (i == 13) assert_int_equal(all[i].request.status, ST_INTERNAL);
        else assert_answered(&all[i]);
        assert_stages_add_up(&all[i].request);
        request_done(&all[i].request);
    }
    engine_free(engine);
}

static void expired_and_cancelled_requests_are_not_run(void **state) {
    (void)state;
    struct engine_config config = config_of("a=20ms,b=0ms");
    config.max_batch = 1;
    struct engine *engine = engine_of(&config);
    struct waiter waiter;
    waiter_init(&waiter);
    struct plain all[4];
    for (unsigned i = 0; i < 4; i++) {
        plain_init(&all[i], engine, &waiter, 1, (float)i);
        if (i == 2) all[i].request.deadline_ns = mono_ns() + 1000000;
        assert_int_equal(engine_submit(engine, &all[i].request), ST_OK);
        engine_flush(engine);
    }
    request_cancel(&all[3].request);
    wait_for(&waiter, 4);
    assert_answered(&all[0]);
    assert_answered(&all[1]);
    assert_int_equal(all[2].request.status, ST_TIMEOUT);
    assert_int_equal(all[3].request.status, ST_CANCELLED);
    for (unsigned i = 0; i < 4; i++) request_done(&all[i].request);
    engine_free(engine);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    struct engine_config config = config_of("a=50ms,b=0ms");
    config.max_batch = 1;
    config.queue_limit = 3;
    struct engine *engine = engine_of(&config);
    struct waiter waiter;
    waiter_init(&waiter);
    struct plain all[10];
    int64_t accepted = 0;
    for (unsigned i = 0; i < 10; i++) {
        plain_init(&all[i], engine, &waiter, 1, (float)i);
        const enum status status = engine_submit(engine, &all[i].request);
        if (status == ST_OK) accepted++;
        else assert_int_equal(status, ST_OVERLOADED);
        engine_flush(engine);
    }
    assert_in_range(accepted, 3, 5);
    wait_for(&waiter, accepted);
    for (unsigned i = 0; i < 10; i++) request_done(&all[i].request);
    struct batcher_stats stats;
    const struct served_model *served = engine_only(engine);
    engine_stats(served, &stats);
    engine_release(served);
    assert_int_equal((int64_t)stats.refused, 10 - accepted);
    engine_free(engine);
}

static void bad_requests_are_named(void **state) {
    (void)state;
    struct engine_config config = config_of("a=0.1ms,b=0ms");
    struct engine *engine = engine_of(&config);
    struct waiter waiter;
    waiter_init(&waiter);
    const struct { const char *name; enum dtype dtype; uint32_t rank; int64_t shape[3]; size_t size; const char *says; } CASES[] = {
        {"INPUT1", DTYPE_FP32, 2, {1, 16}, 64, "no input INPUT1; it has INPUT0"},
        {"INPUT0", DTYPE_INT32, 2, {1, 16}, 64, "datatype is INT32, the model needs FP32"},
        {"INPUT0", DTYPE_FP32, 2, {1, 15}, 60, "shape is [1,15], the model needs [-1,16]"},
        {"INPUT0", DTYPE_FP32, 1, {16}, 64, "shape is [16]"},
        {"INPUT0", DTYPE_FP32, 2, {0, 16}, 0, "batch dimension is 0"},
        {"INPUT0", DTYPE_FP32, 2, {9, 16}, 576, "largest batch is 8"},
        {"INPUT0", DTYPE_FP32, 2, {1, 16}, 60, "60 bytes do not hold 16 elements"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct plain plain;
        plain_init(&plain, engine, &waiter, 1, 0);
        plain.input = (struct tensor){.name = view_of(CASES[i].name), .dtype = CASES[i].dtype,
                                      .rank = CASES[i].rank, .data = plain.values, .size = CASES[i].size};
        memcpy(plain.input.shape, CASES[i].shape, sizeof CASES[i].shape);
        assert_int_equal(engine_submit(engine, &plain.request), ST_INVALID);
        if (strstr(plain.request.err.text, CASES[i].says) == NULL)
            fail_msg("case %zu: %s", i, plain.request.err.text);
        request_done(&plain.request);
    }
    struct plain plain;
    const struct view wanted = view_of("OUTPUT9");
    plain_init(&plain, engine, &waiter, 1, 0);
    plain.request.wanted = &wanted;
    plain.request.wanted_count = 1;
    assert_int_equal(engine_submit(engine, &plain.request), ST_INVALID);
    assert_non_null(strstr(plain.request.err.text, "no output OUTPUT9"));
    request_done(&plain.request);
    engine_free(engine);
}

static void freeing_the_engine_answers_what_waits(void **state) {
    (void)state;
    struct engine_config config = config_of("a=2ms,b=0ms");
    config.policy = POLICY_TIMER;
    config.max_delay_us = 30000000;
    struct engine *engine = engine_of(&config);
    struct waiter waiter;
    waiter_init(&waiter);
    struct plain all[3];
    for (unsigned i = 0; i < 3; i++) {
        plain_init(&all[i], engine, &waiter, 1, (float)i);
        assert_int_equal(engine_submit(engine, &all[i].request), ST_OK);
    }
    engine_drain(engine); /* else the timer would hold them for 30 s */
    engine_free(engine);
    for (unsigned i = 0; i < 3; i++) {
        assert_answered(&all[i]);
        all[i].request.model = NULL; /* it went with the engine */
        request_done(&all[i].request);
    }
}

static void texts_are_tokenized_in_either_place(void **state) {
    (void)state;
    for (int where = 0; where <= PREPROCESS_INLINE; where++) {
        struct engine_config config = config_of("a=1ms,b=0ms");
        config.tokenizer = TEST_SOURCE_DIR "/examples/spam/tokenizer.json";
        config.labels = TEST_SOURCE_DIR "/examples/spam/labels.txt";
        config.preprocess = where;
        struct engine *engine = engine_of(&config);
        struct waiter waiter;
    waiter_init(&waiter);
        parker_init(&waiter.parker);
        struct request requests[40];
        struct tensor inputs[40];
        char data[40][32];
        for (unsigned i = 0; i < 40; i++) {
            const uint32_t length = 5 + i % 20;
            memcpy(data[i], &length, 4);
            memset(data[i] + 4, 'a' + (int)(i % 3), length);
            inputs[i] = (struct tensor){.name = view_of("TEXT"), .dtype = DTYPE_BYTES, .rank = 1,
                                        .shape = {1}, .data = data[i], .size = 4 + length};
            request_init(&requests[i]);
            requests[i].model = engine_only(engine);
            requests[i].inputs = &inputs[i];
            requests[i].input_count = 1;
            requests[i].on_done = on_done;
            requests[i].owner = &waiter;
            requests[i].trace.at[AT_START] = requests[i].trace.at[AT_DECODED] = mono_ns();
            assert_int_equal(engine_submit(engine, &requests[i]), ST_OK);
        }
        wait_for(&waiter, 40);
        for (unsigned i = 0; i < 40; i++) {
            assert_int_equal(requests[i].status, ST_OK);
            assert_int_equal(requests[i].output_count, 3);
            assert_true(view_is(requests[i].outputs[1].name, "label"));
            assert_true(requests[i].trace.tokens >= 3);
            assert_stages_add_up(&requests[i]);
            if (i >= 3 && inputs[i].size == inputs[i % 20].size && i % 3 == (i % 20) % 3)
                assert_memory_equal(requests[i].outputs[0].data, requests[i % 20].outputs[0].data, 8);
        }
        for (unsigned i = 0; i < 40; i++) request_done(&requests[i]);
        engine_free(engine);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_belong_to_their_requests),
        cmocka_unit_test(one_bad_request_does_not_fail_its_batch),
        cmocka_unit_test(expired_and_cancelled_requests_are_not_run),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(bad_requests_are_named),
        cmocka_unit_test(freeing_the_engine_answers_what_waits),
        cmocka_unit_test(texts_are_tokenized_in_either_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

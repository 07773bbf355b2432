/* The simulated accelerator: what it answers, when, and what it refuses. Times are compared with
 * lower bounds only, so that a busy machine cannot fail them. */
#include "base/clock.h"
#include "infer/backend.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct session *session_of(const char *simulate, bool is_text) {
    const struct session_config config = {.simulate = simulate, .simulate_text = is_text};
    struct session *session = NULL;
    struct err err = {""};
    if (backend_sim.session_open(&config, &session, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
    return session;
}

static struct slot *slot_of(struct session *session) {
    struct slot *slot = NULL;
    assert_int_equal(backend_sim.slot_open(session, &slot, NULL), ST_OK);
    return slot;
}

static struct tensor matrix(enum dtype dtype, const void *data, int64_t rows, int64_t width) {
    return (struct tensor){.dtype = dtype, .rank = 2, .shape = {rows, width}, .data = data,
                           .size = (size_t)(rows * width) * dtype_size(dtype)};
}

static void plain_form_adds_one_to_every_element(void **state) {
    (void)state;
    struct session *session = session_of("a=0us,b=0us", false);
    struct slot *slot = slot_of(session);
    const struct signature *signature = backend_sim.signature(session);
    assert_string_equal(signature->inputs[0].name, "INPUT0");
    assert_true(signature_can_batch(signature));
    for (int64_t rows = 3; rows >= 0; rows--) {
        float values[3 * 16];
        for (int i = 0; i < 48; i++) {
            values[i] = (float)(i * rows);
        }
        const struct tensor input = matrix(DTYPE_FP32, values, rows, 16);
        struct tensor out;
        assert_int_equal(backend_sim.start(slot, &input, (uint32_t)rows, NULL), ST_OK);
        assert_int_equal(backend_sim.finish(slot, &out, NULL), ST_OK);
        assert_true(view_is(out.name, "OUTPUT0"));
        assert_int_equal(out.shape[0], rows);
        assert_int_equal(out.size, input.size);
        for (int64_t i = 0; i < rows * 16; i++) {
            assert_true(((const float *)out.data)[i] == values[i] + 1);
        }
    }
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

/* The formula of docs/simulated.md, written again. */
static void expected_logits(const int64_t *ids, size_t count, float out[2]) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count * 8; i++) {
        hash = (hash ^ ((uint64_t)ids[i / 8] >> i % 8 * 8 & 255)) * UINT64_C(0x100000001b3);
    }
    out[0] = (float)(int64_t)((hash & 65535) - 32768) / 8192;
    out[1] = (float)(int64_t)((hash / 65536 & 65535) - 32768) / 8192;
}

static void text_form_depends_on_real_ids_alone_and_not_on_padding(void **state) {
    (void)state;
    struct session *session = session_of("a=0us,b=0us", true);
    struct slot *slot = slot_of(session);
    assert_string_equal(backend_sim.signature(session)->inputs[1].name, "attention_mask");
    const int64_t ids[2 * 4] = {101, 2054, 102, 77, 101, 9, 0, 102};
    const int64_t mask[2 * 4] = {1, 1, 1, 0, 1, 1, 1, 1}, types[2 * 4] = {0};
    const struct tensor inputs[3] = {matrix(DTYPE_INT64, ids, 2, 4),
                                     matrix(DTYPE_INT64, mask, 2, 4),
                                     matrix(DTYPE_INT64, types, 2, 4)};
    struct tensor out;
    assert_int_equal(backend_sim.start(slot, inputs, 2, NULL), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, NULL), ST_OK);
    float expected[4];
    expected_logits(ids, 3, expected);
    expected_logits(ids + 4, 4, expected + 2);
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    assert_true(expected[0] != expected[2] && fabsf(expected[0]) <= 4);
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

static void two_batches_of_two_slots_follow_each_other_on_one_device(void **state) {
    (void)state;
    struct session *session = session_of("a=3ms,b=1ms,in=0.5ms,out=0.5ms", false);
    struct slot *slots[2] = {slot_of(session), slot_of(session)};
    const float values[2 * 16] = {0};
    const struct tensor input = matrix(DTYPE_FP32, values, 2, 16);
    struct tensor out;
    const uint64_t begin_ns = mono_ns();
    assert_int_equal(backend_sim.start(slots[0], &input, 2, NULL), ST_OK);
    assert_int_equal(backend_sim.start(slots[1], &input, 2, NULL), ST_OK);
    assert_int_equal(backend_sim.finish(slots[0], &out, NULL), ST_OK);
    const uint64_t first_ns = mono_ns();
    assert_true(backend_sim.device_busy_ns(session) >= 6000000);
    assert_int_equal(backend_sim.finish(slots[1], &out, NULL), ST_OK);
    assert_true(first_ns - begin_ns >= 6000000);
    assert_true(mono_ns() - begin_ns >= 12000000);
    assert_int_equal(backend_sim.device_busy_ns(session), 12000000); /* and no more when idle */
    backend_sim.slot_close(slots[0]);
    backend_sim.slot_close(slots[1]);
    backend_sim.session_close(session);
}

static void waiting_for_the_device_uses_no_processor(void **state) {
    (void)state;
    struct session *session = session_of("a=50ms,b=0us", false);
    struct slot *slot = slot_of(session);
    const float values[16] = {0};
    const struct tensor input = matrix(DTYPE_FP32, values, 1, 16);
    struct tensor out;
    const uint64_t begin_ns = thread_cpu_ns();
    assert_int_equal(backend_sim.start(slot, &input, 1, NULL), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, NULL), ST_OK);
    assert_true(thread_cpu_ns() - begin_ns < 10000000);
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

static void a_batch_with_a_nan_fails_whole_and_the_next_one_works(void **state) {
    (void)state;
    struct session *session = session_of("a=0us,b=0us,fail=nan", false);
    struct slot *slot = slot_of(session);
    float values[2 * 16] = {0};
    values[20] = NAN;
    const struct tensor bad = matrix(DTYPE_FP32, values, 2, 16);
    const struct tensor good = matrix(DTYPE_FP32, values, 1, 16);
    struct tensor out;
    struct err err = {""};
    assert_int_equal(backend_sim.start(slot, &bad, 2, &err), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, &err), ST_INTERNAL);
    assert_non_null(strstr(err.text, "fail=nan"));
    assert_int_equal(backend_sim.start(slot, &good, 1, &err), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, &err), ST_OK);
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

static void a_batch_with_the_failing_id_fails_unless_it_is_padding(void **state) {
    (void)state;
    struct session *session = session_of("a=0us,b=0us,fail=id:666", true);
    struct slot *slot = slot_of(session);
    const int64_t ids[2] = {5, 666}, real[2] = {1, 1}, padded[2] = {1, 0}, types[2] = {0};
    struct tensor inputs[3] = {matrix(DTYPE_INT64, ids, 1, 2), matrix(DTYPE_INT64, real, 1, 2),
                               matrix(DTYPE_INT64, types, 1, 2)};
    struct tensor out;
    assert_int_equal(backend_sim.start(slot, inputs, 1, NULL), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, NULL), ST_INTERNAL);
    inputs[1].data = padded;
    assert_int_equal(backend_sim.start(slot, inputs, 1, NULL), ST_OK);
    assert_int_equal(backend_sim.finish(slot, &out, NULL), ST_OK);
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

static void inputs_that_do_not_fit_are_refused_by_name_and_cost_no_device_time(void **state) {
    (void)state;
    struct session *session = session_of("a=1ms,b=1ms", true);
    struct slot *slot = slot_of(session);
    const int64_t zeros[8] = {0};
    const struct tensor good = matrix(DTYPE_INT64, zeros, 2, 4);
    struct tensor short_data = good;
    short_data.size -= 8;
    const struct tensor bad[] = {matrix(DTYPE_INT64, zeros, 2, 3), matrix(DTYPE_INT64, zeros, 1, 4),
                                 matrix(DTYPE_INT32, zeros, 2, 4), short_data};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct tensor inputs[3] = {good, bad[i], good};
        struct err err = {""};
        assert_int_equal(backend_sim.start(slot, inputs, 2, &err), ST_INVALID);
        assert_non_null(strstr(err.text, "input attention_mask: "));
    }
    assert_int_equal(backend_sim.device_busy_ns(session), 0);
    backend_sim.slot_close(slot);
    backend_sim.session_close(session);
}

static void description_says_simulated_with_its_figures(void **state) {
    (void)state;
    struct session *session = session_of("a=4ms,b=0.05ms", false);
    assert_string_equal(backend_sim.describe(session), "simulated accelerator a=4ms b=50us");
    assert_true(backend_sim.is_simulated && backend_sim.is_async);
    backend_sim.session_close(session);
    struct err err = {""};
    const struct session_config config = {.simulate = "a=4"};
    assert_int_equal(backend_sim.session_open(&config, &session, &err), ST_INVALID);
}

struct caller {
    struct session *session;
    float first;
    int wrong;
};

static void *caller_run(void *argument) {
    struct caller *caller = argument;
    struct slot *slot = NULL;
    caller->wrong = backend_sim.slot_open(caller->session, &slot, NULL) != ST_OK;
    for (int run = 0; run < 200 && !caller->wrong; run++) {
        const float values[16] = {caller->first + (float)run};
        const struct tensor input = matrix(DTYPE_FP32, values, 1, 16);
        struct tensor out;
        caller->wrong = backend_sim.start(slot, &input, 1, NULL) != ST_OK ||
                        backend_sim.finish(slot, &out, NULL) != ST_OK ||
                        ((const float *)out.data)[0] != values[0] + 1;
    }
    backend_sim.slot_close(slot);
    return NULL;
}

static void instances_share_the_device_without_mixing_answers(void **state) {
    (void)state;
    struct session *session = session_of("a=10us,b=5us", false);
    struct caller callers[3] = {{session, 1, 0}, {session, 1000, 0}, {session, 2000, 0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, caller_run, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    assert_int_equal(backend_sim.device_busy_ns(session), 3 * 200 * 15000);
    backend_sim.session_close(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_form_adds_one_to_every_element),
        cmocka_unit_test(text_form_depends_on_real_ids_alone_and_not_on_padding),
        cmocka_unit_test(two_batches_of_two_slots_follow_each_other_on_one_device),
        cmocka_unit_test(waiting_for_the_device_uses_no_processor),
        cmocka_unit_test(a_batch_with_a_nan_fails_whole_and_the_next_one_works),
        cmocka_unit_test(a_batch_with_the_failing_id_fails_unless_it_is_padding),
        cmocka_unit_test(inputs_that_do_not_fit_are_refused_by_name_and_cost_no_device_time),
        cmocka_unit_test(description_says_simulated_with_its_figures),
        cmocka_unit_test(instances_share_the_device_without_mixing_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

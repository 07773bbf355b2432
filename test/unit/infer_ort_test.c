/* The ONNX Runtime back end against small models (test/data, made by make_models.py) and the
 * sample model. Skipped, with a message, where the library is not installed. */
#include "infer/backend.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LIBRARY TEST_SOURCE_DIR "/.deps/onnxruntime/lib/libonnxruntime.so.1"

static struct session_config config_for(const char *path) {
    return (struct session_config){
        .model_path = path,
        .onnxruntime_path = access(LIBRARY, R_OK) == 0 ? LIBRARY : NULL,
        .intra_op_threads = 1,
    };
}

static enum status data_open(const char *file, struct session **out, struct err *err) {
    char path[512];
    snprintf(path, sizeof path, "%s/test/data/%s", TEST_SOURCE_DIR, file);
    const struct session_config config = config_for(path);
    return backend_ort.session_open(&config, out, err);
}

struct bench { /* a session with one slot */
    struct session *session;
    struct slot *slot;
    struct err err;
};

static void bench_open(struct bench *bench, const char *file) {
    *bench = (struct bench){0};
    if (data_open(file, &bench->session, &bench->err) != ST_OK) {
        if (!strstr(bench->err.text, "not found")) {
            fail_msg("%s", bench->err.text);
        }
        print_message("skipped: %s\n", bench->err.text);
        skip();
    }
    assert_int_equal(backend_ort.slot_open(bench->session, &bench->slot, &bench->err), ST_OK);
}

static void bench_close(struct bench *bench) {
    backend_ort.slot_close(bench->slot);
    backend_ort.session_close(bench->session);
}

static enum status bench_run(struct bench *bench, const struct tensor *inputs,
                             struct tensor *outputs) {
    const enum status status = backend_ort.start(bench->slot, inputs, 1, &bench->err);
    return status == ST_OK ? backend_ort.finish(bench->slot, outputs, &bench->err) : status;
}

#define TENSOR(type, values, ...)                                                              \
    {.dtype = DTYPE_##type, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),         \
     .shape = {__VA_ARGS__}, .data = (values), .size = sizeof(values)}

static int thread_count(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while (readdir(tasks)) {
        count++;
    }
    closedir(tasks);
    return count;
}

/* Must be the first test: the library is loaded once. Newer builds start a thread that sends
 * usage events, unless told not to in time. */
static void loading_the_library_starts_no_thread(void **state) {
    (void)state;
    const int before = thread_count();
    struct bench bench;
    bench_open(&bench, "add.onnx");
    assert_int_equal(thread_count(), before);
    bench_close(&bench);
}

static void signature_has_names_types_shapes_and_symbolic_dimensions(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    const struct signature *signature = backend_ort.signature(bench.session);
    assert_int_equal(signature->input_count, 1);
    assert_int_equal(signature->output_count, 1);
    const struct io_spec *io = &signature->inputs[0];
    assert_string_equal(io->name, "INPUT0");
    assert_int_equal(io->dtype, DTYPE_FP32);
    assert_int_equal(io->rank, 2);
    assert_int_equal(io->shape[0], -1);
    assert_int_equal(io->shape[1], 16);
    assert_string_equal(io->dim_names[0], "batch");
    assert_null(io->dim_names[1]);
    assert_true(signature_can_batch(signature));
    assert_memory_equal(backend_ort.describe(bench.session), "ONNX Runtime 1.", 15);
    bench_close(&bench);
    bench_open(&bench, "add_fixed.onnx");
    assert_false(signature_can_batch(backend_ort.signature(bench.session)));
    bench_close(&bench);
}

static void rows_of_a_batch_come_back_in_order_whatever_the_batch_before_was(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    float values[2][5 * 16]; /* two buffers: values bound at one address are not kept for another */
    const int64_t rows_of[] = {3, 3, 3, 1, 5, 5, 0, 5};
    for (size_t run = 0; run < sizeof rows_of / sizeof rows_of[0]; run++) {
        float *in = values[run / 2 % 2];
        const int64_t rows = rows_of[run];
        for (int64_t i = 0; i < rows * 16; i++) {
            in[i] = (float)(100 * run + (size_t)i);
        }
        const struct tensor input = {.dtype = DTYPE_FP32, .rank = 2, .shape = {rows, 16},
                                     .data = in, .size = (size_t)rows * 64};
        struct tensor out;
        if (bench_run(&bench, &input, &out) != ST_OK) {
            fail_msg("%s", bench.err.text);
        }
        assert_true(view_is(out.name, "OUTPUT0"));
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.shape[0], rows);
        assert_int_equal(out.size, (size_t)rows * 64);
        for (int64_t i = 0; i < rows * 16; i++) {
            assert_true(((const float *)out.data)[i] == in[i] + 1);
        }
    }
    bench_close(&bench);
}

static void answers_stay_valid_while_the_next_batch_is_started(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    float first[16] = {1}, second[16] = {5};
    const struct tensor a = TENSOR(FP32, first, 1, 16), b = TENSOR(FP32, second, 1, 16);
    struct tensor out, next;
    assert_int_equal(bench_run(&bench, &a, &out), ST_OK);
    assert_int_equal(backend_ort.start(bench.slot, &b, 1, &bench.err), ST_OK);
    assert_true(((const float *)out.data)[0] == 2);
    assert_int_equal(backend_ort.finish(bench.slot, &next, &bench.err), ST_OK);
    assert_true(((const float *)next.data)[0] == 6);
    bench_close(&bench);
}

static void strings_go_in_and_out_with_zero_bytes_and_empty_ones(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "strings.onnx");
    static const char THREE[] = "\3\0\0\0a\0b\0\0\0\0\5\0\0\0h\xc3\xa9llo";
    for (int run = 0; run < 2; run++) { /* the second fills the kept value again */
        const struct tensor input = {.dtype = DTYPE_BYTES, .rank = 1, .shape = {3}, .data = THREE,
                                     .size = 3 * 4 + 3 + 0 + 5};
        struct tensor out;
        if (bench_run(&bench, &input, &out) != ST_OK) {
            fail_msg("%s", bench.err.text);
        }
        assert_int_equal(out.dtype, DTYPE_BYTES);
        assert_int_equal(out.shape[0], 3);
        assert_int_equal(out.size, input.size);
        assert_memory_equal(out.data, THREE, input.size);
    }
    const struct tensor none = {.dtype = DTYPE_BYTES, .rank = 1, .shape = {0}, .data = THREE};
    struct tensor out;
    assert_int_equal(bench_run(&bench, &none, &out), ST_OK);
    assert_int_equal(out.size, 0);
    bench_close(&bench);
}

static void strings_that_end_too_early_are_refused(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "strings.onnx");
    static const char SHORT[] = "\4\0\0\0abc";
    const struct tensor input = {.dtype = DTYPE_BYTES, .rank = 1, .shape = {1}, .data = SHORT,
                                 .size = 7};
    assert_int_equal(backend_ort.start(bench.slot, &input, 1, &bench.err), ST_INVALID);
    assert_non_null(strstr(bench.err.text, "input S"));
    bench_close(&bench);
}

static void every_kind_of_element_passes_unchanged(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "kinds.onnx");
    const struct signature *signature = backend_ort.signature(bench.session);
    static const enum dtype WANT[] = {DTYPE_BOOL, DTYPE_FP16, DTYPE_BF16,
                                      DTYPE_INT8, DTYPE_UINT64, DTYPE_FP64};
    static const uint64_t DATA[4] = {0x0100010001010001, 0x3c00bc0000000001, 1, 0};
    struct tensor inputs[6], outputs[6];
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(signature->inputs[i].dtype, WANT[i]);
        inputs[i] = (struct tensor){.dtype = WANT[i], .rank = 2, .shape = {2, 2}, .data = DATA,
                                    .size = 4 * dtype_size(WANT[i])};
    }
    if (bench_run(&bench, inputs, outputs) != ST_OK) {
        fail_msg("%s", bench.err.text);
    }
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(outputs[i].dtype, WANT[i]);
        assert_int_equal(outputs[i].size, inputs[i].size);
        assert_memory_equal(outputs[i].data, DATA, inputs[i].size);
    }
    bench_close(&bench);
}

static void scalars_and_conversions_work(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "scalar.onnx");
    const float x = 21;
    const struct tensor scalar = {.dtype = DTYPE_FP32, .rank = 0, .data = &x, .size = sizeof x};
    struct tensor out;
    assert_int_equal(bench_run(&bench, &scalar, &out), ST_OK);
    assert_int_equal(out.rank, 0);
    assert_true(*(const float *)out.data == 42);
    assert_false(signature_can_batch(backend_ort.signature(bench.session)));
    bench_close(&bench);
    bench_open(&bench, "cast.onnx");
    float values[] = {1.5f, -2.5f};
    const struct tensor input = TENSOR(FP32, values, 2);
    assert_int_equal(bench_run(&bench, &input, &out), ST_OK);
    assert_int_equal(out.dtype, DTYPE_INT64);
    assert_int_equal(((const int64_t *)out.data)[1], -2);
    bench_close(&bench);
}

static void output_shapes_known_only_after_the_run_are_reported(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "nonzero.onnx");
    float two[] = {1, 0, 0, 1}, none[] = {0, 0, 0, 0};
    const struct tensor inputs[] = {TENSOR(FP32, two, 2, 2), TENSOR(FP32, none, 2, 2)};
    struct tensor out;
    assert_int_equal(bench_run(&bench, &inputs[0], &out), ST_OK);
    assert_int_equal(out.shape[0], 2);
    assert_int_equal(out.shape[1], 2);
    assert_int_equal(((const int64_t *)out.data)[3], 1);
    assert_int_equal(bench_run(&bench, &inputs[1], &out), ST_OK);
    assert_int_equal(out.shape[1], 0);
    assert_int_equal(out.size, 0);
    bench_close(&bench);
}

static void a_model_that_breaks_its_declared_shape_is_still_served(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "promise.onnx");
    float all[] = {1, 2, 3}, some[] = {1, -2, 3};
    const struct tensor inputs[] = {TENSOR(FP32, all, 3), TENSOR(FP32, some, 3)};
    const int64_t expected[] = {3, 3, 2, 3, 2};
    for (size_t run = 0; run < 5; run++) {
        struct tensor out;
        if (bench_run(&bench, &inputs[expected[run] == 2], &out) != ST_OK) {
            fail_msg("run %zu: %s", run, bench.err.text);
        }
        assert_int_equal(out.shape[0], expected[run]);
        assert_true(((const float *)out.data)[expected[run] - 1] == 3);
    }
    bench_close(&bench);
}

static void inputs_that_may_be_overridden_are_not_inputs(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "overridable.onnx");
    assert_int_equal(backend_ort.signature(bench.session)->input_count, 1);
    float values[] = {1, 2};
    const struct tensor input = TENSOR(FP32, values, 2);
    struct tensor out;
    assert_int_equal(bench_run(&bench, &input, &out), ST_OK);
    assert_true(((const float *)out.data)[1] == 3);
    bench_close(&bench);
}

static void a_model_without_declared_ranks_takes_any_shape(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "any_shape.onnx");
    assert_true(backend_ort.signature(bench.session)->inputs[0].is_any_shape);
    assert_false(signature_can_batch(backend_ort.signature(bench.session)));
    float values[] = {1, 2};
    const struct tensor input = TENSOR(FP32, values, 1, 2, 1);
    struct tensor out;
    assert_int_equal(bench_run(&bench, &input, &out), ST_OK);
    assert_int_equal(out.rank, 3);
    assert_true(((const float *)out.data)[1] == -2);
    bench_close(&bench);
}

static void a_shape_that_the_model_cannot_take_is_the_requests_fault(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "reshape.onnx");
    float values[] = {1, 2, 3, 4, 5, 6};
    const struct tensor bad = {.dtype = DTYPE_FP32, .rank = 1, .shape = {4}, .data = values,
                               .size = 16};
    const struct tensor good = TENSOR(FP32, values, 6);
    struct tensor out;
    assert_int_equal(bench_run(&bench, &bad, &out), ST_INVALID);
    assert_non_null(strstr(bench.err.text, "Reshape node 'fold': "));
    assert_null(strstr(bench.err.text, ".h:"));
    assert_null(strchr(bench.err.text, '\n'));
    print_message("          %s\n", bench.err.text);
    assert_int_equal(bench_run(&bench, &good, &out), ST_OK); /* the slot still works */
    assert_int_equal(out.shape[0], 2);
    bench_close(&bench);
    bench_open(&bench, "add.onnx");
    const struct tensor narrow = TENSOR(FP32, values, 1, 6);
    assert_int_equal(bench_run(&bench, &narrow, &out), ST_INVALID);
    print_message("          %s\n", bench.err.text);
    bench_close(&bench);
}

static void an_index_out_of_range_is_the_requests_fault_each_time(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "gather.onnx");
    int64_t good_ids[] = {2, 0}, bad_ids[] = {0, 7};
    const struct tensor good = TENSOR(INT64, good_ids, 2), bad = TENSOR(INT64, bad_ids, 2);
    for (int run = 0; run < 3; run++) { /* with and without kept outputs */
        struct tensor out;
        assert_int_equal(bench_run(&bench, &good, &out), ST_OK);
        assert_true(((const float *)out.data)[0] == 4);
        assert_int_equal(bench_run(&bench, &bad, &out), ST_INVALID);
    }
    print_message("          %s\n", bench.err.text);
    bench_close(&bench);
}

static void wrong_types_and_sizes_are_refused_before_the_run(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    int32_t ints[16] = {0};
    float floats[16] = {0};
    const struct tensor type = TENSOR(INT32, ints, 1, 16);
    struct tensor size = TENSOR(FP32, floats, 2, 16), negative = TENSOR(FP32, floats, -1, 16);
    assert_int_equal(backend_ort.start(bench.slot, &type, 1, &bench.err), ST_INVALID);
    assert_non_null(strstr(bench.err.text, "INPUT0: INT32"));
    assert_int_equal(backend_ort.start(bench.slot, &size, 1, &bench.err), ST_INVALID);
    assert_int_equal(backend_ort.start(bench.slot, &negative, 1, &bench.err), ST_INVALID);
    bench_close(&bench);
}

static void models_that_cannot_be_served_are_refused_by_name(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx"); /* skips without the library */
    bench_close(&bench);
    static const struct { const char *file; enum status status; const char *text; } CASES[] = {
        {"sequence.onnx", ST_UNSUPPORTED, "input: Q is a sequence"},
        {"rank9.onnx", ST_UNSUPPORTED, "input: X: 9 dimensions"},
        {"float8.onnx", ST_UNSUPPORTED, "input: X: element type 17"},
        {"make_models.py", ST_INVALID, "make_models.py"},
        {"absent.onnx", ST_NOT_FOUND, "absent.onnx: No such file"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct session *session = NULL;
        struct err err = {""};
        const enum status status = data_open(CASES[i].file, &session, &err);
        print_message("          %s\n", err.text);
        assert_int_equal(status, CASES[i].status);
        assert_non_null(strstr(err.text, CASES[i].text));
        assert_null(session);
    }
}

static void a_library_elsewhere_cannot_replace_the_one_loaded(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    struct session_config config = config_for(TEST_SOURCE_DIR "/test/data/add.onnx");
    config.onnxruntime_path = "/nonexistent/libonnxruntime.so";
    struct session *session = NULL;
    assert_int_equal(backend_ort.session_open(&config, &session, &bench.err), ST_INVALID);
    assert_non_null(strstr(bench.err.text, "can have only one"));
    bench_close(&bench);
}

struct caller {
    struct session *session;
    float first;
    int wrong;
};

static void *caller_run(void *argument) {
    struct caller *caller = argument;
    struct bench bench = {.session = caller->session};
    caller->wrong = backend_ort.slot_open(bench.session, &bench.slot, &bench.err) != ST_OK;
    for (int run = 0; run < 200 && !caller->wrong; run++) {
        float values[2 * 16] = {caller->first + (float)run};
        const int64_t rows = 1 + run % 2;
        const struct tensor input = {.dtype = DTYPE_FP32, .rank = 2, .shape = {rows, 16},
                                     .data = values, .size = (size_t)rows * 64};
        struct tensor out;
        caller->wrong = bench_run(&bench, &input, &out) != ST_OK || out.size != input.size ||
                        ((const float *)out.data)[0] != values[0] + 1;
    }
    backend_ort.slot_close(bench.slot);
    return NULL;
}

static void a_session_serves_several_slots_at_once(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "add.onnx");
    struct caller callers[2] = {{bench.session, 1, 0}, {bench.session, 10000, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, caller_run, &callers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    bench_close(&bench);
}

/* Eight texts of different length, padded to the longest, against each alone. */
static void a_padded_batch_of_the_sample_model_answers_as_each_text_alone(void **state) {
    (void)state;
    enum { ROWS = 8, LONGEST = 96 };
    static int64_t ids[ROWS * LONGEST], mask[ROWS * LONGEST], types[ROWS * LONGEST];
    const char *const MODEL = TEST_SOURCE_DIR "/examples/spam/spam_fp32.onnx";
    struct bench bench = {0};
    const struct session_config config = config_for(MODEL);
    if (backend_ort.session_open(&config, &bench.session, &bench.err) != ST_OK) {
        print_message("skipped: %s\n", bench.err.text);
        skip();
    }
    assert_int_equal(backend_ort.slot_open(bench.session, &bench.slot, &bench.err), ST_OK);
    const int64_t lengths[ROWS] = {96, 3, 17, 64, 31, 8, 80, 50};
    for (int64_t i = 0; i < ROWS * LONGEST; i++) {
        mask[i] = i % LONGEST < lengths[i / LONGEST];
        ids[i] = mask[i] ? 1000 + i * 7 % 3000 : 0;
    }
    struct tensor inputs[3] = {TENSOR(INT64, ids, ROWS, LONGEST),
                               TENSOR(INT64, mask, ROWS, LONGEST),
                               TENSOR(INT64, types, ROWS, LONGEST)};
    struct tensor out;
    if (bench_run(&bench, inputs, &out) != ST_OK) {
        fail_msg("%s", bench.err.text);
    }
    assert_int_equal(out.shape[0], ROWS);
    const size_t width = out.size / sizeof(float) / ROWS;
    float batch[ROWS * 8];
    assert_true(width <= 8);
    memcpy(batch, out.data, out.size);
    float worst = 0;
    for (int64_t row = 0; row < ROWS; row++) {
        for (uint32_t i = 0; i < 3; i++) {
            const int64_t *const all[] = {ids, mask, types};
            inputs[i] = (struct tensor){.dtype = DTYPE_INT64, .rank = 2, .shape = {1, lengths[row]},
                                        .data = all[i] + row * LONGEST,
                                        .size = (size_t)lengths[row] * sizeof(int64_t)};
        }
        assert_int_equal(bench_run(&bench, inputs, &out), ST_OK);
        for (size_t i = 0; i < width; i++) {
            const float alone = ((const float *)out.data)[i];
            worst = fmaxf(worst, fabsf(alone - batch[(size_t)row * width + i]));
        }
    }
    print_message("          largest difference %g\n", (double)worst);
    assert_true(worst <= 1e-5f);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_the_library_starts_no_thread),
        cmocka_unit_test(signature_has_names_types_shapes_and_symbolic_dimensions),
        cmocka_unit_test(rows_of_a_batch_come_back_in_order_whatever_the_batch_before_was),
        cmocka_unit_test(answers_stay_valid_while_the_next_batch_is_started),
        cmocka_unit_test(strings_go_in_and_out_with_zero_bytes_and_empty_ones),
        cmocka_unit_test(strings_that_end_too_early_are_refused),
        cmocka_unit_test(every_kind_of_element_passes_unchanged),
        cmocka_unit_test(scalars_and_conversions_work),
        cmocka_unit_test(output_shapes_known_only_after_the_run_are_reported),
        cmocka_unit_test(a_model_that_breaks_its_declared_shape_is_still_served),
        cmocka_unit_test(inputs_that_may_be_overridden_are_not_inputs),
        cmocka_unit_test(a_model_without_declared_ranks_takes_any_shape),
        cmocka_unit_test(a_shape_that_the_model_cannot_take_is_the_requests_fault),
        cmocka_unit_test(an_index_out_of_range_is_the_requests_fault_each_time),
        cmocka_unit_test(wrong_types_and_sizes_are_refused_before_the_run),
        cmocka_unit_test(models_that_cannot_be_served_are_refused_by_name),
        cmocka_unit_test(a_library_elsewhere_cannot_replace_the_one_loaded),
        cmocka_unit_test(a_session_serves_several_slots_at_once),
        cmocka_unit_test(a_padded_batch_of_the_sample_model_answers_as_each_text_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

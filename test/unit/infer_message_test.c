/* ONNX Runtime's error texts, shortened and classified; and how its absence is told. */
#include "infer/backend.h"
#include "infer/ort_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_failed_node_keeps_its_name_and_reason_and_loses_source_paths(void **state) {
    (void)state;
    char out[320];
    assert_string_equal(
        ort_message_shorten(
            "Non-zero status code returned while running Reshape node. Name:'/r/Fold' Status "
            "Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:45 "
            "onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, bool) "
            "input_shape_size == size was false. The input tensor cannot be reshaped to the "
            "requested shape. Input shape:{4}, requested shape:{-1,3}\n",
            out, sizeof out),
        "Reshape node '/r/Fold': The input tensor cannot be reshaped to the requested shape. "
        "Input shape:{4}, requested shape:{-1,3}");
}

static void a_source_path_alone_is_dropped(void **state) {
    (void)state;
    char out[320];
    assert_string_equal(
        ort_message_shorten("/src/core/framework/x.cc:376 void* onnxruntime::BFCArena::Allocate("
                            "size_t, bool) Failed to allocate memory for a buffer of size 9",
                            out, sizeof out),
        "Failed to allocate memory for a buffer of size 9");
}

static void texts_of_any_other_form_pass_and_are_only_clipped(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"", "plain", "/", "/a", "/a ", "Status Message: ", "\n\t",
                                        "while running ", "while running x Name:'",
                                        "Status Message: a while running b"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        char out[8] = "???????";
        ort_message_shorten(TEXTS[i], out, sizeof out);
        assert_true(strlen(out) < sizeof out);
    }
    char out[8];
    assert_string_equal(ort_message_shorten("a\nb\t c", out, sizeof out), "a b c");
    assert_string_equal(ort_message_shorten("0123456789", out, sizeof out), "0123456");
}

static void status_tells_the_requests_fault_from_the_servers(void **state) {
    (void)state;
    assert_int_equal(ort_message_status("anything", true), ST_INVALID);
    assert_int_equal(ort_message_status("anything", false), ST_INTERNAL);
    assert_int_equal(ort_message_status("Attempting to broadcast an axis", false), ST_INVALID);
    assert_int_equal(ort_message_status("Name:'shape_1' Status Message: disk on fire", false),
                     ST_INTERNAL);
    assert_int_equal(ort_message_status("Reshape: Failed to allocate memory, shape {9}", false),
                     ST_NO_MEMORY);
}

/* In a process of its own, since a library that is loaded stays. */
static void a_missing_library_is_told_in_one_line_with_the_remedy(void **state) {
    (void)state;
    struct session_config config = {.model_path = TEST_SOURCE_DIR "/test/data/add.onnx"};
    struct session *session = NULL;
    struct err err = {""};
    config.onnxruntime_path = TEST_SOURCE_DIR "/test/data/absent.so";
    assert_int_equal(backend_ort.session_open(&config, &session, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "--onnxruntime: cannot load ONNX Runtime: "));
    config.onnxruntime_path = TEST_SOURCE_DIR "/test/data";
    assert_int_equal(backend_ort.session_open(&config, &session, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no libonnxruntime.so.1 in "));
    config.onnxruntime_path = "libm.so.6";
    assert_int_equal(backend_ort.session_open(&config, &session, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "libm.so.6 is not ONNX Runtime"));
    config.onnxruntime_path = NULL;
    setenv("TELLTALE_ONNXRUNTIME", TEST_SOURCE_DIR "/test/data/make_models.py", 1);
    assert_int_equal(backend_ort.session_open(&config, &session, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "TELLTALE_ONNXRUNTIME: cannot load"));
    unsetenv("TELLTALE_ONNXRUNTIME");
    assert_null(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_node_keeps_its_name_and_reason_and_loses_source_paths),
        cmocka_unit_test(a_source_path_alone_is_dropped),
        cmocka_unit_test(texts_of_any_other_form_pass_and_are_only_clipped),
        cmocka_unit_test(status_tells_the_requests_fault_from_the_servers),
        cmocka_unit_test(a_missing_library_is_told_in_one_line_with_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* base/status.h: the table and the words of errors. */
#include "base/status.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void gives_each_status_its_row(void **state) {
    (void)state;
    assert_string_equal(status_name(ST_TOO_LARGE), "TOO_LARGE");
    assert_int_equal(status_http(ST_TOO_LARGE), 413);
    assert_int_equal(status_grpc(ST_TOO_LARGE), 8);
    assert_int_equal(status_http(ST_OK), 200);
    assert_string_equal(status_sentence(ST_CANCELLED), "the client went away");
    assert_true(status_is_retryable(ST_OVERLOADED));
    assert_false(status_is_retryable(ST_INVALID));
}

static void answers_internal_error_for_an_unknown_status(void **state) {
    (void)state;
    assert_int_equal(status_http(ST_COUNT), 500);
    assert_string_equal(status_name(ST_COUNT), "INTERNAL");
}

static void sets_text_and_returns_the_status(void **state) {
    (void)state;
    struct err err = {.text = ""};
    assert_int_equal(err_set(&err, ST_IO, "reading %s: %d bytes", "a.onnx", 7), ST_IO);
    assert_string_equal(err.text, "reading a.onnx: 7 bytes");
    assert_int_equal(err_set(NULL, ST_IO, "x"), ST_IO);
}

static void keeps_its_own_text_as_an_argument(void **state) {
    (void)state;
    struct err err = {.text = "inner"};
    assert_int_equal(err_set(&err, ST_IO, "outer (%s)", err.text), ST_IO);
    assert_string_equal(err.text, "outer (inner)");
}

static void prefixes_on_the_way_up(void **state) {
    (void)state;
    struct err err = {.text = "no such file"};
    err_prefix(&err, "model %s", "spam");
    assert_string_equal(err.text, "model spam: no such file");
    err_prefix(NULL, "x");
}

static void cuts_the_end_when_there_is_no_room(void **state) {
    (void)state;
    struct err err;
    char word[1000];
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_int_equal(err_set(&err, ST_IO, "%s", word), ST_IO);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "model");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "model: xxx", 10);
    err_prefix(&err, "%s", word);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_each_status_its_row),
        cmocka_unit_test(answers_internal_error_for_an_unknown_status),
        cmocka_unit_test(sets_text_and_returns_the_status),
        cmocka_unit_test(keeps_its_own_text_as_an_argument),
        cmocka_unit_test(prefixes_on_the_way_up),
        cmocka_unit_test(cuts_the_end_when_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

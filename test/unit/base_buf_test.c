/* base/buf.h: growth, numbers, JSON strings, and failure that is remembered. */
#include "base/buf.h"
#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The sanitizers would end the program where realloc gives NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static void check(struct buf *buf, const char *expected) {
    buf_char(buf, '\0');
    assert_false(buf->failed);
    assert_string_equal(buf->data, expected);
    assert_int_equal(buf->size, strlen(expected) + 1);
    buf_done(buf);
}

static void appends_and_grows(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf);
    for (int i = 0; i < 10000; i++) {
        buf_append(&buf, "0123456789", 10);
    }
    assert_int_equal(buf.size, 100000);
    for (size_t i = 0; i < buf.size; i++) {
        assert_int_equal(buf.data[i], '0' + (int)(i % 10));
    }
    buf_clear(&buf);
    assert_int_equal(buf.size, 0);
    buf_text(&buf, "again");
    check(&buf, "again");
}

static void prints_what_is_longer_than_its_space(void **state) {
    (void)state;
    struct buf buf;
    char expected[2100];
    buf_init(&buf);
    buf_printf(&buf, "%s-%01000d-%01000d", "a", 5, 6);
    snprintf(expected, sizeof(expected), "%s-%01000d-%01000d", "a", 5, 6);
    check(&buf, expected);
}

static void writes_integers_to_their_limits(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_u64(&buf, 0);
    buf_char(&buf, ' ');
    buf_u64(&buf, UINT64_MAX);
    buf_char(&buf, ' ');
    buf_i64(&buf, INT64_MIN);
    buf_char(&buf, ' ');
    buf_i64(&buf, -7);
    buf_char(&buf, ' ');
    buf_i64(&buf, INT64_MAX);
    check(&buf, "0 18446744073709551615 -9223372036854775808 -7 9223372036854775807");
}

static void writes_milliseconds_rounded_to_microseconds(void **state) {
    (void)state;
    struct buf buf;
    const uint64_t values[] = {1234567, 1234499, 0, 499, 500, 999999, 12000000000u, UINT64_MAX};
    buf_init(&buf);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        buf_ms(&buf, values[i]);
        buf_char(&buf, ' ');
    }
    check(&buf, "1.235 1.234 0.000 0.000 0.001 1.000 12000.000 18446744073709.552 ");
}

static void escapes_json_strings(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_json_string(&buf, (struct view){.data = "a\"b\\c\n\r\t\b\f\x01\0\x7F/", .size = 14});
    check(&buf, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u0000\\u007f/\"");
}

static void keeps_good_utf8_and_replaces_bad(void **state) {
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } CASES[] = {
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"", "\"\""},
        {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
        {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                 /* overlong */
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* surrogate */
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xE2\x82x", "\"\xEF\xBF\xBDx\""}, /* one for the maximal subpart */
        {"\xF0\x9F\x98", "\"\xEF\xBF\xBD\""},
        {"\x80", "\"\xEF\xBF\xBD\""},
        {"\xF4\x8F\xBF\xBF\xED\x9F\xBF", "\"\xF4\x8F\xBF\xBF\xED\x9F\xBF\""},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct buf buf;
        buf_init(&buf);
        buf_json_string(&buf, view_of(CASES[i].in));
        check(&buf, CASES[i].out);
    }
}

static void remembers_a_failed_append_and_keeps_its_bytes(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_text(&buf, "kept");
    buf_reserve(&buf, SIZE_MAX / 4);
    assert_true(buf.failed);
    buf_text(&buf, "ignored");
    buf_printf(&buf, "%d", 7);
    buf_json_string(&buf, view_of("x"));
    assert_true(view_is(buf_view(&buf), "kept"));
    buf_clear(&buf);
    assert_false(buf.failed);
    buf_reserve(&buf, SIZE_MAX);
    assert_true(buf.failed);
    buf_done(&buf);
    buf_done(&buf);
}

static void views_an_empty_buffer_as_text(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf);
    assert_non_null(buf_view(&buf).data);
    assert_int_equal(buf_view(&buf).size, 0);
    buf_append(&buf, NULL, 0);
    assert_false(buf.failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_grows),
        cmocka_unit_test(prints_what_is_longer_than_its_space),
        cmocka_unit_test(writes_integers_to_their_limits),
        cmocka_unit_test(writes_milliseconds_rounded_to_microseconds),
        cmocka_unit_test(escapes_json_strings),
        cmocka_unit_test(keeps_good_utf8_and_replaces_bad),
        cmocka_unit_test(remembers_a_failed_append_and_keeps_its_bytes),
        cmocka_unit_test(views_an_empty_buffer_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

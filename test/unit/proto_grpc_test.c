/* gRPC's framing and headers. */
#include "proto/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_message_is_put_together_from_any_pieces(void **state) {
    (void)state;
    static const char BYTES[] = "\0\0\0\0\5hello\1\0\0\0\0\0\0\0\0\2ab";
    for (size_t step = 1; step < sizeof BYTES; step++) {
        struct grpc_quota quota = {.limit_bytes = 100};
        struct grpc_reader reader;
        struct err err;
        enum status status = ST_OK;
        struct buf seen;
        buf_init(&seen);
        grpc_reader_init(&reader, 10, &quota);
        size_t at = 0;
        while (at < sizeof BYTES - 1) {
            const size_t left = sizeof BYTES - 1 - at;
            size_t used = 0;
            const enum grpc_read read = grpc_reader_feed(
                &reader, BYTES + at, left < step ? left : step, &used, &status, &err);
            assert_int_not_equal(read, GRPC_FAILED);
            at += used;
            if (read != GRPC_MESSAGE)
                continue;
            struct grpc_message message = grpc_reader_take(&reader);
            buf_char(&seen, message.is_compressed ? 'z' : '-');
            buf_append(&seen, message.bytes, message.size);
            grpc_message_free(&message, &quota);
        }
        assert_true(grpc_reader_is_idle(&reader));
        assert_true(view_is(buf_view(&seen), "-helloz-ab"));
        assert_int_equal(quota.used_bytes, 0);
        buf_done(&seen);
        grpc_reader_done(&reader);
    }
}

static enum status feed_prefix(struct grpc_reader *reader, const char *prefix, struct err *err) {
    size_t used = 0;
    enum status status = ST_OK;
    (void)grpc_reader_feed(reader, prefix, GRPC_PREFIX_BYTES, &used, &status, err);
    return status;
}

static void a_message_over_the_limit_is_refused_by_its_prefix(void **state) {
    (void)state;
    struct grpc_quota quota = {.limit_bytes = 1000};
    struct grpc_reader reader;
    struct err err;
    grpc_reader_init(&reader, 100, &quota);
    assert_int_equal(feed_prefix(&reader, "\0\0\0\0\x65", &err), ST_TOO_LARGE);
    assert_non_null(strstr(err.text, "--grpc-max-message"));
    grpc_reader_done(&reader);
    grpc_reader_init(&reader, 100, &quota);
    assert_int_equal(feed_prefix(&reader, "\2\0\0\0\1", &err), ST_INVALID);
    grpc_reader_done(&reader);
}

static void a_promise_of_bytes_takes_no_memory(void **state) {
    (void)state;
    struct grpc_quota quota = {.limit_bytes = 1 << 20};
    struct grpc_reader reader;
    struct err err;
    grpc_reader_init(&reader, 1u << 31, &quota);
    assert_int_equal(feed_prefix(&reader, "\0\x40\0\0\0", &err), ST_OK);
    assert_int_equal(quota.used_bytes, 0);
    size_t used = 0;
    enum status status = ST_OK;
    char bytes[1000] = {0};
    assert_int_equal(grpc_reader_feed(&reader, bytes, sizeof bytes, &used, &status, &err),
                     GRPC_NEED_MORE);
    assert_true(quota.used_bytes <= 4096);
    grpc_reader_done(&reader);
    assert_int_equal(quota.used_bytes, 0);
}

static void messages_beyond_the_quota_are_refused_when_their_bytes_come(void **state) {
    (void)state;
    struct grpc_quota quota = {.limit_bytes = 8192};
    struct grpc_reader first, second;
    struct err err;
    enum status status = ST_OK;
    size_t used = 0;
    char bytes[5005] = "\0\0\0\x13\x88";
    grpc_reader_init(&first, 10000, &quota);
    grpc_reader_init(&second, 10000, &quota);
    assert_int_equal(grpc_reader_feed(&first, bytes, sizeof bytes, &used, &status, &err),
                     GRPC_MESSAGE);
    assert_int_equal(grpc_reader_feed(&second, bytes, sizeof bytes, &used, &status, &err),
                     GRPC_FAILED);
    assert_int_equal(status, ST_OVERLOADED);
    grpc_reader_done(&first);
    grpc_reader_done(&second);
    assert_int_equal(quota.used_bytes, 0);
}

static void timeouts_are_read_strictly(void **state) {
    (void)state;
    static const struct { const char *text; bool is_good; uint64_t ns; } CASES[] = {
        {"1n", true, 1},           {"20u", true, 20000},
        {"3m", true, 3000000},     {"4S", true, 4000000000},
        {"5M", true, 300000000000}, {"6H", true, 21600000000000},
        {"99999999H", true, UINT64_MAX / 2},
        {"0m", true, 0},           {"", false, 0},
        {"m", false, 0},           {"1", false, 0},
        {"123456789m", false, 0},  {"-1m", false, 0},
        {"1.5S", false, 0},        {"1s", false, 0},
        {" 1S", false, 0},         {"1 S", false, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        uint64_t ns = 7;
        assert_int_equal(grpc_timeout_parse(view_of(CASES[i].text), &ns), CASES[i].is_good);
        assert_int_equal(ns, CASES[i].is_good ? CASES[i].ns : 7);
    }
}

static void content_types_of_grpc_are_known(void **state) {
    (void)state;
    static const char *const GOOD[] = {"application/grpc", "application/grpc+proto",
                                       "Application/GRPC", "application/grpc;charset=x",
                                       "application/grpc+proto;a=b"};
    static const char *const BAD[] = {"application/json", "application/grpc-web",
                                      "application/grpc+json", "application/grp",
                                      "application/grpc+protocol", ""};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++)
        assert_true(grpc_is_content_type(view_of(GOOD[i])));
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(grpc_is_content_type(view_of(BAD[i])));
}

static void an_encoding_is_found_in_a_list(void **state) {
    (void)state;
    assert_true(grpc_accepts(view_of("identity, deflate, gzip"), "gzip"));
    assert_true(grpc_accepts(view_of("gzip"), "gzip"));
    assert_true(grpc_accepts(view_of("identity,GZIP"), "gzip"));
    assert_false(grpc_accepts(view_of("identity, xgzip, gzipx"), "gzip"));
    assert_false(grpc_accepts(view_of(""), "gzip"));
}

static void texts_are_escaped_and_back(void **state) {
    (void)state;
    static const char TEXT[] = "100 % of \xc3\xa9t\xc3\xa9\n\x7f~";
    struct buf out;
    buf_init(&out);
    grpc_encode_message(&out, TEXT);
    assert_true(view_is(buf_view(&out), "100 %25 of %C3%A9t%C3%A9%0A%7F~"));
    out.size = grpc_decode_message(out.data, out.size);
    assert_true(view_is(buf_view(&out), TEXT));
    buf_clear(&out);
    buf_text(&out, "a%4%zz%41%");
    out.size = grpc_decode_message(out.data, out.size);
    assert_true(view_is(buf_view(&out), "a%4%zzA%"));
    buf_done(&out);
}

static void every_status_has_a_code_with_a_name(void **state) {
    (void)state;
    for (int status = 0; status < ST_COUNT; status++) {
        const int code = status_grpc((enum status)status);
        assert_in_range(code, 0, GRPC_CODE_COUNT - 1);
        assert_true((code == 0) == (status == ST_OK));
    }
    assert_string_equal(grpc_code_name(4), "DEADLINE_EXCEEDED");
    assert_string_equal(grpc_code_name(99), "UNKNOWN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_put_together_from_any_pieces),
        cmocka_unit_test(a_message_over_the_limit_is_refused_by_its_prefix),
        cmocka_unit_test(a_promise_of_bytes_takes_no_memory),
        cmocka_unit_test(messages_beyond_the_quota_are_refused_when_their_bytes_come),
        cmocka_unit_test(timeouts_are_read_strictly),
        cmocka_unit_test(content_types_of_grpc_are_known),
        cmocka_unit_test(an_encoding_is_found_in_a_list),
        cmocka_unit_test(texts_are_escaped_and_back),
        cmocka_unit_test(every_status_has_a_code_with_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* base/log.h: the form of a line, levels, and the limit of lines a second. */
#include "base/log.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Standard error goes to a file meanwhile. */
struct capture {
    FILE *file;
    int saved;
};

static struct capture capture_begin(void) {
    struct capture capture = {.file = tmpfile(), .saved = dup(STDERR_FILENO)};
    dup2(fileno(capture.file), STDERR_FILENO);
    return capture;
}

static void capture_end(struct capture *capture, char *out, size_t size) {
    dup2(capture->saved, STDERR_FILENO);
    close(capture->saved);
    rewind(capture->file);
    out[fread(out, 1, size - 1, capture->file)] = '\0';
    fclose(capture->file);
}

static void writes_time_level_and_text(void **state) {
    (void)state;
    char out[200];
    int year, month, day, hour, minute, second, ms;
    struct capture capture = capture_begin();
    log_line(LOG_WARN, "batch of %d", 32);
    capture_end(&capture, out, sizeof(out));
    assert_int_equal(sscanf(out, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &year, &month, &day, &hour,
                            &minute, &second, &ms), 7);
    assert_string_equal(out + 24, " warn batch of 32\n");
}

static void writes_one_line_whatever_the_text(void **state) {
    (void)state;
    char out[4000];
    char text[3000];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct capture capture = capture_begin();
    log_line(LOG_ERROR, "a\nb\r\x1b[31m");
    log_line(LOG_ERROR, "%s", text);
    capture_end(&capture, out, sizeof(out));
    assert_memory_equal(out + 24, " error a b  [31", 15);
    char *newline = strchr(out, '\n');
    assert_ptr_equal(strchr(newline + 1, '\n'), out + strlen(out) - 1);
}

static void leaves_out_what_is_above_the_level(void **state) {
    (void)state;
    char out[200];
    struct capture capture = capture_begin();
    log_line(LOG_DEBUG, "not yet");
    log_set_level(LOG_DEBUG);
    log_line(LOG_DEBUG, "now");
    log_set_level(LOG_ERROR);
    log_line(LOG_WARN, "no longer");
    log_set_level(LOG_INFO);
    capture_end(&capture, out, sizeof(out));
    assert_string_equal(out + 24, " debug now\n");
}

static void holds_back_what_exceeds_the_limit_and_counts_it(void **state) {
    (void)state;
    struct log_limit limit = {.per_second = 2.0};
    uint64_t held_back = 99;
    assert_true(log_limit_pass(&limit, 1000000000u, &held_back));
    assert_int_equal(held_back, 0);
    assert_true(log_limit_pass(&limit, 1000000001u, &held_back));
    assert_false(log_limit_pass(&limit, 1000000002u, &held_back));
    assert_false(log_limit_pass(&limit, 1400000000u, &held_back));
    assert_true(log_limit_pass(&limit, 1600000000u, &held_back));
    assert_int_equal(held_back, 2);
}

static void allows_one_line_where_the_limit_is_below_one_a_second(void **state) {
    (void)state;
    struct log_limit limit = {.per_second = 0.1};
    uint64_t held_back = 0;
    assert_true(log_limit_pass(&limit, 5, &held_back));
    assert_false(log_limit_pass(&limit, 9000000000u, &held_back));
    assert_true(log_limit_pass(&limit, 10000000006u, &held_back));
    assert_int_equal(held_back, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_time_level_and_text),
        cmocka_unit_test(writes_one_line_whatever_the_text),
        cmocka_unit_test(leaves_out_what_is_above_the_level),
        cmocka_unit_test(holds_back_what_exceeds_the_limit_and_counts_it),
        cmocka_unit_test(allows_one_line_where_the_limit_is_below_one_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Server-Timing, bytes to durations. */
#include "load/timing_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* Parses from memory that ends right after the text, so that a read past it is found. */
static bool parse(const char *text, struct timing_header *out) {
    size_t size = strlen(text);
    char *copy = malloc(size + (size == 0));
    assert_non_null(copy);
    memcpy(copy, text, size);
    bool is_ok = timing_header_parse((struct view){copy, size}, out);
    free(copy);
    return is_ok;
}

static void reads_total_and_stages_in_ns(void **state) {
    (void)state;
    struct timing_header out;
    assert_true(parse("total;dur=1.234, decode;dur=0.02, execute;dur=1, send;dur=.0005", &out));
    assert_true(out.has_total);
    assert_int_equal(out.total_ns, 1234000);
    assert_int_equal(out.stage_ns[STAGE_DECODE], 20000);
    assert_int_equal(out.stage_ns[STAGE_EXECUTE], 1000000);
    assert_int_equal(out.stage_ns[STAGE_SEND], 500);
    assert_int_equal(out.seen, 1u << STAGE_DECODE | 1u << STAGE_EXECUTE | 1u << STAGE_SEND);
}

static void passes_over_foreign_names_and_other_parameters(void **state) {
    (void)state;
    struct timing_header out;
    assert_true(parse("db;dur=5 , cache;desc=\"a, \\\"b\\\"; c\" ,miss,execute ; x=1 ; DUR=\"2.5\"",
                      &out));
    assert_false(out.has_total);
    assert_int_equal(out.seen, 1u << STAGE_EXECUTE);
    assert_int_equal(out.stage_ns[STAGE_EXECUTE], 2500000);
    assert_true(parse("", &out));
    assert_int_equal(out.seen, 0);
}

static void refuses_what_is_not_a_duration_or_breaks_the_grammar(void **state) {
    (void)state;
    struct timing_header out;
    const char *const bad[] = {"total;dur=", "total;dur=1.2.3", "total;dur=-1", "total;dur=1e3",
                               "total;dur=x", "total;dur=9999999999999", ";dur=1", "total;dur=\"1",
                               "total;dur=1,", "total dur=1", "total;;dur=1", "total;dur=."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(parse(bad[i], &out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_total_and_stages_in_ns),
        cmocka_unit_test(passes_over_foreign_names_and_other_parameters),
        cmocka_unit_test(refuses_what_is_not_a_duration_or_breaks_the_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

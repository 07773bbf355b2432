/* base/number.h: what is a number and, more of it, what is not. */
#include "base/number.h"
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void reads_whole_numbers_with_suffixes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } CASES[] = {
        {"0", 0},          {"007", 7},           {"1_000", 1000},          {"10k", 10000},
        {"2M", 2000000},   {"3G", 3000000000u},  {"64KiB", 65536},         {"64MiB", 67108864},
        {"1GiB", 1u << 30}, {"1_0_0k", 100000},  {"18446744073709551615", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        uint64_t value = 1;
        struct err err = {.text = ""};
        assert_int_equal(number_uint(view_of(CASES[i].text), &value, &err), ST_OK);
        assert_true(value == CASES[i].value);
    }
}

static void refuses_what_is_not_a_whole_number(void **state) {
    (void)state;
    static const char *const CASES[] = {
        "",    " 1",  "1 ",  "+1",   "-1",    "1.5",  "0x10", "1e3",  "k",     "10K",  "10kb",
        "_1",  "1_",  "1__0", "1_k", "18446744073709551616",
        "99999999999999999999G", "20000000000G",
        "ten", "1,0",
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        uint64_t value = 77;
        struct err err = {.text = ""};
        assert_int_equal(number_uint(view_of(CASES[i]), &value, &err), ST_INVALID);
        assert_true(value == 77);
        assert_non_null(strstr(err.text, CASES[i]));
    }
}

static void reads_durations_with_their_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } CASES[] = {
        {"10s", 10000000000u},  {"500ms", 500000000}, {"20us", 20000},      {"2m", 120000000000u},
        {"1h", 3600000000000u}, {"7ns", 7},           {"0", 0},             {"0s", 0},
        {"1.5ms", 1500000},     {"0.5s", 500000000},  {"1.000000001s", 1000000001},
        {"1.50us", 1500},       {"2.5m", 150000000000u}, {"1.0ns", 1},
        {"600000h", 2160000000000000000u},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        uint64_t ns = 1;
        struct err err = {.text = ""};
        assert_int_equal(number_duration(view_of(CASES[i].text), &ns, &err), ST_OK);
        assert_true(ns == CASES[i].ns);
    }
}

static void says_that_a_duration_lacks_its_unit(void **state) {
    (void)state;
    uint64_t ns = 77;
    struct err err = {.text = ""};
    assert_int_equal(number_duration(view_of("10"), &ns, &err), ST_INVALID);
    assert_string_equal(err.text,
                        "'10' has no unit: write 10s or 10ms (ns, us, ms, s, m, h)");
    assert_true(ns == 77);
}

static void refuses_what_is_not_a_duration(void **state) {
    (void)state;
    static const char *const CASES[] = {
        "",      "s",     "10 s",  " 10s",  "10sec", "-1s", "1.s", ".5s", "1.5.5s", "1m30s",
        "1e3ms", "1.5ns", "0.0001us", "18446744073709551616ns", "10S", "1.", "0.",
        "18446744073709551615s",
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        uint64_t ns = 77;
        struct err err = {.text = ""};
        assert_int_equal(number_duration(view_of(CASES[i]), &ns, &err), ST_INVALID);
        assert_true(ns == 77);
        assert_non_null(strstr(err.text, CASES[i]));
    }
}

static void reads_doubles(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } CASES[] = {{"0.5", 0.5}, {"-3", -3.0}, {"1e6", 1e6}, {"+2.5E-1", 0.25}, {".5", 0.5},
                 {"5.", 5.0}};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        double value = 1.0;
        struct err err = {.text = ""};
        assert_int_equal(number_double(view_of(CASES[i].text), &value, &err), ST_OK);
        assert_true(value == CASES[i].value);
    }
}

static void refuses_what_is_not_a_plain_double(void **state) {
    (void)state;
    static const char *const CASES[] = {"",   " 1",  "1 ", "0x1p3", "inf", "nan", "1e",
                                        "1e999", ".", "-",  "1.2.3", "1,5", "--1", "1e+"};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        double value = 7.0;
        struct err err = {.text = ""};
        assert_int_equal(number_double(view_of(CASES[i]), &value, &err), ST_INVALID);
        assert_true(value == 7.0);
    }
}

static void reads_nothing_past_the_view(void **state) {
    (void)state;
    char *text = malloc(2); /* the sanitizer watches the byte behind */
    uint64_t value = 0;
    double number = 0.0;
    struct err err;
    memcpy(text, "1_", 2);
    assert_int_equal(number_uint((struct view){text, 2}, &value, &err), ST_INVALID);
    memcpy(text, "12", 2);
    assert_int_equal(number_uint((struct view){text, 2}, &value, &err), ST_OK);
    assert_int_equal(number_double((struct view){text, 2}, &number, &err), ST_OK);
    memcpy(text, "1.", 2);
    assert_int_equal(number_duration((struct view){text, 2}, &value, &err), ST_INVALID);
    memcpy(text, "1s", 2);
    assert_int_equal(number_duration((struct view){text, 2}, &value, &err), ST_OK);
    free(text);
}

static void writes_durations_in_the_largest_whole_unit(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(number_duration_text(1500000, text, sizeof(text)), "1500us");
    assert_string_equal(number_duration_text(0, text, sizeof(text)), "0");
    assert_string_equal(number_duration_text(7200000000000u, text, sizeof(text)), "2h");
    assert_string_equal(number_duration_text(7, text, sizeof(text)), "7ns");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_whole_numbers_with_suffixes),
        cmocka_unit_test(refuses_what_is_not_a_whole_number),
        cmocka_unit_test(reads_durations_with_their_units),
        cmocka_unit_test(says_that_a_duration_lacks_its_unit),
        cmocka_unit_test(refuses_what_is_not_a_duration),
        cmocka_unit_test(reads_doubles),
        cmocka_unit_test(refuses_what_is_not_a_plain_double),
        cmocka_unit_test(reads_nothing_past_the_view),
        cmocka_unit_test(writes_durations_in_the_largest_whole_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The simulated accelerator's parameters, as a person types them. */
#include "infer/sim_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void a_full_spec_gives_every_field(void **state) {
    (void)state;
    struct sim_spec spec;
    struct err err = {""};
    assert_int_equal(
        sim_spec_parse("a=4ms,b=0.05ms,in=100us,out=0.2ms,fail=id:103", &spec, &err), ST_OK);
    assert_int_equal(sim_spec_batch_ns(&spec, 0), 4300000);
    assert_int_equal(sim_spec_batch_ns(&spec, 32), 5900000);
    assert_true(spec.fails_on_id);
    assert_false(spec.fails_on_nan);
    assert_int_equal(spec.fail_id, 103);
    char text[120];
    assert_string_equal(sim_spec_text(&spec, text, sizeof text),
                        "a=4ms b=50us in=100us out=200us fail=id:103");
}

static void order_does_not_matter_and_zero_is_a_time(void **state) {
    (void)state;
    struct sim_spec spec;
    assert_int_equal(sim_spec_parse("fail=nan,b=0us,a=1.5s", &spec, NULL), ST_OK);
    assert_int_equal(sim_spec_batch_ns(&spec, 7), 1500000000);
    assert_true(spec.fails_on_nan);
    char text[120];
    assert_string_equal(sim_spec_text(&spec, text, sizeof text), "a=1.5s b=0us fail=nan");
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const struct { const char *text, *says; } CASES[] = {
        {"", "want a=4ms,b=0.05ms"},
        {"a=4ms", "b is missing"},
        {"b=1ms", "a is missing"},
        {"a=4,b=1ms", "a=4 is not a time"},
        {"a=4ms,b=1m", "b=1m is not a time"},
        {"a=4ms,b=ms", "b=ms is not a time"},
        {"a=4ms,b=.ms", "b=.ms is not a time"},
        {"a=-4ms,b=1ms", "a=-4ms is not a time"},
        {"a=4ms,b=nan", "b=nan is not a time"},
        {"a=4 ms,b=1ms", "a=4 ms is not a time"},
        {"a=0x4ms,b=1ms", "a=0x4ms is not a time"},
        {"a=61s,b=1ms", "a=61s is more than 60s"},
        {"a=9999999999999999ms,b=1ms", "a=9999999999999999ms is not a time"},
        {"a=4ms,b=1ms,a=4ms", "a is given twice"},
        {"a=4ms,b=1ms,c=4ms", "no field \"c\""},
        {"a=4ms,b=1ms,", "\"\" is not NAME=VALUE"},
        {"a=4ms,b", "\"b\" is not NAME=VALUE"},
        {"a=4ms,b=1ms,fail=inf", "fail=inf"},
        {"a=4ms,b=1ms,fail=id:", "fail=id:"},
        {"a=4ms,b=1ms,fail=id:1x", "fail=id:1x"},
        {"a=4ms,b=1ms,fail=id:9999999999999999999", "want fail=nan or fail=id:N"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct sim_spec spec = {.batch_ns = 17};
        struct err err = {""};
        assert_int_equal(sim_spec_parse(CASES[i].text, &spec, &err), ST_INVALID);
        if (!strstr(err.text, CASES[i].says)) {
            fail_msg("\"%s\": %s", CASES[i].text, err.text);
        }
        assert_true(spec.batch_ns == 17); /* untouched */
    }
}

static void the_longest_batch_is_a_day(void **state) {
    (void)state;
    struct sim_spec spec;
    assert_int_equal(sim_spec_parse("a=60s,b=60s", &spec, NULL), ST_OK);
    assert_int_equal(sim_spec_batch_ns(&spec, UINT32_MAX), UINT64_C(86400000000000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_spec_gives_every_field),
        cmocka_unit_test(order_does_not_matter_and_zero_is_a_time),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_longest_batch_is_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

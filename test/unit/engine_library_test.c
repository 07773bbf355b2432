/* include/telltale.h as a C program uses it. */
#include "../../include/telltale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static struct telltale *open_simulated(void) {
    const char *options[] = {"simulate=a=1ms,b=0.01ms,fail=nan", "max-batch=8", NULL};
    struct telltale *engine = NULL;
    char error[512] = "";
    assert_int_equal(telltale_open(options, &engine, error, sizeof error), 0);
    return engine;
}

static struct telltale_tensor input_of(const float *values) {
    return (struct telltale_tensor){.name = "INPUT0", .datatype = "FP32", .rank = 2,
                                    .shape = {1, 16}, .data = values, .size = 64};
}

static void answers_a_request_with_its_stages(void **state) {
    (void)state;
    struct telltale *engine = open_simulated();
    float values[16] = {1, 2, 3};
    const struct telltale_tensor input = input_of(values);
    struct telltale_answer *answer;
    assert_int_equal(telltale_infer(engine, NULL, &input, 1, &answer), 0);
    assert_int_equal(telltale_answer_output_count(answer), 1);
    const struct telltale_tensor *output = telltale_answer_output(answer, 0);
    assert_string_equal(output->name, "OUTPUT0");
    assert_string_equal(output->datatype, "FP32");
    for (int i = 0; i < 16; i++) assert_true(((const float *)output->data)[i] == values[i] + 1);
    assert_true(telltale_answer_stage_ns(answer, "execute") >= 1000000);
    assert_true(telltale_answer_stage_ns(answer, "total") >= telltale_answer_stage_ns(answer, "execute"));
    assert_int_equal(telltale_answer_stage_ns(answer, "no such stage"), 0);
    telltale_answer_free(answer);
    telltale_close(engine);
}

static void failures_have_a_code_and_a_sentence(void **state) {
    (void)state;
    struct telltale *engine = open_simulated();
    float values[16] = {NAN};
    struct telltale_tensor input = input_of(values);
    struct telltale_answer *answer;
    assert_int_equal(telltale_infer(engine, NULL, &input, 1, &answer), 500);
    telltale_answer_free(answer);
    assert_int_equal(telltale_infer(engine, "nobody", &input, 1, &answer), 404);
    assert_string_equal(telltale_answer_error(answer), "there is no model nobody");
    telltale_answer_free(answer);
    input.datatype = "FLOAT";
    assert_int_equal(telltale_infer(engine, NULL, &input, 1, &answer), 400);
    assert_string_equal(telltale_answer_error(answer), "input INPUT0: no datatype FLOAT");
    telltale_answer_free(answer);
    telltale_close(engine);
}

static void a_wrong_option_is_named(void **state) {
    (void)state;
    const char *options[] = {"simulate=a=1ms", "max-bitch=8", NULL};
    struct telltale *engine = NULL;
    char error[512] = "";
    assert_int_equal(telltale_open(options, &engine, error, sizeof error), 400);
    assert_null(engine);
    assert_non_null(strstr(error, "max-bitch"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_a_request_with_its_stages),
        cmocka_unit_test(failures_have_a_code_and_a_sentence),
        cmocka_unit_test(a_wrong_option_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

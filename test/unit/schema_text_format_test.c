/* Protobuf's text format: the whole syntax, and faults that say where and what. */
#include "schema/message.h"
#include "schema/model_config.pb-c.h"
#include "schema/text_format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
/* after the above */
#include <cmocka.h>

static struct arena memory;

static int begin(void **state) {
    (void)state;
    arena_init(&memory);
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_done(&memory);
    return 0;
}

static Inference__ModelConfig *read_text(const char *text) {
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    const enum status status = text_format_parse(view_of(text), &inference__model_config__descriptor,
                                                 NULL, NULL, &memory, &message, &err);
    if (status != ST_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return (Inference__ModelConfig *)message;
}

/* text is refused and the sentence has both parts. */
static void refuse(const char *text, const char *where, const char *what) {
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    const enum status status = text_format_parse(view_of(text), &inference__model_config__descriptor,
                                                 NULL, NULL, &memory, &message, &err);
    if (status != ST_INVALID || strncmp(err.text, where, strlen(where)) != 0 ||
        strstr(err.text, what) == NULL) {
        fail_msg("%s: %s: \"%s\" has not \"%s\" and \"%s\"", text, status_name(status), err.text,
                 where, what);
    }
    assert_null(message);
}

static void fields_are_read_in_every_form(void **state) {
    (void)state;
    const Inference__ModelConfig *config = read_text(
        "# the usual ones\n"
        "name: \"a\" # behind a field\n"
        "max_batch_size: 8;\n"
        "platform: 'onnx' \"runtime\" '_onnx',\n"
        "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 3, -1 ] },\n"
        "        < name: 'y' data_type: 13 dims: 1 dims: 0x10 dims: 010 > ]\n"
        "output { name: \"z\" reshape: { } }\n"
        "output: { }\n"
        "instance_group: []\n");
    assert_string_equal(config->name, "a");
    assert_int_equal(config->max_batch_size, 8);
    assert_string_equal(config->platform, "onnxruntime_onnx");
    assert_int_equal(config->n_input, 2);
    assert_int_equal(config->input[0]->data_type, INFERENCE__DATA_TYPE__TYPE_FP32);
    assert_int_equal(config->input[0]->n_dims, 2);
    assert_int_equal(config->input[0]->dims[1], -1);
    assert_int_equal(config->input[1]->data_type, INFERENCE__DATA_TYPE__TYPE_STRING);
    assert_int_equal(config->input[1]->n_dims, 3);
    assert_int_equal(config->input[1]->dims[1], 16);
    assert_int_equal(config->input[1]->dims[2], 8);
    assert_int_equal(config->n_output, 2);
    assert_non_null(config->output[0]->reshape);
    assert_null(config->output[1]->reshape);
    assert_int_equal(config->n_instance_group, 0);
}

static void an_empty_text_is_an_empty_message(void **state) {
    (void)state;
    assert_string_equal(read_text("")->name, "");
    assert_string_equal(read_text(" \t\r\n# nothing")->name, "");
    assert_string_equal(read_text("\xef\xbb\xbfname: 'marked'")->name, "marked");
}

static void strings_have_escapes(void **state) {
    (void)state;
    assert_string_equal(read_text("name: \"\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"\"")->name,
                        "\a\b\f\n\r\t\v\\?'\"");
    assert_string_equal(read_text("name: \"\\101\\x42\\1039\"")->name, "ABC9");
    assert_string_equal(read_text("name: '\\u00e9\\U0001F600\\ud83d\\ude00'")->name,
                        "\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
    /* A character in two literals is whole once they are joined. */
    assert_string_equal(read_text("name: '\\303' '\\251'")->name, "\xc3\xa9");
}

static void numbers_have_their_ranges(void **state) {
    (void)state;
    assert_int_equal(read_text("max_batch_size: - 2147483648")->max_batch_size, INT32_MIN);
    assert_int_equal(read_text("max_batch_size: 2147483647")->max_batch_size, INT32_MAX);
    refuse("max_batch_size: 2147483648", "line 1, column 17: ", "from -2147483648 to 2147483647");
    refuse("max_batch_size: -2147483649", "line 1, column 18: ", "from -2147483648");
    const Inference__ModelConfig *config =
        read_text("dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }");
    assert_true(config->dynamic_batching->max_queue_delay_microseconds == UINT64_MAX);
    refuse("dynamic_batching { max_queue_delay_microseconds: 18446744073709551616 }", "line 1",
           "to 18446744073709551615");
    refuse("dynamic_batching { max_queue_delay_microseconds: -1 }", "line 1", "not negative");
    refuse("max_batch_size: 1.0", "line 1, column 17: ", "a whole number was expected, not 1.0");
    refuse("max_batch_size: 08", "line 1, column 17: ", "octal");
    refuse("max_batch_size: 0xg", "line 1", "no hexadecimal digit");
    refuse("max_batch_size: 8x", "line 1", "letter");
}

static float slot_utilization(const char *number) {
    char text[128];
    snprintf(text, sizeof text, "sequence_batching{direct{minimum_slot_utilization:%s}}", number);
    return read_text(text)->sequence_batching->direct->minimum_slot_utilization;
}

static void floats_have_every_form(void **state) {
    (void)state;
    assert_true(slot_utilization("0.5") == 0.5f);
    assert_true(slot_utilization(".5") == 0.5f);
    assert_true(slot_utilization("-1.") == -1.0f);
    assert_true(slot_utilization("5e-1f") == 0.5f);
    assert_true(slot_utilization("3F") == 3.0f);
    assert_true(slot_utilization("7") == 7.0f);
    assert_true(isinf(slot_utilization("-Infinity")));
    assert_true(isinf(slot_utilization("1e39")));
    assert_true(isnan(slot_utilization("NaN")));
}

static void truth_has_every_form(void **state) {
    (void)state;
    static const char *const yes[] = {"true", "True", "t", "1", "0x1"};
    static const char *const no[] = {"false", "False", "f", "0"};
    char text[64];
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        snprintf(text, sizeof text, "response_cache { enable: %s }", yes[i]);
        assert_true(read_text(text)->response_cache->enable);
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        snprintf(text, sizeof text, "response_cache { enable: %s }", no[i]);
        assert_false(read_text(text)->response_cache->enable);
    }
    refuse("response_cache { enable: yes }", "line 1, column 26: ", "true or false");
}

static void the_last_entry_of_a_key_stays_and_values_are_never_missing(void **state) {
    (void)state;
    const Inference__ModelConfig *config =
        read_text("parameters { key: 'b' value { string_value: '1' } }\n"
                  "parameters { key: 'a' }\n"
                  "parameters [ { key: 'b' value: { string_value: '2' } }, { key: 'c' } ]\n"
                  "metric_tags { key: 'only' }");
    assert_int_equal(config->n_parameters, 3);
    assert_string_equal(config->parameters[0]->key, "a");
    assert_string_equal(config->parameters[0]->value->string_value, "");
    assert_string_equal(config->parameters[1]->key, "b");
    assert_string_equal(config->parameters[1]->value->string_value, "2");
    assert_string_equal(config->parameters[2]->key, "c");
    assert_string_equal(config->metric_tags[0]->value, "");
}

static void one_of_a_choice_is_set(void **state) {
    (void)state;
    const Inference__ModelConfig *config = read_text("version_policy: { specific: { versions: [1,3] } }");
    assert_int_equal(config->version_policy->policy_choice_case,
                     INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC);
    assert_int_equal(config->version_policy->specific->versions[1], 3);
    refuse("version_policy {\n all {}\n latest {} }", "line 3, column 2: ",
           "version_policy.latest excludes all, which is given in line 2");
}

static void unknown_names_are_told_with_their_line_and_what_was_meant(void **state) {
    (void)state;
    refuse("name: 'a'\ninput {\n  dim: 3 }", "line 3, column 3: ",
           "input.dim: ModelInput has no such field: did you mean dims?");
    refuse("max_batchsize: 1", "line 1, column 1: ", "did you mean max_batch_size?");
    refuse("nonsense: 1", "line 1, column 1: ", "nonsense: ModelConfig has no such field");
    refuse("input { data_type: TYPE_FP23 }", "line 1, column 20: ", "did you mean TYPE_FP32?");
    refuse("input { data_type: 99 }", "line 1, column 20: ", "DataType has no value 99");
    refuse("input { data_type: 'TYPE_FP32' }", "line 1, column 20: ", "without quotes");
    refuse("priority_queue_policy {}", "line 1, column 1: ", "no such field");
    refuse("[ext.name]: 1", "line 1, column 1: ", "no extensions");
}

static void a_singular_field_comes_once(void **state) {
    (void)state;
    refuse("max_batch_size: 0\n\nmax_batch_size: 0", "line 3, column 1: ",
           "max_batch_size is given a second time; the first is in line 1");
    refuse("parameters { key: 'a'\n key: 'b' }", "line 2, column 2: ", "parameters.key");
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    refuse("name 'a'", "line 1, column 6: ", "name: : was expected, not 'a'");
    refuse("name: a", "line 1, column 7: ", "a string in quotes was expected, not a");
    refuse("name:", "line 1, column 6: ", "missing at the text's end");
    refuse("name: 'a", "line 1, column 7: ", "' is missing");
    refuse("name: 'a\nb'", "line 1, column 7: ", "does not end in its line");
    refuse("input {\n name: 'x'\n", "line 3, column 1: ", "input: } is missing");
    refuse("input < name: 'x' }", "line 1, column 19: ", "a field's name was expected, not }");
    refuse("input [ {} {} ]", "line 1, column 12: ", ", or ] was expected");
    refuse("input [ {}, ]", "line 1, column 13: ", "{ was expected");
    refuse("input: 3", "line 1, column 8: ", "{ was expected, not 3");
    refuse("name: ['a']", "line 1, column 7: ", "a string in quotes was expected, not [");
    refuse("name: 'a';;", "line 1, column 11: ", "a field's name was expected, not ;");
    refuse("}", "line 1, column 1: ", "a field's name was expected");
}

static void bytes_that_no_text_has_are_refused(void **state) {
    (void)state;
    refuse("name: '\\377'", "line 1, column 7: ", "UTF-8");
    refuse("name: 'a\\000b'", "line 1, column 7: ", "zero bytes");
    refuse("name: '\\400'", "line 1, column 7: ", "no valid escape at \\400");
    refuse("name: '\\ud800'", "line 1, column 7: ", "no valid escape");
    refuse("name: '\\U00110000'", "line 1, column 7: ", "no valid escape");
    refuse("name: '\\q'", "line 1, column 7: ", "no valid escape at \\q");
    refuse("name\x01: 'a'", "line 1, column 5: ", "byte 0x01");
    refuse("name: 'a' \xc3\xa4", "line 1, column 11: ", "byte 0xc3");
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    assert_int_equal(text_format_parse((struct view){"name\0: 'a'", 10},
                                       &inference__model_config__descriptor, NULL, NULL, &memory,
                                       &message, &err),
                     ST_INVALID);
    assert_non_null(strstr(err.text, "byte 0x00"));
}

static void a_text_that_is_too_large_is_refused(void **state) {
    (void)state;
    static char text[TEXT_FORMAT_MAX_BYTES + 1];
    memset(text, ' ', sizeof text);
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    struct view view = {text, sizeof text};
    assert_int_equal(text_format_parse(view, &inference__model_config__descriptor, NULL, NULL,
                                       &memory, &message, &err),
                     ST_TOO_LARGE);
    view.size--;
    assert_int_equal(text_format_parse(view, &inference__model_config__descriptor, NULL, NULL,
                                       &memory, &message, &err),
                     ST_OK);
}

struct places {
    char text[512];
};

static void note(void *context, const struct text_field *field) {
    struct places *places = context;
    const size_t size = strlen(places->text);
    snprintf(places->text + size, sizeof places->text - size, "%s@%u:%u ", field->path, field->line,
             field->column);
}

static void fields_are_reported_with_path_and_place(void **state) {
    (void)state;
    static const char text[] = "name: 'a'\n"
                               "input [ { dims: [1, 2] },\n"
                               "  { optional: true } ]\n"
                               "dynamic_batching {\n"
                               " priority_queue_policy { key: 1 value { max_queue_size: 3 } } }";
    struct places places = {.text = ""};
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    assert_int_equal(text_format_parse(view_of(text), &inference__model_config__descriptor, note,
                                       &places, &memory, &message, &err),
                     ST_OK);
    assert_string_equal(places.text,
                        "name@1:1 input@2:9 input.dims@2:11 input@3:3 input.optional@3:5 "
                        "dynamic_batching@4:1 dynamic_batching.priority_queue_policy@5:2 "
                        "dynamic_batching.priority_queue_policy.max_queue_size@5:41 ");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(fields_are_read_in_every_form),
        TEST(an_empty_text_is_an_empty_message),
        TEST(strings_have_escapes),
        TEST(numbers_have_their_ranges),
        TEST(floats_have_every_form),
        TEST(truth_has_every_form),
        TEST(the_last_entry_of_a_key_stays_and_values_are_never_missing),
        TEST(one_of_a_choice_is_set),
        TEST(unknown_names_are_told_with_their_line_and_what_was_meant),
        TEST(a_singular_field_comes_once),
        TEST(what_is_missing_is_named),
        TEST(bytes_that_no_text_has_are_refused),
        TEST(a_text_that_is_too_large_is_refused),
        TEST(fields_are_reported_with_path_and_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

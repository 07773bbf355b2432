/* Messages as JSON: what /config and /stats print, and what a load request may bring. */
#include "schema/grpc_service.pb-c.h"
#include "schema/json_format.h"
#include "schema/text_format.h"

#include <setjmp.h>
#include <stdarg.h>
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

static const ProtobufCMessageDescriptor *const CONFIG = &inference__model_config__descriptor;

static ProtobufCMessage *read_json(const char *json, const ProtobufCMessageDescriptor *type) {
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    if (json_format_parse(view_of(json), type, &memory, &message, &err) != ST_OK) {
        fail_msg("%s: %s", json, err.text);
    }
    return message;
}

static void check_written(const ProtobufCMessage *message, const char *expected) {
    struct buf out;
    buf_init(&out);
    json_format_write(message, &out);
    buf_char(&out, '\0');
    assert_false(out.failed);
    assert_string_equal(out.data, expected);
    buf_done(&out);
}

static void refuse(const char *json, const char *sentence) {
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    const enum status status = json_format_parse(view_of(json), CONFIG, &memory, &message, &err);
    if (status != ST_INVALID || strstr(err.text, sentence) == NULL) {
        fail_msg("%s: %s: \"%s\" has not \"%s\"", json, status_name(status), err.text, sentence);
    }
    assert_null(message);
}

static void a_message_has_defaults_but_no_absent_parts(void **state) {
    (void)state;
    check_written(read_json("{\"dims\":[3,\"-1\"],\"data_type\":\"TYPE_STRING\"}",
                            &inference__model_input__descriptor),
                  "{\"name\":\"\",\"data_type\":\"TYPE_STRING\",\"format\":\"FORMAT_NONE\","
                  "\"dims\":[3,-1],\"is_shape_tensor\":false,\"allow_ragged_batch\":false,"
                  "\"optional\":false,\"is_non_linear_format_io\":false}");
    check_written(read_json("{}", &inference__model_version_policy__descriptor), "{}");
    check_written(read_json("{\"latest\":{}}", &inference__model_version_policy__descriptor),
                  "{\"latest\":{\"num_versions\":0}}");
}

static void whole_numbers_are_numbers_at_any_size(void **state) {
    (void)state;
    const Inference__ModelStatistics statistics = {
        .base = PROTOBUF_C_MESSAGE_INIT(&inference__model_statistics__descriptor),
        .name = "a\"b",
        .version = "1",
        .last_inference = UINT64_MAX,
        .inference_count = 1ull << 53};
    check_written(&statistics.base,
                  "{\"name\":\"a\\\"b\",\"version\":\"1\",\"last_inference\":18446744073709551615,"
                  "\"inference_count\":9007199254740992,\"execution_count\":0,\"batch_stats\":[],"
                  "\"memory_usage\":[],\"response_stats\":{}}");
}

static void maps_are_objects_and_bytes_base64(void **state) {
    (void)state;
    check_written(
        read_json("{\"priority_queue_policy\":{\"2\":{\"timeout_action\":\"delay\"}},"
                  "\"maxQueueDelayMicroseconds\":7}",
                  &inference__model_dynamic_batching__descriptor),
        "{\"preferred_batch_size\":[],\"max_queue_delay_microseconds\":7,"
        "\"preserve_ordering\":false,\"priority_levels\":0,\"default_priority_level\":0,"
        "\"priority_queue_policy\":{\"2\":{\"timeout_action\":\"DELAY\","
        "\"default_timeout_microseconds\":0,\"allow_timeout_override\":false,"
        "\"max_queue_size\":0}}}");
    check_written(read_json("{\"bytes_contents\":[\"\",\"_w\",\"//8=\",\"AAEC\"],"
                            "\"fp32_contents\":[0.1,\"NaN\",\"-Infinity\",-0.0,3.4028235e+38],"
                            "\"fp64_contents\":[0.1,1e300],\"bool_contents\":[true]}",
                            &inference__infer_tensor_contents__descriptor),
                  "{\"bool_contents\":[true],\"int_contents\":[],\"int64_contents\":[],"
                  "\"uint_contents\":[],\"uint64_contents\":[],"
                  "\"fp32_contents\":[0.1,\"NaN\",\"-Infinity\",-0.0,3.402823466e+38],"
                  "\"fp64_contents\":[0.1,1e+300],"
                  "\"bytes_contents\":[\"\",\"/w==\",\"//8=\",\"AAEC\"]}");
}

static void an_entry_off_the_wire_without_a_value_is_an_empty_object(void **state) {
    (void)state;
    Inference__ModelConfig__ParametersEntry entry =
        INFERENCE__MODEL_CONFIG__PARAMETERS_ENTRY__INIT;
    Inference__ModelConfig__ParametersEntry *entries[] = {&entry};
    Inference__ModelConfig config = INFERENCE__MODEL_CONFIG__INIT;
    entry.key = "k";
    config.n_parameters = 1;
    config.parameters = entries;
    struct buf out;
    buf_init(&out);
    json_format_write(&config.base, &out);
    buf_char(&out, '\0');
    assert_non_null(strstr(out.data, "\"parameters\":{\"k\":{}}"));
    buf_done(&out);
}

static void what_protobuf_takes_is_taken(void **state) {
    (void)state;
    const Inference__ModelConfig *config = (const Inference__ModelConfig *)read_json(
        "{\"maxBatchSize\":8.0,\"input\":[{\"dims\":[1e2,\"2\"],\"data_type\":11},"
        "{\"dataType\":\"type_int8\"}],\"output\":null,\"version_policy\":{\"all\":{}},"
        "\"parameters\":{\"k\":{\"string_value\":\"v\"}}}",
        CONFIG);
    assert_int_equal(config->max_batch_size, 8);
    assert_int_equal(config->input[0]->dims[0], 100);
    assert_int_equal(config->input[0]->dims[1], 2);
    assert_int_equal(config->input[0]->data_type, INFERENCE__DATA_TYPE__TYPE_FP32);
    assert_int_equal(config->input[1]->data_type, INFERENCE__DATA_TYPE__TYPE_INT8);
    assert_int_equal(config->n_output, 0);
    assert_int_equal(config->version_policy->policy_choice_case,
                     INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL);
    assert_string_equal(config->parameters[0]->value->string_value, "v");
}

static void faults_name_the_path(void **state) {
    (void)state;
    refuse("{\"input\":[{},{\"dimz\":[1]}]}",
           "input[1].dimz: ModelInput has no such field: did you mean dims?");
    refuse("{\"parameters\":{\"k\":{\"value\":1}}}", "parameters[\"k\"].value: ModelParameter has");
    refuse("{\"input\":{}}", "input: a list was expected");
    refuse("{\"input\":[{\"dims\":[1,1.5]}]}", "input[0].dims[1]: a whole number was expected");
    refuse("{\"input\":[{\"dims\":[9223372036854775808.0]}]}", "must be from -9223372036854775808");
    refuse("{\"max_batch_size\":4294967296}", "max_batch_size: the number must be from");
    refuse("{\"max_batch_size\":true}", "max_batch_size: a whole number was expected");
    refuse("{\"name\":7}", "name: a string was expected");
    refuse("{\"response_cache\":{\"enable\":1}}", "response_cache.enable: true or false");
    refuse("{\"input\":[{\"data_type\":\"TYPE_FP23\"}]}", "did you mean TYPE_FP32?");
    refuse("{\"version_policy\":{\"all\":{},\"latest\":{}}}", "latest excludes all");
    refuse("{\"max_batch_size\":1,\"maxBatchSize\":1}", "max_batch_size is given twice");
    refuse("[]", "no object");
    refuse("{\"name\":\"a\",\"name\":\"b\"}", "line 1");
    refuse("{\"name\":\"\\u0000\"}", "line 1");
    refuse("{", "line 1");
    refuse("", "not valid");
    refuse("{\"dynamic_batching\":{\"priority_levels\":18446744073709551615}}",
           "write the number in quotes");
}

static void text_and_json_say_the_same(void **state) {
    (void)state;
    static const char json[] =
        "{\"name\":\"a\",\"input\":[{\"name\":\"x\",\"dims\":[-1]}],"
        "\"dynamic_batching\":{\"priority_levels\":\"18446744073709551615\"}}";
    static const char text[] = "name: 'a' input { name: 'x' dims: -1 }\n"
                               "dynamic_batching { priority_levels: 18446744073709551615 }";
    struct err err = {.text = ""};
    ProtobufCMessage *of_text = NULL;
    assert_int_equal(
        text_format_parse(view_of(text), CONFIG, NULL, NULL, &memory, &of_text, &err), ST_OK);
    const ProtobufCMessage *of_json = read_json(json, CONFIG);
    uint8_t wires[2][256];
    const size_t size = protobuf_c_message_pack(of_text, wires[0]);
    assert_int_equal(protobuf_c_message_pack(of_json, wires[1]), size);
    assert_memory_equal(wires[0], wires[1], size);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_message_has_defaults_but_no_absent_parts),
        TEST(whole_numbers_are_numbers_at_any_size),
        TEST(maps_are_objects_and_bytes_base64),
        TEST(an_entry_off_the_wire_without_a_value_is_an_empty_object),
        TEST(what_protobuf_takes_is_taken),
        TEST(faults_name_the_path),
        TEST(text_and_json_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

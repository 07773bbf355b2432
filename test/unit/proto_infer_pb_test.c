/* Inference messages against the code that protoc-c makes of the schema: what one writes the other
 * reads. */
#include "proto/grpc.h"
#include "proto/infer_pb.h"
#include "schema/grpc_service.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Inference__ModelInferRequest Request;
typedef Inference__ModelInferRequest__InferInputTensor Input;
typedef Inference__ModelInferRequest__InferRequestedOutputTensor Output;
typedef Inference__InferTensorContents Contents;
typedef Inference__InferParameter Parameter;

/* A request with one input x of so many elements, to be changed by the test. */
struct one {
    Request request;
    Input input, *inputs[4];
    Contents contents;
    int64_t shape[TENSOR_MAX_RANK + 1];
    ProtobufCBinaryData raw[4];
};

static void one_init(struct one *one, const char *datatype, int64_t count) {
    inference__model_infer_request__init(&one->request);
    inference__model_infer_request__infer_input_tensor__init(&one->input);
    inference__infer_tensor_contents__init(&one->contents);
    one->request.model_name = (char *)(uintptr_t)"m";
    one->input.name = (char *)(uintptr_t)"x";
    one->input.datatype = (char *)(uintptr_t)datatype;
    one->shape[0] = count;
    one->input.shape = one->shape;
    one->input.n_shape = 1;
    one->inputs[0] = &one->input;
    one->request.inputs = one->inputs;
    one->request.n_inputs = 1;
    one->request.raw_input_contents = one->raw;
}

struct parsed {
    struct arena arena;
    struct infer_request request;
    struct infer_pb_options options;
    struct err err;
    enum status status;
    uint8_t *bytes;
    size_t size;
};

static void parse_bytes(struct parsed *out) {
    arena_init(&out->arena);
    out->err.text[0] = '\0';
    out->status = infer_pb_request_parse((struct view){(char *)out->bytes, out->size}, &out->arena,
                                         &out->request, &out->options, &out->err);
}

static void parse(const Request *request, struct parsed *out) {
    *out = (struct parsed){.size = inference__model_infer_request__get_packed_size(request)};
    out->bytes = malloc(out->size + 1);
    assert_non_null(out->bytes);
    assert_int_equal(inference__model_infer_request__pack(request, out->bytes), out->size);
    parse_bytes(out);
}

static void parsed_done(struct parsed *parsed) {
    arena_done(&parsed->arena);
    free(parsed->bytes);
}

static void expect_error(const Request *request, const char *part) {
    struct parsed parsed;
    parse(request, &parsed);
    assert_int_not_equal(parsed.status, ST_OK);
    if (!strstr(parsed.err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", parsed.err.text, part);
    parsed_done(&parsed);
}

static void expect_bytes(const Request *request, const void *bytes, size_t size) {
    struct parsed parsed;
    parse(request, &parsed);
    if (parsed.status != ST_OK)
        fail_msg("%s", parsed.err.text);
    assert_int_equal(parsed.request.input_count, 1);
    assert_int_equal(parsed.request.inputs[0].size, size);
    if (size)
        assert_memory_equal(parsed.request.inputs[0].data, bytes, size);
    parsed_done(&parsed);
}

static void raw_contents_stay_where_they_came_in(void **state) {
    (void)state;
    struct one one;
    float values[3] = {1, -2, 3.5f};
    one_init(&one, "FP32", 3);
    one.raw[0] = (ProtobufCBinaryData){sizeof values, (uint8_t *)values};
    one.request.n_raw_input_contents = 1;
    struct parsed parsed;
    parse(&one.request, &parsed);
    assert_int_equal(parsed.status, ST_OK);
    const struct tensor *tensor = &parsed.request.inputs[0];
    assert_true(view_is(tensor->name, "x"));
    assert_int_equal(tensor->dtype, DTYPE_FP32);
    assert_int_equal(tensor->rank, 1);
    assert_int_equal(tensor->shape[0], 3);
    assert_memory_equal(tensor->data, values, sizeof values);
    assert_true((const uint8_t *)tensor->data > parsed.bytes &&
                (const uint8_t *)tensor->data < parsed.bytes + parsed.size);
    parsed_done(&parsed);
}

static void typed_contents_become_the_tensors_bytes(void **state) {
    (void)state;
    struct one one;
    protobuf_c_boolean bools[] = {1, 0, 1};
    int32_t ints[] = {-128, 0, 127};
    int64_t longs[] = {INT64_MIN, 0, INT64_MAX};
    uint32_t uints[] = {0, 7, 255};
    uint64_t ulongs[] = {0, 1, UINT64_MAX};
    float floats[] = {0.5f, -1, 3e38f};
    double doubles[] = {0.5, -1, 1e300};
#define TRY(DTYPE, FIELD, LIST, BYTES)                                                         \
    one_init(&one, DTYPE, 3);                                                                  \
    one.input.contents = &one.contents;                                                        \
    one.contents.FIELD = LIST;                                                                 \
    one.contents.n_##FIELD = 3;                                                                \
    expect_bytes(&one.request, BYTES, sizeof BYTES)
    TRY("BOOL", bool_contents, bools, ((uint8_t[]){1, 0, 1}));
    TRY("INT8", int_contents, ints, ((int8_t[]){-128, 0, 127}));
    TRY("INT16", int_contents, ints, ((int16_t[]){-128, 0, 127}));
    TRY("INT32", int_contents, ints, ((int32_t[]){-128, 0, 127}));
    TRY("INT64", int64_contents, longs, ((int64_t[]){INT64_MIN, 0, INT64_MAX}));
    TRY("UINT8", uint_contents, uints, ((uint8_t[]){0, 7, 255}));
    TRY("UINT16", uint_contents, uints, ((uint16_t[]){0, 7, 255}));
    TRY("UINT32", uint_contents, uints, ((uint32_t[]){0, 7, 255}));
    TRY("UINT64", uint64_contents, ulongs, ((uint64_t[]){0, 1, UINT64_MAX}));
    TRY("FP32", fp32_contents, floats, ((float[]){0.5f, -1, 3e38f}));
    TRY("FP64", fp64_contents, doubles, ((double[]){0.5, -1, 1e300}));
    ProtobufCBinaryData texts[] = {{2, (uint8_t *)(uintptr_t)"ab"}, {0, NULL}, {1, (uint8_t *)(uintptr_t)"c"}};
    one_init(&one, "BYTES", 3);
    one.input.contents = &one.contents;
    one.contents.bytes_contents = texts;
    one.contents.n_bytes_contents = 3;
    expect_bytes(&one.request, "\2\0\0\0ab\0\0\0\0\1\0\0\0c", 15);
#undef TRY
}

static void contents_that_do_not_fit_are_told_by_name(void **state) {
    (void)state;
    struct one one;
    int32_t ints[] = {300, 1, 2};
    float floats[] = {1, 2, 3};
    one_init(&one, "INT8", 3);
    one.input.contents = &one.contents;
    one.contents.int_contents = ints;
    one.contents.n_int_contents = 3;
    expect_error(&one.request, "inputs[0] (x): element 0, 300, is out of INT8's range");
    one.input.datatype = (char *)(uintptr_t)"UINT8";
    expect_error(&one.request, "int_contents is given for datatype UINT8, which goes in uint_contents");
    one.input.datatype = (char *)(uintptr_t)"FP16";
    expect_error(&one.request, "raw_input_contents only");
    one.input.datatype = (char *)(uintptr_t)"INT32";
    one.shape[0] = 4;
    expect_error(&one.request, "int_contents has 3 elements, shape [4] needs 4");
    one_init(&one, "FP32", 3);
    one.input.contents = &one.contents;
    one.contents.fp32_contents = floats;
    one.contents.n_fp32_contents = 3;
    one.raw[0] = (ProtobufCBinaryData){12, (uint8_t *)floats};
    one.request.n_raw_input_contents = 1;
    expect_error(&one.request, "contents must not be given where raw_input_contents is used");
}

static void faults_of_a_request_are_named(void **state) {
    (void)state;
    struct one one;
    float floats[] = {1, 2, 3};
    one_init(&one, "FP32", 3);
    expect_error(&one.request, "fp32_contents has 0 elements, shape [3] needs 3");
    one.raw[0] = (ProtobufCBinaryData){8, (uint8_t *)floats};
    one.request.n_raw_input_contents = 1;
    expect_error(&one.request, "inputs[0] (x): raw_input_contents has 8 bytes, shape [3] of FP32 needs 12");
    one.raw[0].len = 12;
    one.raw[1] = one.raw[0];
    one.request.n_raw_input_contents = 2;
    expect_error(&one.request, "raw_input_contents has 2 entries, the inputs need 1");
    one.request.n_raw_input_contents = 1;
    Input second = one.input;
    second.name = (char *)(uintptr_t)"y";
    one.inputs[1] = &second;
    one.request.n_inputs = 2;
    expect_error(&one.request, "inputs[1] (y): raw_input_contents has no entry for it");
    one.inputs[1] = &one.input;
    one.raw[1] = one.raw[0];
    one.request.n_raw_input_contents = 2;
    expect_error(&one.request, "inputs[1] (x): an input of this name came before");
    one.request.n_inputs = 1;
    one.request.n_raw_input_contents = 1;
    one.input.datatype = (char *)(uintptr_t)"FLOAT";
    expect_error(&one.request, "datatype \"FLOAT\" is not known");
    one.input.datatype = (char *)(uintptr_t)"FP32";
    one.shape[0] = -3;
    expect_error(&one.request, "negative dimension");
    one.shape[0] = INT64_MAX;
    expect_error(&one.request, "more elements than fit");
    for (int i = 0; i < TENSOR_MAX_RANK + 1; i++)
        one.shape[i] = 1;
    one.input.n_shape = TENSOR_MAX_RANK + 1;
    expect_error(&one.request, "more than 8 dimensions");
    one.input.n_shape = 1;
    one.input.name = (char *)(uintptr_t)"";
    expect_error(&one.request, "inputs[0]: name is missing");
    one.input.name = (char *)(uintptr_t)"\xff";
    expect_error(&one.request, "name is not UTF-8");
}

static void parameters_are_taken_with_their_kinds(void **state) {
    (void)state;
    struct one one;
    one_init(&one, "FP32", 0);
    Parameter values[4];
    Inference__ModelInferRequest__ParametersEntry entries[4], *list[4];
    static const char *const KEYS[] = {"timeout", "priority", "triton_enable_empty_final_response",
                                       "other"};
    for (int i = 0; i < 4; i++) {
        inference__infer_parameter__init(&values[i]);
        inference__model_infer_request__parameters_entry__init(&entries[i]);
        entries[i].key = (char *)(uintptr_t)KEYS[i];
        entries[i].value = &values[i];
        list[i] = &entries[i];
    }
    values[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    values[0].int64_param = 5000;
    values[1].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_UINT64_PARAM;
    values[1].uint64_param = 2;
    values[2].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM;
    values[2].bool_param = 1;
    values[3].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_DOUBLE_PARAM;
    values[3].double_param = 0.5;
    one.request.parameters = list;
    one.request.n_parameters = 4;
    one.request.id = (char *)(uintptr_t)"an id";
    struct parsed parsed;
    parse(&one.request, &parsed);
    assert_int_equal(parsed.status, ST_OK);
    assert_true(parsed.request.has_timeout);
    assert_int_equal(parsed.request.timeout_us, 5000);
    assert_int_equal(parsed.request.priority, 2);
    assert_true(parsed.options.wants_final_flag);
    assert_true(view_is(parsed.request.id, "an id"));
    parsed_done(&parsed);
    values[0].int64_param = -1;
    expect_error(&one.request, "timeout must be a whole number");
    entries[0].key = (char *)(uintptr_t)"sequence_id";
    expect_error(&one.request, "sequence_id: a model that keeps state");
    values[0].int64_param = 0;
    parse(&one.request, &parsed);
    assert_int_equal(parsed.status, ST_OK);
    parsed_done(&parsed);
}

/* protobuf: the same message field again is merged into what came before, and is read as any. */
static void a_parameters_value_may_come_in_parts(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        size_t size;
        bool is_good;
    } cases[] = {
        {"\x22\x0f\x0a\x07timeout\x12\x00\x12\x02\x10\x07", 17, true},  /* nothing, then 7 */
        {"\x22\x0f\x0a\x07timeout\x12\x02\x10\x07\x12\x00", 17, true},  /* 7, then nothing */
        {"\x22\x0f\x0a\x07timeout\x12\x01\x10\x12\x01\x10", 17, false}, /* both cut */
        {"\x22\x10\x0a\x07timeout\x12\x01\x10\x12\x02\x10\x07", 18, false}, /* the first cut */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parsed parsed = {.size = cases[i].size, .bytes = malloc(cases[i].size)};
        assert_non_null(parsed.bytes);
        memcpy(parsed.bytes, cases[i].bytes, cases[i].size);
        parse_bytes(&parsed);
        assert_int_equal(parsed.status == ST_OK, cases[i].is_good);
        if (cases[i].is_good)
            assert_int_equal(parsed.request.timeout_us, 7);
        parsed_done(&parsed);
    }
}

static void outputs_and_shared_memory_are_taken(void **state) {
    (void)state;
    struct one one;
    one_init(&one, "FP32", 4);
    Parameter values[3];
    Inference__ModelInferRequest__InferInputTensor__ParametersEntry shared[2], *shared_list[2];
    Output output, *outputs[] = {&output};
    Inference__ModelInferRequest__InferRequestedOutputTensor__ParametersEntry entry, *entries[] = {&entry};
    for (int i = 0; i < 3; i++)
        inference__infer_parameter__init(&values[i]);
    for (int i = 0; i < 2; i++) {
        inference__model_infer_request__infer_input_tensor__parameters_entry__init(&shared[i]);
        shared[i].value = &values[i];
        shared_list[i] = &shared[i];
    }
    shared[0].key = (char *)(uintptr_t)"shared_memory_region";
    values[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    values[0].string_param = (char *)(uintptr_t)"region";
    shared[1].key = (char *)(uintptr_t)"shared_memory_byte_size";
    values[1].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    values[1].int64_param = 16;
    one.input.parameters = shared_list;
    one.input.n_parameters = 2;
    inference__model_infer_request__infer_requested_output_tensor__init(&output);
    inference__model_infer_request__infer_requested_output_tensor__parameters_entry__init(&entry);
    output.name = (char *)(uintptr_t)"y";
    output.parameters = entries;
    output.n_parameters = 1;
    entry.key = (char *)(uintptr_t)"classification";
    entry.value = &values[2];
    values[2].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    values[2].int64_param = 3;
    one.request.outputs = outputs;
    one.request.n_outputs = 1;
    struct parsed parsed;
    parse(&one.request, &parsed);
    if (parsed.status != ST_OK)
        fail_msg("%s", parsed.err.text);
    assert_true(view_is(parsed.request.shared_inputs[0].region, "region"));
    assert_int_equal(parsed.request.inputs[0].size, 16);
    assert_null(parsed.request.inputs[0].data);
    assert_true(view_is(parsed.request.outputs[0].name, "y"));
    assert_int_equal(parsed.request.outputs[0].classification, 3);
    parsed_done(&parsed);
    one.input.n_parameters = 1;
    expect_error(&one.request, "inputs[0] (x): shared_memory_byte_size");
    values[2].int64_param = 2000000;
    one.input.n_parameters = 2;
    expect_error(&one.request, "outputs[0] (y): classification");
}

static void the_way_of_a_message_is_known_before_it_is_read(void **state) {
    (void)state;
    struct infer_pb_route route;
    struct err err;
    static const char TWICE[] = "\x0a\1a\x12\1\x31\x1a\2id\x0a\1b"; /* the last one counts */
    assert_int_equal(infer_pb_route((struct view){TWICE, sizeof TWICE - 1}, &route, &err), ST_OK);
    assert_true(view_is(route.model_name, "b"));
    assert_true(view_is(route.model_version, "1"));
    assert_true(view_is(route.id, "id"));
    assert_int_equal(infer_pb_route((struct view){"\x0a\5a", 3}, &route, &err), ST_INVALID);
    struct buf many;
    buf_init(&many);
    for (int i = 0; i < 5000; i++)
        buf_append(&many, "\x30\1", 2);
    assert_int_equal(infer_pb_route(buf_view(&many), &route, &err), ST_INVALID);
    buf_done(&many);
}

/* ---- answers ---- */

static void an_answer_is_read_by_others_with_and_without_gaps(void **state) {
    (void)state;
    static float large[3000];
    for (int i = 0; i < 3000; i++)
        large[i] = (float)i;
    const struct tensor outputs[] = {
        {.name = {"a", 1}, .dtype = DTYPE_FP32, .rank = 2, .shape = {2, 1500}, .data = large,
         .size = sizeof large},
        {.name = {"b", 1}, .dtype = DTYPE_INT64, .rank = 0, .data = "12345678", .size = 8},
        {.name = {"c", 1}, .dtype = DTYPE_FP32, .rank = 1, .shape = {3000}, .data = large,
         .size = sizeof large}};
    const struct shared_place shared[] = {{.size = 0}, {.size = 0}, {{"reg", 3}, 64, 20000}};
    for (int variant = 0; variant < 8; variant++) {
        const bool is_streamed = variant & 1, has_gaps = variant & 2, is_shared = variant & 4;
        const struct infer_pb_answer answer = {.model_name = {"m", 1}, .model_version = {"1", 1},
                                               .id = {"id", 2}, .outputs = outputs,
                                               .shared = is_shared ? shared : NULL,
                                               .output_count = 3, .is_simulated = true,
                                               .is_final_marked = is_streamed,
                                               .is_streamed = is_streamed};
        struct infer_pb_gap gaps[3];
        uint32_t gap_count = 0;
        struct buf out, whole;
        struct err err;
        buf_init(&out);
        buf_init(&whole);
        assert_int_equal(infer_pb_answer_write(&out, &answer, has_gaps ? gaps : NULL, &gap_count,
                                               &err), ST_OK);
        assert_int_equal(gap_count, has_gaps ? (is_shared ? 1 : 2) : 0);
        size_t at = 0;
        for (uint32_t i = 0; i < gap_count; i++) {
            buf_append(&whole, out.data + at, gaps[i].at - at);
            buf_append(&whole, gaps[i].bytes.data, gaps[i].bytes.size);
            at = gaps[i].at;
        }
        buf_append(&whole, out.data + at, out.size - at);
        const uint8_t *message = (const uint8_t *)whole.data + GRPC_PREFIX_BYTES;
        const size_t size = whole.size - GRPC_PREFIX_BYTES;
        char prefix[GRPC_PREFIX_BYTES];
        grpc_write_prefix(prefix, false, size);
        assert_memory_equal(whole.data, prefix, sizeof prefix);
        Inference__ModelStreamInferResponse *stream = NULL;
        Inference__ModelInferResponse *response = NULL;
        if (is_streamed) {
            stream = inference__model_stream_infer_response__unpack(NULL, size, message);
            assert_non_null(stream);
            response = stream->infer_response;
        } else {
            response = inference__model_infer_response__unpack(NULL, size, message);
        }
        assert_non_null(response);
        assert_string_equal(response->model_name, "m");
        assert_string_equal(response->id, "id");
        assert_int_equal(response->n_outputs, 3);
        assert_int_equal(response->n_raw_output_contents, 3);
        assert_int_equal(response->n_parameters, is_streamed ? 2 : 1);
        assert_string_equal(response->outputs[0]->datatype, "FP32");
        assert_int_equal(response->outputs[0]->n_shape, 2);
        assert_int_equal(response->outputs[0]->shape[1], 1500);
        assert_int_equal(response->raw_output_contents[0].len, sizeof large);
        assert_memory_equal(response->raw_output_contents[0].data, large, sizeof large);
        assert_memory_equal(response->raw_output_contents[1].data, "12345678", 8);
        assert_int_equal(response->raw_output_contents[2].len, is_shared ? 0 : sizeof large);
        assert_int_equal(response->outputs[2]->n_parameters, is_shared ? 3 : 0);
        if (is_streamed)
            inference__model_stream_infer_response__free_unpacked(stream, NULL);
        else
            inference__model_infer_response__free_unpacked(response, NULL);
        if (!is_streamed && !is_shared) {
            struct arena arena;
            struct infer_response ours;
            arena_init(&arena);
            assert_int_equal(infer_pb_response_parse((struct view){(const char *)message, size},
                                                     &arena, &ours, &err), ST_OK);
            assert_int_equal(ours.output_count, 3);
            assert_int_equal(ours.outputs[0].shape[1], 1500);
            assert_int_equal(ours.outputs[1].size, 8);
            assert_true(view_is(ours.id, "id"));
            arena_done(&arena);
        }
        buf_done(&out);
        buf_done(&whole);
    }
}

static void an_error_of_a_stream_is_read_by_others(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    infer_pb_stream_error_write(&out, "what went wrong", view_of("id7"));
    Inference__ModelStreamInferResponse *stream = inference__model_stream_infer_response__unpack(
        NULL, out.size - GRPC_PREFIX_BYTES, (const uint8_t *)out.data + GRPC_PREFIX_BYTES);
    assert_non_null(stream);
    assert_string_equal(stream->error_message, "what went wrong");
    assert_string_equal(stream->infer_response->id, "id7");
    inference__model_stream_infer_response__free_unpacked(stream, NULL);
    buf_done(&out);
}

static void a_request_that_we_write_is_read_by_others_and_by_us(void **state) {
    (void)state;
    float values[] = {1, 2, 3, 4};
    const struct tensor inputs[] = {{.name = {"x", 1}, .dtype = DTYPE_FP32, .rank = 2,
                                     .shape = {2, 2}, .data = values, .size = sizeof values},
                                    {.name = {"e", 1}, .dtype = DTYPE_UINT8, .rank = 1,
                                     .shape = {0}, .data = NULL, .size = 0}};
    struct buf out;
    buf_init(&out);
    infer_pb_request_write(&out, view_of("m"), view_of(""), view_of("r1"), inputs, 2);
    Request *request = inference__model_infer_request__unpack(NULL, out.size, (uint8_t *)out.data);
    assert_non_null(request);
    assert_string_equal(request->model_name, "m");
    assert_string_equal(request->id, "r1");
    assert_int_equal(request->inputs[0]->n_shape, 2);
    assert_memory_equal(request->raw_input_contents[0].data, values, sizeof values);
    inference__model_infer_request__free_unpacked(request, NULL);
    struct parsed parsed = {.bytes = (uint8_t *)out.data, .size = out.size};
    parse_bytes(&parsed);
    assert_int_equal(parsed.status, ST_OK);
    assert_int_equal(parsed.request.input_count, 2);
    parsed_done(&parsed); /* frees out's bytes */
}

/* ---- broken ones ---- */

static void every_cut_and_changed_byte_is_refused_or_read_safely(void **state) {
    (void)state;
    struct one one;
    int32_t ints[] = {1, 2, 300};
    one_init(&one, "INT32", 3);
    one.input.contents = &one.contents;
    one.contents.int_contents = ints;
    one.contents.n_int_contents = 3;
    one.request.id = (char *)(uintptr_t)"id";
    const size_t size = inference__model_infer_request__get_packed_size(&one.request);
    uint8_t whole[200];
    assert_true(size < sizeof whole);
    (void)inference__model_infer_request__pack(&one.request, whole);
    unsigned accepted = 0, differing = 0;
    for (size_t at = 0; at < size; at++)
        for (unsigned value = 0; value < 257; value++) {
            /* 256: cut here */
            struct parsed parsed = {.size = value == 256 ? at : size, .bytes = malloc(size)};
            assert_non_null(parsed.bytes);
            memcpy(parsed.bytes, whole, size);
            if (value < 256)
                parsed.bytes[at] = (uint8_t)value;
            parse_bytes(&parsed);
            Request *theirs = inference__model_infer_request__unpack(NULL, parsed.size, parsed.bytes);
            accepted += parsed.status == ST_OK;
            differing += parsed.status == ST_OK && !theirs;
            if (parsed.status != ST_OK)
                assert_true(parsed.err.text[0] != '\0');
            if (theirs)
                inference__model_infer_request__free_unpacked(theirs, NULL);
            parsed_done(&parsed);
        }
    assert_true(accepted > size); /* each byte as it was, and more */
    assert_int_equal(differing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_contents_stay_where_they_came_in),
        cmocka_unit_test(typed_contents_become_the_tensors_bytes),
        cmocka_unit_test(contents_that_do_not_fit_are_told_by_name),
        cmocka_unit_test(faults_of_a_request_are_named),
        cmocka_unit_test(parameters_are_taken_with_their_kinds),
        cmocka_unit_test(a_parameters_value_may_come_in_parts),
        cmocka_unit_test(outputs_and_shared_memory_are_taken),
        cmocka_unit_test(the_way_of_a_message_is_known_before_it_is_read),
        cmocka_unit_test(an_answer_is_read_by_others_with_and_without_gaps),
        cmocka_unit_test(an_error_of_a_stream_is_read_by_others),
        cmocka_unit_test(a_request_that_we_write_is_read_by_others_and_by_us),
        cmocka_unit_test(every_cut_and_changed_byte_is_refused_or_read_safely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

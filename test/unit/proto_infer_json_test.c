/* Inference JSON: what is read, what is refused with which sentence, and that what is written
 * reads back. */
#include "proto/infer_json.h"
#include "proto/json_text.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* after the above */
#include <cmocka.h>

enum { PADDING = 64 };

/* A body in memory of its own, with the padding that the parser may read and not use. */
static struct view body_of(const char *json, const void *binary, size_t binary_size) {
    const size_t size = strlen(json);
    char *copy = malloc(size + binary_size + PADDING);
    memcpy(copy, json, size);
    if (binary_size > 0)
        memcpy(copy + size, binary, binary_size);
    memset(copy + size + binary_size, '7', PADDING);
    return (struct view){.data = copy, .size = size + binary_size};
}

struct fixture {
    struct arena arena;
    struct view body;
    struct infer_request request;
    struct err err;
};

static enum status parse_binary(struct fixture *f, const char *json, const void *binary,
                                size_t binary_size) {
    arena_init(&f->arena);
    f->body = body_of(json, binary, binary_size);
    return infer_request_parse(f->body, strlen(json), &f->arena, &f->request, &f->err);
}

static void done(struct fixture *f) {
    arena_done(&f->arena);
    free((char *)f->body.data);
}

static void expect_good_binary(struct fixture *f, const char *json, const void *binary,
                               size_t size) {
    *f = (struct fixture){0};
    const enum status status = parse_binary(f, json, binary, size);
    if (status != ST_OK)
        fail_msg("%s\n  %s", json, f->err.text);
}
static void expect_good(struct fixture *f, const char *json) {
    expect_good_binary(f, json, NULL, 0);
}

static void expect_bad_binary(const char *json, const void *binary, size_t size,
                              enum status expected, const char *sentence) {
    struct fixture f = {0};
    f.request.input_count = 77;
    const enum status status = parse_binary(&f, json, binary, size);
    if (status != expected || strcmp(f.err.text, sentence) != 0)
        fail_msg("%s\n  gave %s: %s\n  not  %s", json, status_name(status), f.err.text, sentence);
    assert_int_equal(f.request.input_count, 77); /* untouched */
    done(&f);
}
static void expect_bad(const char *json, const char *sentence) {
    expect_bad_binary(json, NULL, 0, ST_INVALID, sentence);
}

#define INPUT(type, shape, data)                                                               \
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"" type "\",\"shape\":" shape                   \
    ",\"data\":" data "}]}"

static void reads_a_whole_request(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, "{\"id\":\"a\\u00e9\",\"parameters\":{\"timeout\":5000,\"other\":[1],"
                    "\"binary_data_output\":true},\"outputs\":[{\"name\":\"y\",\"parameters\":"
                    "{\"binary_data\":false,\"classification\":3}},{\"name\":\"z\"}],"
                    "\"unknown\":{\"a\":null},"
                    "\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"INT64\","
                    "\"data\":[[1,-2]]},{\"data\":[0.5],\"datatype\":\"FP32\",\"shape\":[1],"
                    "\"name\":\"w\",\"parameters\":{}}]}");
    const struct infer_request *r = &f.request;
    assert_true(view_is(r->id, "a\xc3\xa9"));
    assert_true(r->has_timeout && r->wants_binary);
    assert_int_equal(r->timeout_us, 5000);
    assert_int_equal(r->input_count, 2);
    assert_true(view_is(r->inputs[0].name, "x"));
    assert_int_equal(r->inputs[0].dtype, DTYPE_INT64);
    assert_int_equal(r->inputs[0].rank, 2);
    assert_int_equal(r->inputs[0].shape[1], 2);
    assert_int_equal(((const int64_t *)r->inputs[0].data)[1], -2);
    assert_int_equal(r->inputs[1].size, 4);
    assert_int_equal(r->output_count, 2);
    assert_false(r->outputs[0].wants_binary);
    assert_int_equal(r->outputs[0].classification, 3);
    assert_true(view_is(r->outputs[1].name, "z"));
    assert_true(r->outputs[1].wants_binary);
    done(&f);
}

static void keeps_integers_exact_over_their_range(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, INPUT("INT64", "[5]", "[-9223372036854775808,9223372036854775807,"
                                          "9007199254740993,0,-1]"));
    const int64_t *i64 = f.request.inputs[0].data;
    assert_true(i64[0] == INT64_MIN && i64[1] == INT64_MAX && i64[2] == 9007199254740993);
    done(&f);
    expect_good(&f, INPUT("UINT64", "[3]", "[18446744073709551615,9223372036854775808,0]"));
    const uint64_t *u64 = f.request.inputs[0].data;
    assert_true(u64[0] == UINT64_MAX && u64[1] == 9223372036854775808u && u64[2] == 0);
    done(&f);
    expect_good(&f, INPUT("INT8", "[2]", "[-128,127]"));
    done(&f);
    expect_good(&f, INPUT("UINT16", "[2]", "[0,65535]"));
    done(&f);
    expect_good(&f, INPUT("INT32", "[2]", "[-2147483648,2147483647]"));
    done(&f);
}

static void refuses_integers_out_of_range(void **state) {
    (void)state;
    expect_bad(INPUT("INT8", "[2]", "[0,128]"),
               "inputs[0] (x): data[1] is 128, INT8 takes -128 to 127");
    expect_bad(INPUT("UINT8", "[1]", "[-1]"), "inputs[0] (x): data[0] is -1, UINT8 takes 0 to 255");
    expect_bad(INPUT("UINT64", "[1]", "[-1]"),
               "inputs[0] (x): data[0] is -1, UINT64 takes 0 to 18446744073709551615");
    expect_bad(INPUT("INT64", "[1]", "[9223372036854775808]"),
               "inputs[0] (x): data[0] is 9223372036854775808, INT64 takes -9223372036854775808 "
               "to 9223372036854775807");
    expect_bad(INPUT("UINT32", "[1]", "[4294967296]"),
               "inputs[0] (x): data[0] is 4294967296, UINT32 takes 0 to 4294967295");
}

static void refuses_fractions_and_exponents_for_integers(void **state) {
    (void)state;
    expect_bad(INPUT("INT64", "[1]", "[1.0]"),
               "inputs[0] (x): data[0] is 1.0 or the like, INT64 takes integers, written without "
               "fraction or exponent");
    expect_bad(INPUT("INT32", "[2]", "[1,1e3]"),
               "inputs[0] (x): data[1] is 1000.0 or the like, INT32 takes integers, written "
               "without fraction or exponent");
}

static void reads_floats(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, INPUT("FP32", "[6]", "[1,-0.0,1e-45,3.4028235e38,0.1,16777217]"));
    const float *f32 = f.request.inputs[0].data;
    assert_true(f32[0] == 1 && signbit(f32[1]) && f32[2] == 0x1p-149f && f32[3] == FLT_MAX &&
                f32[4] == 0.1f && f32[5] == 16777216.0f);
    done(&f);
    expect_good(&f, INPUT("FP64", "[3]", "[1.7976931348623157e308,18446744073709551615,5e-324]"));
    const double *f64 = f.request.inputs[0].data;
    assert_true(f64[0] == DBL_MAX && f64[1] == 0x1p64 && f64[2] == 0x1p-1074);
    done(&f);
}

/* A reader that sees an integer beyond 64 bits refuses the whole document. */
static void writes_whole_numbers_beyond_64_bits_as_floats(void **state) {
    (void)state;
    char text[JSON_TEXT_MAX_NUMBER];
    const struct {
        double value;
        const char *text;
    } cases[] = {{0x1p64, "18446744073709551616.0"},
                 {-0x1.8p64, "-27670116110564327424.0"},
                 {1e22, "1e+22"},
                 {4503599627370497, "4503599627370497"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t size = json_text_f64(cases[i].value, text);
        assert_int_equal(size, strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, size);
    }
    const size_t size = json_text_f32(0x1p64f, text);
    assert_true(size >= 2 && size < sizeof text);
    struct fixture f;
    char json[128];
    snprintf(json, sizeof json, "%s%.*s]}]}", "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],"
             "\"datatype\":\"FP32\",\"data\":[", (int)size, text);
    expect_good(&f, json);
    assert_true(*(const float *)f.request.inputs[0].data == 0x1p64f);
    done(&f);
}

static void refuses_floats_out_of_range(void **state) {
    (void)state;
    expect_bad(INPUT("FP32", "[1]", "[3.5e38]"),
               "inputs[0] (x): data[0] is 3.5e+38, FP32 takes up to 3.4028235e+38 in size");
    expect_bad(INPUT("FP32", "[1]", "[-1e39]"),
               "inputs[0] (x): data[0] is -1e+39, FP32 takes up to 3.4028235e+38 in size");
    struct fixture f = {0};
    assert_int_equal(parse_binary(&f, INPUT("FP64", "[1]", "[1e400]"), NULL, 0), ST_INVALID);
    assert_non_null(strstr(f.err.text, "number"));
    done(&f);
    f = (struct fixture){0};
    assert_int_equal(parse_binary(&f, INPUT("FP32", "[1]", "[NaN]"), NULL, 0), ST_INVALID);
    done(&f);
}

static void refuses_values_of_other_types(void **state) {
    (void)state;
    expect_bad(INPUT("FP32", "[2]", "[1,\"two\"]"),
               "inputs[0] (x): data[1] is \"two\", FP32 takes up to 3.4028235e+38 in size");
    expect_bad(INPUT("INT64", "[1]", "[true]"), "inputs[0] (x): data[0] is true, INT64 takes "
               "-9223372036854775808 to 9223372036854775807");
    expect_bad(INPUT("BYTES", "[1]", "[7]"), "inputs[0] (x): data[0] is 7, BYTES takes strings");
    expect_bad(INPUT("BOOL", "[1]", "[2]"),
               "inputs[0] (x): data[0] is 2, BOOL takes true, false, 0 or 1");
    expect_bad(INPUT("BOOL", "[1]", "[null]"),
               "inputs[0] (x): data[0] is null, BOOL takes true, false, 0 or 1");
    expect_bad(INPUT("FP16", "[1]", "[1]"),
               "inputs[0] (x): FP16 cannot be sent as JSON, use binary data");
    expect_bad(INPUT("BF16", "[1]", "[1]"),
               "inputs[0] (x): BF16 cannot be sent as JSON, use binary data");
}

static void reads_bools_and_bytes(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, INPUT("BOOL", "[4]", "[true,false,1,0]"));
    assert_memory_equal(f.request.inputs[0].data, "\1\0\1\0", 4);
    done(&f);
    expect_good(&f, INPUT("BYTES", "[2,2]", "[[\"a\",\"\"],[\"\\u0000z\",\"\xc3\xa9\"]]"));
    assert_int_equal(f.request.inputs[0].size, 16 + 1 + 0 + 2 + 2);
    assert_memory_equal(f.request.inputs[0].data,
                        "\1\0\0\0a\0\0\0\0\2\0\0\0\0z\2\0\0\0\xc3\xa9", 21);
    done(&f);
}

static void takes_flat_and_nested_data(void **state) {
    (void)state;
    const char *const good[] = {
        INPUT("INT32", "[2,3]", "[1,2,3,4,5,6]"), INPUT("INT32", "[2,3]", "[[1,2,3],[4,5,6]]"),
        INPUT("INT32", "[1,2,3]", "[[1,2,3],[4,5,6]]"), INPUT("INT32", "[]", "[1]"),
        INPUT("INT32", "[0,4]", "[]"), INPUT("INT32", "[2,0]", "[[],[]]"),
        INPUT("INT32", "[1,1,1,1,1,1,1,1]", "[[[[[[[[1]]]]]]]]")};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct fixture f;
        expect_good(&f, good[i]);
        done(&f);
    }
    expect_bad(INPUT("INT32", "[2,3]", "[[1,2],[3,4],[5,6]]"),
               "inputs[0] (x): data is not nested as its shape [2,3] says");
    expect_bad(INPUT("INT32", "[2,3]", "[[1,2,3],[4,5]]"),
               "inputs[0] (x): data has 5 elements, shape [2,3] needs 6");
    expect_bad(INPUT("INT32", "[3]", "[1,[2],3]"),
               "inputs[0] (x): data mixes arrays and values on one level");
    expect_bad(INPUT("INT32", "[2,2]", "[[1,2],3]"),
               "inputs[0] (x): data mixes arrays and values on one level");
    expect_bad(INPUT("INT32", "[1,1]", "[[[1]]]"),
               "inputs[0] (x): data is nested deeper than its shape's 2 dimensions");
    expect_bad(INPUT("INT32", "[1]", "7"), "inputs[0] (x): data must be an array");
}

static void compares_data_with_shape(void **state) {
    (void)state;
    expect_bad(INPUT("FP32", "[1,8]", "[1,2,3,4,5,6,7]"),
               "inputs[0] (x): data has 7 elements, shape [1,8] needs 8");
    expect_bad(INPUT("FP32", "[2]", "[1,2,3]"),
               "inputs[0] (x): data has 3 elements, shape [2] needs 2");
    expect_bad(INPUT("BYTES", "[2]", "[\"a\"]"),
               "inputs[0] (x): data has 1 elements, shape [2] needs 2");
    /* Reserves nothing for what cannot be there. */
    expect_bad(INPUT("FP32", "[1000000000000]", "[1]"),
               "inputs[0] (x): data has 1 elements, shape [1000000000000] needs 1000000000000");
    expect_bad(INPUT("FP32", "[9223372036854775807,9223372036854775807]", "[1]"),
               "inputs[0] (x): shape has more elements than can be counted");
    expect_bad(INPUT("FP32", "[-1]", "[1]"),
               "inputs[0] (x): shape[0] is -1, not a whole number of elements");
    expect_bad(INPUT("FP32", "[1.0]", "[1]"),
               "inputs[0] (x): shape[0] is 1.0, not a whole number of elements");
    expect_bad(INPUT("FP32", "[1,1,1,1,1,1,1,1,1]", "[1]"),
               "inputs[0] (x): shape has more than 8 dimensions");
    expect_bad(INPUT("FP32", "1", "[1]"), "inputs[0] (x): shape must be an array of integers");
}

static void names_what_is_missing_or_doubled(void **state) {
    (void)state;
    expect_bad("{}", "inputs is missing");
    expect_bad("{\"inputs\":{}}", "inputs must be an array");
    expect_bad("{\"inputs\":[7]}", "inputs[0]: must be an object");
    expect_bad("{\"inputs\":[{}]}", "inputs[0]: name must be a string that is not empty");
    expect_bad("{\"inputs\":[{\"name\":\"x\"}]}", "inputs[0] (x): datatype is missing");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FLOAT\"}]}",
               "inputs[0] (x): datatype \"FLOAT\" is unknown (FP32, INT64, BYTES, ...)");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\"}]}",
               "inputs[0] (x): shape is missing");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
               "inputs[0] (x): data is missing");
    expect_bad("{\"inputs\":[],\"inputs\":[]}", "inputs comes twice");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"name\":\"y\"}]}", "inputs[0]: name comes twice");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]},"
               "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}",
               "inputs[1] (x): has the same name as inputs[0]");
    expect_bad("{\"id\":5,\"inputs\":[]}", "id must be a string");
    expect_bad("{\"parameters\":{\"timeout\":1.5},\"inputs\":[]}",
               "parameters: timeout must be a whole number of microseconds");
    expect_bad("{\"parameters\":{\"timeout\":-1},\"inputs\":[]}",
               "parameters: timeout must be a whole number of microseconds");
    expect_bad("[]", "the JSON must be an object, not an array");
    expect_bad("", "the body is empty, it must begin with a JSON object");
}

#define ONE "\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1]}]"
static void checks_requested_outputs(void **state) {
    (void)state;
    expect_bad("{" ONE ",\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]}",
               "outputs[1] (y): has the same name as outputs[0]");
    expect_bad("{" ONE ",\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":1}}]}",
               "outputs[0] (y): binary_data must be true or false");
    expect_bad("{" ONE ",\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":-1}}]}",
               "outputs[0] (y): classification must be a number up to 1000000");
    expect_bad("{" ONE ",\"outputs\":[{\"name\":\"y\",\"parameters\":"
               "{\"shared_memory_region\":\"r\"}}]}",
               "outputs[0] (y): shared_memory_byte_size must be a number of bytes");
    expect_bad("{" ONE ",\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":1,"
               "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":4}}]}",
               "outputs[0] (y): has both classification and shared_memory_region: classes are sent");
    struct fixture f;
    expect_good(&f, "{" ONE ",\"outputs\":[]}");
    assert_int_equal(f.request.output_count, 0);
    done(&f);
}

#define SHARED(type, shape, parameters)                                                        \
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"" type "\",\"shape\":" shape                   \
    ",\"parameters\":{" parameters "}}]}"
#define REGION "\"shared_memory_region\":\"r\""

static void tells_which_tensors_are_in_shared_memory(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1]},"
                    "{\"name\":\"b\",\"datatype\":\"FP32\",\"shape\":[2,2],\"parameters\":{" REGION
                    ",\"shared_memory_offset\":64,\"shared_memory_byte_size\":16}}],"
                    "\"outputs\":[{\"name\":\"y\",\"parameters\":{" REGION
                    ",\"shared_memory_byte_size\":128}}]}");
    const struct shared_place *places = f.request.shared_inputs;
    assert_int_equal(places[0].region.size, 0);
    assert_true(view_is(places[1].region, "r"));
    assert_int_equal(places[1].offset, 64);
    assert_int_equal(places[1].size, 16);
    assert_null(f.request.inputs[1].data);
    assert_int_equal(f.request.inputs[1].size, 16);
    assert_true(view_is(f.request.outputs[0].shared.region, "r"));
    assert_int_equal(f.request.outputs[0].shared.offset, 0);
    assert_int_equal(f.request.outputs[0].shared.size, 128);
    done(&f);
    expect_good(&f, "{" ONE "}");
    assert_null(f.request.shared_inputs);
    done(&f);
}

static void refuses_places_in_shared_memory_that_cannot_be(void **state) {
    (void)state;
    expect_bad(SHARED("INT8", "[1]", "\"shared_memory_byte_size\":1"),
               "inputs[0] (x): shared_memory_region is missing");
    expect_bad(SHARED("INT8", "[1]", REGION),
               "inputs[0] (x): shared_memory_byte_size must be a number of bytes");
    expect_bad(SHARED("INT8", "[1]", REGION ",\"shared_memory_byte_size\":-1"),
               "inputs[0] (x): shared_memory_byte_size must be a number of bytes");
    expect_bad(SHARED("INT8", "[1]", REGION ",\"shared_memory_byte_size\":1,"
                                            "\"shared_memory_offset\":-8"),
               "inputs[0] (x): shared_memory_offset must be a number of bytes");
    expect_bad(SHARED("INT8", "[1]", "\"shared_memory_region\":\"\",\"shared_memory_byte_size\":1"),
               "inputs[0] (x): shared_memory_region must be a region's name");
    expect_bad(SHARED("INT32", "[2]", REGION ",\"shared_memory_byte_size\":4"),
               "inputs[0] (x): shared_memory_byte_size is 4, shape [2] of INT32 needs 8");
    expect_bad(SHARED("INT8", "[1]", REGION ",\"shared_memory_byte_size\":1,\"binary_data_size\":1"),
               "inputs[0] (x): has both binary_data_size and shared_memory_region");
    expect_bad("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1],"
               "\"parameters\":{" REGION ",\"shared_memory_byte_size\":1}}]}",
               "inputs[0] (x): has both data and shared_memory_region");
}

static void takes_a_priority_and_refuses_sequences(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, "{" ONE ",\"parameters\":{\"priority\":2,\"sequence_id\":0,"
                    "\"sequence_start\":false,\"sequence_end\":false,\"mine\":[1]}}");
    assert_int_equal(f.request.priority, 2);
    done(&f);
    expect_good(&f, "{" ONE ",\"parameters\":{\"sequence_id\":\"\"}}");
    done(&f);
    expect_bad("{" ONE ",\"parameters\":{\"priority\":-1}}",
               "parameters: priority must be a whole number from 0 on");
    expect_bad_binary("{" ONE ",\"parameters\":{\"sequence_id\":7}}", NULL, 0, ST_UNSUPPORTED,
                      "parameters: sequence_id: a model that keeps state between the requests of a "
                      "sequence is not supported");
    expect_bad_binary("{" ONE ",\"parameters\":{\"sequence_start\":true}}", NULL, 0, ST_UNSUPPORTED,
                      "parameters: sequence_start: a model that keeps state between the requests of "
                      "a sequence is not supported");
}

#define BINARY(type, shape, size)                                                              \
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"" type "\",\"shape\":" shape                   \
    ",\"parameters\":{\"binary_data_size\":" size "}}]}"

static void takes_binary_tensors_in_order(void **state) {
    (void)state;
    struct fixture f;
    expect_good_binary(&f, "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[3],"
                           "\"parameters\":{\"binary_data_size\":3}},"
                           "{\"name\":\"j\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[9]},"
                           "{\"name\":\"b\",\"datatype\":\"BYTES\",\"shape\":[1],"
                           "\"parameters\":{\"binary_data_size\":6}},"
                           "{\"name\":\"c\",\"datatype\":\"FP16\",\"shape\":[1]}]}",
                       "abc\2\0\0\0hiFF", 11);
    assert_memory_equal(f.request.inputs[0].data, "abc", 3);
    assert_memory_equal(f.request.inputs[1].data, "\11", 1);
    assert_memory_equal(f.request.inputs[2].data, "\2\0\0\0hi", 6);
    assert_memory_equal(f.request.inputs[3].data, "FF", 2); /* its size follows from its shape */
    done(&f);
}

static void checks_binary_sizes(void **state) {
    (void)state;
    expect_bad_binary(BINARY("FP32", "[2]", "4"), "abcd", 4, ST_INVALID,
                      "inputs[0] (x): binary_data_size is 4, shape [2] of FP32 needs 8");
    expect_bad_binary(BINARY("FP32", "[1]", "4"), "abc", 3, ST_INVALID,
                      "inputs[0] (x): binary_data_size is 4, only 3 bytes of binary data are left");
    expect_bad_binary(BINARY("FP32", "[1]", "4"), "abcde", 5, ST_INVALID,
                      "5 bytes follow the JSON, the inputs account for 4 of them");
    expect_bad_binary(BINARY("FP32", "[1]", "-4"), "abcd", 4, ST_INVALID,
                      "inputs[0] (x): binary_data_size must be a number of bytes");
    expect_bad_binary(BINARY("BYTES", "[1]", "5"), "\2\0\0\0h", 5, ST_INVALID,
                      "inputs[0] (x): its 5 bytes of binary data are not 1 elements, each a 4-byte "
                      "length and that many bytes");
    expect_bad_binary(BINARY("BOOL", "[2]", "2"), "\1\2", 2, ST_INVALID,
                      "inputs[0] (x): data[1] is 2, BOOL takes 0 or 1");
    expect_bad_binary("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1],"
                      "\"data\":[1],\"parameters\":{\"binary_data_size\":1}}]}", "a", 1, ST_INVALID,
                      "inputs[0] (x): has both data and binary_data_size");
    struct fixture f = {0};
    arena_init(&f.arena);
    f.body = body_of("{}", NULL, 0);
    assert_int_equal(infer_request_parse(f.body, 3, &f.arena, &f.request, &f.err), ST_INVALID);
    assert_string_equal(f.err.text,
                        "Inference-Header-Content-Length is 3, the body has only 2 bytes");
    done(&f);
}

static void survives_any_end_of_input(void **state) {
    (void)state;
    const char *json = "{\"id\":\"\\u00e9\\ud83d\\ude00\",\"inputs\":[{\"name\":\"x\",\"datatype\":"
                       "\"FP32\",\"shape\":[2],\"data\":[[1.5e1],[-2]]}],\"outputs\":[{\"name\":"
                       "\"y\"}]}";
    for (size_t size = 0; size < strlen(json); size++) {
        char part[256];
        memcpy(part, json, size);
        part[size] = '\0';
        struct fixture f = {0};
        assert_int_equal(parse_binary(&f, part, NULL, 0), ST_INVALID);
        assert_true(f.err.text[0] != '\0');
        done(&f);
    }
}

static void survives_deep_nesting(void **state) {
    (void)state;
    struct buf json;
    buf_init(&json);
    buf_text(&json, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":");
    for (int i = 0; i < 100000; i++)
        buf_char(&json, '[');
    buf_char(&json, '\0');
    struct fixture f = {0};
    assert_int_equal(parse_binary(&f, json.data, NULL, 0), ST_INVALID);
    done(&f);
    buf_done(&json);
}

static void floats_read_back_as_written(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    float *values = malloc(COUNT * sizeof *values);
    uint32_t bits = 1;
    for (int i = 0; i < COUNT; i++) {
        do
            bits = bits * 1664525u + 1013904223u;
        while ((bits >> 23 & 255) == 255);
        memcpy(&values[i], &bits, 4);
    }
    const struct tensor input = {.name = view_of("x"), .dtype = DTYPE_FP32, .rank = 1,
                                 .shape = {COUNT}, .data = values, .size = COUNT * 4};
    struct buf out;
    buf_init(&out);
    size_t json_size = 0;
    infer_request_write(&out, view_of(""), &input, 1, false, false, &json_size);
    assert_int_equal(json_size, out.size);
    buf_reserve(&out, PADDING);
    struct fixture f = {0};
    arena_init(&f.arena);
    assert_int_equal(infer_request_parse(buf_view(&out), json_size, &f.arena, &f.request, &f.err),
                     ST_OK);
    assert_memory_equal(f.request.inputs[0].data, values, COUNT * 4);
    done(&f);
    buf_done(&out);
    free(values);
}

/* One of each, at an odd address. */
static void responses_read_back_as_written(void **state) {
    (void)state;
    const struct { enum dtype dtype; const char *bytes; size_t size; } cases[] = {
        {DTYPE_BOOL, "\1\0", 2}, {DTYPE_UINT8, "\377\0", 2}, {DTYPE_UINT16, "\377\377\0\1", 4},
        {DTYPE_UINT32, "\377\377\377\377\0\0\0\0", 8},
        {DTYPE_UINT64, "\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\200", 16},
        {DTYPE_INT8, "\200\177", 2}, {DTYPE_INT16, "\0\200\1\0", 4},
        {DTYPE_INT32, "\0\0\0\200\377\377\377\377", 8},
        {DTYPE_INT64, "\0\0\0\0\0\0\0\200\377\377\377\377\377\377\377\177", 16},
        {DTYPE_FP32, "\377\377\177\377\1\0\0\0", 8},
        {DTYPE_FP32, "\0\0\0\200\0\0\0\0", 8}, /* the two zeros */
        {DTYPE_FP64, "\377\377\377\377\377\377\357\177\1\0\0\0\0\0\0\0", 16},
        {DTYPE_BYTES, "\2\0\0\0\"\n\0\0\0\0", 10}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const bool binary = i % 2 == 1;
        char odd[40] = "?";
        memcpy(odd + 1, cases[i / 2].bytes, cases[i / 2].size);
        const struct infer_output output = {
            .tensor = {.name = view_of("y\""), .dtype = cases[i / 2].dtype, .rank = 2,
                       .shape = {1, 2}, .data = odd + 1, .size = cases[i / 2].size},
            .binary = binary};
        struct buf out;
        buf_init(&out);
        size_t json_size = 99;
        struct fixture f = {0};
        arena_init(&f.arena);
        assert_int_equal(infer_response_write(&out, view_of("m"), view_of("1"), view_of("id"),
                                              &output, 1, "\"simulated\":true", &json_size, &f.err),
                         ST_OK);
        assert_true(binary ? json_size < out.size && json_size > 0 : json_size == 0);
        buf_reserve(&out, PADDING);
        struct infer_response response;
        assert_int_equal(infer_response_parse(buf_view(&out), binary ? json_size : out.size,
                                              &f.arena, &response, &f.err), ST_OK);
        assert_true(view_is(response.model_name, "m") && view_is(response.model_version, "1") &&
                    view_is(response.id, "id"));
        assert_int_equal(response.output_count, 1);
        assert_true(view_is(response.outputs[0].name, "y\""));
        assert_int_equal(response.outputs[0].size, cases[i / 2].size);
        assert_memory_equal(response.outputs[0].data, cases[i / 2].bytes, cases[i / 2].size);
        done(&f);
        buf_done(&out);
    }
}

static void expect_write_fault(enum dtype dtype, const void *data, size_t size,
                               enum status expected, const char *sentence) {
    const struct infer_output output = {.tensor = {.name = view_of("y"), .dtype = dtype, .rank = 1,
                                                   .shape = {1}, .data = data, .size = size}};
    struct buf out;
    struct err err;
    size_t json_size = 0;
    buf_init(&out);
    buf_text(&out, "before");
    assert_int_equal(infer_response_write(&out, view_of("m"), view_of(""), view_of(""), &output, 1,
                                          NULL, &json_size, &err), expected);
    assert_string_equal(err.text, sentence);
    assert_true(view_is(buf_view(&out), "before"));
    size_t request_size = 0;
    infer_request_write(&out, view_of(""), &output.tensor, 1, false, false, &request_size);
    assert_true(out.failed || dtype == DTYPE_FP16);
    buf_done(&out);
}

static void refuses_to_write_what_json_cannot_carry(void **state) {
    (void)state;
    const float nan = NAN;
    const double infinite = -INFINITY;
    expect_write_fault(DTYPE_FP32, &nan, 4, ST_INVALID, "tensor y: element 0 is NaN or infinite, "
                       "which JSON cannot carry: ask for binary_data");
    expect_write_fault(DTYPE_FP64, &infinite, 8, ST_INVALID, "tensor y: element 0 is NaN or "
                       "infinite, which JSON cannot carry: ask for binary_data");
    expect_write_fault(DTYPE_FP16, "ab", 2, ST_INVALID, "tensor y is FP16, which JSON cannot "
                       "carry: ask for binary_data");
    expect_write_fault(DTYPE_BYTES, "\1\0\0\0\377", 5, ST_INVALID, "tensor y: element 0 is not "
                       "UTF-8, which JSON cannot carry: ask for binary_data");
    expect_write_fault(DTYPE_FP32, &infinite, 8, ST_INTERNAL,
                       "tensor y: 8 bytes do not fit its shape");
}

static void tells_a_client_what_the_server_answered(void **state) {
    (void)state;
    struct fixture f = {0};
    struct infer_response response;
    arena_init(&f.arena);
    f.body = body_of("{\"error\":\"model m is not here\"}", NULL, 0);
    assert_int_equal(infer_response_parse(f.body, f.body.size, &f.arena, &response, &f.err),
                     ST_INVALID);
    assert_string_equal(f.err.text, "the server answered: model m is not here");
    done(&f);
}

static void reads_model_metadata(void **state) {
    (void)state;
    struct fixture f = {0};
    struct model_metadata metadata;
    arena_init(&f.arena);
    f.body = body_of("{\"name\":\"m\",\"versions\":[\"1\"],\"platform\":\"onnxruntime_onnx\","
                     "\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT64\",\"shape\":[-1,-1]}],"
                     "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]}]}",
                     NULL, 0);
    assert_int_equal(model_metadata_parse(f.body, &f.arena, &metadata, &f.err), ST_OK);
    assert_true(view_is(metadata.platform, "onnxruntime_onnx"));
    assert_int_equal(metadata.input_count, 1);
    assert_int_equal(metadata.inputs[0].shape[1], -1);
    assert_int_equal(metadata.outputs[0].dtype, DTYPE_FP32);
    assert_int_equal(metadata.outputs[0].shape[1], 2);
    done(&f);
}

static void a_model_may_have_no_inputs(void **state) {
    (void)state;
    struct fixture f;
    expect_good(&f, "{\"inputs\":[]}");
    assert_int_equal(f.request.input_count, 0);
    done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_which_tensors_are_in_shared_memory),
        cmocka_unit_test(refuses_places_in_shared_memory_that_cannot_be),
        cmocka_unit_test(takes_a_priority_and_refuses_sequences),
        cmocka_unit_test(reads_a_whole_request),
        cmocka_unit_test(keeps_integers_exact_over_their_range),
        cmocka_unit_test(refuses_integers_out_of_range),
        cmocka_unit_test(refuses_fractions_and_exponents_for_integers),
        cmocka_unit_test(reads_floats),
        cmocka_unit_test(writes_whole_numbers_beyond_64_bits_as_floats),
        cmocka_unit_test(refuses_floats_out_of_range),
        cmocka_unit_test(refuses_values_of_other_types),
        cmocka_unit_test(reads_bools_and_bytes),
        cmocka_unit_test(takes_flat_and_nested_data),
        cmocka_unit_test(compares_data_with_shape),
        cmocka_unit_test(names_what_is_missing_or_doubled),
        cmocka_unit_test(checks_requested_outputs),
        cmocka_unit_test(takes_binary_tensors_in_order),
        cmocka_unit_test(checks_binary_sizes),
        cmocka_unit_test(survives_any_end_of_input),
        cmocka_unit_test(survives_deep_nesting),
        cmocka_unit_test(floats_read_back_as_written),
        cmocka_unit_test(responses_read_back_as_written),
        cmocka_unit_test(refuses_to_write_what_json_cannot_carry),
        cmocka_unit_test(tells_a_client_what_the_server_answered),
        cmocka_unit_test(reads_model_metadata),
        cmocka_unit_test(a_model_may_have_no_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How the body of an inference request is to be read, from its header; and a body that is the
 * element of a BYTES input, which is not copied. */
#include "serve/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct model model = {.name = "faces"};

/* IMAGE, TEXT (BYTES) and SIZE (FP32), as many of them as asked for. */
static struct served_model model_with(uint32_t bytes_inputs, uint32_t tensor_inputs) {
    static char NAMES[2][8] = {"IMAGE", "TEXT"};
    struct served_model served = {.model = &model};
    for (uint32_t i = 0; i < bytes_inputs; i++)
        served.shown.inputs[served.shown.input_count++] =
            (struct io_spec){.name = NAMES[i], .dtype = DTYPE_BYTES, .rank = 1, .shape = {-1}};
    for (uint32_t i = 0; i < tensor_inputs; i++)
        served.shown.inputs[served.shown.input_count++] = (struct io_spec){
            .name = "SIZE", .dtype = DTYPE_FP32, .rank = 2, .shape = {-1, 2}};
    return served;
}

struct fixture {
    struct http_parser *parser;
    const struct http_message *message;
};

static struct fixture message_of(const char *headers, const char *body) {
    struct fixture out = {.parser = http_parser_create(
                              false, (struct http_limits){.max_header_bytes = 4096,
                                                          .max_body_bytes = 1 << 21})};
    char *text = malloc(strlen(headers) + strlen(body) + 128);
    size_t used = 0;
    assert_non_null(text);
    const int size = sprintf(text, "POST /i HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n%s",
                             strlen(body), headers, body);
    enum http_event event = http_parser_feed(out.parser, text, (size_t)size, &used);
    if (event == HTTP_HEADERS)
        event = http_parser_feed(out.parser, text + used, (size_t)size - used, &used);
    assert_int_equal(event, HTTP_COMPLETE);
    free(text);
    out.message = http_parser_message(out.parser);
    return out;
}

static void expect(const struct served_model *served, const char *headers,
                   enum infer_body_kind kind) {
    struct fixture fixture = message_of(headers, "{}");
    struct infer_body body;
    struct err err = {.text = ""};
    assert_int_equal(infer_body_of(fixture.message, served, &body, &err), ST_OK);
    if (body.kind != kind) fail_msg("%s: kind %d", headers, (int)body.kind);
    if (kind != INFER_BODY_JSON) assert_non_null(body.input);
    http_parser_free(fixture.parser);
}

static void expect_fault(const struct served_model *served, const char *headers,
                         enum status status, const char *text) {
    struct fixture fixture = message_of(headers, "{}");
    struct infer_body body;
    struct err err = {.text = ""};
    assert_int_equal(infer_body_of(fixture.message, served, &body, &err), status);
    if (strstr(err.text, text) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    http_parser_free(fixture.parser);
}

static void the_type_of_the_content_says_what_the_body_is(void **state) {
    (void)state;
    const struct served_model faces = model_with(1, 0), mixed = model_with(1, 1),
                              tensors = model_with(0, 1);
    expect(&faces, "", INFER_BODY_JSON);
    expect(&faces, "Content-Type: application/json\r\n", INFER_BODY_JSON);
    expect(&faces, "Content-Type: image/jpeg\r\n", INFER_BODY_ELEMENT);
    expect(&faces, "content-type: IMAGE/PNG\r\n", INFER_BODY_ELEMENT);
    expect(&faces, "Content-Type: text/plain\r\n", INFER_BODY_ELEMENT);
    expect(&faces, "Content-Type: text/plain;charset=utf-8\r\n", INFER_BODY_ELEMENT);
    expect(&faces, "Content-Type: text/plainly\r\n", INFER_BODY_JSON);
    expect(&faces, "Content-Type: image\r\n", INFER_BODY_JSON);
    expect(&faces, "Content-Type: application/octet-stream\r\n", INFER_BODY_ELEMENT);
    expect(&mixed, "Content-Type: application/octet-stream\r\n", INFER_BODY_JSON);
    expect(&mixed, "Content-Type: image/jpeg\r\n", INFER_BODY_ELEMENT);
    expect(&tensors, "Content-Type: application/octet-stream\r\n", INFER_BODY_JSON);
    expect(&tensors, "Inference-Header-Content-Length: 0\r\n", INFER_BODY_TENSOR);
}

static void the_length_of_the_json_part_goes_before_the_type(void **state) {
    (void)state;
    const struct served_model faces = model_with(1, 0);
    expect(&faces, "Content-Type: image/jpeg\r\nInference-Header-Content-Length: 2\r\n",
           INFER_BODY_JSON);
    expect(&faces, "Content-Type: image/jpeg\r\nInference-Header-Content-Length: 0\r\n",
           INFER_BODY_TENSOR);
}

static void models_without_one_bytes_input_refuse_and_name_the_remedy(void **state) {
    (void)state;
    const struct served_model none = model_with(0, 1), two = model_with(2, 0);
    expect_fault(&none, "Content-Type: image/jpeg\r\n", ST_UNSUPPORTED_TYPE, "pipeline.yaml");
    struct served_model texts = model_with(1, 0);
    texts.is_text = true;
    expect(&texts, "Content-Type: text/plain\r\n", INFER_BODY_ELEMENT);
    expect_fault(&texts, "Content-Type: image/jpeg\r\n", ST_UNSUPPORTED_TYPE, "takes texts, not pictures");
    expect_fault(&two, "Content-Type: text/plain\r\n", ST_UNSUPPORTED_TYPE, "IMAGE first");
    expect_fault(&two, "Inference-Header-Content-Length: 0\r\n", ST_INVALID, "one input");
    expect_fault(&two, "Content-Encoding: gzip\r\n", ST_UNSUPPORTED_TYPE, "gzip");
}

static void large_json_is_large_and_large_elements_are_not(void **state) {
    (void)state;
    struct infer_body body = {.kind = INFER_BODY_JSON, .bytes = {.size = 16384}, .json_size = 16384};
    assert_false(infer_body_is_large(&body));
    body.json_size = body.bytes.size = 16385;
    assert_true(infer_body_is_large(&body));
    body = (struct infer_body){.kind = INFER_BODY_JSON, .bytes = {.size = 600000}, .json_size = 300};
    assert_false(infer_body_is_large(&body)); /* tensors in binary are not read */
    body.bytes.size = 2000000;
    assert_true(infer_body_is_large(&body));
    body = (struct infer_body){.kind = INFER_BODY_ELEMENT, .bytes = {.size = 2000000}};
    assert_false(infer_body_is_large(&body));
}

static void decode_element(const char *bytes, const char *headers) {
    const struct served_model faces = model_with(1, 0);
    struct fixture fixture = message_of(headers, bytes);
    struct exchange exchange = {.wants_binary = false};
    struct infer_request parsed = {.id = {.data = NULL}};
    struct view element;
    request_init(&exchange.request);
    assert_int_equal(infer_body_of(fixture.message, &faces, &exchange.incoming,
                                   &exchange.request.err), ST_OK);
    assert_int_equal(infer_decode(&exchange, &parsed), ST_OK);
    assert_int_equal(exchange.request.input_count, 1);
    const struct tensor *input = &exchange.request.inputs[0];
    assert_true(view_is(input->name, "IMAGE"));
    assert_int_equal(input->dtype, DTYPE_BYTES);
    assert_true(input->rank == 1 && input->shape[0] == 1);
    assert_true(tensor_bytes_valid(input->data, input->size, 1));
    assert_true(tensor_bytes_at(input, 0, &element));
    assert_int_equal(element.size, strlen(bytes));
    if (element.size > 0) assert_ptr_equal(element.data, fixture.message->body.data);
    request_done(&exchange.request);
    http_parser_free(fixture.parser);
}

static void an_element_is_the_body_itself_with_its_length_before_it(void **state) {
    (void)state;
    decode_element("a picture", "Content-Type: image/jpeg\r\n");
    decode_element("x", "Inference-Header-Content-Length: 0\r\n");
    decode_element("", "Content-Type: text/plain\r\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_type_of_the_content_says_what_the_body_is),
        cmocka_unit_test(the_length_of_the_json_part_goes_before_the_type),
        cmocka_unit_test(models_without_one_bytes_input_refuse_and_name_the_remedy),
        cmocka_unit_test(large_json_is_large_and_large_elements_are_not),
        cmocka_unit_test(an_element_is_the_body_itself_with_its_length_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory runs out while messages are read and written: ST_NO_MEMORY, a sentence, nothing left
 * behind, and nothing written that looks whole. */
#include "memory.h"

#include "proto/compress.h"
#include "proto/http1.h"
#include "proto/infer_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
/* after the above */
#include <cmocka.h>

enum { MANY = 3000 }; /* numbers: more than an arena's first block holds */

/* A request with JSON numbers, texts, an id that has to be unescaped, outputs; 64 bytes follow. */
static struct view make_request(void) {
    struct buf out;
    buf_init(&out);
    buf_text(&out, "{\"id\":\"a\\u00e9\",\"outputs\":[{\"name\":\"y\"},{\"name\":\"z\"}],"
                   "\"inputs\":[{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[2],"
                   "\"data\":[\"one\",\"two\"]},"
                   "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[");
    buf_u64(&out, MANY);
    buf_text(&out, "],\"data\":[0");
    for (int i = 1; i < MANY; i++) {
        buf_text(&out, ",0.5");
    }
    buf_text(&out, "]}]}");
    const size_t size = out.size;
    for (int i = 0; i < 64; i++) {
        buf_char(&out, '7');
    }
    assert_false(out.failed);
    return (struct view){.data = out.data, .size = size};
}

static void reading_a_request_survives_every_allocation_that_fails(void **state) {
    (void)state;
    const struct view body = make_request();
    struct arena first; /* libsimdjson's own start, which does without what it does not get */
    struct infer_request ignored;
    arena_init(&first);
    assert_int_equal(infer_request_parse(body, body.size, &first, &ignored, NULL), ST_OK);
    arena_done(&first);
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct arena arena;
        struct infer_request request = {.input_count = 77};
        struct err err = {.text = ""};
        arena_init(&arena);
        memory_runs_out(&shortage);
        const enum status status = infer_request_parse(body, body.size, &arena, &request, &err);
        memory_is_back(&shortage);
        if (status == ST_OK) {
            assert_int_equal(shortage.refused, 0);
            assert_int_equal(request.input_count, 2);
            assert_int_equal(request.output_count, 2);
            assert_int_equal(request.inputs[1].size, MANY * sizeof(float));
        } else {
            assert_int_equal(status, ST_NO_MEMORY);
            assert_int_equal(request.input_count, 77); /* untouched */
            assert_true(err.text[0] != '\0');
        }
        arena_done(&arena);
    }
    assert_true(shortage.runs >= 3);
    free((char *)body.data);
}

static void *read_without_memory(void *argument) {
    const struct view body = *(const struct view *)argument;
    struct arena arena;
    struct infer_request request;
    struct err err;
    struct shortage none_left = {0};
    arena_init(&arena);
    memory_runs_out(&none_left);
    const enum status status = infer_request_parse(body, body.size, &arena, &request, &err);
    memory_is_back(&none_left);
    arena_done(&arena);
    return (void *)(uintptr_t)status;
}

/* A thread's first request makes its parser. */
static void a_threads_first_request_without_memory_fails_alone(void **state) {
    (void)state;
    struct view body = make_request();
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result = NULL;
        assert_int_equal(pthread_create(&thread, NULL, read_without_memory, &body), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal((uintptr_t)result, ST_NO_MEMORY);
    }
    free((char *)body.data);
}

/* The same with an arena that is used up already, so that every small piece allocates. */
static void reading_with_a_full_arena_survives_every_allocation_that_fails(void **state) {
    (void)state;
    const struct view body = make_request();
    for (size_t used = 0; used < 4032; used += 8) {
        struct arena arena;
        struct infer_request request = {.input_count = 77};
        struct err err = {.text = ""};
        arena_init(&arena);
        assert_non_null(arena_alloc(&arena, used));
        struct shortage none_left = {0};
        memory_runs_out(&none_left);
        const enum status status = infer_request_parse(body, body.size, &arena, &request, &err);
        memory_is_back(&none_left);
        assert_int_equal(status, ST_NO_MEMORY); /* MANY numbers never fit */
        assert_int_equal(request.input_count, 77);
        assert_true(err.text[0] != '\0');
        arena_done(&arena);
    }
    free((char *)body.data);
}

static void writing_an_answer_survives_every_allocation_that_fails(void **state) {
    (void)state;
    static float values[MANY];
    const struct infer_output outputs[2] = {
        {.tensor = {.name = view_of("x"), .dtype = DTYPE_FP32, .rank = 1, .shape = {MANY},
                    .data = values, .size = sizeof values}},
        {.tensor = {.name = view_of("y"), .dtype = DTYPE_FP32, .rank = 1, .shape = {MANY},
                    .data = values, .size = sizeof values},
         .binary = true}};
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct buf out;
        size_t json_size = 0;
        struct err err = {.text = ""};
        buf_init(&out);
        memory_runs_out(&shortage);
        const enum status status =
            infer_response_write(&out, view_of("m"), view_of("1"), view_of("id"), outputs, 2, NULL,
                                 &json_size, &err);
        memory_is_back(&shortage);
        if (status == ST_OK) {
            assert_int_equal(shortage.refused, 0);
            assert_int_equal(out.size, json_size + sizeof values);
        } else {
            assert_int_equal(status, ST_NO_MEMORY);
            assert_int_equal(out.size, 0); /* the size that it came with */
            assert_true(err.text[0] != '\0');
        }
        buf_done(&out);
    }
    assert_true(shortage.runs >= 4);
}

static void http_messages_survive_every_allocation_that_fails(void **state) {
    (void)state;
    struct buf message;
    buf_init(&message);
    buf_text(&message, "POST /v2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nLong: ");
    for (int i = 0; i < 5000; i++) {
        buf_char(&message, 'a');
    }
    buf_text(&message, "\r\n\r\n");
    for (int chunk = 0; chunk < 20; chunk++) {
        buf_printf(&message, "400\r\n%01024d\r\n", chunk);
    }
    buf_text(&message, "0\r\n\r\n");
    assert_false(message.failed);
    const struct http_limits limits = {.max_header_bytes = 65536, .max_body_bytes = 1 << 20};
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        enum http_event event = HTTP_NEED_MORE;
        memory_runs_out(&shortage);
        struct http_parser *parser = http_parser_create(false, limits);
        for (size_t at = 0, used = 0; parser != NULL && at < message.size; at += used) {
            event = http_parser_feed(parser, message.data + at, message.size - at, &used);
            if (event == HTTP_COMPLETE || event == HTTP_FAILED) {
                break;
            }
        }
        memory_is_back(&shortage);
        struct err err = {.text = ""};
        if (event == HTTP_COMPLETE) {
            assert_int_equal(shortage.refused, 0);
            assert_int_equal(http_parser_message(parser)->body.size, 20 * 1024);
        } else {
            assert_true(parser == NULL || event == HTTP_FAILED);
            assert_true(parser == NULL || http_parser_status(parser, &err) == ST_NO_MEMORY);
            assert_true(parser == NULL || err.text[0] != '\0');
        }
        http_parser_free(parser);
    }
    assert_true(shortage.runs >= 8);
    buf_done(&message);
}

static void coded_bodies_survive_every_allocation_that_fails(void **state) {
    (void)state;
    char text[40000];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i * i % 23);
    }
    const struct view plain = {.data = text, .size = sizeof text};
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct buf coded;
        struct view again = {.data = NULL};
        char *memory = NULL;
        struct err err = {.text = ""};
        buf_init(&coded);
        memory_runs_out(&shortage);
        enum status status = deflate_body(CODING_GZIP, COMPRESS_FASTEST, plain, &coded, &err);
        const struct inflate_limits limits = {.max_size = sizeof text};
        if (status == ST_OK) {
            status = inflate_body(CODING_GZIP, buf_view(&coded), limits, &memory, &again, &err);
        }
        memory_is_back(&shortage);
        assert_int_equal(status, shortage.refused > 0 ? ST_NO_MEMORY : ST_OK);
        assert_true(status == ST_OK ? view_eq(again, plain) : memory == NULL && err.text[0]);
        free(memory);
        buf_done(&coded);
    }
    assert_true(shortage.runs >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_a_request_survives_every_allocation_that_fails),
        cmocka_unit_test(a_threads_first_request_without_memory_fails_alone),
        cmocka_unit_test(reading_with_a_full_arena_survives_every_allocation_that_fails),
        cmocka_unit_test(writing_an_answer_survives_every_allocation_that_fails),
        cmocka_unit_test(http_messages_survive_every_allocation_that_fails),
        cmocka_unit_test(coded_bodies_survive_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

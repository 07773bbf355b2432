/* Inputs: from files to tensors and request bodies. */
#include "load/inputs.h"

#include "load/target.h"
#include "prep/tokenizer.h"
#include "proto/infer_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char directory[64];

static void path_of(const char *name, char *out, size_t out_size) {
    snprintf(out, out_size, "%s/%s", directory, name);
}

static void write_file(const char *name, const char *text) {
    char path[128];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static struct inputs load(const char *kind, const char *name, enum status expected) {
    char spec[192];
    struct inputs inputs = {0};
    struct err err = {0};
    snprintf(spec, sizeof spec, "%s:%s%s%s", kind, directory, *name == 0 ? "" : "/", name);
    assert_int_equal(inputs_load(spec, &inputs, &err), expected);
    inputs.source = "test";
    return inputs;
}

static int make_directory(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/telltale-inputs-XXXXXX");
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static void a_file_gives_a_text_a_line_without_blank_ones(void **state) {
    (void)state;
    write_file("lines.txt", "one\r\n\n  \nzwei \xc3\xa4\nlast");
    struct inputs inputs = load("text", "lines.txt", ST_OK);
    assert_int_equal(inputs.count, 3);
    assert_true(view_is(inputs.items[0].raw, "one"));
    assert_true(view_is(inputs.items[1].raw, "zwei \xc3\xa4"));
    assert_true(view_is(inputs.items[2].raw, "last"));
    inputs_done(&inputs);
}

static void a_directory_gives_a_text_a_file_in_order_of_paths(void **state) {
    (void)state;
    char path[128];
    path_of("mails", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("mails/b", "second\nwith two lines\n");
    write_file("mails/a", "first");
    write_file("mails/empty", "");
    write_file("mails/.hidden", "no");
    path_of("mails/c", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("mails/c/below", "third");
    struct inputs inputs = load("text", "mails", ST_OK);
    assert_int_equal(inputs.count, 3);
    assert_true(view_is(inputs.items[2].raw, "third"));
    assert_true(view_is(inputs.items[0].raw, "first"));
    assert_true(view_is(inputs.items[1].raw, "second\nwith two lines\n"));
    inputs_done(&inputs);
}

static void what_cannot_be_read_is_an_error(void **state) {
    (void)state;
    struct inputs inputs;
    write_file("blank.txt", "\n \n");
    load("text", "blank.txt", ST_INVALID);
    load("text", "nowhere", ST_NOT_FOUND);
    load("json", "", ST_INVALID); /* a directory */
    assert_int_equal(inputs_load("text:", &inputs, NULL), ST_INVALID);
    assert_int_equal(inputs_load("csv:x", &inputs, NULL), ST_INVALID);
}

static const int64_t ANY[] = {-1};
static const struct input_spec TEXT_SPEC = {{"TEXT", 4}, DTYPE_BYTES, 1, ANY};

static void a_text_becomes_a_bytes_tensor_and_a_body_around_the_id(void **state) {
    (void)state;
    write_file("text.txt", "say \"hi\"\n");
    struct inputs inputs = load("text", "text.txt", ST_OK);
    struct input_shape shape = {&TEXT_SPEC, 1};
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, NULL), ST_OK);
    assert_int_equal(inputs_render(&inputs, false, NULL), ST_OK);
    const struct input *input = &inputs.items[0];
    assert_int_equal(input->tensors[0].size, 4 + 8);
    assert_int_equal(input->json_size, 0);
    struct buf body;
    buf_init(&body);
    buf_append(&body, input->body_head.data, input->body_head.size);
    buf_text(&body, "b1-7");
    buf_append(&body, input->body_tail.data, input->body_tail.size);
    size_t size = body.size;
    for (int i = 0; i < 64; i++) buf_char(&body, 0);
    struct infer_request request;
    struct err err = {0};
    struct view text, whole = {body.data, size};
    assert_int_equal(infer_request_parse(whole, size, &inputs.arena, &request, &err), ST_OK);
    assert_true(view_is(request.id, "b1-7"));
    assert_int_equal(request.input_count, 1);
    assert_true(tensor_bytes_at(&request.inputs[0], 0, &text));
    assert_true(view_is(text, "say \"hi\""));
    buf_done(&body);
    inputs_done(&inputs);
}

static void binary_bodies_say_the_size_of_their_json_part(void **state) {
    (void)state;
    static const int64_t SHAPE[] = {-1, 16};
    static const struct input_spec SPEC = {{"INPUT0", 6}, DTYPE_FP32, 2, SHAPE};
    struct inputs inputs;
    struct input_shape shape = {&SPEC, 1};
    assert_int_equal(inputs_load(NULL, &inputs, NULL), ST_OK);
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, NULL), ST_OK);
    assert_int_equal(inputs_render(&inputs, true, NULL), ST_OK);
    const struct input *input = &inputs.items[1];
    assert_int_equal(input->tensors[0].size, 64);
    assert_memory_not_equal(input->tensors[0].data, inputs.items[0].tensors[0].data, 64);
    size_t size = input->body_head.size + input->body_tail.size;
    assert_int_equal(size - input->json_size, 64); /* without the id */
    assert_memory_equal(input->body_tail.data + input->body_tail.size - 64,
                        input->tensors[0].data, 64);
    inputs_done(&inputs);
}

static void a_ready_body_loses_its_own_id(void **state) {
    (void)state;
    write_file("bodies", "{\"inputs\":[],\"id\":\"x\"}\n{\"inputs\":[]}\n");
    struct inputs inputs = load("json", "bodies", ST_OK);
    assert_int_equal(inputs_render(&inputs, false, NULL), ST_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_true(view_is(inputs.items[i].body_head, "{\"id\":\""));
        assert_true(view_is(inputs.items[i].body_tail, "\",\"inputs\":[]}"));
    }
    inputs_done(&inputs);
    write_file("broken", "{\"inputs\":}");
    inputs = load("json", "broken", ST_OK);
    struct err err = {0};
    assert_int_equal(inputs_render(&inputs, false, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "input 1"));
    inputs_done(&inputs);
}

static void tokens_are_sent_as_ids_and_counted(void **state) {
    (void)state;
    struct tokenizer *tokenizer;
    const char *path = TEST_SOURCE_DIR "/examples/spam/tokenizer.json";
    if (access(path, R_OK) != 0) skip();
    assert_int_equal(tokenizer_load(path, &tokenizer, NULL), ST_OK);
    write_file("ids.txt", "free money now\n");
    struct inputs inputs = load("text", "ids.txt", ST_OK);
    struct input_shape shape = {&TEXT_SPEC, 1};
    assert_int_equal(inputs_make_tensors(&inputs, shape, tokenizer, true, 0, 1, NULL), ST_OK);
    const struct input *input = &inputs.items[0];
    assert_int_equal(input->tensor_count, 3);
    assert_true(view_is(input->tensors[0].name, "input_ids"));
    assert_true(input->tokens >= 5); /* with [CLS] and [SEP] */
    assert_int_equal(input->tensors[1].shape[1], input->tokens);
    assert_int_equal(((const int64_t *)input->tensors[1].data)[input->tokens - 1], 1);
    tokenizer_free(tokenizer);
    inputs_done(&inputs);
}

static void the_order_is_a_permutation_that_the_seed_decides(void **state) {
    (void)state;
    struct inputs inputs;
    assert_int_equal(inputs_load("random", &inputs, NULL), ST_OK);
    uint32_t first[64], seen[64] = {0};
    assert_int_equal(inputs.count, 64);
    assert_int_equal(inputs_shuffle(&inputs, false, 3, NULL), ST_OK);
    for (size_t i = 0; i < 64; i++) seen[first[i] = inputs.order[i]]++;
    for (size_t i = 0; i < 64; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(inputs_shuffle(&inputs, false, 3, NULL), ST_OK);
    assert_memory_equal(first, inputs.order, sizeof first);
    assert_int_equal(inputs_shuffle(&inputs, false, 4, NULL), ST_OK);
    assert_memory_not_equal(first, inputs.order, sizeof first);
    assert_int_equal(inputs_shuffle(&inputs, true, 4, NULL), ST_OK);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(inputs.order[i], i);
    inputs_done(&inputs);
}

static void urls_are_taken_apart(void **state) {
    (void)state;
    struct http_url url;
    assert_int_equal(http_url_parse("http://127.0.0.1:8000/", &url, NULL), ST_OK);
    assert_string_equal(url.host, "127.0.0.1");
    assert_int_equal(url.port, 8000);
    assert_string_equal(url.prefix, "");
    assert_int_equal(http_url_parse("http://[::1]:9/a/b", &url, NULL), ST_OK);
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 9);
    assert_string_equal(url.prefix, "/a/b");
    assert_int_equal(http_url_parse("http://host", &url, NULL), ST_OK);
    assert_int_equal(url.port, 80);
    const char *const bad[] = {"https://x", "http://", "http://:80", "http://x:0", "http://x:65536",
                               "http://x:1x", "http://x:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(http_url_parse(bad[i], &url, NULL), ST_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_a_text_a_line_without_blank_ones),
        cmocka_unit_test(a_directory_gives_a_text_a_file_in_order_of_paths),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(a_text_becomes_a_bytes_tensor_and_a_body_around_the_id),
        cmocka_unit_test(binary_bodies_say_the_size_of_their_json_part),
        cmocka_unit_test(a_ready_body_loses_its_own_id),
        cmocka_unit_test(tokens_are_sent_as_ids_and_counted),
        cmocka_unit_test(the_order_is_a_permutation_that_the_seed_decides),
        cmocka_unit_test(urls_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

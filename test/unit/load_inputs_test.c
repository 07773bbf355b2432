/* Inputs: from files to tensors and request bodies. */
#include "load/inputs.h"

#include "load/target.h"
#include "prep/base64.h"
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

static void write_bytes(const char *name, const void *bytes, size_t size) {
    char path[128];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *name, const char *text) { write_bytes(name, text, strlen(text)); }

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
    assert_false(url.is_tls);
    assert_int_equal(http_url_parse("https://host/a", &url, NULL), ST_OK);
    assert_true(url.is_tls);
    assert_int_equal(url.port, 443);
    assert_string_equal(url.host, "host");
    assert_int_equal(http_url_parse("http://host", &url, NULL), ST_OK);
    assert_int_equal(url.port, 80);
    const char *const bad[] = {"ftp://x", "https://", "http://", "http://:80", "http://x:0", "http://x:65536",
                               "http://x:1x", "http://x:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(http_url_parse(bad[i], &url, NULL), ST_INVALID);
}

static const unsigned char JPEG[] = {0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1};
static const unsigned char PNG[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D',
                                    'R', 0, 0};

static void make_pictures(void) {
    char path[128];
    path_of("pictures", path, sizeof path);
    if (mkdir(path, 0700) != 0) return; /* an earlier test's */
    path_of("pictures/below", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_bytes("pictures/b.jpg", JPEG, sizeof JPEG);
    write_bytes("pictures/below/a", PNG, sizeof PNG);
    write_file("pictures/README", "where they come from");
    write_file("pictures/empty.jpg", "");
}

static void a_directory_gives_its_pictures_and_no_other_files(void **state) {
    (void)state;
    make_pictures();
    struct inputs inputs = load("image", "pictures", ST_OK);
    assert_int_equal(inputs.kind, INPUT_IMAGE);
    assert_int_equal(inputs.count, 2);
    assert_int_equal(inputs.items[0].raw.size, sizeof JPEG);
    assert_memory_equal(inputs.items[0].raw.data, JPEG, sizeof JPEG);
    assert_memory_equal(inputs.items[1].raw.data, PNG, sizeof PNG);
    struct distribution bytes, tokens;
    assert_int_equal(inputs_sizes(&inputs, &bytes, &tokens, NULL), ST_OK);
    assert_int_equal(bytes.min, sizeof JPEG);
    assert_int_equal(bytes.max, sizeof PNG);
    inputs_done(&inputs);
    inputs = load("image", "pictures/README", ST_OK); /* named: sent whatever it is */
    assert_int_equal(inputs.count, 1);
    inputs_done(&inputs);
}

static void a_directory_without_pictures_is_an_error(void **state) {
    (void)state;
    char path[128], spec[160];
    struct inputs inputs;
    struct err err = {0};
    path_of("letters", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("letters/a", "a letter");
    snprintf(spec, sizeof spec, "image:%s", path);
    assert_int_equal(inputs_load(spec, &inputs, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "no JPEG, PNG or WebP"));
    load("image", "nowhere", ST_NOT_FOUND);
}

static const struct input_spec IMAGE_SPECS[] = {
    {{"threshold", 9}, DTYPE_FP32, 1, ANY}, {{"IMAGE", 5}, DTYPE_BYTES, 1, ANY}};

static void render(const struct input *input, struct buf *out) {
    buf_clear(out);
    buf_append(out, input->body_head.data, input->body_head.size);
    buf_text(out, "x");
    buf_append(out, input->body_tail.data, input->body_tail.size);
}

static void base64_is_padded_by_what_is_missing_of_three_bytes(void **state) {
    (void)state;
    static const char *const PAIRS[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="}, {"\xff\xef\xbe", "/+++"}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        char out[16] = "";
        struct view bytes = view_of(PAIRS[i][0]);
        assert_int_equal(base64_encoded_size(bytes.size), strlen(PAIRS[i][1]));
        base64_encode(bytes, out);
        assert_string_equal(out, PAIRS[i][1]);
    }
}

static void a_picture_goes_into_the_bytes_input_as_base64_or_as_it_is(void **state) {
    (void)state;
    make_pictures();
    struct inputs inputs = load("image", "pictures/b.jpg", ST_OK);
    struct input_shape shape = {IMAGE_SPECS, 2};
    struct buf body;
    struct view element;
    buf_init(&body);
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, NULL), ST_OK);
    const struct input *input = &inputs.items[0];
    assert_int_equal(input->tensor_count, 1);
    assert_true(view_is(input->tensors[0].name, "IMAGE"));
    assert_true(tensor_bytes_valid(input->tensors[0].data, input->tensors[0].size, 1));
    assert_true(tensor_bytes_at(&input->tensors[0], 0, &element));
    assert_int_equal(element.size, sizeof JPEG);
    assert_memory_equal(element.data, JPEG, sizeof JPEG);
    assert_int_equal(inputs_render(&inputs, false, NULL), ST_OK);
    render(input, &body);
    assert_int_equal(input->json_size, 0);
    assert_non_null(memmem(body.data, body.size, "[\"/9j/4AAQSkZJRgAB\"]", 20));
    assert_int_equal(inputs_render(&inputs, true, NULL), ST_OK);
    render(input, &body);
    assert_int_equal(body.size, input->json_size + 1 + 4 + sizeof JPEG);
    assert_memory_equal(body.data + body.size - sizeof JPEG, JPEG, sizeof JPEG);
    buf_done(&body);
    inputs_done(&inputs);
}

static void a_model_without_a_bytes_input_takes_no_pictures(void **state) {
    (void)state;
    make_pictures();
    struct inputs inputs = load("image", "pictures", ST_OK);
    struct err err = {0};
    struct input_shape shape = {IMAGE_SPECS, 1};
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "takes no pictures"));
    inputs_done(&inputs);
}

static const int64_t PLANES[] = {-1, 3, -1, -1};
static const int64_t NO_DIMS[] = {0};

static enum status apply_shape(const char *text, struct input_spec *specs, struct arena *arena,
                               struct err *err) {
    specs[0] = (struct input_spec){{"input:0", 7}, DTYPE_FP32, 4, PLANES};
    specs[1] = (struct input_spec){{"sr", 2}, DTYPE_INT64, 0, NO_DIMS};
    return inputs_apply_shapes(&text, 1, specs, 2, arena, err);
}

static void a_given_shape_fills_the_free_dimensions_of_random_tensors(void **state) {
    (void)state;
    struct arena arena;
    struct input_spec specs[2];
    struct inputs inputs;
    arena_init(&arena);
    assert_int_equal(apply_shape("input:0:2,3,20,30", specs, &arena, NULL), ST_OK);
    assert_int_equal(inputs_load("random", &inputs, NULL), ST_OK);
    struct input_shape shape = {specs, 2};
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, NULL), ST_OK);
    const struct tensor *tensor = &inputs.items[5].tensors[0];
    const int64_t expected[] = {2, 3, 20, 30};
    assert_int_equal(tensor->rank, 4);
    assert_memory_equal(tensor->shape, expected, sizeof expected);
    assert_int_equal(tensor->size, 2 * 3 * 20 * 30 * 4);
    inputs_done(&inputs);
    arena_done(&arena);
}

static void a_shape_that_does_not_fit_names_what_the_model_declares(void **state) {
    (void)state;
    static const struct { const char *text, *part; } BAD[] = {
        {"input:0:2,4,20,30", "declares [-1,3,-1,-1]"},
        {"input:0:2,3,20", "declares [-1,3,-1,-1]"},
        {"input:2,3,20,30", "no input input, but input:0, sr"},
        {"input:0", "dimension 0 must be 1 to"},
        {"input", "NAME:1,3,224,224"},
        {"input:0:", "NAME:1,3,224,224"},
        {":1,2", "NAME:1,3,224,224"},
        {"input:0:1,3,0,5", "dimension 2 must be 1 to"},
        {"input:0:1,3,,5", "dimension 2"},
        {"input:0:1,3,-1,5", "dimension 2"},
        {"input:0:1,3,5000000000,5", "dimension 2 must be 1 to"},
        {"input:0:1,1,1,1,1,1,1,1,1", "more than 8"},
    };
    struct arena arena;
    struct input_spec specs[2];
    arena_init(&arena);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct err err = {0};
        assert_int_equal(apply_shape(BAD[i].text, specs, &arena, &err), ST_INVALID);
        if (strstr(err.text, BAD[i].part) == NULL) fail_msg("%s", err.text);
    }
    arena_done(&arena);
}

static void random_texts_come_in_the_number_that_the_shape_says(void **state) {
    (void)state;
    struct arena arena;
    struct inputs inputs;
    arena_init(&arena);
    struct input_spec spec = TEXT_SPEC;
    const char *text = "TEXT:3";
    assert_int_equal(inputs_apply_shapes(&text, 1, &spec, 1, &arena, NULL), ST_OK);
    assert_int_equal(inputs_load("random", &inputs, NULL), ST_OK);
    struct input_shape shape = {&spec, 1};
    assert_int_equal(inputs_make_tensors(&inputs, shape, NULL, false, 0, 1, NULL), ST_OK);
    assert_true(tensor_bytes_valid(inputs.items[0].tensors[0].data, inputs.items[0].tensors[0].size, 3));
    inputs_done(&inputs);
    arena_done(&arena);
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
        cmocka_unit_test(a_directory_gives_its_pictures_and_no_other_files),
        cmocka_unit_test(a_directory_without_pictures_is_an_error),
        cmocka_unit_test(base64_is_padded_by_what_is_missing_of_three_bytes),
        cmocka_unit_test(a_picture_goes_into_the_bytes_input_as_base64_or_as_it_is),
        cmocka_unit_test(a_model_without_a_bytes_input_takes_no_pictures),
        cmocka_unit_test(a_given_shape_fills_the_free_dimensions_of_random_tensors),
        cmocka_unit_test(a_shape_that_does_not_fit_names_what_the_model_declares),
        cmocka_unit_test(random_texts_come_in_the_number_that_the_shape_says),
        cmocka_unit_test(urls_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

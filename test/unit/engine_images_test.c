/* Pictures through an engine, with models that give back what they were given: every number is
 * known. What a pipeline binds to, and what it refuses, is here too. */
#include "engine_client.h"

enum { WIDTH = 6, HEIGHT = 4, SAMPLES = WIDTH * HEIGHT * 3 };

static const char PLAIN[] = "inputs:\n  - image: {to: pixels}\n";

/* Samples of the picture named seed, and its PNG file. */
static size_t picture(unsigned seed, unsigned char samples[SAMPLES], unsigned char file[2048]) {
    for (unsigned i = 0; i < SAMPLES; i++) samples[i] = (unsigned char)(seed * 31 + i * 3);
    return png_make(samples, WIDTH, HEIGHT, file);
}

static void add_picture(struct asked *asked, unsigned seed) {
    unsigned char samples[SAMPLES], file[2048];
    client_element(asked, file, picture(seed, samples, file));
}

/* Row `row` of (n, 3, 4, 6) is the picture named seed. */
static void check_row(const struct tensor *tensor, size_t row, unsigned seed) {
    unsigned char samples[SAMPLES], file[2048];
    picture(seed, samples, file);
    const float *values = (const float *)tensor->data + row * SAMPLES;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < WIDTH * HEIGHT; i++)
            if (values[c * WIDTH * HEIGHT + i] != (float)samples[i * 3 + c])
                fail_msg("row %zu, channel %zu, pixel %zu: %g", row, c, i, (double)values[c * WIDTH * HEIGHT + i]);
}

static void a_picture_becomes_the_models_numbers(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    client_start(&client, "picture.onnx", PLAIN);
    const struct served_model *model = engine_only(client.engine);
    assert_true(model->has_pipeline);
    assert_int_equal(model->shown.input_count, 1);
    assert_string_equal(model->shown.inputs[0].name, "IMAGE");
    assert_int_equal(model->shown.inputs[0].dtype, DTYPE_BYTES);
    assert_string_equal(model->shown.outputs[0].name, "same");
    client_begin(&client, &asked);
    for (unsigned seed = 1; seed <= 3; seed++) add_picture(&asked, seed);
    client_input(&asked, "IMAGE", 3);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    const struct tensor *same = client_output(&asked, "same");
    assert_int_equal(same->shape[0], 3);
    for (unsigned seed = 1; seed <= 3; seed++) check_row(same, seed - 1, seed);
    const uint32_t *step_ns = asked.request.trace.step_ns;
    assert_true(step_ns[STEP_IMAGE_DECODE] > 0);
    assert_true(step_ns[STEP_PIXELS] > 0);
    assert_int_equal(step_ns[STEP_BASE64], 0);
    assert_int_equal(step_ns[STEP_TOKENIZE], 0);
    request_done(&asked.request);
    client_done(&client);
}

static void base64_is_the_same_picture(void **state) {
    (void)state;
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct client client;
    struct asked asked;
    unsigned char samples[SAMPLES], file[2048] = {0};
    char text[3000] = "data:image/png;base64,";
    size_t size = strlen(text);
    const size_t bytes = picture(5, samples, file);
    for (size_t i = 0; i < bytes; i += 3) {
        const unsigned group = (unsigned)(file[i] << 16 | file[i + 1] << 8 | file[i + 2]);
        const size_t digits = bytes - i >= 3 ? 4 : bytes - i + 1; /* not padded */
        for (size_t k = 0; k < digits; k++) text[size++] = DIGITS[group >> (18 - 6 * k) & 63];
    }
    client_start(&client, "picture.onnx", PLAIN);
    client_begin(&client, &asked);
    client_element(&asked, text, size);
    client_input(&asked, "IMAGE", 1);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    check_row(client_output(&asked, "same"), 0, 5);
    assert_true(asked.request.trace.step_ns[STEP_BASE64] > 0);
    request_done(&asked.request);
    client_done(&client);
}

enum { MANY = 120 };

/* Requests of one to three pictures, all at once: each gets its own back. */
static void ask_many(struct client *client) {
    struct asked *all = calloc(MANY, sizeof *all);
    assert_non_null(all);
    for (unsigned i = 0; i < MANY; i++) {
        client_begin(client, &all[i]);
        for (unsigned k = 0; k < 1 + i % 3; k++) add_picture(&all[i], i + k);
        client_input(&all[i], "IMAGE", 1 + i % 3);
        assert_int_equal(engine_submit(client->engine, &all[i].request), ST_OK);
    }
    client_wait(client, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(all[i].request.status, ST_OK);
        for (unsigned k = 0; k < 1 + i % 3; k++) check_row(client_output(&all[i], "same"), k, i + k);
        request_done(&all[i].request);
    }
    free(all);
}

static void pictures_are_written_where_their_batch_runs(void **state) {
    (void)state;
    struct client client;
    client_start(&client, "picture.onnx", PLAIN);
    for (int round = 0; round < 5; round++) ask_many(&client);
    const struct batcher_stats stats = client_stats(&client);
    assert_true(stats.batches_in_place > 0);
    assert_int_equal(stats.batches_copied, 0);
    assert_int_equal(stats.staging_refused, 0);
    assert_int_equal(stats.staging_rows, 0);
    client_done(&client);
}

static void the_instances_thread_gives_the_same(void **state) {
    (void)state;
    struct client client;
    struct err err;
    client_init(&client, "picture.onnx", PLAIN);
    client.config.preprocess = PREPROCESS_INLINE;
    assert_int_equal(client_open(&client, &err), ST_OK);
    ask_many(&client);
    assert_int_equal(client_stats(&client).staging_rows, 0);
    client_done(&client);
}

static void many_workers_give_each_its_own(void **state) {
    (void)state;
    struct client client;
    struct err err;
    client_init(&client, "picture.onnx", PLAIN);
    client.config.workers = 4;
    client.config.instances = 2;
    assert_int_equal(client_open(&client, &err), ST_OK);
    for (int round = 0; round < 5; round++) ask_many(&client);
    assert_int_equal(client_stats(&client).staging_rows, 0);
    client_done(&client);
}

static void a_bad_picture_is_named_by_its_row(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    client_start(&client, "picture.onnx", PLAIN);
    for (int inline_too = 0; inline_too < 2; inline_too++) {
        client_begin(&client, &asked);
        add_picture(&asked, 1);
        client_element(&asked, "no picture", 10);
        client_input(&asked, "IMAGE", 2);
        assert_int_equal(client_ask(&client, &asked), ST_INVALID);
        assert_non_null(strstr(asked.request.err.text, "IMAGE[1]"));
        assert_int_equal(client_stats(&client).staging_rows, 0); /* the first had been written */
        request_done(&asked.request);
        client_done(&client);
        if (inline_too == 1) break;
        struct err err;
        client_init(&client, "picture.onnx", PLAIN);
        client.config.preprocess = PREPROCESS_INLINE;
        assert_int_equal(client_open(&client, &err), ST_OK);
    }
}

static void what_is_no_picture_is_told_what_the_input_takes(void **state) {
    (void)state;
    /* not base64; base64 of something else; a picture of another kind */
    static const struct { const char *sent, *says; } CASES[] = {
        {"a sentence about cats", "neither a JPEG, PNG or WebP nor base64"},
        {"word", "is no JPEG, PNG or WebP: its 3 bytes"},
        {"GIF89a\001\002", "looks like a GIF"}, {"", "is empty"}};
    struct client client;
    struct asked asked;
    client_start(&client, "picture.onnx", PLAIN);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        client_begin(&client, &asked);
        client_element(&asked, CASES[i].sent, strlen(CASES[i].sent));
        client_input(&asked, "IMAGE", 1);
        assert_int_equal(client_ask(&client, &asked), ST_INVALID);
        const char *text = asked.request.err.text;
        if (strstr(text, CASES[i].says) == NULL || strncmp(text, "IMAGE: ", 7) != 0 ||
            strstr(text, "with Content-Type image/jpeg, image/png or image/webp") == NULL ||
            strstr(text, "in JSON its base64") == NULL)
            fail_msg("%s: %s", CASES[i].sent, text);
        request_done(&asked.request);
    }
    client_begin(&client, &asked); /* a damaged PNG is a picture */
    client_element(&asked, "\x89PNG\r\n\x1a\n", 8);
    client_input(&asked, "IMAGE", 1);
    assert_int_equal(client_ask(&client, &asked), ST_INVALID);
    assert_string_equal(asked.request.err.text, "IMAGE: the PNG is cut short: it has no header");
    request_done(&asked.request);
    client_done(&client);
}

/* Of one request: how many pictures, and which would gain by jpeg_scaling. */
static void pictures_are_counted_for_the_trace(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    client_start(&client, "picture.onnx", PLAIN);
    client_begin(&client, &asked);
    add_picture(&asked, 1);
    add_picture(&asked, 2);
    client_input(&asked, "IMAGE", 2);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    assert_int_equal(asked.request.trace.pictures, 2);
    assert_int_equal(asked.request.trace.scalable_jpegs, 0);
    request_done(&asked.request);
    client_done(&client);
}

static void a_model_without_rows_takes_one_picture(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    client_start(&client, "picture_one.onnx", PLAIN);
    client_begin(&client, &asked);
    add_picture(&asked, 7);
    client_input(&asked, "IMAGE", 1);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    check_row(client_output(&asked, "same"), 0, 7);
    request_done(&asked.request);
    client_begin(&client, &asked);
    add_picture(&asked, 7);
    add_picture(&asked, 8);
    client_input(&asked, "IMAGE", 2);
    assert_int_equal(client_ask(&client, &asked), ST_INVALID);
    request_done(&asked.request);
    assert_int_equal(client_stats(&client).staging_rows, 0);
    client_done(&client);
}

static void pictures_of_other_sizes_are_other_batches(void **state) {
    (void)state;
    struct client client;
    client_start(&client, "picture_any.onnx",
                 "inputs:\n  - image: {to: pixels, layout: nchw, fit: none}\n");
    struct asked small, large;
    unsigned char samples[SAMPLES] = {9, 8, 7}, file[2048];
    client_begin(&client, &small);
    client_element(&small, file, png_make(samples, 1, 1, file));
    client_input(&small, "IMAGE", 1);
    client_begin(&client, &large);
    add_picture(&large, 3);
    client_input(&large, "IMAGE", 1);
    assert_int_equal(engine_submit(client.engine, &small.request), ST_OK);
    assert_int_equal(engine_submit(client.engine, &large.request), ST_OK);
    client_wait(&client, 2);
    assert_int_equal(small.request.status, ST_OK);
    const struct tensor *one = client_output(&small, "same");
    assert_int_equal(one->size, 3 * sizeof(float));
    assert_memory_equal(one->data, ((float[]){9, 8, 7}), one->size);
    check_row(client_output(&large, "same"), 0, 3);
    assert_int_equal(client_stats(&client).staging_bytes, 0); /* nothing of one size */
    request_done(&small.request);
    request_done(&large.request);
    client_done(&client);
}

/* Both are called pixels: the datatype says which is meant. */
static void an_input_named_like_the_models_takes_both(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    float values[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) values[i] = (float)i / 2;
    client_start(&client, "picture.onnx", "inputs:\n  - image: {to: pixels, name: pixels}\n");
    client_begin(&client, &asked);
    asked.inputs[0] = (struct tensor){.name = view_of("pixels"), .dtype = DTYPE_FP32, .rank = 4,
                                      .shape = {1, 3, HEIGHT, WIDTH}, .data = values,
                                      .size = sizeof values};
    asked.request.input_count = 1;
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    assert_memory_equal(client_output(&asked, "same")->data, values, sizeof values);
    request_done(&asked.request);
    client_begin(&client, &asked);
    add_picture(&asked, 5);
    client_input(&asked, "pixels", 1);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    check_row(client_output(&asked, "same"), 0, 5);
    request_done(&asked.request);
    client_done(&client);
}

static void the_models_own_tensor_may_be_sent_instead(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    float values[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) values[i] = (float)i;
    client_start(&client, "picture.onnx", PLAIN);
    client_begin(&client, &asked);
    asked.inputs[0] = (struct tensor){.name = view_of("pixels"), .dtype = DTYPE_FP32, .rank = 4,
                                      .shape = {1, 3, HEIGHT, WIDTH}, .data = values,
                                      .size = sizeof values};
    asked.request.input_count = 1;
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    assert_memory_equal(client_output(&asked, "same")->data, values, sizeof values);
    request_done(&asked.request);
    client_begin(&client, &asked); /* but not both */
    add_picture(&asked, 1);
    client_input(&asked, "IMAGE", 1);
    asked.inputs[1] = (struct tensor){.name = view_of("pixels"), .dtype = DTYPE_FP32, .rank = 4,
                                      .shape = {1, 3, HEIGHT, WIDTH}, .data = values,
                                      .size = sizeof values};
    asked.request.input_count = 2;
    assert_int_equal(client_ask(&client, &asked), ST_INVALID);
    assert_non_null(strstr(asked.request.err.text, "not both"));
    request_done(&asked.request);
    client_done(&client);
}

/* A box (2, 2) wide around (2, 2) on the model's canvas, found with certainty in row 1 only; the
 * picture sent is twice as large, so its box is. */
static void boxes_are_found_in_the_picture_that_was_sent(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    static unsigned char samples[2 * SAMPLES * 2];
    static const unsigned char ANCHOR[WIDTH] = {2, 2, 2, 2, 1, 1};
    unsigned char file[2048];
    for (unsigned y = 0; y < 2; y++)
        for (unsigned x = 0; x < 2 * WIDTH; x++)
            samples[(y * 2 * WIDTH + x) * 3 + 1] = ANCHOR[x / 2]; /* green: the fifth anchor */
    client_start(&client, "picture_boxes.onnx",
                 "inputs:\n  - image: {to: pixels, resize: nearest}\n"
                 "outputs:\n  - detect: {head: yolov5, score_threshold: 0.5}\n");
    client_begin(&client, &asked);
    add_picture(&asked, 0);
    asked.size = 0;
    static const unsigned char NOTHING[SAMPLES];
    client_element(&asked, file, png_make(NOTHING, WIDTH, HEIGHT, file));
    client_element(&asked, file, png_make(samples, 2 * WIDTH, 2 * HEIGHT, file));
    client_input(&asked, "IMAGE", 2);
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    assert_int_equal(asked.request.output_count, 4); /* no labels, the model's own hidden */
    const struct tensor *boxes = client_output(&asked, "boxes");
    assert_int_equal(boxes->shape[0], 2);
    assert_int_equal(boxes->shape[1], 1);
    assert_memory_equal(boxes->data, ((float[]){0, 0, 0, 0, 2, 2, 6, 6}), 8 * sizeof(float));
    assert_memory_equal(client_output(&asked, "count")->data, ((int32_t[]){0, 1}), 8);
    assert_memory_equal(client_output(&asked, "scores")->data, ((float[]){0, 1}), 8);
    assert_true(asked.request.trace.step_ns[STEP_DETECT] > 0);
    request_done(&asked.request);
    client_done(&client);
}

/* ---- bodies decoded by a worker ---- */

static enum status decode_late(struct request *request) {
    struct asked *asked = (struct asked *)(void *)request; /* request is the first member */
    add_picture(asked, 11);
    client_input(asked, "IMAGE", 1);
    return ST_OK;
}

static enum status decode_in_vain(struct request *request) {
    return err_set(&request->err, ST_INVALID, "the body is cut short");
}

static void a_body_may_be_decoded_by_a_worker(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    client_start(&client, "picture.onnx", PLAIN);
    client_begin(&client, &asked);
    asked.request.decode = decode_late;
    assert_int_equal(client_ask(&client, &asked), ST_OK);
    check_row(client_output(&asked, "same"), 0, 11);
    const uint64_t *at = asked.request.trace.at;
    assert_true(at[AT_DECODE_START] != 0 && at[AT_DECODE_START] <= at[AT_DECODED]);
    assert_true(at[AT_DECODED] <= at[AT_PREPROCESS_START]);
    assert_true(at[AT_PREPROCESS_START] <= at[AT_PREPROCESS_END]);
    request_done(&asked.request);
    client_begin(&client, &asked);
    asked.request.decode = decode_in_vain;
    assert_int_equal(client_ask(&client, &asked), ST_INVALID);
    assert_string_equal(asked.request.err.text, "the body is cut short");
    request_done(&asked.request);
    client_done(&client);
}

/* ---- what does not fit ---- */

static void a_pipeline_that_does_not_fit_names_its_line(void **state) {
    (void)state;
    static const struct {
        const char *model, *yaml, *line, *says;
    } FAULTS[] = {
        {"picture.onnx", "inputs:\n\n  - image: {to: pixel}\n", "pipeline.yaml:3:",
         "the model has no input \"pixel\"; it has pixels"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels, width: 7}\n", ":2:", "the model takes 6"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels, color: grey}\n", ":2:", "has 3"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels, fit: none}\n", ":2:", "one size only"},
        {"picture_any.onnx", "inputs:\n  - image: {to: pixels}\n", ":2:", "is missing"},
        {"picture.onnx", "inputs:\n  - text: {ids: pixels}\n", ":2:", "not INT64 or INT32"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels}\noutputs:\n  - classify: {from: same}\n",
         ":4:", "FP32 (n, classes) is needed"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels}\noutputs:\n  - scores: {from: none}\n",
         ":4:", "no output \"none\"; it has same"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels}\n  - image: {name: B, to: pixels}\n", ":3:",
         "filled already"},
        {"picture_boxes.onnx", "outputs:\n  - detect: {head: yolov5}\n", ":2:", "image input"},
        {"picture.onnx", "inputs:\n  - image: {to: pixels}\noutputs:\n  - scores: {name: same}\n"
                         "model_outputs: shown\n", ":4:", "an output \"same\" of its own: hide the model's "
         "(model_outputs: hidden), or give this one another name with scores.name"},
        {"picture_boxes.onnx", "inputs:\n  - image:\noutputs:\n  - detect: {head: yolov5, count: head}\n"
                               "model_outputs: shown\n", ":4:", "another name with detect.count"},
        {"picture_boxes.onnx", "inputs:\n  - image:\noutputs:\n  - detect:\n      head: yolov5\n"
                               "      labels: none.txt\n",
         "pipeline.yaml:4: detect.labels: ", "none.txt: No such file or directory"},
        {"picture_boxes.onnx", "inputs:\n  - image:\noutputs:\n  - detect:\n      head: yolov5\n"
                               "      label: names\n",
         "pipeline.yaml:6:", "detect.label names an output that there is only with labels"},
        {"picture_boxes.onnx", "inputs:\n  - image:\noutputs:\n  - ctc: {characters: none.txt}\n",
         "pipeline.yaml:4: ctc.characters: ", "none.txt: No such file or directory"},
        {"tokens.onnx", "inputs:\n  - text: {tokenizer: none.json}\n",
         "pipeline.yaml:2: text.tokenizer: ", "none.json"},
        {"picture_any.onnx", "inputs:\n  - image: {width: 6, height: 4, pad: 3}\n", ":2:",
         "image.pad has no effect with this fit; it goes with fit: letterbox and crop"},
    };
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        struct client client;
        struct err err;
        client_init(&client, FAULTS[i].model, FAULTS[i].yaml);
        assert_int_not_equal(client_open(&client, &err), ST_OK);
        if (strstr(err.text, FAULTS[i].line) == NULL || strstr(err.text, FAULTS[i].says) == NULL)
            fail_msg("%s\nsays: %s\nand not: %s %s", FAULTS[i].yaml, err.text, FAULTS[i].line, FAULTS[i].says);
        client_done(&client);
    }
}

/* picture_pair.onnx: scores (n, 2, 3) and boxes (n, 2, 4), under the names that detect makes. */
static void open_pair(struct client *client, const char *detect, const char *labels, enum status expected,
                      const char *says) {
    char yaml[400], path[96];
    struct err err;
    (void)snprintf(yaml, sizeof yaml,
                   "inputs:\n  - image:\noutputs:\n"
                   "  - detect: {from: scores, boxes_from: boxes, %s}\nmodel_outputs: shown\n", detect);
    client_init(client, "picture_pair.onnx", yaml);
    (void)snprintf(path, sizeof path, "%s/labels.txt", client->directory);
    if (labels != NULL) client_write(path, labels);
    const enum status status = client_open(client, &err);
    if (status != expected || (says != NULL && strstr(err.text, says) == NULL))
        fail_msg("%s\ngot %s: %s", yaml, status_name(status), err.text);
}

static void detections_stand_beside_the_models_own_outputs_under_other_names(void **state) {
    (void)state;
    struct client client;
    open_pair(&client, "boxes: faces, scores: how_sure", NULL, ST_OK, NULL);
    const struct signature *shown = &engine_only(client.engine)->shown;
    static const char *const NAMES[] = {"scores", "boxes", "faces", "how_sure", "classes", "count"};
    assert_int_equal(shown->output_count, 6);
    for (size_t i = 0; i < 6; i++) assert_string_equal(shown->outputs[i].name, NAMES[i]);
    client_done(&client);
    open_pair(&client, "scores: how_sure", NULL, ST_INVALID,
              "detect: the model has an output \"boxes\" of its own: hide the model's (model_outputs: hidden), or "
              "give this one another name with detect.boxes");
    client_done(&client);
}

static void labels_that_do_not_fit_say_what_background_does(void **state) {
    (void)state;
    struct client client;
#define OTHERS "boxes: b, scores: s, labels: labels.txt"
    open_pair(&client, OTHERS, "face\nhand\n", ST_INVALID,
              "there are 2 labels, the model has 3 classes: where class 0 means that nothing is there, say "
              "background: true");
    client_done(&client);
    open_pair(&client, OTHERS ", background: true", "nothing\nface\nhand\n", ST_INVALID,
              "there are 3 labels, the model has 2 classes beside the background: with background: true class 0");
    client_done(&client);
    open_pair(&client, OTHERS, "face\n", ST_INVALID, "there is 1 label, the model has 3 classes");
    client_done(&client);
    open_pair(&client, OTHERS, "", ST_INVALID, "labels.txt is empty: a name a line is expected");
    client_done(&client);
    open_pair(&client, OTHERS ", background: true", "face\nhand\n", ST_OK, NULL);
    client_done(&client);
}

static void none_switches_the_pipeline_off(void **state) {
    (void)state;
    struct client client;
    struct err err;
    client_init(&client, "picture.onnx", NULL);
    client.config.pipeline = "none";
    assert_int_equal(client_open(&client, &err), ST_OK);
    const struct served_model *model = engine_only(client.engine);
    assert_false(model->has_pipeline);
    assert_string_equal(model->shown.inputs[0].name, "pixels");
    client_done(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_becomes_the_models_numbers),
        cmocka_unit_test(base64_is_the_same_picture),
        cmocka_unit_test(pictures_are_written_where_their_batch_runs),
        cmocka_unit_test(the_instances_thread_gives_the_same),
        cmocka_unit_test(many_workers_give_each_its_own),
        cmocka_unit_test(a_bad_picture_is_named_by_its_row),
        cmocka_unit_test(what_is_no_picture_is_told_what_the_input_takes),
        cmocka_unit_test(pictures_are_counted_for_the_trace),
        cmocka_unit_test(a_model_without_rows_takes_one_picture),
        cmocka_unit_test(pictures_of_other_sizes_are_other_batches),
        cmocka_unit_test(an_input_named_like_the_models_takes_both),
        cmocka_unit_test(the_models_own_tensor_may_be_sent_instead),
        cmocka_unit_test(boxes_are_found_in_the_picture_that_was_sent),
        cmocka_unit_test(a_body_may_be_decoded_by_a_worker),
        cmocka_unit_test(a_pipeline_that_does_not_fit_names_its_line),
        cmocka_unit_test(detections_stand_beside_the_models_own_outputs_under_other_names),
        cmocka_unit_test(labels_that_do_not_fit_say_what_background_does),
        cmocka_unit_test(none_switches_the_pipeline_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

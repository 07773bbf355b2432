/* Texts through an engine, with a model that gives back the ids it was given, and what a pipeline
 * makes of rows of numbers. Word n of the vocabulary, "w<n>", has id n; the padding is id 9. */
#include "engine_client.h"

static void write_tokenizer(struct client *client, const char *direction, const char *strategy,
                            const char *multiple) {
    static const char *const REST =
        "\"pad_id\":9,\"pad_type_id\":0,\"pad_token\":\"[PAD]\"},\"added_tokens\":[{\"id\":9,"
        "\"content\":\"[PAD]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
        "\"normalized\":false,\"special\":true}],\"normalizer\":null,\"pre_tokenizer\":"
        "{\"type\":\"BertPreTokenizer\"},\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":"
        "\"WordLevel\",\"vocab\":{\"[UNK]\":0,\"w1\":1,\"w2\":2,\"w3\":3,\"w4\":4,\"w5\":5,"
        "\"[PAD]\":9},\"unk_token\":\"[UNK]\"}}";
    char path[96], text[1400];
    snprintf(path, sizeof path, "%s/tokenizer.json", client->directory);
    snprintf(text, sizeof text,
             "{\"version\":\"1.0\",\"truncation\":null,\"padding\":{\"strategy\":%s,"
             "\"direction\":\"%s\",\"pad_to_multiple_of\":%s,%s", strategy, direction, multiple, REST);
    client_write(path, text);
}

static void start(struct client *client, const char *direction, const char *strategy,
                  const char *multiple, const char *outputs) {
    char yaml[300];
    struct err err;
    snprintf(yaml, sizeof yaml, "inputs:\n  - text: {tokenizer: tokenizer.json}\n%s", outputs);
    client_init(client, "tokens.onnx", yaml);
    write_tokenizer(client, direction, strategy, multiple);
    /* batches of three, whatever comes: the timer does not fire */
    client->config.policy = POLICY_TIMER;
    client->config.max_batch = 3;
    client->config.max_delay_us = 3600000000u;
    if (client_open(client, &err) != ST_OK) fail_msg("%s", err.text);
}

static void submit(struct client *client, struct asked *asked, const char *const *texts, int64_t rows) {
    client_begin(client, asked);
    for (int64_t i = 0; i < rows; i++) client_element(asked, texts[i], strlen(texts[i]));
    client_input(asked, "TEXT", rows);
    assert_int_equal(engine_submit(client->engine, &asked->request), ST_OK);
}

static void check_ids(const struct asked *asked, const char *name, int64_t rows, int64_t length,
                      const int64_t *expected) {
    if (asked->request.status != ST_OK) fail_msg("%s", asked->request.err.text);
    const struct tensor *tensor = client_output(asked, name);
    assert_int_equal(tensor->shape[0], rows);
    assert_int_equal(tensor->shape[1], length);
    assert_memory_equal(tensor->data, expected, (size_t)(rows * length) * sizeof *expected);
}

/* Three requests of different length in one batch, filled up to the longest there and cut back. */
static void check_batch(const char *direction) {
    static const char *const TEXTS[3] = {"w4", "w1 w2 w3 w4 w5", "w5 w3"};
    struct client client;
    struct asked asked[3];
    start(&client, direction, "\"BatchLongest\"", "null", "");
    for (int i = 0; i < 3; i++) submit(&client, &asked[i], &TEXTS[i], 1);
    client_wait(&client, 3);
    check_ids(&asked[0], "ids", 1, 1, (int64_t[]){4});
    check_ids(&asked[0], "mask", 1, 1, (int64_t[]){1});
    check_ids(&asked[1], "ids", 1, 5, (int64_t[]){1, 2, 3, 4, 5});
    check_ids(&asked[2], "ids", 1, 2, (int64_t[]){5, 3});
    check_ids(&asked[2], "mask", 1, 2, (int64_t[]){1, 1});
    assert_int_equal(asked[0].request.trace.padded, 5); /* it was one batch */
    assert_int_equal(client_stats(&client).batches_copied, 1);
    for (int i = 0; i < 3; i++) request_done(&asked[i].request);
    client_done(&client);
}

/* Its time ran out while it waited for a worker: no worker's time goes to it. */
static void a_text_whose_time_is_over_is_not_tokenized(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    start(&client, "Right", "\"BatchLongest\"", "null", "");
    client_begin(&client, &asked);
    client_element(&asked, "w1", 2);
    client_input(&asked, "TEXT", 1);
    asked.request.deadline_ns = 1;
    assert_int_equal(engine_submit(client.engine, &asked.request), ST_OK);
    client_wait(&client, 1);
    assert_int_equal(asked.request.status, ST_TIMEOUT);
    assert_int_equal(asked.request.trace.at[AT_PREPROCESS_END], 0);
    assert_non_null(strstr(asked.request.err.text, "for a worker"));
    request_done(&asked.request);
    client_done(&client);
}

static void texts_padded_on_the_right_share_a_batch(void **state) {
    (void)state;
    check_batch("Right");
}

static void texts_padded_on_the_left_share_a_batch(void **state) {
    (void)state;
    check_batch("Left");
}

static void rows_of_a_request_are_filled_up_on_their_side(void **state) {
    (void)state;
    static const char *const TEXTS[3] = {"w4", "w1 w2 w3", "w5 what"};
    struct client client;
    struct asked asked;
    start(&client, "Left", "\"BatchLongest\"", "null", "");
    submit(&client, &asked, TEXTS, 3);
    client_wait(&client, 1);
    check_ids(&asked, "ids", 3, 3, (int64_t[]){9, 9, 4, 1, 2, 3, 9, 5, 0});
    check_ids(&asked, "mask", 3, 3, (int64_t[]){0, 0, 1, 1, 1, 1, 0, 1, 1});
    request_done(&asked.request);
    client_done(&client);
    start(&client, "Right", "\"BatchLongest\"", "4", "");
    submit(&client, &asked, TEXTS, 3);
    client_wait(&client, 1);
    check_ids(&asked, "ids", 3, 4, (int64_t[]){4, 9, 9, 9, 1, 2, 3, 9, 5, 0, 9, 9});
    request_done(&asked.request);
    client_done(&client);
    start(&client, "Left", "{\"Fixed\":5}", "null", "");
    submit(&client, &asked, TEXTS, 3);
    client_wait(&client, 1);
    check_ids(&asked, "ids", 3, 5, (int64_t[]){9, 9, 9, 9, 4, 9, 9, 1, 2, 3, 9, 9, 9, 5, 0});
    request_done(&asked.request);
    client_done(&client);
}

static void tokens_come_back_with_their_places(void **state) {
    (void)state;
    static const char *const TEXTS[3] = {"w4", "w1  w2", "w3"};
    struct client client;
    struct asked asked;
    start(&client, "Right", "\"BatchLongest\"", "null", "outputs:\n  - tokens: {}\n  - detokenize: {from: ids}\n");
    submit(&client, &asked, TEXTS, 3);
    client_wait(&client, 1);
    assert_int_equal(asked.request.output_count, 3); /* the model's own are hidden */
    check_ids(&asked, "tokens", 3, 2, (int64_t[]){4, 0, 1, 2, 3, 0});
    const int64_t places[] = {0, 2, 0, 0, 0, 2, 4, 6, 0, 2, 0, 0};
    assert_memory_equal(client_output(&asked, "offsets")->data, places, sizeof places);
    const struct tensor *text = client_output(&asked, "text");
    static const char SAID[] = "\2\0\0\0w4\5\0\0\0w1 w2\2\0\0\0w3"; /* the padding is left out */
    assert_int_equal(text->size, sizeof SAID - 1);
    assert_memory_equal(text->data, SAID, sizeof SAID - 1);
    assert_true(asked.request.trace.step_ns[STEP_TOKENIZE] > 0);
    assert_true(asked.request.trace.step_ns[STEP_DETOKENIZE] > 0);
    request_done(&asked.request);
    client_done(&client);
}

/* ---- rows of numbers: OUTPUT0 = INPUT0 + 1, (n, 16) ---- */

enum { WIDTH = 16 };

static void ask_numbers(struct client *client, struct asked *asked, const float values[2 * WIDTH],
                        const struct view *wanted, uint32_t wanted_count) {
    client_begin(client, asked);
    asked->inputs[0] = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                       .shape = {2, WIDTH}, .data = values,
                                       .size = 2 * WIDTH * sizeof *values};
    asked->request.input_count = 1;
    asked->request.wanted = wanted;
    asked->request.wanted_count = wanted_count;
    if (client_ask(client, asked) != ST_OK) fail_msg("%s", asked->request.err.text);
}

static void rows_of_numbers_become_labels_and_embeddings(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    struct err err;
    float values[2 * WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        values[i] = (float)i - 1;           /* 0, 1, ... 15 to the pipeline */
        values[WIDTH + i] = i == 3 ? 1 : i == 8 ? 0 : -1; /* 2 at 3, 1 at 8, else 0 */
    }
    client_init(&client, "add.onnx",
                "outputs:\n  - classify: {top: 2, class: class, activation: none, labels: labels.txt}\n"
                "  - embed: {pooling: none}\n");
    char path[96];
    snprintf(path, sizeof path, "%s/labels.txt", client.directory);
    client_write(path, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\n");
    assert_int_equal(client_open(&client, &err), ST_OK);
    const struct io_spec *shown = engine_only(client.engine)->shown.outputs;
    assert_string_equal(shown[0].name, "label");
    assert_int_equal(shown[0].shape[1], 2);
    assert_string_equal(shown[3].name, "embedding");
    assert_int_equal(shown[3].shape[0], -1);
    assert_int_equal(shown[3].shape[1], WIDTH);
    ask_numbers(&client, &asked, values, NULL, 0);
    assert_int_equal(asked.request.output_count, 4);
    assert_memory_equal(client_output(&asked, "class")->data, ((int64_t[]){15, 14, 3, 8}), 32);
    assert_memory_equal(client_output(&asked, "score")->data, ((float[]){15, 14, 2, 1}), 16);
    const struct tensor *label = client_output(&asked, "label");
    assert_int_equal(label->shape[1], 2);
    assert_memory_equal(label->data, "\1\0\0\0p\1\0\0\0o\1\0\0\0d\1\0\0\0i", 20);
    const float *embedding = (const float *)client_output(&asked, "embedding")->data + WIDTH;
    for (int i = 0; i < WIDTH; i++) {
        const double exact = i == 3 ? 2 / 2.2360679775 : i == 8 ? 1 / 2.2360679775 : 0;
        assert_true(embedding[i] > exact - 1e-6 && embedding[i] < exact + 1e-6);
    }
    request_done(&asked.request);
    client_done(&client);
}

static void only_what_is_wanted_is_computed(void **state) {
    (void)state;
    struct client client;
    struct asked asked;
    const float values[2 * WIDTH] = {0};
    const struct view wanted[2] = {view_of("embedding"), view_of("OUTPUT0")};
    client_start(&client, "add.onnx", "outputs:\n  - scores: {}\n  - embed: {pooling: none}\n"
                                      "model_outputs: shown\n");
    ask_numbers(&client, &asked, values, wanted, 2);
    assert_int_equal(asked.request.output_count, 2);
    assert_true(view_is(asked.request.outputs[0].name, "embedding"));
    assert_true(view_is(asked.request.outputs[1].name, "OUTPUT0"));
    assert_true(asked.request.trace.step_ns[STEP_POOL] > 0);
    assert_int_equal(asked.request.trace.step_ns[STEP_CLASSIFY], 0);
    request_done(&asked.request);
    ask_numbers(&client, &asked, values, &wanted[1], 1); /* the model's own: no worker is needed */
    assert_int_equal(asked.request.output_count, 1);
    assert_int_equal(asked.request.trace.at[AT_POSTPROCESS_START], 0);
    request_done(&asked.request);
    client_done(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_whose_time_is_over_is_not_tokenized),
        cmocka_unit_test(texts_padded_on_the_right_share_a_batch),
        cmocka_unit_test(texts_padded_on_the_left_share_a_batch),
        cmocka_unit_test(rows_of_a_request_are_filled_up_on_their_side),
        cmocka_unit_test(tokens_come_back_with_their_places),
        cmocka_unit_test(rows_of_numbers_become_labels_and_embeddings),
        cmocka_unit_test(only_what_is_wanted_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

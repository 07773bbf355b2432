/* Memory runs out while the engine opens, and while it answers: every failure has a status and a
 * sentence, nothing leaks (AddressSanitizer looks), nobody waits for ever, and what comes after
 * works. Simulated back end; text with the sample's tokenizer and labels. */
#include "memory.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "engine/engine.h"
#include "sync/parker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

/* In place of base's: the quota's files are read with stdio, and what cannot be read counts as no
 * quota. That needs memory and is not a failure. */
unsigned cpus_available(void) { return 2; }

#define SPAM TEST_SOURCE_DIR "/examples/spam/"

enum { WIDTH = 16, REQUESTS = 3 };

static struct engine_config plain_config(void) {
    return (struct engine_config){.simulate = "a=0.01ms,b=0.001ms", .max_batch = 8,
                                  .intra_op_threads = 1, .queue_limit = 100, .workers = 2,
                                  .trace_sample = 1};
}

static struct engine_config text_config(void) {
    struct engine_config config = plain_config();
    config.model = SPAM "spam_int8.onnx";
    config.tokenizer = SPAM "tokenizer.json";
    config.labels = SPAM "labels.txt";
    return config;
}

static struct engine *open_engine(const struct engine_config *config) {
    struct engine *engine = NULL;
    struct err err = {.text = ""};
    if (engine_create(config, &engine, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
    return engine;
}

/* ---- requests ---- */

/* One for all: who answers may still be waking it when the waiter has gone on to the next. */
static struct waiter {
    struct mpsc answers;
    int64_t taken;
    struct parker parker;
} waiter;

static void on_done(struct request *request) {
    mpsc_push(&waiter.answers, &request->done_node);
    parker_wake(&waiter.parker, 1);
}

static void wait_for(int64_t count) {
    waiter.taken = 0;
    while (waiter.taken < count) {
        const uint32_t key = parker_prepare(&waiter.parker);
        struct mpsc_node *node = mpsc_take_all(&waiter.answers);
        if (node == NULL) {
            parker_wait(&waiter.parker, key, UINT64_MAX);
        } else {
            parker_cancel(&waiter.parker);
        }
        for (; node != NULL; node = node->next) {
            waiter.taken++;
        }
    }
}

struct one {
    struct request request;
    struct tensor input;
    float values[WIDTH];
    char text[256];
};

static void make_tensor(struct one *one, unsigned index) {
    for (unsigned i = 0; i < WIDTH; i++) {
        one->values[i] = (float)index;
    }
    one->input = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                 .shape = {1, WIDTH}, .data = one->values,
                                 .size = sizeof one->values};
}

/* A text of another length each, so that there is something to pad. */
static void make_text(struct one *one, unsigned index) {
    static const char WORDS[] = "you have won a free holiday, answer at once ";
    uint32_t size = 0;
    for (unsigned i = 0; i <= index * 2; i++) {
        memcpy(one->text + 4 + size, WORDS, sizeof WORDS - 1);
        size += sizeof WORDS - 1;
    }
    memcpy(one->text, &size, 4);
    one->input = (struct tensor){.name = view_of("TEXT"), .dtype = DTYPE_BYTES, .rank = 1,
                                 .shape = {1}, .data = one->text, .size = 4 + size};
}

/* Submits REQUESTS at once, waits for all that were accepted. No assert: memory may be out. */
static void ask(struct engine *engine, struct one *all, bool is_text) {
    int64_t accepted = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct request *request = &all[i].request;
        request_init(request);
        if (is_text) {
            make_text(&all[i], i);
        } else {
            make_tensor(&all[i], i);
        }
        request->model = engine_only(engine);
        request->inputs = &all[i].input;
        request->input_count = 1;
        request->on_done = on_done;
        request->trace.at[AT_START] = request->trace.at[AT_RECEIVED] =
            request->trace.at[AT_DECODED] = mono_ns();
        accepted += engine_submit(engine, request) == ST_OK ? 1 : 0;
    }
    engine_flush(engine);
    wait_for(accepted);
}

static void check_good(const struct one *one, bool is_text) {
    const struct request *request = &one->request;
    assert_int_equal(request->output_count, is_text ? 3 : 1);
    if (!is_text) {
        const float *out = request->outputs[0].data;
        assert_int_equal(request->outputs[0].size, sizeof one->values);
        assert_true(out[0] == one->values[0] + 1);
        return;
    }
    struct view label;
    assert_true(view_is(request->outputs[1].name, "label"));
    assert_true(tensor_bytes_at(&request->outputs[1], 0, &label));
    assert_true(label.size > 0);
}

/* How many failed. */
static unsigned check(struct one *all, bool is_text) {
    unsigned failed = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct request *request = &all[i].request;
        if (request->status == ST_OK) {
            check_good(&all[i], is_text);
        } else {
            failed++;
            assert_int_equal(request->status, ST_NO_MEMORY);
            assert_true(request->err.text[0] != '\0');
        }
        request_done(request);
    }
    return failed;
}

static void ask_and_expect_answers(struct engine *engine, bool is_text) {
    struct one all[REQUESTS];
    ask(engine, all, is_text);
    assert_int_equal(check(all, is_text), 0);
}

/* ---- opening ---- */

static void open_with_shortage(const struct engine_config *config, const char *text_model,
                               long at_least) {
    const bool is_text = text_model != NULL;
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct engine *engine = NULL;
        struct err err = {.text = ""};
        memory_runs_out(&shortage);
        const enum status status = engine_create(config, &engine, &err);
        memory_is_back(&shortage);
        if (status == ST_OK) {
            /* One that says it is open has all of it: no part that was left out in silence.
             * (libc's asprintf and stdio do without some of what they ask for.) */
            const struct served_model *served = engine_only(engine);
            assert_string_equal(served->model->name, is_text ? text_model : "simulated");
            assert_true(served->trace_model < TRACE_MODEL_MAX);
            engine_release(served);
            ask_and_expect_answers(engine, is_text);
            assert_true(shortage.refused == 0 || is_text);
            engine_free(engine);
            continue;
        }
        assert_true(shortage.refused > 0);
        assert_null(engine);
        if (status != ST_NO_MEMORY && strstr(err.text, strerror(ENOMEM)) == NULL) {
            fail_msg("%s: %s", status_name(status), err.text);
        }
        assert_true(err.text[0] != '\0');
    }
    assert_true(shortage.runs >= at_least);
}

static void opening_a_plain_model_survives_every_allocation_that_fails(void **state) {
    (void)state;
    for (int queue = 0; queue < QUEUE_KIND_COUNT; queue++) {
        struct engine_config config = plain_config();
        config.queue = queue;
        open_with_shortage(&config, NULL, 40);
    }
}

/* A small one: reading the sample's 30000 words once for each allocation takes minutes.
 * (prep_tokenizer_memory_test.c is about that reading.) */
static const char TOKENIZER[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{"
    "\"type\":\"BertProcessing\",\"sep\":[\"s\",4],\"cls\":[\"c\",5]},\"decoder\":null,"
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
    "\"max_input_chars_per_word\":20,\"vocab\":{\"?\":0,\"you\":1,\"##a\":6,\"won\":7,"
    "\"s\":4,\"c\":5}}}";

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void opening_a_text_model_survives_every_allocation_that_fails(void **state) {
    (void)state;
    char directory[] = "/tmp/telltale-fail-XXXXXX";
    assert_non_null(mkdtemp(directory));
    char model[64], tokenizer[64], labels[64], command[64];
    snprintf(model, sizeof model, "%s/small.onnx", directory);
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", directory);
    snprintf(labels, sizeof labels, "%s/labels.txt", directory);
    write_file(model, "x");
    write_file(tokenizer, TOKENIZER);
    write_file(labels, "ham\nspam\n");
    struct engine_config config = plain_config();
    config.model = model; /* the simulation only looks at what stands beside it */
    open_with_shortage(&config, "small", 60);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/* ---- answering ---- */

static void answer_with_shortage(const struct engine_config *config, bool is_text, long at_least) {
    struct engine *engine = open_engine(config);
    unsigned failed = 0;
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct one all[REQUESTS];
        memory_runs_out(&shortage);
        ask(engine, all, is_text);
        memory_is_back(&shortage);
        failed += check(all, is_text);
        ask_and_expect_answers(engine, is_text);
    }
    assert_true(shortage.runs >= at_least);
    assert_true(failed > 0);
    engine_free(engine);
}

static void answering_tensors_survives_every_allocation_that_fails(void **state) {
    (void)state;
    for (int queue = 0; queue < QUEUE_KIND_COUNT; queue++) {
        struct engine_config config = plain_config();
        config.queue = queue;
        answer_with_shortage(&config, false, 4);
    }
}

static void answering_texts_survives_every_allocation_that_fails(void **state) {
    (void)state;
    for (int where = PREPROCESS_POOL; where <= PREPROCESS_INLINE; where++) {
        struct engine_config config = text_config();
        config.preprocess = where;
        answer_with_shortage(&config, true, 4);
    }
}

/* The first requests ever also pay for the queue's buckets and the instance's buffers. */
static void first_requests_survive_every_allocation_that_fails(void **state) {
    (void)state;
    const struct engine_config config = plain_config();
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct engine *engine = open_engine(&config);
        struct one all[REQUESTS];
        memory_runs_out(&shortage);
        ask(engine, all, false);
        memory_is_back(&shortage);
        (void)check(all, false);
        ask_and_expect_answers(engine, false);
        engine_free(engine);
    }
    assert_true(shortage.runs >= 6);
}

/* ---- a start that failed can be repeated ---- */

static void a_failed_start_leaves_its_trace_directory_free(void **state) {
    (void)state;
    char directory[] = "/tmp/telltale-fail-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct engine_config config = plain_config();
    config.trace = directory;
    config.model = "/nowhere/model.onnx";
    struct engine *engine = NULL;
    struct err err = {.text = ""};
    assert_int_equal(engine_create(&config, &engine, &err), ST_NOT_FOUND);
    config.model = NULL;
    engine = open_engine(&config); /* no "holds a run already" */
    engine_free(engine);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void) {
    mpsc_init(&waiter.answers);
    parker_init(&waiter.parker);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_plain_model_survives_every_allocation_that_fails),
        cmocka_unit_test(opening_a_text_model_survives_every_allocation_that_fails),
        cmocka_unit_test(answering_tensors_survives_every_allocation_that_fails),
        cmocka_unit_test(answering_texts_survives_every_allocation_that_fails),
        cmocka_unit_test(first_requests_survive_every_allocation_that_fails),
        cmocka_unit_test(a_failed_start_leaves_its_trace_directory_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

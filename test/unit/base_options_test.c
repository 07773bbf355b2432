/* base/options.h: values of every kind, mistakes and what is said of them, help, JSON. */
#include "base/options.h"
#include "base/buf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct config {
    bool trace;
    bool color;
    uint64_t max_batch;
    double rate;
    const char *model;
    const char *host;
    struct option_strings inputs;
    int queue;
    uint64_t duration_ns;
    struct option_uints concurrency;
};

#define AT(field) offsetof(struct config, field)
static const struct option_spec SPECS[] = {
    {.kind = OPT_HEADING, .help = "model"},
    {"model", OPT_STRING, AT(model), "FILE", NULL, 0, 0, NULL, "the model"},
    {"host", OPT_STRING, AT(host), "HOST", "127.0.0.1", 0, 0, NULL, "address to listen on"},
    {"input", OPT_STRINGS, AT(inputs), "SPEC", "text", 0, 0, NULL, "where samples come from"},
    {.kind = OPT_HEADING, .help = "batching"},
    {"max-batch", OPT_UINT, AT(max_batch), "N", "32", 0, 4096, NULL,
     "largest batch; 0: the model is not batched, and every request runs alone as it comes"},
    {"rate", OPT_DOUBLE, AT(rate), "R", NULL, 0, 1e6, NULL, "requests a second"},
    {"queue", OPT_CHOICE, AT(queue), NULL, "ring", 0, 0, "ring|mutex", "the queue"},
    {"duration", OPT_DURATION, AT(duration_ns), NULL, "10s", 1e6, 3.6e12, NULL,
     "length of a step"},
    {"concurrency", OPT_UINTS, AT(concurrency), "LIST", "1,4", 1, 10000, NULL, "clients"},
    {"trace", OPT_FLAG, AT(trace), NULL, NULL, 0, 0, NULL, "write a trace"},
    {"color", OPT_FLAG, AT(color), NULL, "true", 0, 0, NULL, "colours on a terminal"},
};
static const struct command_spec COMMAND = {
    .name = "serve",
    .synopsis = "telltale serve --model FILE.onnx [options]",
    .summary = "Serves a model.",
    .epilog = "examples\n  telltale serve --model a.onnx",
    .options = SPECS,
    .option_count = sizeof(SPECS) / sizeof(SPECS[0]),
};

struct run {
    struct config config;
    struct err err;
    enum options_result result;
    const char **positional;
    size_t count;
};

/* Arguments up to NULL. Filled with junk first: the fields must not be read before. */
static struct run parse(const char *const *arguments) {
    struct run run = {.err = {.text = ""}};
    const char *argv[20] = {"serve"};
    int argc = 1;
    memset(&run.config, 0xA5, sizeof(run.config));
    while (arguments[argc - 1] != NULL) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    run.result = options_read(&COMMAND, argc, (char **)(uintptr_t)argv, &run.config,
                              &run.positional, &run.count, &run.err);
    return run;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void done(struct run *run) { options_free(&COMMAND, &run->config, run->positional); }

static void fills_defaults_first(void **state) {
    (void)state;
    struct run run = parse((const char *const[]){NULL});
    assert_int_equal(run.result, OPTIONS_RUN);
    assert_false(run.config.trace);
    assert_true(run.config.color);
    assert_int_equal(run.config.max_batch, 32);
    assert_true(run.config.rate == 0.0);
    assert_null(run.config.model);
    assert_string_equal(run.config.host, "127.0.0.1");
    assert_int_equal(run.config.inputs.count, 1);
    assert_int_equal(run.config.queue, 0);
    assert_true(run.config.duration_ns == 10000000000u);
    assert_int_equal(run.config.concurrency.count, 2);
    assert_int_equal(run.count, 0);
    done(&run);
}

static void takes_values_behind_a_space_or_an_equals_sign(void **state) {
    (void)state;
    struct run run = PARSE("--model", "a.onnx", "--max-batch=1_024", "--rate", "-0",
                           "--queue=mutex", "--duration", "500ms", "--trace",
                           "--no-color", "--host=");
    assert_string_equal(run.err.text, "");
    assert_int_equal(run.result, OPTIONS_RUN);
    assert_string_equal(run.config.model, "a.onnx");
    assert_int_equal(run.config.max_batch, 1024);
    assert_int_equal(run.config.queue, 1);
    assert_int_equal(run.config.duration_ns, 500000000);
    assert_true(run.config.trace);
    assert_false(run.config.color);
    assert_string_equal(run.config.host, "");
    done(&run);
}

static void counts_the_last_of_two(void **state) {
    (void)state;
    struct run run = PARSE("--max-batch", "8", "--trace=true", "--max-batch", "9", "--trace=false",
                           "--concurrency", "5", "--concurrency", "6");
    assert_int_equal(run.config.max_batch, 9);
    assert_false(run.config.trace);
    assert_int_equal(run.config.concurrency.count, 1);
    assert_int_equal(run.config.concurrency.items[0], 6);
    done(&run);
}

static void gathers_repeated_strings_in_place_of_the_default(void **state) {
    (void)state;
    struct run run = PARSE("--input", "a", "--input=b");
    assert_int_equal(run.config.inputs.count, 2);
    assert_string_equal(run.config.inputs.items[0], "a");
    assert_string_equal(run.config.inputs.items[1], "b");
    done(&run);
}

static void reads_lists_and_ranges(void **state) {
    (void)state;
    static const uint64_t EXPECTED[] = {1, 6, 11, 16, 200, 2000, 7, 8};
    struct run run = PARSE("--concurrency=1:16:5,200,2k,7:8:1");
    assert_int_equal(run.config.concurrency.count, 8);
    assert_memory_equal(run.config.concurrency.items, EXPECTED, sizeof(EXPECTED));
    done(&run);
}

static void separates_positional_arguments(void **state) {
    (void)state;
    struct run run = PARSE("a", "--trace", "b", "-", "--", "--max-batch", "c");
    assert_int_equal(run.result, OPTIONS_RUN);
    assert_int_equal(run.count, 5);
    assert_string_equal(run.positional[0], "a");
    assert_string_equal(run.positional[2], "-");
    assert_string_equal(run.positional[3], "--max-batch");
    assert_string_equal(run.positional[4], "c");
    done(&run);
}

static void refuses_positional_arguments_where_there_are_none(void **state) {
    (void)state;
    struct config config;
    struct err err = {.text = ""};
    char *argv[] = {"serve", "stray", NULL};
    assert_int_equal(options_read(&COMMAND, 2, argv, &config, NULL, NULL, &err), OPTIONS_BAD);
    assert_string_equal(err.text, "'stray': telltale serve takes no such argument");
}

static void says_exactly_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *arguments[3];
        const char *text;
    } CASES[] = {
        {{"--max-bacth", "8"}, "--max-bacth: no such option; did you mean --max-batch?"},
        {{"--max_batch=8"}, "--max_batch: no such option; did you mean --max-batch?"},
        {{"--conc", "8"}, "--conc: no such option; did you mean --concurrency?"},
        {{"--no-colour"}, "--no-colour: no such option; did you mean --no-color?"},
        {{"--no-model"}, "--no-model: no such option; did you mean --model?"},
        {{"--frobnicate"}, "--frobnicate: no such option; see telltale serve --help"},
        {{"--max-batch"}, "--max-batch needs a value: --max-batch N"},
        {{"--model", "--trace"}, "--model needs a value: --model FILE"},
        {{"--queue"}, "--queue needs a value: --queue ring|mutex"},
        {{"--duration"}, "--duration needs a value: --duration TIME"},
        {{"--max-batch", "4097"}, "--max-batch: 4097 is more than 4096"},
        {{"--concurrency", "1,0"}, "--concurrency: 0 is less than 1"},
        {{"--duration", "1us"}, "--duration: 1us is less than 1ms"},
        {{"--duration", "2h"}, "--duration: 2h is more than 1h"},
        {{"--duration", "10"},
         "--duration: '10' has no unit: write 10s or 10ms (ns, us, ms, s, m, h)"},
        {{"--max-batch", "ten"},
         "--max-batch: 'ten' is not a whole number (12, 10k, 64MiB; suffixes k, M, G, KiB, MiB, "
         "GiB)"},
        {{"--rate=fast"}, "--rate: 'fast' is not a number"},
        {{"--queue=rong"}, "--queue: 'rong' is not one of ring|mutex"},
        {{"--trace=yes"}, "--trace: 'yes' is neither true nor false"},
        {{"--no-trace=true"}, "--no-trace takes no value"},
        {{"--concurrency=1:16"}, "--concurrency: '1:16' is not from:to:step, as in 1:16:5"},
        {{"--concurrency=16:1:5"}, "--concurrency: '16:1:5' is not from:to:step, as in 1:16:5"},
        {{"--concurrency=1:16:0"}, "--concurrency: '1:16:0' is not from:to:step, as in 1:16:5"},
        {{"--concurrency=1:2:3:4"}, "--concurrency: '1:2:3:4' is not from:to:step, as in 1:16:5"},
        {{"--concurrency=1:10000:1,1"}, "--concurrency: more than 10000 values"},
        {{"-m"}, "-m: options begin with two dashes; see telltale serve --help"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct run run = parse(CASES[i].arguments);
        assert_int_equal(run.result, OPTIONS_BAD);
        assert_string_equal(run.err.text, CASES[i].text);
        assert_null(run.positional);
        done(&run);
    }
}

static void refuses_empty_parts_of_a_list(void **state) {
    (void)state;
    static const char *const CASES[] = {"--concurrency=", "--concurrency=1,", "--concurrency=,1",
                                        "--concurrency=1,,2", "--concurrency=::",
                                        "--concurrency=1::2", "--concurrency=1 ,2"};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct run run = PARSE(CASES[i]);
        assert_int_equal(run.result, OPTIONS_BAD);
        done(&run);
    }
}

static void survives_a_name_of_any_length(void **state) {
    (void)state;
    char name[3000] = "--";
    memset(name + 2, 'n', sizeof(name) - 3);
    name[sizeof(name) - 1] = '\0';
    struct run run = PARSE(name);
    assert_int_equal(run.result, OPTIONS_BAD);
    done(&run);
}

static void frees_lists_when_a_later_option_is_wrong(void **state) {
    (void)state;
    struct run run = PARSE("--input=a", "--concurrency=1,2", "x", "--max-batch=x");
    assert_int_equal(run.result, OPTIONS_BAD);
    assert_null(run.config.inputs.items);
    assert_null(run.config.concurrency.items);
    /* No options_free: the leak check looks. */
}

static void asks_for_help_anywhere_but_behind_the_dashes(void **state) {
    (void)state;
    struct run run = PARSE("--trace", "--help", "--nonsense");
    assert_int_equal(run.result, OPTIONS_HELP_SHOWN);
    run = PARSE("-h");
    assert_int_equal(run.result, OPTIONS_HELP_SHOWN);
    run = PARSE("--", "--help");
    assert_int_equal(run.result, OPTIONS_RUN);
    done(&run);
}

static void prints_help_within_80_columns(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options_print_help(&COMMAND, out);
    fclose(out);
    size_t column = 0;
    for (size_t i = 0; i < size; i++) {
        column = text[i] == '\n' ? 0 : column + 1;
        assert_true(column <= 80);
        assert_false(text[i] == '\n' && i > 0 && text[i - 1] == ' ');
    }
    assert_non_null(strstr(text, "usage: telltale serve --model FILE.onnx [options]\n\n"
                                 "Serves a model.\n\nmodel\n"));
    assert_non_null(strstr(text, "  --model FILE            the model\n"));
    assert_non_null(strstr(text, "  --host HOST             address to listen on (default "
                                 "127.0.0.1)\n"));
    assert_non_null(strstr(text, "  --queue ring|mutex      the queue (default ring)\n"));
    assert_non_null(strstr(text, "  --duration TIME         length of a step (1ms..1h, default "
                                 "10s)\n"));
    assert_non_null(strstr(text, "  --[no-]color            colours on a terminal (on by "
                                 "default)\n"));
    assert_non_null(strstr(text, "and every\n                          request runs alone"));
    assert_non_null(strstr(text, "\nexamples\n  telltale serve --model a.onnx\n"));
    free(text);
}

static void writes_its_configuration_as_json_members(void **state) {
    (void)state;
    struct run run = PARSE("--input=a\"b", "--rate=0.1");
    struct buf buf;
    buf_init(&buf);
    options_write_json(&COMMAND, &run.config, &buf);
    buf_char(&buf, '\0');
    assert_string_equal(buf.data,
                        "\"model\": null, \"host\": \"127.0.0.1\", \"input\": [\"a\\\"b\"], "
                        "\"max_batch\": 32, \"rate\": 0.1, \"queue\": \"ring\", "
                        "\"duration_ns\": 10000000000, \"concurrency\": [1, 4], "
                        "\"trace\": false, \"color\": true");
    buf_done(&buf);
    done(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_defaults_first),
        cmocka_unit_test(takes_values_behind_a_space_or_an_equals_sign),
        cmocka_unit_test(counts_the_last_of_two),
        cmocka_unit_test(gathers_repeated_strings_in_place_of_the_default),
        cmocka_unit_test(reads_lists_and_ranges),
        cmocka_unit_test(separates_positional_arguments),
        cmocka_unit_test(refuses_positional_arguments_where_there_are_none),
        cmocka_unit_test(says_exactly_what_is_wrong),
        cmocka_unit_test(refuses_empty_parts_of_a_list),
        cmocka_unit_test(survives_a_name_of_any_length),
        cmocka_unit_test(frees_lists_when_a_later_option_is_wrong),
        cmocka_unit_test(asks_for_help_anywhere_but_behind_the_dashes),
        cmocka_unit_test(prints_help_within_80_columns),
        cmocka_unit_test(writes_its_configuration_as_json_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

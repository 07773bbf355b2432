/* What explain reads: the lines that the tracer itself writes, the client's lines, broken ones. */
#include "diag/cmd_explain.h"
#include "diag/evidence.h"
#include "diag/jsonl.h"
#include "diag/run_client.h"
#include "diag/run_json.h"
#include "diag/run_line.h"
#include "diag/run_read.h"
#include "measure/trace.h"
#include "measure/trace_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const char MODEL[] = "\"spam \\\"1\\\"\"";

static struct trace_record record_of(unsigned i) {
    struct trace_record record = {.batch = 1 + i / 2, .batch_size = 2, .rows = 1, .tokens = 7,
                                  .padded = 9, .bytes_in = 100, .bytes_out = 50, .status_http = 200,
                                  .reason = REASON_TIMER, .lock_wait_ns = 300,
                                  .lock_holder = 2 /* worker */, .instance = 3};
    snprintf(record.id, sizeof record.id, "b2-%u", i);
    for (unsigned at = 0; at < AT_COUNT; at++)
        record.at[at] = 5000000u + i * 1000000u + at * at * 1000u;
    return record;
}

static void append_request(struct buf *out, unsigned i) {
    const struct trace_record record = record_of(i);
    trace_json_request(
        out, &record, view_of(MODEL),
        (struct sampling){.why = SAMPLED_UNIFORM, .is_uniform = true, .share = 0.25});
}

static void append_batch(struct buf *out, uint64_t number) {
    const struct batch_record record = {
        .batch = number, .free_ns = 10, .ready_ns = 20, .taken_ns = 30, .inputs_ready_ns = 40,
        .executed_ns = 50, .outputs_ready_ns = 60, .inline_preprocess_ns = 5, .real_elements = 14,
        .padded_elements = 18, .cpu_ns = 9, .run_delay_ns = 1, .requests = 2, .rows = 2,
        .max_batch = 32, .waiting = 4, .instance = 3, .reason = REASON_TIMER, .simulated = 1};
    trace_json_batch(out, &record, view_of(MODEL));
}

/* One line without its end. */
static struct view line_of(const struct buf *text) {
    return (struct view){.data = text->data, .size = text->size - 1};
}

static void lines_of_the_tracer_are_read_as_they_were_meant(void **state) {
    (void)state;
    struct run run;
    struct buf text;
    struct err err = {""};
    run_init(&run);
    buf_init(&text);
    append_request(&text, 4);
    assert_int_equal(run_read_request(&run, line_of(&text), &err), ST_OK);
    const struct trace_record record = record_of(4);
    const struct run_request *request = &run.requests[0];
    uint64_t stages[STAGE_COUNT];
    assert_int_equal(request->total_ns, trace_durations(&record, stages));
    for (unsigned i = 0; i < STAGE_COUNT; i++)
        assert_int_equal((uint64_t)request->part_ns[i], stages[i]);
    assert_int_equal((uint64_t)run.residual_max_ns, 0);
    assert_int_equal(request->start_ns, record.at[AT_START]);
    assert_int_equal(request->enqueued_ns, record.at[AT_ENQUEUED]);
    assert_int_equal(request->taken_ns, record.at[AT_TAKEN]);
    assert_string_equal(run.models[0], "spam \"1\"");
    assert_string_equal(run_id(&run, request), "b2-4");
    assert_int_equal(request->reason, REASON_TIMER);
    assert_int_equal(request->holder, HOLDER_WORKER);
    assert_int_equal(request->instance, 3);
    assert_true(request->is_ok && request->weight == 4);
    buf_clear(&text);
    append_batch(&text, 3);
    assert_int_equal(run_read_batch(&run, line_of(&text), &err), ST_OK);
    assert_int_equal(run_finish(&run, NULL, &err), ST_OK);
    const struct run_batch *batch = &run.batches[run.requests[0].batch_index];
    assert_int_equal(batch->inline_ns, 5);
    assert_int_equal(batch->padded_elements, 18);
    assert_int_equal(batch->waiting, 4);
    assert_true(batch->simulated && batch->weight == 2);
    buf_done(&text);
    run_done(&run);
}

static void every_cut_of_a_line_is_a_mistake_and_harmless(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text);
    append_request(&text, 1);
    for (size_t size = 0; size + 1 < text.size; size++) {
        struct run run;
        struct err err = {""};
        run_init(&run);
        char *exact = malloc(size + 1); /* the sanitizer sees a read past it */
        memcpy(exact, text.data, size);
        char *shrunk = realloc(exact, size > 0 ? size : 1);
        assert_int_equal(run_read_request(&run, (struct view){.data = shrunk, .size = size}, &err),
                         ST_INVALID);
        assert_true(err.text[0] != 0);
        free(shrunk);
        run_done(&run);
    }
    buf_done(&text);
}

static void broken_lines_are_named(void **state) {
    (void)state;
    const struct { const char *line, *says;
    } CASES[] = {{"", "not a JSON object"},
                 {"[1]", "not a JSON object"},
                 {"{}", "id is missing"},
                 {"{\"id\":7}", "id is not a text"},
                 {"{\"start_ns\":-1}", "start_ns is not"},
                 {"{\"start_ns\":1.5}", "start_ns is not"},
                 {"{\"start_ns\":99999999999999999999}", "start_ns is not"},
                 {"{\"rows\":4294967296}", "rows is not"},
                 {"{\"instance\":256}", "instance is not"},
                 {"{\"uniform\":1}", "uniform is not true or false"},
                 {"{\"id\":\"a\" \"b\":1}", "comma"},
                 {"{\"id\" 1}", "colon"},
                 {"{\"x\":{\"y\":[1,\"]\"]}", "it ends"},
                 {"{\"x\":[1}", "brackets"},
                 {"{\"x\":tru}", "not JSON"},
                 {"{\"id\":\"a\"} x", "follows"},
                 {"{\"id\":\"a", "does not end"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct run run;
        struct err err = {""};
        run_init(&run);
        assert_int_equal(run_read_request(&run, view_of(CASES[i].line), &err), ST_INVALID);
        if (strstr(err.text, CASES[i].says) == NULL && strstr(err.text, "missing") == NULL)
            fail_msg("%s: %s", CASES[i].line, err.text);
        run_done(&run);
    }
}

static void members_are_given_in_order_and_nested_ones_whole(void **state) {
    (void)state;
    struct jsonl jsonl;
    struct view key;
    struct jsonl_value value;
    char text[16];
    jsonl_begin(
        &jsonl,
        view_of(" { \"a\" : \"x\\n\\u0041\\\"\" , \"b\":{\"}\":[{}]},\"c\":-2.5e1,\"d\":null} "));
    assert_true(jsonl_next(&jsonl, &key, &value));
    assert_int_equal(jsonl_text(&value, text, sizeof text), 4);
    assert_string_equal(text, "x\nA\"");
    assert_true(jsonl_next(&jsonl, &key, &value));
    assert_int_equal(value.kind, JSONL_NESTED);
    assert_true(view_is(value.text, "{\"}\":[{}]}"));
    assert_true(jsonl_next(&jsonl, &key, &value));
    assert_true(jsonl_double(&value) == -25 && !value.is_integer);
    assert_true(jsonl_next(&jsonl, &key, &value));
    assert_int_equal(value.kind, JSONL_NULL);
    assert_false(jsonl_next(&jsonl, &key, &value));
    assert_null(jsonl.problem);
}

/* ---- files ---- */

struct dir {
    char path[64];
};

static void dir_open(struct dir *dir) {
    strcpy(dir->path, "/tmp/diag-read-XXXXXX");
    assert_non_null(mkdtemp(dir->path));
}

static void dir_write(const struct dir *dir, const char *name, struct view text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.size, file), text.size);
    assert_int_equal(fclose(file), 0);
}

static void dir_close(const struct dir *dir) {
    static const char *const NAMES[] = {"requests.jsonl", "batches.jsonl", "client.jsonl",
                                        "summary.json", "config.json"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir->path, NAMES[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir->path), 0);
}

static void write_requests(const struct dir *dir, unsigned count, const char *tail) {
    struct buf text;
    buf_init(&text);
    for (unsigned i = 0; i < count; i++) append_request(&text, i);
    buf_text(&text, tail);
    dir_write(dir, "requests.jsonl", buf_view(&text));
    buf_done(&text);
}

static void last_line_may_be_cut_but_no_other(void **state) {
    (void)state;
    struct dir dir;
    struct run run;
    struct err err = {""};
    dir_open(&dir);
    const struct run_source source = {.directory = dir.path};
    write_requests(&dir, 30, "{\"id\":\"b2-30\",\"mod");
    assert_int_equal(run_read(&source, &run, &err), ST_OK);
    assert_int_equal(run.count, 30);
    assert_int_equal(run.lines_cut, 1);
    run_done(&run);
    write_requests(&dir, 30, "{\"id\":\"b2-30\",\"mod\n");
    assert_int_equal(run_read(&source, &run, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "requests.jsonl, line 31: "));
    run_done(&run);
    dir_close(&dir);
}

static void a_bench_s_warm_up_is_left_out(void **state) {
    (void)state;
    static const struct { const char *id; bool is_kept; } IDS[] = {
        {"w1-7", false}, {"w12-345", false}, {"w1-", true}, {"w-1", true}, {"w1-7x", true},
        {"worker", true}, {"b1-7", true}};
    struct dir dir;
    struct run run;
    struct err err = {""};
    struct buf text;
    dir_open(&dir);
    buf_init(&text);
    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        struct trace_record record = record_of((unsigned)i);
        snprintf(record.id, sizeof record.id, "%s", IDS[i].id);
        trace_json_request(&text, &record, view_of(MODEL),
                           (struct sampling){.why = SAMPLED_UNIFORM, .is_uniform = true, .share = 1});
    }
    dir_write(&dir, "requests.jsonl", buf_view(&text));
    buf_done(&text);
    const struct run_source source = {.directory = dir.path};
    assert_int_equal(run_read(&source, &run, &err), ST_OK);
    assert_int_equal(run.warm_up, 2);
    assert_int_equal(run.count, 5);
    run_done(&run);
    dir_close(&dir);
}

static void lines_longer_than_the_buffer_are_refused(void **state) {
    (void)state;
    struct dir dir;
    struct run run;
    struct err err = {""};
    dir_open(&dir);
    const struct run_source source = {.directory = dir.path};
    char *blanks = malloc(LINE_MAX_BYTES + 2);
    memset(blanks, ' ', LINE_MAX_BYTES + 2);
    dir_write(&dir, "requests.jsonl", (struct view){.data = blanks, .size = LINE_MAX_BYTES + 2});
    assert_int_equal(run_read(&source, &run, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "longer than"));
    free(blanks);
    run_done(&run);
    dir_close(&dir);
}

static void append_client(struct buf *out, unsigned step, unsigned i, const char *phase,
                          uint64_t service_ns) {
    buf_printf(out,
               "{\"step\":%u,\"phase\":\"%s\",\"id\":\"b2-%u\",\"planned_ns\":1,\"sent_ns\":2,"
               "\"done_ns\":9,\"latency_ns\":%llu,\"service_ns\":%llu,\"status\":\"ok\","
               "\"stages_ns\":{\"execute\":1}}\n",
               step, phase, i, (unsigned long long)service_ns + 500,
               (unsigned long long)service_ns);
}

static void client_is_joined_by_id_and_its_step_kept(void **state) {
    (void)state;
    struct dir dir;
    struct run run;
    struct buf text;
    struct err err = {""};
    dir_open(&dir);
    buf_init(&text);
    write_requests(&dir, 40, "");
    for (unsigned i = 0; i < 10; i++) append_client(&text, 1, i, "measure", 900000);
    for (unsigned i = 10; i < 15; i++) append_client(&text, 2, i, "warmup", 900000);
    for (unsigned i = 15; i < 35; i++) append_client(&text, 2, i, "measure", 900000);
    append_client(&text, 2, 77, "measure", 900000); /* the trace does not hold it */
    dir_write(&dir, "client.jsonl", buf_view(&text));
    assert_int_equal(run_read(&(struct run_source){.directory = dir.path}, &run, &err), ST_OK);
    assert_int_equal(run.step, 2);
    assert_int_equal(run.count, 20);
    assert_int_equal(run.joined, 20);
    assert_int_equal(run.not_joined, 20);
    assert_int_equal(run.step_ok, 21);
    const struct run_request *request = &run.requests[0];
    assert_string_equal(run_id(&run, request), "b2-15");
    assert_int_equal((uint64_t)request->part_ns[PART_GENERATOR], 500);
    assert_int_equal((uint64_t)request->part_ns[PART_NETWORK], 900000 - request->total_ns);
    assert_int_equal((uint64_t)request->whole_ns, 900500);
    run_done(&run);
    assert_int_equal(run_read(&(struct run_source){.directory = dir.path, .step = 1}, &run, &err),
                     ST_OK);
    assert_int_equal(run.count, 10);
    run_done(&run);
    buf_done(&text);
    dir_close(&dir);
}

static void models_are_chosen_by_name_or_by_number_of_requests(void **state) {
    (void)state;
    struct run run;
    struct err err = {""};
    for (int pass = 0; pass < 3; pass++) {
        struct buf text;
        run_init(&run);
        buf_init(&text);
        for (unsigned i = 0; i < 6; i++) {
            const struct trace_record record = record_of(i);
            buf_clear(&text);
            trace_json_request(
                &text, &record, view_of(i < 2 ? "\"small\"" : "\"large\""),
                (struct sampling){.why = SAMPLED_ALL, .is_uniform = true, .share = 1});
            assert_int_equal(run_read_request(&run, line_of(&text), &err), ST_OK);
        }
        const char *const wanted[] = {NULL, "small", "none such"};
        const enum status status = run_finish(&run, wanted[pass], &err);
        assert_int_equal(status, pass == 2 ? ST_NOT_FOUND : ST_OK);
        if (pass < 2) assert_int_equal(run.count, pass == 0 ? 4 : 2);
        buf_done(&text);
        run_done(&run);
    }
    assert_non_null(strstr(err.text, "large"));
}

static void summary_and_configuration_are_read_where_they_are(void **state) {
    (void)state;
    struct run run;
    run_init(&run);
    strcpy(run.model, "b");
    json_t *summary =
        json_loads("{\"dropped\":3,\"sampling\":{\"all\":false,\"slow_share\":0.02},"
                   "\"written\":{\"complete\":true},\"models\":[{\"model\":\"a\",\"requests\":1},"
                   "{\"model\":\"b\",\"requests\":9,\"by_status\":{\"ok\":8}}]}",
                   0, NULL);
    json_t *config = json_loads("{\"queue\":\"mutex\",\"policy\":\"timer\",\"max_delay_us\":20000,"
                                "\"max_batch\":32,\"models\":[{\"name\":\"b\",\"max_batch\":8}]}",
                                0, NULL);
    run_set_summary(&run, summary);
    run_set_config(&run, config);
    assert_int_equal(run.summary.requests, 9);
    assert_int_equal(run.summary.ok, 8);
    assert_int_equal(run.summary.dropped, 3);
    assert_true(run.summary.slow_share == 0.02 && run.summary.is_complete);
    assert_string_equal(run.config.queue, "mutex");
    assert_int_equal(run.config.max_delay_us, 20000);
    assert_int_equal(run.config.max_batch, 8);
    json_decref(summary);
    json_decref(config);
    summary = json_loads("[7]", 0, NULL);
    run_set_summary(&run, summary);
    assert_false(run.summary.is_known);
    json_decref(summary);
    run_done(&run);
}

static int explain(const char *directory) {
    char name[] = "explain", path[128];
    snprintf(path, sizeof path, "%s", directory);
    char *argv[] = {name, path, NULL};
    return cmd_explain(2, argv);
}

static void exit_codes_are_as_documented(void **state) {
    (void)state;
    struct dir dir;
    char name[] = "explain", extra[] = "b";
    char *none[] = {name, NULL}, *two[] = {name, extra, extra, NULL};
    assert_int_equal(cmd_explain(1, none), 2);
    assert_int_equal(cmd_explain(3, two), 2);
    dir_open(&dir);
    assert_int_equal(explain("/nowhere/at/all"), 1);
    assert_int_equal(explain(dir.path), 1);
    write_requests(&dir, 5, "");
    assert_int_equal(explain(dir.path), 1);
    write_requests(&dir, 200, "");
    assert_int_equal(explain(dir.path), 0);
    dir_write(&dir, "summary.json", view_of("{"));
    assert_int_equal(explain(dir.path), 1);
    dir_close(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_the_tracer_are_read_as_they_were_meant),
        cmocka_unit_test(every_cut_of_a_line_is_a_mistake_and_harmless),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(members_are_given_in_order_and_nested_ones_whole),
        cmocka_unit_test(last_line_may_be_cut_but_no_other),
        cmocka_unit_test(a_bench_s_warm_up_is_left_out),
        cmocka_unit_test(lines_longer_than_the_buffer_are_refused),
        cmocka_unit_test(client_is_joined_by_id_and_its_step_kept),
        cmocka_unit_test(models_are_chosen_by_name_or_by_number_of_requests),
        cmocka_unit_test(summary_and_configuration_are_read_where_they_are),
        cmocka_unit_test(exit_codes_are_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

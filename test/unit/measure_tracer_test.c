/* The tracer from record to file, with its writer thread. */
#include "measure/trace.h"
#include "measure/trace_json.h"
#include "measure/trace_stats.h"

#include "sync/role.h"
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static char root[64];

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/telltale-trace-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static char *path_of(const char *file) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, file);
    return path;
}

static char *read_file(const char *file) {
    FILE *in = fopen(path_of(file), "r");
    assert_non_null(in);
    static char text[1 << 20];
    const size_t size = fread(text, 1, sizeof text - 1, in);
    assert_true(feof(in));
    fclose(in);
    text[size] = '\0';
    return text;
}

/* Parses each line; the array is the caller's. */
static json_t *read_lines(const char *file) {
    json_t *lines = json_array();
    for (char *line = strtok(read_file(file), "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        json_array_append_new(lines, object);
    }
    return lines;
}

static json_t *read_summary(const char *file) {
    json_t *summary = json_loads(read_file(file), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(summary);
    return summary;
}

static uint64_t u64(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static const char *text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    assert_non_null(value);
    return value;
}

static struct tracer *create(const struct tracer_config *config) {
    struct tracer *tracer = NULL;
    struct err err = {.text = ""};
    const enum status status = tracer_create(config, &tracer, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(status, ST_OK);
    return tracer;
}

/* A request that spent i*10 ns in the i-th interval. */
static struct trace_record example(uint16_t model, uint64_t start_ns) {
    struct trace_record record = {.id = "r-1",
                                  .batch = 5,
                                  .lock_wait_ns = 7,
                                  .batch_size = 3,
                                  .rows = 2,
                                  .tokens = 17,
                                  .padded = 32,
                                  .bytes_in = 100,
                                  .bytes_out = 50,
                                  .model = model,
                                  .status_http = 200,
                                  .status = ST_OK,
                                  .reason = REASON_TIMER,
                                  .lock_holder = ROLE_INSTANCE,
                                  .instance = 1};
    uint64_t now = start_ns;
    for (unsigned i = 0; i < AT_COUNT; i++) record.at[i] = now += i * 10;
    return record;
}

static const struct batch_record example_batch = {.batch = 5,
                                                  .free_ns = 1,
                                                  .ready_ns = 2,
                                                  .taken_ns = 100,
                                                  .inputs_ready_ns = 200,
                                                  .executed_ns = 500,
                                                  .outputs_ready_ns = 600,
                                                  .inline_preprocess_ns = 11,
                                                  .real_elements = 60,
                                                  .padded_elements = 96,
                                                  .cpu_ns = 12,
                                                  .run_delay_ns = 13,
                                                  .requests = 3,
                                                  .rows = 6,
                                                  .max_batch = 32,
                                                  .waiting = 4,
                                                  .instance = 1,
                                                  .reason = REASON_FULL,
                                                  .simulated = 1};

static void writes_every_field_of_a_request(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = path_of("a/b"), .all = true};
    struct tracer *tracer = create(&config);
    const uint16_t model = tracer_model(tracer, "sp\"am\n");
    const struct trace_record record = example(model, 1000);
    trace_request(tracer_ring(tracer), &record);
    tracer_free(tracer);

    json_t *lines = read_lines("a/b/requests.jsonl");
    assert_int_equal(json_array_size(lines), 1);
    const json_t *line = json_array_get(lines, 0);
    assert_string_equal(text(line, "id"), "r-1");
    assert_string_equal(text(line, "model"), "sp\"am\n");
    assert_string_equal(text(line, "status"), "ok");
    assert_string_equal(text(line, "sampled"), "all");
    assert_true(json_is_true(json_object_get(line, "uniform")));
    assert_true(json_number_value(json_object_get(line, "uniform_share")) == 1.0);
    assert_string_equal(text(line, "lock_holder"), "instance");
    assert_string_equal(text(line, "reason"), "timer");
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(&record, durations);
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_ns", stage_name(i));
        assert_int_equal(u64(line, name), durations[i]);
        sum_ns += u64(line, name);
    }
    assert_int_equal(u64(line, "total_ns"), total_ns);
    assert_int_equal(sum_ns, total_ns);
    const struct { const char *name; uint64_t value; } numbers[] = {
        {"http", 200}, {"start_ns", record.at[AT_START]}, {"lock_wait_ns", 7}, {"batch", 5},
        {"batch_size", 3}, {"rows", 2}, {"instance", 1}, {"tokens", 17}, {"padded", 32},
        {"bytes_in", 100}, {"bytes_out", 50}, {"enqueued_ns", record.at[AT_ENQUEUED]},
        {"instance_free_ns", record.at[AT_INSTANCE_FREE]},
        {"batch_ready_ns", record.at[AT_BATCH_READY]}, {"taken_ns", record.at[AT_TAKEN]}};
    const size_t known = sizeof numbers / sizeof *numbers;
    for (size_t i = 0; i < known; i++) {
        assert_int_equal(u64(line, numbers[i].name), numbers[i].value);
    }
    assert_int_equal(json_object_size(line), known + STAGE_COUNT + 10);
    json_decref(lines);
}

static void writes_every_field_of_a_batch(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = root, .all = true};
    struct tracer *tracer = create(&config);
    tracer_model(tracer, "spam");
    trace_batch(tracer_ring(tracer), &example_batch);
    tracer_free(tracer);
    json_t *lines = read_lines("batches.jsonl");
    const json_t *line = json_array_get(lines, 0);
    const struct { const char *name; uint64_t value; } numbers[] = {
        {"batch", 5}, {"free_ns", 1}, {"ready_ns", 2}, {"taken_ns", 100}, {"inputs_ready_ns", 200},
        {"executed_ns", 500}, {"outputs_ready_ns", 600}, {"inline_preprocess_ns", 11},
        {"real_elements", 60}, {"padded_elements", 96}, {"cpu_ns", 12}, {"run_delay_ns", 13},
        {"requests", 3}, {"rows", 6}, {"max_batch", 32}, {"waiting", 4}, {"instance", 1}};
    const size_t known = sizeof numbers / sizeof *numbers;
    for (size_t i = 0; i < known; i++) {
        assert_int_equal(u64(line, numbers[i].name), numbers[i].value);
    }
    assert_string_equal(text(line, "model"), "spam");
    assert_string_equal(text(line, "reason"), "full");
    assert_true(json_is_false(json_object_get(line, "failed")));
    assert_true(json_is_true(json_object_get(line, "simulated")));
    assert_int_equal(json_object_size(line), known + 4);
    json_decref(lines);
}

static void ids_that_are_not_json_come_out_as_json(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = root, .all = true};
    struct tracer *tracer = create(&config);
    struct trace_record record = example(tracer_model(tracer, "m"), 1);
    memset(record.id, 0xff, sizeof record.id); /* nor terminated */
    struct trace_ring *ring = tracer_ring(tracer);
    trace_request(ring, &record);
    memcpy(record.id, "\"\\\x01", 4);
    record.status = 250;
    record.batch = 0;
    record.lock_wait_ns = 0;
    for (unsigned i = 0; i < AT_COUNT; i++) record.at[i] = i < 2 ? INT64_MAX : 0;
    trace_request(ring, &record);
    tracer_free(tracer);
    json_t *lines = read_lines("requests.jsonl");
    assert_int_equal(json_array_size(lines), 2);
    const json_t *line = json_array_get(lines, 1);
    assert_string_equal(text(line, "id"), "\"\\\x01");
    assert_string_equal(text(line, "status"), "unknown");
    assert_string_equal(text(line, "reason"), "none");
    assert_string_equal(text(line, "lock_holder"), "none");
    json_decref(lines);
}

static void adds_up_what_each_model_did(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = NULL};
    struct tracer *tracer = create(&config);
    const uint16_t a = tracer_model(tracer, "a");
    const uint16_t b = tracer_model(tracer, "b");
    assert_int_equal(tracer_model(tracer, "a"), a);
    struct trace_ring *ring = tracer_ring(tracer);
    struct trace_record record = example(a, 1000);
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(&record, durations);
    for (unsigned i = 0; i < 1000; i++) trace_request(ring, &record);
    record.status = ST_TIMEOUT;
    trace_request(ring, &record);
    trace_request(ring, &(struct trace_record){.model = a, .status = ST_OVERLOADED,
                                               .at = {[AT_START] = 10, [AT_SENT] = 12}});
    struct batch_record batch = example_batch;
    batch.model = a;
    trace_batch(ring, &batch);
    batch.failed = 1;
    trace_batch(ring, &batch);
    tracer_sync(tracer);

    const struct trace_stats *stats = tracer_stats_lock(tracer, a);
    assert_string_equal(stats->model, "a");
    assert_int_equal(stats->by_status[ST_OK], 1000);
    assert_int_equal(stats->by_status[ST_TIMEOUT], 1);
    assert_int_equal(stats->by_status[ST_OVERLOADED], 1);
    assert_int_equal(stats->total_ns.count, 1002);
    assert_int_equal(stats->total_sum_ns, 1000 * total_ns);
    assert_int_equal(stats->rows, 2000);
    assert_int_equal(stats->bytes_in, 1001 * 100);
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        assert_int_equal(stats->stage_sum_ns[i], 1000 * durations[i]);
        assert_int_equal(stats->stage_ns[i].count, 1002); /* those that took no time too */
    }
    assert_int_equal(stats->stage_ns[STAGE_EXECUTE].min, 0);
    assert_int_equal(stats->lock_wait_ns.count, 1002);
    assert_int_equal(stats->batches, 2);
    assert_int_equal(stats->batches_failed, 1);
    assert_int_equal(stats->batches_simulated, 2);
    assert_int_equal(stats->by_reason[REASON_FULL], 2);
    assert_int_equal(stats->queue_requests.count, stats->batches);
    assert_int_equal(stats->busy_ns, 1000);
    assert_int_equal(stats->execute_ns, 600);
    assert_int_equal(stats->padded_elements, 192);
    assert_int_equal(histogram_quantile(&stats->batch_requests, 0.5), 3);
    assert_int_equal(stats->stamps_out_of_order, 0);
    tracer_stats_unlock(tracer);
    stats = tracer_stats_lock(tracer, b);
    assert_int_equal(stats->total_ns.count, 0);
    tracer_stats_unlock(tracer);
    assert_null(tracer_stats_lock(tracer, 2));
    assert_int_equal(tracer_dropped(tracer), 0);
    tracer_free(tracer);
}

static void the_summary_says_what_was_seen_and_what_was_written(void **state) {
    (void)state;
    const struct tracer_config config = {
        .directory = root, .slow_share = 0.01, .uniform_share = 0.01};
    struct tracer *tracer = create(&config);
    struct trace_record record = example(tracer_model(tracer, "m"), 1000);
    struct trace_ring *ring = tracer_ring(tracer);
    for (unsigned i = 0; i < 5000; i++) {
        record.batch = i / 4 + 1;
        record.batch_size = 4;
        trace_request(ring, &record);
    }
    record.status = ST_INVALID;
    record.at[AT_DECODED] = 1; /* goes back */
    trace_request(ring, &record);
    record.model = 9;
    trace_request(ring, &record);
    tracer_free(tracer);

    json_t *lines = read_lines("requests.jsonl");
    json_t *summary = read_summary("summary.json");
    const json_t *wrote = json_object_get(summary, "written");
    assert_int_equal(u64(wrote, "requests"), json_array_size(lines));
    assert_in_range(json_array_size(lines), 51, 2000);
    assert_true(json_is_true(json_object_get(wrote, "complete")));
    assert_int_equal(u64(summary, "dropped"), 1);
    assert_int_equal(u64(summary, "dropped_unknown_model"), 1);
    assert_true(u64(summary, "end_ns") >= u64(summary, "start_ns"));
    const json_t *model = json_array_get(json_object_get(summary, "models"), 0);
    assert_int_equal(u64(model, "requests"), 5001);
    assert_int_equal(u64(json_object_get(model, "by_status"), "ok"), 5000);
    assert_int_equal(u64(json_object_get(model, "by_status"), "invalid"), 1);
    assert_int_equal(u64(model, "stamps_out_of_order"), 1);
    const json_t *stages = json_object_get(model, "stages");
    assert_int_equal(json_object_size(stages), STAGE_COUNT);
    assert_int_equal(u64(json_object_get(stages, "execute_ns"), "p999"), AT_EXECUTED * 10);
    json_decref(summary);
    json_decref(lines);
}

static void a_directory_with_a_run_is_refused_with_the_remedy(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = path_of("run")};
    tracer_free(create(&config));
    struct tracer *tracer = NULL;
    struct err err = {.text = ""};
    assert_int_equal(tracer_create(&config, &tracer, &err), ST_INVALID);
    assert_null(tracer);
    assert_non_null(strstr(err.text, "choose another --trace directory or remove it"));
    /* Also when only the summary is left of it. */
    unlink(path_of("run/requests.jsonl"));
    unlink(path_of("run/batches.jsonl"));
    const struct tracer_config again = {.directory = path_of("run")};
    assert_int_equal(tracer_create(&again, &tracer, &err), ST_INVALID);
    assert_int_not_equal(access(path_of("run/requests.jsonl"), F_OK), 0);
    /* A refusal leaves nothing behind that would be the reason of the next. */
    unlink(path_of("run/summary.json"));
    close(open(path_of("run/batches.jsonl"), O_CREAT | O_WRONLY, 0600));
    const struct tracer_config third = {.directory = path_of("run")};
    assert_int_equal(tracer_create(&third, &tracer, &err), ST_INVALID);
    unlink(path_of("run/batches.jsonl"));
    const struct tracer_config fourth = {.directory = path_of("run")};
    tracer_free(create(&fourth));
}

static void a_directory_that_cannot_be_made_is_an_error_that_names_it(void **state) {
    (void)state;
    close(open(path_of("file"), O_CREAT | O_WRONLY, 0600));
    const struct tracer_config config = {.directory = path_of("file/run")};
    struct tracer *tracer = NULL;
    struct err err = {.text = ""};
    assert_int_equal(tracer_create(&config, &tracer, &err), ST_IO);
    assert_non_null(strstr(err.text, "file/run"));
    const struct tracer_config nameless = {.directory = ""};
    assert_int_equal(tracer_create(&nameless, &tracer, &err), ST_INVALID);
}

static void a_full_disk_ends_the_trace_and_not_the_serving(void **state) {
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    const struct tracer_config config = {.directory = root, .all = true};
    struct tracer *tracer = create(&config);
    struct trace_record record = example(tracer_model(tracer, "m"), 1000);
    struct trace_ring *ring = tracer_ring(tracer);
    const struct rlimit small = {.rlim_cur = 100000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (unsigned i = 0; i < 1000; i++) trace_request(ring, &record);
    tracer_sync(tracer);
    trace_request(ring, &record);
    tracer_free(tracer);
    setrlimit(RLIMIT_FSIZE, &old);

    json_t *lines = read_lines("requests.jsonl"); /* every one of them whole */
    json_t *summary = read_summary("summary.json");
    const json_t *wrote = json_object_get(summary, "written");
    assert_in_range(json_array_size(lines), 50, 200);
    assert_int_equal(u64(wrote, "requests"), json_array_size(lines));
    assert_true(json_is_false(json_object_get(wrote, "complete")));
    assert_non_null(strstr(text(wrote, "error"), "requests.jsonl"));
    const json_t *model = json_array_get(json_object_get(summary, "models"), 0);
    assert_int_equal(u64(model, "requests"), 1001);
    json_decref(summary);
    json_decref(lines);
}

static void writing_stops_at_the_limit_of_its_size(void **state) {
    (void)state;
    const struct tracer_config config = {
        .directory = root, .all = true, .max_bytes = 1, .window_ns = 1};
    struct tracer *tracer = create(&config);
    struct trace_record record = example(tracer_model(tracer, "m"), 1000);
    struct trace_ring *ring = tracer_ring(tracer);
    for (unsigned i = 0; i < 500; i++) {
        trace_request(ring, &record);
        if (i % 100 == 0) tracer_sync(tracer);
    }
    tracer_sync(tracer);
    struct err err = {.text = ""};
    assert_int_equal(tracer_write_status(tracer, &err), ST_IO);
    assert_non_null(strstr(err.text, "limit"));
    tracer_free(tracer);
    json_t *lines = read_lines("requests.jsonl");
    assert_in_range(json_array_size(lines), 1, 400);
    json_decref(lines);
}

static void attaches_a_file_once(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = root};
    struct tracer *tracer = create(&config);
    struct err err = {.text = ""};
    assert_int_equal(tracer_attach(tracer, "config.json", view_of("{}"), &err), ST_OK);
    assert_string_equal(read_file("config.json"), "{}");
    assert_int_equal(tracer_attach(tracer, "config.json", view_of("{}"), &err), ST_IO);
    assert_int_equal(tracer_attach(tracer, "../config.json", view_of("{}"), &err), ST_INVALID);
    tracer_free(tracer);
    const struct tracer_config without = {.directory = NULL};
    tracer = create(&without);
    assert_int_equal(tracer_attach(tracer, "config.json", view_of("{}"), &err), ST_OK);
    tracer_free(tracer);
}

struct held {
    pthread_mutex_t gate;
    uint64_t seen;
};

static void hold(void *ctx, const struct trace_record *record) {
    struct held *held = ctx;
    (void)record;
    pthread_mutex_lock(&held->gate);
    held->seen++;
    pthread_mutex_unlock(&held->gate);
}

static void a_full_ring_drops_and_counts(void **state) {
    (void)state;
    struct held held = {.seen = 0};
    pthread_mutex_init(&held.gate, NULL);
    const struct tracer_config config = {.ring_records = 8, .on_record = hold, .ctx = &held};
    struct tracer *tracer = create(&config);
    struct trace_record record = example(tracer_model(tracer, "m"), 1000);
    struct trace_ring *ring = tracer_ring(tracer);
    pthread_mutex_lock(&held.gate); /* the writer thread gets no further than a first block */
    for (unsigned i = 0; i < 1000; i++) trace_request(ring, &record);
    pthread_mutex_unlock(&held.gate);
    tracer_sync(tracer);
    const uint64_t dropped = tracer_dropped(tracer);
    const struct trace_stats *stats = tracer_stats_lock(tracer, 0);
    const uint64_t counted = stats->total_ns.count;
    tracer_stats_unlock(tracer);
    tracer_free(tracer);
    assert_int_equal(counted + dropped, 1000);
    assert_int_equal(held.seen, counted);
    assert_true(dropped >= 1000 - 64 - 8);
    pthread_mutex_destroy(&held.gate);
}

static void a_tracer_that_is_off_takes_records_and_forgets_them(void **state) {
    (void)state;
    const struct tracer_config config = {.is_off = true, .directory = path_of("off")};
    struct tracer *tracer = create(&config);
    const struct trace_record record = example(tracer_model(tracer, "m"), 1000);
    struct trace_ring *ring = tracer_ring(tracer);
    trace_request(ring, &record);
    trace_batch(ring, &example_batch);
    trace_request(NULL, &record);
    tracer_sync(tracer);
    assert_int_equal(tracer_stats_lock(tracer, 0)->total_ns.count, 0);
    tracer_stats_unlock(tracer);
    assert_int_equal(tracer_dropped(tracer), 0);
    tracer_free(tracer);
    assert_int_not_equal(access(path_of("off"), F_OK), 0);
    tracer_free(NULL);
}

static void numbers_of_every_length_come_out_exactly(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    for (uint64_t power = 1;; power *= 10) {
        for (int offset = -1; offset <= 1; offset++) {
            const uint64_t value = power + (uint64_t)offset;
            char expected[64];
            snprintf(expected, sizeof expected, "{\"batch\":%llu,", (unsigned long long)value);
            buf_clear(&out);
            trace_json_batch(&out, &(struct batch_record){.batch = value}, view_of("\"m\""));
            assert_memory_equal(out.data, expected, strlen(expected));
        }
        if (power == 10000000000000000000u) break;
    }
    buf_clear(&out);
    trace_json_batch(&out, &(struct batch_record){.batch = UINT64_MAX}, view_of("\"m\""));
    assert_memory_equal(out.data, "{\"batch\":18446744073709551615,", 30);
    buf_done(&out);
}

static void assert_documented(const char *manual, const json_t *line) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)line, key, value) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", key);
        bool is_there = strstr(manual, quoted) != NULL;
        for (unsigned i = 0; i < STAGE_COUNT && !is_there; i++) {
            snprintf(quoted, sizeof quoted, "%s_ns", stage_name(i));
            if (strcmp(key, quoted) != 0) continue;
            snprintf(quoted, sizeof quoted, "| `%s` | %s", stage_name(i),
                     i == STAGE_PREPROCESS_WAIT ? "" : stage_help(i));
            is_there = strstr(manual, quoted) != NULL;
        }
        if (!is_there) fail_msg("docs/trace.md does not have %s", key);
    }
}

static void every_field_is_in_the_manual(void **state) {
    (void)state;
    FILE *in = fopen(TEST_SOURCE_DIR "/docs/trace.md", "r");
    assert_non_null(in);
    static char manual[1 << 16];
    manual[fread(manual, 1, sizeof manual - 1, in)] = '\0';
    fclose(in);
    struct buf out;
    buf_init(&out);
    const struct trace_record record = example(0, 1);
    trace_json_request(&out, &record, view_of("\"m\""), (struct sampling){.why = SAMPLED_SLOW});
    json_t *line = json_loadb(out.data, out.size, 0, NULL);
    assert_non_null(line);
    assert_documented(manual, line);
    json_decref(line);
    buf_clear(&out);
    trace_json_batch(&out, &example_batch, view_of("\"m\""));
    line = json_loadb(out.data, out.size, 0, NULL);
    assert_non_null(line);
    assert_documented(manual, line);
    json_decref(line);
    buf_done(&out);
}

static void every_status_has_its_name_in_lower_case(void **state) {
    (void)state;
    for (unsigned i = 0; i < ST_COUNT; i++) {
        assert_int_equal(strcasecmp(trace_json_status(i), status_name(i)), 0);
        assert_true(trace_json_status(i)[0] >= 'a');
    }
}

static void no_line_is_begun_when_memory_is_out(void **state) {
    (void)state;
    struct buf out = {.failed = true};
    const struct trace_record record = example(0, 1);
    trace_json_request(&out, &record, view_of("\"m\""), (struct sampling){.why = SAMPLED_SLOW});
    trace_json_batch(&out, &example_batch, view_of("\"m\""));
    assert_int_equal(out.size, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(writes_every_field_of_a_request),
        TEST(writes_every_field_of_a_batch),
        TEST(ids_that_are_not_json_come_out_as_json),
        TEST(adds_up_what_each_model_did),
        TEST(the_summary_says_what_was_seen_and_what_was_written),
        TEST(a_directory_with_a_run_is_refused_with_the_remedy),
        TEST(a_directory_that_cannot_be_made_is_an_error_that_names_it),
        TEST(a_full_disk_ends_the_trace_and_not_the_serving),
        TEST(writing_stops_at_the_limit_of_its_size),
        TEST(attaches_a_file_once),
        TEST(a_full_ring_drops_and_counts),
        TEST(a_tracer_that_is_off_takes_records_and_forgets_them),
        TEST(numbers_of_every_length_come_out_exactly),
        TEST(every_field_is_in_the_manual),
        TEST(every_status_has_its_name_in_lower_case),
        TEST(no_line_is_begun_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

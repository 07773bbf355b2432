/* The tracer without memory or threads: it starts whole or not at all and leaves the directory
 * free; while it runs, lines may be missing, and then it says so, but none is half there. */
#include "memory.h"

#include "measure/trace.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

enum { RECORDS = 200 };

static char root[] = "/tmp/telltale-fail-XXXXXX";

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* A directory of its own for each run: "root/n". */
static char *directory_of(unsigned run) {
    static char path[64];
    snprintf(path, sizeof path, "%s/%u", root, run);
    return path;
}

static void starting_survives_every_allocation_that_fails(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = directory_of(0), .ring_records = 16};
    struct shortage shortage = {0};
    bool is_open = false;
    while (shortage_next(&shortage)) {
        struct tracer *tracer = NULL;
        struct err err = {.text = ""};
        memory_runs_out(&shortage);
        const enum status status = tracer_create(&config, &tracer, &err);
        memory_is_back(&shortage);
        if (status == ST_OK) {
            assert_int_equal(shortage.refused, 0);
            tracer_discard(tracer); /* so that the next may have the directory */
            is_open = true;
            continue;
        }
        if (status != ST_NO_MEMORY) { /* "holds a run already": one before left something */
            fail_msg("%s: %s", status_name(status), err.text);
        }
        assert_null(tracer);
        assert_true(err.text[0] != '\0');
    }
    assert_true(is_open && shortage.runs >= 10);
}

static void starting_without_a_thread_leaves_the_directory_free(void **state) {
    (void)state;
    const struct tracer_config config = {.directory = directory_of(1)};
    struct tracer *tracer = NULL;
    struct err err = {.text = ""};
    atomic_store(&threads_left, 0);
    const enum status status = tracer_create(&config, &tracer, &err);
    atomic_store(&threads_left, -1);
    assert_int_equal(status, ST_NO_MEMORY);
    assert_non_null(strstr(err.text, "writer thread"));
    assert_int_equal(tracer_create(&config, &tracer, &err), ST_OK);
    tracer_free(tracer);
}

/* Lines of a file, each a JSON object. */
static unsigned count_lines(const char *directory, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    unsigned lines = 0;
    char line[4096];
    while (fgets(line, sizeof line, in) != NULL) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_object(object));
        json_decref(object);
        assert_non_null(strchr(line, '\n'));
        lines++;
    }
    fclose(in);
    return lines;
}

static void check_summary(const char *directory) {
    char path[128];
    snprintf(path, sizeof path, "%s/summary.json", directory);
    json_t *summary = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_object(summary));
    json_decref(summary);
}

static void record_many(struct tracer *tracer, struct trace_ring *ring, uint16_t model) {
    for (unsigned i = 0; i < RECORDS; i++) {
        struct trace_record record = {.id = "r", .batch = i + 1, .model = model, .batch_size = 1};
        for (unsigned at = 0; at < AT_COUNT; at++) {
            record.at[at] = 1000 + i * 1000 + at;
        }
        const struct batch_record batch = {.batch = i + 1, .requests = 1, .model = model};
        trace_batch(ring, &batch);
        trace_request(ring, &record);
    }
    tracer_sync(tracer);
}

static void writing_survives_every_allocation_that_fails(void **state) {
    (void)state;
    unsigned run = 2, incomplete = 0;
    for (int all = 0; all <= 1; all++) {
        struct shortage shortage = {0};
        while (shortage_next(&shortage)) {
            const char *directory = directory_of(run++);
            const struct tracer_config config = {.directory = directory, .all = all,
                                                 .uniform_share = 1, .slow_share = 0.01,
                                                 .window_ns = 1, .ring_records = 1024};
            struct tracer *tracer = NULL;
            assert_int_equal(tracer_create(&config, &tracer, NULL), ST_OK);
            memory_runs_out(&shortage);
            (void)tracer_model(tracer, "another");
            const uint16_t model = tracer_model(tracer, "m");
            struct trace_ring *ring = tracer_ring(tracer);
            record_many(tracer, ring, model);
            tracer_sync(tracer); /* a window has ended since: what failed is known */
            memory_is_back(&shortage);
            const bool is_told = tracer_write_status(tracer, NULL) != ST_OK || ring == NULL ||
                                 model == TRACE_MODEL_MAX;
            tracer_free(tracer);
            const unsigned lines = count_lines(directory, "requests.jsonl");
            (void)count_lines(directory, "batches.jsonl");
            check_summary(directory);
            if (lines < RECORDS) {
                incomplete++;
                assert_true(is_told);
            }
            assert_true(shortage.refused > 0 || lines == RECORDS);
        }
    }
    assert_true(incomplete >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starting_survives_every_allocation_that_fails),
        cmocka_unit_test(starting_without_a_thread_leaves_the_directory_free),
        cmocka_unit_test(writing_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

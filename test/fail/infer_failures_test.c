/* Model files that are no models, and memory that runs out while models are found and opened:
 * an error that names the file, and nothing half open. */
#include "memory.h"

#include "infer/model.h"
#include "infer/repository.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

#define LIBRARY TEST_SOURCE_DIR "/.deps/onnxruntime/lib/libonnxruntime.so.1"
#define MODEL TEST_SOURCE_DIR "/test/data/add.onnx"

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

static char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t size) {
    FILE *out = fopen(path_of(name), "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static const struct session_config ORT = {.intra_op_threads = 1, .onnxruntime_path = LIBRARY};
static const struct session_config SIM = {
    .intra_op_threads = 1, .simulate = "a=1ms,b=0.1ms", .simulate_text = true};

/* ---- files ---- */

static void expect_refused(const char *name) {
    struct model *model = NULL;
    struct err err = {.text = ""};
    assert_int_equal(model_from_file(path_of(name), NULL, &model, &err), ST_OK);
    const enum status status = model_open(model, &backend_ort, &ORT, &err);
    assert_true(status == ST_INVALID || status == ST_IO || status == ST_UNSUPPORTED);
    assert_null(model->session);
    if (strstr(err.text, name) == NULL && strstr(err.text, model->name) == NULL) {
        fail_msg("not named: %s", err.text);
    }
    model_free(model);
}

static void files_that_are_no_models_are_refused_by_name(void **state) {
    (void)state;
    if (access(LIBRARY, R_OK) != 0) {
        skip();
    }
    static char bytes[1 << 16];
    FILE *in = fopen(MODEL, "r");
    assert_non_null(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    assert_in_range(size, 50, sizeof bytes - 1);
    write_file("whole.onnx", bytes, size);
    struct model *model = NULL;
    struct err err = {.text = ""};
    assert_int_equal(model_from_file(path_of("whole.onnx"), NULL, &model, &err), ST_OK);
    assert_int_equal(model_open(model, &backend_ort, &ORT, &err), ST_OK);
    model_free(model);

    write_file("empty.onnx", "", 0);
    expect_refused("empty.onnx");
    for (size_t cut = 1; cut < size; cut += 1 + size / 20) {
        write_file("cut.onnx", bytes, cut);
        expect_refused("cut.onnx");
    }
    write_file("text.onnx", "version https://git-lfs.github.com/spec/v1\n", 43);
    expect_refused("text.onnx");
}

static void a_file_that_may_not_be_read_is_refused_by_name(void **state) {
    (void)state;
    write_file("secret.onnx", "x", 1);
    assert_int_equal(chmod(path_of("secret.onnx"), 0), 0);
    if (access(path_of("secret.onnx"), R_OK) == 0) {
        skip(); /* root may read everything */
    }
    expect_refused("secret.onnx");
}

static void a_directory_and_nothing_are_refused_by_name(void **state) {
    (void)state;
    struct model *model = NULL;
    struct err err = {.text = ""};
    assert_int_equal(mkdir(path_of("directory.onnx"), 0777), 0);
    assert_int_equal(model_from_file(path_of("directory.onnx"), NULL, &model, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "directory.onnx"));
    assert_int_equal(model_from_file(path_of("nothing.onnx"), NULL, &model, &err), ST_NOT_FOUND);
    assert_non_null(strstr(err.text, "nothing.onnx"));
    assert_null(model);
}

/* ---- memory ---- */

static void expect_said(enum status status, const struct err *err) {
    if (status != ST_NO_MEMORY && strstr(err->text, strerror(ENOMEM)) == NULL) {
        fail_msg("%s: %s", status_name(status), err->text);
    }
    assert_true(err->text[0] != '\0');
}

static void finding_a_file_survives_every_allocation_that_fails(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_of("m"), 0777), 0);
    assert_int_equal(mkdir(path_of("m/1"), 0777), 0);
    write_file("m/1/model.onnx", "x", 1);
    write_file("m/tokenizer.json", "{}", 2);
    write_file("m/1/labels.txt", "a\n", 2);
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct model *model = NULL;
        struct err err = {.text = ""};
        const char *path = path_of("m/1/model.onnx");
        memory_runs_out(&shortage);
        const enum status status = model_from_file(path, NULL, &model, &err);
        memory_is_back(&shortage);
        if (status == ST_OK) { /* then it has all that it has in better times */
            assert_string_equal(model->name, "m");
            assert_string_equal(model->version, "1");
            assert_non_null(model->tokenizer_path);
            assert_non_null(model->labels_path);
            model_free(model);
            continue;
        }
        expect_said(status, &err);
        assert_null(model);
    }
    assert_true(shortage.runs >= 20);
}

static void scanning_survives_every_allocation_that_fails(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_of("repository"), 0777), 0);
    static const char *const DIRECTORIES[] = {"repository/a", "repository/b", "repository/a/1",
                                              "repository/a/3", "repository/b/2"};
    for (size_t i = 0; i < sizeof DIRECTORIES / sizeof *DIRECTORIES; i++) {
        assert_int_equal(mkdir(path_of(DIRECTORIES[i]), 0777), 0);
    }
    write_file("repository/a/1/model.onnx", "x", 1);
    write_file("repository/a/3/model.onnx", "x", 1);
    write_file("repository/b/2/model.onnx", "x", 1);
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct names names = {.items = NULL};
        struct versions versions = {.items = NULL};
        struct model *model = NULL;
        uint64_t stamp = 0;
        struct err err = {.text = ""};
        const char *path = path_of("repository");
        memory_runs_out(&shortage);
        enum status status = repository_names(path, &names, &err);
        if (status == ST_OK) {
            status = repository_versions(path, "a", &versions, &err);
        }
        if (status == ST_OK) {
            status = model_in_repository(path, "a", 3, NULL, &model, &err);
        }
        if (status == ST_OK) {
            status = repository_stamp(path, "a", &stamp, &err);
        }
        memory_is_back(&shortage);
        if (status == ST_OK) {
            assert_int_equal(names.count, 2);
            assert_int_equal(versions.count, 2);
            assert_string_equal(model->version, "3");
        } else {
            expect_said(status, &err);
        }
        names_free(&names);
        versions_free(&versions);
        model_free(model);
    }
    assert_true(shortage.runs >= 30);
}

static void a_simulation_survives_every_allocation_that_fails(void **state) {
    (void)state;
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct model *model = NULL;
        struct slot *slot = NULL;
        struct err err = {.text = ""};
        memory_runs_out(&shortage);
        enum status status = model_simulated("s", &model, &err);
        if (status == ST_OK) {
            status = model_open(model, &backend_sim, &SIM, &err);
        }
        if (status == ST_OK) {
            status = backend_sim.slot_open(model->session, &slot, &err);
        }
        memory_is_back(&shortage);
        if (status == ST_OK) {
            assert_int_equal(shortage.refused, 0);
            backend_sim.slot_close(slot);
        } else {
            expect_said(status, &err);
            assert_null(slot);
        }
        model_free(model); /* half open, or NULL */
    }
    assert_true(shortage.runs >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_no_models_are_refused_by_name),
        cmocka_unit_test(a_file_that_may_not_be_read_is_refused_by_name),
        cmocka_unit_test(a_directory_and_nothing_are_refused_by_name),
        cmocka_unit_test(finding_a_file_survives_every_allocation_that_fails),
        cmocka_unit_test(scanning_survives_every_allocation_that_fails),
        cmocka_unit_test(a_simulation_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

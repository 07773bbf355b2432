/* Finding models in files and repositories, their checksum, and opening them on the simulated
 * accelerator. Each test makes its own directory and removes it. */
#include "infer/model.h"
#include "infer/repository.h"
#include "infer/sha256.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int tree_make(void **state) {
    char *root = strdup("/tmp/telltale-test-XXXXXX");
    *state = root;
    return root && mkdtemp(root) ? 0 : -1;
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static int tree_remove(void **state) {
    const int failed = nftw(*state, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return failed;
}

/* Writes "x" to root/path and makes the directories on the way; a path ending in / is only made. */
static void put(const char *root, const char *path) {
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    if (full[strlen(full) - 1] != '/') {
        FILE *file = fopen(full, "w");
        assert_non_null(file);
        fputs("x", file);
        fclose(file);
    }
}

static char *at(const char *root, const char *path) {
    static char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    return full;
}

static void sha256_matches_the_published_vectors(void **state) {
    (void)state;
    static const struct { const char *text; size_t repeats; const char *hex; } CASES[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct sha256 hash;
        char hex[SHA256_HEX_SIZE];
        sha256_init(&hash);
        for (size_t k = 0; k < CASES[i].repeats; k++) {
            sha256_add(&hash, CASES[i].text, strlen(CASES[i].text));
        }
        sha256_hex(&hash, hex);
        assert_string_equal(hex, CASES[i].hex);
    }
}

static void a_repository_lists_its_models_and_their_versions(void **state) {
    put(*state, "zebra/1/model.onnx");
    put(*state, "ant/2/model.onnx");
    put(*state, "ant/10/model.onnx");
    put(*state, "ant/012/model.onnx"); /* not a version */
    put(*state, "ant/0/model.onnx");
    put(*state, "ant/new/model.onnx");
    put(*state, "ant/7"); /* a file */
    put(*state, ".git/x");
    put(*state, "README.md");
    struct names names;
    struct versions versions;
    struct err err = {""};
    assert_int_equal(repository_names(*state, &names, &err), ST_OK);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.items[0], "ant");
    assert_string_equal(names.items[1], "zebra");
    names_free(&names);
    assert_int_equal(repository_versions(*state, "ant", &versions, &err), ST_OK);
    assert_int_equal(versions.count, 2);
    assert_int_equal(versions.items[0], 2);
    assert_int_equal(versions.items[1], 10);
    versions_free(&versions);
    assert_true(repository_has(*state, "zebra"));
    assert_false(repository_has(*state, "README.md"));
    assert_int_equal(repository_names(at(*state, "absent"), &names, &err), ST_NOT_FOUND);
    assert_non_null(strstr(err.text, "absent"));
}

static void a_version_has_what_lies_beside_it_and_above_it(void **state) {
    put(*state, "ant/2/model.onnx");
    put(*state, "ant/2/labels.txt");
    put(*state, "ant/tokenizer.json");
    put(*state, "ant/3/best.onnx");
    put(*state, "ant/4/model.onnx/model.onnx");
    put(*state, "ant/4/model.onnx/weights");
    struct model *model = NULL;
    struct err err = {""};
    assert_int_equal(model_in_repository(*state, "ant", 2, NULL, &model, &err), ST_OK);
    assert_string_equal(model->path, at(*state, "ant/2/model.onnx"));
    assert_string_equal(model->version, "2");
    assert_string_equal(model->labels_path, at(*state, "ant/2/labels.txt"));
    assert_string_equal(model->tokenizer_path, at(*state, "ant/tokenizer.json"));
    model_free(model);
    assert_int_equal(model_in_repository(*state, "ant", 3, NULL, &model, &err), ST_NOT_FOUND);
    assert_string_equal(err.text, "model ant: version 3 has no model.onnx");
    assert_int_equal(model_in_repository(*state, "ant", 3, "best.onnx", &model, &err), ST_OK);
    assert_string_equal(model->path, at(*state, "ant/3/best.onnx"));
    model_free(model);
    assert_int_equal(model_in_repository(*state, "ant", 4, NULL, &model, &err), ST_OK);
    assert_string_equal(model->path, at(*state, "ant/4/model.onnx/model.onnx"));
    assert_string_equal(model->tokenizer_path, at(*state, "ant/tokenizer.json"));
    model_free(model);
}

static void only_one_part_of_a_path_names_a_model(void **state) {
    (void)state;
    static const char *const BAD[] = {"", ".", "..", ".git", "../x", "a/b", "/etc", "a/", "a\nb"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_false(model_name_is_valid(view_of(BAD[i])));
    }
    assert_false(model_name_is_valid((struct view){"a\0b", 3}));
    char longest[257];
    memset(longest, 'a', sizeof longest);
    assert_true(model_name_is_valid((struct view){longest, 255}));
    assert_false(model_name_is_valid((struct view){longest, 256}));
    assert_true(model_name_is_valid(view_of("resnet50-v1.5 (int8)")));
}

static uint64_t stamp_of(const char *root) {
    uint64_t stamp = 0;
    struct err err = {""};
    assert_int_equal(repository_stamp(root, "ant", &stamp, &err), ST_OK);
    return stamp;
}

static void a_stamp_changes_with_every_file_of_the_model(void **state) {
    put(*state, "ant/1/model.onnx");
    put(*state, "bee/1/model.onnx");
    const uint64_t first = stamp_of(*state);
    assert_true(stamp_of(*state) == first);
    put(*state, "bee/2/model.onnx"); /* another model's */
    assert_true(stamp_of(*state) == first);
    put(*state, "ant/config.pbtxt");
    const uint64_t second = stamp_of(*state);
    assert_true(second != first);
    char old[256];
    snprintf(old, sizeof old, "%s", at(*state, "ant/config.pbtxt"));
    assert_int_equal(rename(old, at(*state, "ant/config.old")), 0);
    assert_true(stamp_of(*state) != second);
    const uint64_t third = stamp_of(*state);
    FILE *file = fopen(at(*state, "ant/1/model.onnx"), "a");
    assert_non_null(file);
    fputs("y", file);
    fclose(file);
    assert_true(stamp_of(*state) != third);
}

static void a_file_is_named_by_its_stem_or_by_the_layout_or_by_the_user(void **state) {
    put(*state, "spam_fp32.v2.onnx");
    put(*state, "labels.txt");
    put(*state, "mails/3/model.onnx");
    put(*state, "mails/tokenizer.json");
    struct model *model = NULL;
    struct err err = {""};
    assert_int_equal(model_from_file(at(*state, "spam_fp32.v2.onnx"), NULL, &model, &err), ST_OK);
    assert_string_equal(model->name, "spam_fp32.v2");
    assert_string_equal(model->version, "1");
    assert_non_null(model->labels_path);
    assert_null(model->tokenizer_path);
    assert_string_equal(model->sha256, "");
    model_free(model);
    assert_int_equal(model_from_file(at(*state, "mails/3/model.onnx"), NULL, &model, &err), ST_OK);
    assert_string_equal(model->name, "mails");
    assert_string_equal(model->version, "3");
    assert_non_null(model->tokenizer_path);
    model_free(model);
    assert_int_equal(model_from_file(at(*state, "mails/3/model.onnx"), "mine", &model, &err),
                     ST_OK);
    assert_string_equal(model->name, "mine");
    model_free(model);
    assert_int_equal(model_from_file(at(*state, "none.onnx"), NULL, &model, &err), ST_NOT_FOUND);
    assert_int_equal(model_from_file(*state, NULL, &model, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "--model-repository"));
}

static void a_simulated_model_takes_text_where_a_tokenizer_is_beside_it(void **state) {
    put(*state, "mails/1/model.onnx");
    put(*state, "mails/tokenizer.json");
    const struct session_config config = {.simulate = "a=4ms,b=0.05ms"};
    struct model *model = NULL;
    struct err err = {""};
    assert_int_equal(model_from_file(at(*state, "mails/1/model.onnx"), NULL, &model, &err), ST_OK);
    assert_int_equal(model_open(model, &backend_sim, &config, &err), ST_OK);
    assert_string_equal(model->signature->inputs[0].name, "input_ids");
    assert_string_equal(model->sha256,
                        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
    assert_true(model->can_batch);
    model_free(model);
    assert_int_equal(model_simulated(NULL, &model, &err), ST_OK);
    assert_int_equal(model_open(model, &backend_sim, &config, &err), ST_OK);
    assert_string_equal(model->name, "simulated");
    assert_string_equal(model->sha256, "");
    assert_string_equal(model->signature->inputs[0].name, "INPUT0");
    model_free(model);
}

static void a_model_that_does_not_open_stays_closed_and_is_named(void **state) {
    (void)state;
    const struct session_config config = {.simulate = "a=4"};
    struct model *model = NULL;
    struct err err = {""};
    assert_int_equal(model_simulated("late", &model, &err), ST_OK);
    assert_int_equal(model_open(model, &backend_sim, &config, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "model late: simulate: a=4 is not a time"));
    assert_null(model->session);
    assert_null(model->signature);
    model_free(model);
    model_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_matches_the_published_vectors),
        cmocka_unit_test_setup_teardown(a_repository_lists_its_models_and_their_versions, tree_make,
                                        tree_remove),
        cmocka_unit_test_setup_teardown(a_version_has_what_lies_beside_it_and_above_it, tree_make,
                                        tree_remove),
        cmocka_unit_test(only_one_part_of_a_path_names_a_model),
        cmocka_unit_test_setup_teardown(a_stamp_changes_with_every_file_of_the_model, tree_make,
                                        tree_remove),
        cmocka_unit_test_setup_teardown(
            a_file_is_named_by_its_stem_or_by_the_layout_or_by_the_user, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(
            a_simulated_model_takes_text_where_a_tokenizer_is_beside_it, tree_make, tree_remove),
        cmocka_unit_test(a_model_that_does_not_open_stays_closed_and_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

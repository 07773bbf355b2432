/* Paths taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/routes.h"

static void assert_path(const char *path, const char *name, const char *version, const char *tail) {
    struct model_path parsed;
    assert_true(model_path_parse(view_of(path), &parsed));
    assert_true(view_is(parsed.name, name));
    assert_true(view_is(parsed.version, version));
    assert_true(view_is(parsed.tail, tail));
}

static void takes_name_version_and_tail_apart(void **state) {
    (void)state;
    assert_path("/v2/models/m", "m", "", "");
    assert_path("/v2/models/m/infer", "m", "", "/infer");
    assert_path("/v2/models/m/versions/12", "m", "12", "");
    assert_path("/v2/models/m/versions/12/infer", "m", "12", "/infer");
    assert_path("/v2/models/versions/versions/1/x/y", "versions", "1", "/x/y");
    assert_path("/v2/models/m/versions", "m", "", "/versions");
    assert_path("/v2/models/m/", "m", "", "/");
}

static void refuses_paths_without_a_name_or_version(void **state) {
    (void)state;
    const char *const paths[] = {"", "/", "/v2", "/v2/models", "/v2/models/", "/v2/models//infer",
                                 "/v2/models/m/versions/", "/v2/models/m/versions//infer"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct model_path parsed = {.tail = {.data = "untouched", .size = 9}};
        assert_false(model_path_parse(view_of(paths[i]), &parsed));
        assert_true(view_is(parsed.tail, "untouched"));
    }
}

static void decodes_escapes(void **state) {
    (void)state;
    char out[8];
    assert_true(path_decode(view_of("a%2Fb%2e"), out, sizeof out));
    assert_string_equal(out, "a/b.");
    assert_true(path_decode(view_of("1234567"), out, sizeof out));
    assert_string_equal(out, "1234567");
}

static void refuses_broken_escapes_nuls_and_long_names(void **state) {
    (void)state;
    const char *const texts[] = {"%", "%4", "%4g", "a%00b", "12345678", "%zz"};
    char out[8];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(path_decode(view_of(texts[i]), out, sizeof out));
    assert_false(path_decode((struct view){.data = "a\0b", .size = 3}, out, sizeof out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_name_version_and_tail_apart),
        cmocka_unit_test(refuses_paths_without_a_name_or_version),
        cmocka_unit_test(decodes_escapes),
        cmocka_unit_test(refuses_broken_escapes_nuls_and_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

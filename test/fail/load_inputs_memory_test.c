/* Memory runs out while a bench makes its inputs, at each allocation in turn: a status that says
 * so, nothing left behind (AddressSanitizer looks). */
#include "memory.h"

#include "load/inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

static char directory[64];
static const int64_t ANY[] = {-1};
static const struct input_spec BYTES_SPEC = {{"IMAGE", 5}, DTYPE_BYTES, 1, ANY};

static void write_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int make_directory(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/telltale-memory-XXXXXX");
    if (mkdtemp(directory) == NULL) return 1;
    write_file("a.jpg", "\xff\xd8\xff\xe0 the first picture");
    write_file("b.jpg", "\xff\xd8\xff\xe0 the second");
    write_file("text", "what lies beside them");
    return 0;
}

static int remove_directory(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static enum status make(const char *spec, struct inputs *out, struct err *err) {
    struct distribution bytes, tokens;
    const char *const shape_text = "IMAGE:2";
    struct input_spec asked = BYTES_SPEC;
    const struct input_shape shape = {&asked, 1};
    enum status status = inputs_load(spec, out, err);
    if (status == ST_OK && strcmp(spec, "random") == 0)
        status = inputs_apply_shapes(&shape_text, 1, &asked, 1, &out->arena, err);
    if (status == ST_OK) status = inputs_make_tensors(out, shape, NULL, false, 0, 1, err);
    for (int binary = 0; status == ST_OK && binary < 2; binary++)
        status = inputs_render(out, binary != 0, err);
    if (status == ST_OK) status = inputs_shuffle(out, false, 1, err);
    return status == ST_OK ? inputs_sizes(out, &bytes, &tokens, err) : status;
}

static size_t total_bytes(const struct inputs *inputs) {
    size_t bytes = 0;
    for (size_t i = 0; i < inputs->count; i++)
        bytes += inputs->items[i].body_head.size + inputs->items[i].body_tail.size;
    return bytes;
}

static void survives(const char *spec, bool reads_files) {
    long refused = 0;
    struct inputs whole = {0};
    assert_int_equal(make(spec, &whole, NULL), ST_OK);
    for (struct shortage s = {0}; shortage_next(&s);) {
        struct inputs inputs = {0};
        struct err err = {.text = ""};
        memory_runs_out(&s);
        const enum status status = make(spec, &inputs, &err);
        memory_is_back(&s);
        /* Out of memory, opendir and fopen cannot read, and a stream does without its buffer. */
        const bool is_right = s.refused == 0 ? status == ST_OK
                              : status == ST_OK ? reads_files && !s.stays
                                                : status == ST_NO_MEMORY || status == ST_IO;
        if (!is_right) fail_msg("allocation %ld: %s: %s", s.after, status_name(status), err.text);
        assert_true(status == ST_OK ? total_bytes(&inputs) == total_bytes(&whole)
                                    : err.text[0] != '\0');
        inputs_done(&inputs);
        refused += s.refused;
    }
    inputs_done(&whole);
    assert_true(refused > 10);
}

static void pictures_survive_every_allocation_that_fails(void **state) {
    (void)state;
    char spec[100];
    snprintf(spec, sizeof spec, "image:%s", directory);
    survives(spec, true);
}

static void texts_survive_every_allocation_that_fails(void **state) {
    (void)state;
    char spec[100];
    snprintf(spec, sizeof spec, "text:%s/text", directory);
    survives(spec, true);
}

static void random_tensors_survive_every_allocation_that_fails(void **state) {
    (void)state;
    survives("random", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_survive_every_allocation_that_fails),
        cmocka_unit_test(texts_survive_every_allocation_that_fails),
        cmocka_unit_test(random_tensors_survive_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

/* Memory runs out while a pipeline file is read, at each allocation in turn, libyaml's included:
 * ST_NO_MEMORY with a sentence, out untouched, nothing left behind (AddressSanitizer looks). */
#include "memory.h"

#include "prep/pipeline_file.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the above */
#include <cmocka.h>

static const char YAML[] =
    "inputs:\n"
    "  - image: {name: PHOTO, to: input, width: 320, height: 240, mean: [1, 2, 3]}\n"
    "  - text:\n"
    "      name: TEXT\n"
    "      tokenizer: \"a tokenizer.json\"\n"
    "outputs:\n"
    "  - detect: {from: scores, boxes_from: boxes, image: PHOTO, labels: labels.txt}\n"
    "  - classify: {from: logits, activation: softmax, top: 3}\n"
    "model_outputs: shown\n";

static void a_pipeline_file_survives_every_allocation_that_fails(void **state) {
    (void)state;
    long refused = 0;
    for (struct shortage s = {0}; shortage_next(&s);) {
        struct arena arena;
        struct err err = {.text = ""};
        struct pipeline_file file = {.input_count = 99};
        arena_init(&arena);
        memory_runs_out(&s);
        const enum status status = pipeline_parse(view_of(YAML), "models/x/pipeline.yaml", &arena,
                                                  &file, &err);
        memory_is_back(&s);
        if (status != (s.refused > 0 ? ST_NO_MEMORY : ST_OK)) fail_msg("allocation %ld, stays %d: %s: %s", s.after, s.stays, status_name(status), err.text);
        assert_int_equal(file.input_count, status == ST_OK ? 2 : 99);
        assert_true(status == ST_OK || err.text[0] != '\0');
        arena_done(&arena);
        refused += s.refused;
    }
    assert_true(refused > 20);
}

static void a_mistake_is_named_or_memory_is_out_but_nothing_else(void **state) {
    (void)state;
    static const char BAD[] = "inputs:\n  - image: {to: input, resize: cubic}\n";
    for (struct shortage s = {0}; shortage_next(&s);) {
        struct arena arena;
        struct err err = {.text = ""};
        struct pipeline_file file;
        arena_init(&arena);
        memory_runs_out(&s);
        const enum status status = pipeline_parse(view_of(BAD), "p.yaml", &arena, &file, &err);
        memory_is_back(&s);
        assert_true(status == ST_INVALID || (status == ST_NO_MEMORY && s.refused > 0));
        arena_done(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_file_survives_every_allocation_that_fails),
        cmocka_unit_test(a_mistake_is_named_or_memory_is_out_but_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

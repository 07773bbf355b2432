/* No memory while a splitter is read and while it cuts: ST_NO_MEMORY or false, nothing leaks
 * (AddressSanitizer looks), and what does get through is what it is with memory. */
#include "memory.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "prep/splitter.h"

static const char SECTION[] =
    "{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"},"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}+|\\\\bx|[^\\\\S\\\\n]\"},"
    "\"behavior\":\"MergedWithNext\",\"invert\":false},"
    "{\"type\":\"Split\",\"pattern\":{\"String\":\"--\"},\"behavior\":\"Removed\",\"invert\":false},"
    "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Whitespace\"},"
    "{\"type\":\"Punctuation\"},{\"type\":\"CharDelimiterSplit\",\"delimiter\":\",\"},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}]}";
static const char TEXT[] = "it's 1234 -- x, y\n";

struct fixture {
    struct json_document *document;
    struct json_value root;
    struct unicode_table *unicode;
};

static int set_up(void **state) {
    static struct fixture fixture;
    fixture.unicode = unicode_table_create();
    *state = &fixture;
    return fixture.unicode == NULL
           || dom_open(view_of(SECTION), &fixture.document, &fixture.root, NULL) != ST_OK;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    dom_close(fixture->document);
    unicode_table_free(fixture->unicode);
    return 0;
}

static void reading_survives_every_allocation_that_fails(void **state) {
    const struct fixture *f = *state;
    for (struct shortage s = {0}; shortage_next(&s);) {
        struct arena arena;
        struct splitter splitter = {.run = NULL};
        struct err err = {.text = ""};
        bool is_byte_level = false;
        arena_init(&arena);
        memory_runs_out(&s);
        const enum status status =
            splitter_read(f->root, &arena, f->unicode, &splitter, &is_byte_level, &err);
        memory_is_back(&s);
        if (status == ST_OK) {
            assert_true(is_byte_level);
            splitter.done(splitter.self);
        } else {
            assert_int_equal(status, ST_NO_MEMORY);
            assert_true(s.refused > 0);
            assert_string_not_equal(err.text, "");
        }
        arena_done(&arena);
    }
}

/* The count of pieces; -1: no memory. */
static long cut(const struct splitter *splitter, struct arena *arena) {
    struct source sources[sizeof TEXT];
    for (uint32_t i = 0; i < sizeof TEXT; i++) sources[i] = (struct source){i, i + 1};
    const struct span_text in = {.arena = arena, .data = (unsigned char *)TEXT,
                                 .size = sizeof TEXT - 1, .sources = sources,
                                 .has_sources = true};
    struct span_text rewritten = {.arena = arena, .has_sources = true};
    struct piece_list whole = {.arena = arena}, pieces = {.arena = arena};
    const bool is_done =
        piece_list_push(&whole, 0, sizeof TEXT - 1)
        && splitter->run(splitter->self, &in, &whole, &rewritten, &pieces);
    return is_done ? (long)pieces.count : -1;
}

static void cutting_survives_every_allocation_that_fails(void **state) {
    const struct fixture *f = *state;
    struct arena memory, arena;
    struct splitter splitter;
    bool is_byte_level;
    arena_init(&memory);
    arena_init(&arena);
    assert_int_equal(splitter_read(f->root, &memory, f->unicode, &splitter, &is_byte_level, NULL),
                     ST_OK);
    const long count = cut(&splitter, &arena);
    assert_true(count > 5);
    arena_done(&arena);
    for (struct shortage s = {0}; shortage_next(&s);) {
        arena_init(&arena);
        memory_runs_out(&s);
        const long got = cut(&splitter, &arena);
        memory_is_back(&s);
        assert_true(got == count || (got == -1 && s.refused > 0));
        arena_done(&arena);
    }
    splitter.done(splitter.self);
    arena_done(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reading_survives_every_allocation_that_fails, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(cutting_survives_every_allocation_that_fails, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

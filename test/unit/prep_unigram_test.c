/* Unigram's choices on vocabularies small enough to add up. That real texts give what Hugging
 * Face's library gives is test/oracle's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "prep/unigram.h"
#include "prep_model.h"

#define UNIGRAM(more, vocab) "{'type':'Unigram','unk_id':0,'vocab':[['<unk>',0]" vocab "]" more "}"

static void the_highest_sum_wins(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ",['a',-1],['b',-1],['ab',-1.5],['abc',-9],['c',-2]"));
    assert_string_equal(model_say(f, "abc"), "3:0-2 5:2-3");
}

static void of_equal_sums_the_one_found_first_stays(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ",['a',-1],['aa',-2]"));
    assert_string_equal(model_say(f, "aaa"), "1:0-1 2:1-3"); /* the way through 1 comes first */
}

static void a_run_of_unknown_characters_is_one_token(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ",['a',-1]"));
    assert_string_equal(model_say(f, "x\xc3\xa9" "ay"), "0:0-3 1:3-4 0:4-5");
}

static void a_run_of_unknown_characters_becomes_bytes(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM(",'byte_fallback':true", ",['a',-1],['<0x78>',-5],['<0x79>',-5]"));
    assert_string_equal(model_say(f, "xya"), "2:0-2 3:0-2 1:2-3"); /* each covers the run */
    assert_string_equal(model_say(f, "xza"), "0:0-2 1:2-3");       /* z has no token */
}

static void a_long_piece_needs_no_room_on_the_stack(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ",['a',-1],['aa',-1]"));
    char text[4001];
    memset(text, 'a', 4000);
    text[4000] = '\0';
    struct token_list tokens = {.arena = &f->scratch};
    assert_true(f->model.encode(f->model.self, view_of(text), (struct piece){0, 4000}, &tokens));
    assert_int_equal(tokens.count, 2000);
    assert_int_equal(tokens.items[1999].end, 4000);
}

static void an_empty_piece_has_no_tokens(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ""));
    assert_string_equal(model_say(f, ""), "");
}

static void of_a_token_twice_the_later_counts(void **state) {
    struct model_fixture *f = *state;
    model_load(f, UNIGRAM("", ",['a',-1],['a',-9],['b',-1],['ab',-9]"));
    assert_string_equal(model_say(f, "ab"), "4:0-2"); /* -9 beats -9 - 1 */
    assert_string_equal(model_say(f, "a"), "2:0-1");
    assert_true(view_is(f->model.name(f->model.self, 1), "a"));
    assert_int_equal(f->model.vocab_size, 5);
}

/* The numbers are what the Rust library wrote back after it had read the left ones. */
static void scores_are_what_the_rust_library_reads(void **state) {
    static const double READ[][2] = {
        {-1.3159948587417603, -1.3159948587417605}, {-12.398735046386719, -12.39873504638672},
        {-12.070005416870117, -12.070005416870115}, {-10.889266014099121, -10.88926601409912},
        {-3.5, -3.5},                               {0, 0},
        {-120, -120},                               {-0.1, -0.1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof READ / sizeof *READ; i++) {
        double read = unigram_score_as_read(READ[i][0]);
        assert_memory_equal(&read, &READ[i][1], sizeof read);
    }
}

static void a_model_without_an_unknown_token_is_refused(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, "{'type':'Unigram','unk_id':null,'vocab':[['a',-1]]}", ST_UNSUPPORTED,
                   "unk_id");
    assert_refused(f, "{'type':'Unigram','unk_id':1,'vocab':[['a',-1]]}", ST_INVALID, "unk_id");
}

static void an_entry_of_another_shape_is_refused(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, UNIGRAM("", ",['a']"), ST_INVALID, "[\"token\", score]");
    assert_refused(f, UNIGRAM("", ",['a','b']"), ST_INVALID, "[\"token\", score]");
    assert_refused(f, UNIGRAM("", ",['a',1,2]"), ST_INVALID, "[\"token\", score]");
    assert_refused(f, UNIGRAM("", ",'a'"), ST_INVALID, "[\"token\", score]");
}

static void a_byte_level_one_is_refused(void **state) {
    struct model_fixture *f = *state;
    assert_int_equal(model_open(f, UNIGRAM("", ""), true), ST_UNSUPPORTED);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, model_set_up, model_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_highest_sum_wins),
        TEST(of_equal_sums_the_one_found_first_stays),
        TEST(a_run_of_unknown_characters_is_one_token),
        TEST(a_run_of_unknown_characters_becomes_bytes),
        TEST(a_long_piece_needs_no_room_on_the_stack),
        TEST(an_empty_piece_has_no_tokens),
        TEST(of_a_token_twice_the_later_counts),
        TEST(scores_are_what_the_rust_library_reads),
        TEST(a_model_without_an_unknown_token_is_refused),
        TEST(an_entry_of_another_shape_is_refused),
        TEST(a_byte_level_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

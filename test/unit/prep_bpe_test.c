/* Merges on vocabularies small enough to follow by hand. That real files give what Hugging Face's
 * library gives is test/oracle's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "prep_model.h"

#define LETTERS "'<unk>':0,'a':1,'b':2,'c':3"
#define BPE(more, vocab, merges)                                                               \
    "{'type':'BPE','unk_token':'<unk>'" more ",'vocab':{" LETTERS vocab "},'merges':[" merges "]}"

static void the_earlier_merge_of_the_list_comes_first(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'ab':4,'bc':5", "'b c','a b'"));
    assert_string_equal(model_say(f, "abc"), "1:0-1 5:1-3");
}

static void of_equal_pairs_the_leftmost_is_merged(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'aa':4", "'a a'"));
    assert_string_equal(model_say(f, "aaaaa"), "4:0-2 4:2-4 1:4-5");
}

static void merges_are_read_as_arrays_too(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'ab':4,'abc':5", "['a','b'],['ab','c']"));
    assert_string_equal(model_say(f, "abcab"), "5:0-3 4:3-5");
}

static void the_version_line_is_no_merge(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'ab':4", "'#version: 0.2','a b'"));
    assert_string_equal(model_say(f, "ab"), "4:0-2");
}

static void a_token_that_merges_do_not_make_is_not_taken(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'ab':4,'abc':5", "'a b'"));
    assert_string_equal(model_say(f, "abc"), "4:0-2 3:2-3");
}

static void a_token_is_taken_whole_where_merges_are_ignored(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'ignore_merges':true", ",'ab':4,'abc':5", "'a b'"));
    assert_string_equal(model_say(f, "abc"), "5:0-3");
}

static void unknown_characters_are_one_token_each(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", "", ""));
    assert_string_equal(model_say(f, "ax\xc3\xa9" "b"), "1:0-1 0:1-2 0:2-4 2:4-5");
}

static void unknown_characters_are_fused_where_the_file_says_so(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'fuse_unk':true", "", ""));
    assert_string_equal(model_say(f, "ax\xc3\xa9" "b"), "1:0-1 0:1-4 2:4-5");
}

static void an_unknown_character_becomes_its_bytes(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'byte_fallback':true", ",'<0xC3>':4,'<0xA9>':5", ""));
    assert_string_equal(model_say(f, "a\xc3\xa9" "b"), "1:0-1 4:1-2 5:2-3 2:3-4");
}

static void bytes_are_used_only_where_all_have_tokens(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'byte_fallback':true", ",'<0xC3>':4", ""));
    assert_string_equal(model_say(f, "a\xc3\xa9"), "1:0-1 0:1-3");
}

static void without_an_unknown_token_a_character_is_left_out(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'type':'BPE','vocab':{'a':1,'b':2},'merges':[]}");
    assert_string_equal(model_say(f, "xab"), "1:0-1 2:1-2"); /* the offsets are Hugging Face's */
}

static void a_suffix_marks_the_end_of_a_piece(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'end_of_word_suffix':'</w>'", ",'c</w>':4,'bc</w>':5", "'b c</w>'"));
    assert_string_equal(model_say(f, "abc"), "1:0-1 5:1-3");
    assert_string_equal(model_say(f, "cb"), "3:0-1 0:1-2"); /* "b</w>" is no token */
}

static void a_prefix_marks_what_does_not_begin_a_piece(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE(",'continuing_subword_prefix':'##'", ",'##b':4,'ab':5", "'a ##b'"));
    assert_string_equal(model_say(f, "ab"), "5:0-2");
    assert_string_equal(model_say(f, "bb"), "2:0-1 4:1-2");
}

static void a_byte_level_model_takes_its_letters_as_bytes(void **state) {
    struct model_fixture *f = *state;
    /* U+0120 is a space, U+00C3 U+00A9 are the two bytes of U+00E9 */
    model_load_bytes(f, "{'type':'BPE','vocab':{'\xc4\xa0':0,'a':1,'\xc4\xa0" "a':2,'\xc3\x83':3,"
                        "'\xc2\xa9':4,'\xc3\x83\xc2\xa9':5},"
                        "'merges':['\xc4\xa0 a','\xc3\x83 \xc2\xa9']}");
    assert_string_equal(model_say(f, " a\xc3\xa9"), "2:0-2 5:2-4");
    assert_true(view_is(f->model.name(f->model.self, 2), "\xc4\xa0" "a"));
    assert_int_equal(f->model.find(f->model.self, view_of("\xc4\xa0" "a")), 2);
}

static void offsets_count_from_the_start_of_the_text(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'ab':4", "'a b'"));
    assert_string_equal(model_say_piece(f, view_of("xxabc"), (struct piece){2, 5}),
                        "4:2-4 3:4-5");
}

static void words_in_a_piece_do_not_change_the_result(void **state) {
    struct model_fixture *f = *state;
    /* the same merges; in the second a merge reaches over the edge of a word */
    model_load(f, BPE("", ",'\xe2\x96\x81':4,'\xe2\x96\x81" "a':5,'\xe2\x96\x81\xe2\x96\x81':6",
                      "'\xe2\x96\x81 \xe2\x96\x81','\xe2\x96\x81 a'"));
    assert_string_equal(model_say(f, "b\xe2\x96\x81\xe2\x96\x81" "a\xe2\x96\x81" "a"),
                        "2:0-1 6:1-7 1:7-8 5:8-12");
}

static void a_merge_over_the_edge_of_a_word_is_made(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'\xe2\x96\x81':4,'b\xe2\x96\x81':5", "'b \xe2\x96\x81'"));
    assert_string_equal(model_say(f, "b\xe2\x96\x81" "a"), "5:0-4 1:4-5");
}

/* More symbols than the scan from end to end takes: the heap's turn. */
static void a_long_piece_is_merged_as_a_short_one(void **state) {
    struct model_fixture *f = *state;
    model_load(f, BPE("", ",'aa':4,'aaaa':5,'bc':6,'abc':7", "'b c','a a','aa aa','a bc'"));
    char text[301];
    for (int i = 0; i < 100; i++) {
        memcpy(text + 3 * i, "abc", 3);
    }
    text[300] = '\0';
    struct token_list tokens = {.arena = &f->scratch};
    assert_true(f->model.encode(f->model.self, view_of(text), (struct piece){0, 300}, &tokens));
    assert_int_equal(tokens.count, 100);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(tokens.items[i].id, 7);
        assert_int_equal(tokens.items[i].start, 3 * i);
    }
    memset(text, 'a', 300);
    tokens.count = 0;
    assert_true(f->model.encode(f->model.self, view_of(text), (struct piece){0, 300}, &tokens));
    assert_int_equal(tokens.count, 75);
    assert_int_equal(tokens.items[74].id, 5);
}

static void dropout_belongs_to_training(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, BPE(",'dropout':0.1", "", ""), ST_UNSUPPORTED, "dropout");
    model_load(f, BPE(",'dropout':0.0", "", ""));
}

static void a_merge_of_what_is_no_token_is_refused(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, BPE("", "", "'a b'"), ST_INVALID, "merge 0 needs \"ab\"");
    assert_refused(f, BPE("", ",'ab':4", "'a b','ab x'"), ST_INVALID, "merge 1 needs \"x\"");
    assert_refused(f, BPE("", ",'ab':4", "'a b c'"), ST_INVALID, "merge 0 must be");
    assert_refused(f, BPE("", ",'ab':4", "['a','b','c']"), ST_INVALID, "merge 0 must be");
    assert_refused(f, BPE("", ",'ab':4", "7"), ST_INVALID, "merge 0 must be");
}

static void an_unknown_token_that_is_no_token_is_refused(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, "{'type':'BPE','unk_token':'?','vocab':{'a':1},'merges':[]}", ST_INVALID,
                   "unk_token \"?\"");
}

static void a_member_that_is_not_known_is_named(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, BPE(",'fuse_all':true", "", ""), ST_UNSUPPORTED, "fuse_all");
}

static void a_file_without_a_type_is_known_by_its_merges(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'vocab':{'a':1,'b':2,'ab':3},'merges':['a b']}");
    assert_string_equal(model_say(f, "ab"), "3:0-2");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, model_set_up, model_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_earlier_merge_of_the_list_comes_first),
        TEST(of_equal_pairs_the_leftmost_is_merged),
        TEST(merges_are_read_as_arrays_too),
        TEST(the_version_line_is_no_merge),
        TEST(a_token_that_merges_do_not_make_is_not_taken),
        TEST(a_token_is_taken_whole_where_merges_are_ignored),
        TEST(unknown_characters_are_one_token_each),
        TEST(unknown_characters_are_fused_where_the_file_says_so),
        TEST(an_unknown_character_becomes_its_bytes),
        TEST(bytes_are_used_only_where_all_have_tokens),
        TEST(without_an_unknown_token_a_character_is_left_out),
        TEST(a_suffix_marks_the_end_of_a_piece),
        TEST(a_prefix_marks_what_does_not_begin_a_piece),
        TEST(a_byte_level_model_takes_its_letters_as_bytes),
        TEST(offsets_count_from_the_start_of_the_text),
        TEST(words_in_a_piece_do_not_change_the_result),
        TEST(a_merge_over_the_edge_of_a_word_is_made),
        TEST(a_long_piece_is_merged_as_a_short_one),
        TEST(dropout_belongs_to_training),
        TEST(a_merge_of_what_is_no_token_is_refused),
        TEST(an_unknown_token_that_is_no_token_is_refused),
        TEST(a_member_that_is_not_known_is_named),
        TEST(a_file_without_a_type_is_known_by_its_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

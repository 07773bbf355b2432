/* WordLevel, WordPiece's spans and the choice between kinds of models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "prep/vocab.h"
#include "prep_model.h"

static void a_word_is_its_token_or_the_unknown_one(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'type':'WordLevel','unk_token':'?','vocab':{'?':0,'one':7}}");
    assert_string_equal(model_say(f, "one"), "7:0-3");
    assert_string_equal(model_say(f, "two"), "0:0-3");
    assert_string_equal(model_say(f, ""), "");
    assert_int_equal(f->model.vocab_size, 2);
}

static void words_of_a_byte_level_one_are_bytes(void **state) {
    struct model_fixture *f = *state;
    model_load_bytes(f, "{'type':'WordLevel','unk_token':'?','vocab':{'?':0,'\xc4\xa0one':7}}");
    assert_string_equal(model_say(f, " one"), "7:0-4");
    assert_string_equal(model_say(f, "one"), "0:0-3");
}

static void wordpieces_cover_the_word(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'type':'WordPiece','unk_token':'?','continuing_subword_prefix':'##',"
                  "'max_input_chars_per_word':5,'vocab':{'?':0,'ab':1,'##c':2}}");
    assert_string_equal(model_say_piece(f, view_of("xabc"), (struct piece){1, 4}), "1:1-3 2:3-4");
    assert_string_equal(model_say(f, "abx"), "0:0-3");
    assert_string_equal(model_say(f, "abcccc"), "0:0-6");
}

static void a_model_without_a_type_is_known_by_its_members(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'unk_token':'?','vocab':{'?':0,'one':7}}");
    assert_string_equal(model_say(f, "one"), "7:0-3");
}

static void a_unigram_model_without_a_type_has_an_array(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'unk_id':0,'vocab':[['?',0],['a',-1]]}");
    assert_string_equal(model_say(f, "a"), "1:0-1");
}

static void names_and_ids_lead_to_each_other(void **state) {
    struct model_fixture *f = *state;
    model_load(f, "{'type':'WordLevel','unk_token':'?','vocab':{'?':4000000000,'b':7,'b':9}}");
    assert_int_equal(f->model.find(f->model.self, view_of("b")), 9); /* the later counts */
    assert_true(view_is(f->model.name(f->model.self, 9), "b"));
    assert_true(view_is(f->model.name(f->model.self, 4000000000), "?"));
    assert_null(f->model.name(f->model.self, 7).data);
    assert_int_equal(f->model.find(f->model.self, view_of("c")), TRIE_NONE);
}

static void what_is_not_supported_is_named(void **state) {
    struct model_fixture *f = *state;
    assert_refused(f, "{'type':'Nonsense'}", ST_UNSUPPORTED, "\"Nonsense\"");
    assert_refused(f, "null", ST_INVALID, "no model");
    assert_refused(f, "[]", ST_INVALID, "not an object");
    assert_refused(f, "{'type':'WordLevel','unk_token':'?','vocab':{'a':0}}", ST_INVALID,
                   "unk_token \"?\"");
    assert_refused(f, "{'type':'WordLevel','unk_token':'?','vocab':{'?':-1}}", ST_INVALID,
                   "the id of \"?\"");
    assert_refused(f, "{'type':'WordLevel','unk_token':'?','vocab':[]}", ST_INVALID, "vocab");
    assert_refused(f, "{'type':'WordLevel','unk_token':'?','vocab':{},'x':1}", ST_UNSUPPORTED,
                   "\"x\"");
}

static void the_alphabet_of_bytes_goes_both_ways(void **state) {
    bool is_taken[0x200] = {false};
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        uint32_t letter = byte_to_letter((uint8_t)byte);
        assert_true(letter < 0x144 && !is_taken[letter]);
        is_taken[letter] = true;
        assert_int_equal(letter_to_byte(letter), byte);
    }
    for (uint32_t code = 0; code < 0x200; code++) {
        assert_int_equal(letter_to_byte(code) >= 0, is_taken[code]);
    }
    assert_int_equal(byte_to_letter(' '), 0x120);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, model_set_up, model_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_word_is_its_token_or_the_unknown_one),
        TEST(words_of_a_byte_level_one_are_bytes),
        TEST(wordpieces_cover_the_word),
        TEST(a_model_without_a_type_is_known_by_its_members),
        TEST(a_unigram_model_without_a_type_has_an_array),
        TEST(names_and_ids_lead_to_each_other),
        TEST(what_is_not_supported_is_named),
        TEST(the_alphabet_of_bytes_goes_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tokenizer on a vocabulary small enough to read. That it agrees with Hugging Face's on real
 * texts is test/oracle's business. */
#include "prep/tokenizer.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#define VOCAB                                                                                  \
    "{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"un\":5,\"##believ\":6,"    \
    "\"##able\":7,\"hello\":8,\",\":9,\"world\":10,\"\xe4\xb8\xad\":11,\"##s\":12,"             \
    "\"ete\":13,\"\xef\xbf\xbd\":14,\"##\xef\xbf\xbd\":15,\"e\xf0\x9d\x85\xa5\xe3\x80\xae\":16," \
    "\"A\":17,\"##a\":18,\"a\":19,\"_\":20,\"Hello\":21}"
#define BERT_LOWER                                                                             \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"           \
    "\"strip_accents\":null,\"lowercase\":true}"
#define TEMPLATE                                                                               \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\","         \
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{"           \
    "\"id\":\"[SEP]\",\"type_id\":1}}],\"pair\":[],\"special_tokens\":{\"[CLS]\":{"             \
    "\"id\":\"[CLS]\",\"ids\":[2],\"tokens\":[\"[CLS]\"]},\"[SEP]\":{\"id\":\"[SEP]\","         \
    "\"ids\":[3],\"tokens\":[\"[SEP]\"]}}}"
#define MASK_TOKEN                                                                             \
    "{\"id\":4,\"content\":\"[MASK]\",\"single_word\":false,\"lstrip\":false,"                  \
    "\"rstrip\":false,\"normalized\":false,\"special\":true}"
#define CUT(length, direction)                                                                 \
    "{\"max_length\":" length ",\"strategy\":\"LongestFirst\",\"stride\":0,"                    \
    "\"direction\":\"" direction "\"}"

/* Members of a tokenizer.json; NULL: the usual. */
struct parts {
    const char *truncation, *padding, *added, *normalizer, *pre_tokenizer, *post_processor;
    const char *model_type, *max_chars, *more;
};

static const char *or_usual(const char *text, const char *usual) {
    return text != NULL ? text : usual;
}

static enum status parse(struct parts parts, struct tokenizer **out, struct err *err) {
    char json[8192];
    int size = snprintf(
        json, sizeof json,
        "{\"version\":\"1.0\",\"truncation\":%s,\"padding\":%s,\"added_tokens\":[%s],"
        "\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,\"decoder\":null,"
        "\"model\":{\"type\":\"%s\",\"unk_token\":\"[UNK]\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":%s,\"vocab\":%s}%s}",
        or_usual(parts.truncation, "null"), or_usual(parts.padding, "null"),
        or_usual(parts.added, MASK_TOKEN), or_usual(parts.normalizer, BERT_LOWER),
        or_usual(parts.pre_tokenizer, "{\"type\":\"BertPreTokenizer\"}"),
        or_usual(parts.post_processor, TEMPLATE), or_usual(parts.model_type, "WordPiece"),
        or_usual(parts.max_chars, "12"), VOCAB, or_usual(parts.more, ""));
    assert_true(size > 0 && (size_t)size < sizeof json);
    err->text[0] = '\0';
    return tokenizer_parse((struct view){json, (size_t)size}, "test.json", out, err);
}

static struct tokenizer *must_parse(struct parts parts) {
    struct tokenizer *tokenizer = NULL;
    struct err err;
    if (parse(parts, &tokenizer, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
    return tokenizer;
}

static void encodes_bytes(struct parts parts, uint32_t max_tokens, struct view text,
                          const char *want) {
    struct tokenizer *tokenizer = must_parse(parts);
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    assert_int_equal(tokenizer_encode(tokenizer, text, &(struct encode_options){.max_tokens = max_tokens},
                                      &arena, &encoding, NULL), ST_OK);
    char got[1024] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < encoding.count && size < sizeof got - 32; i++) {
        size += (size_t)snprintf(got + size, sizeof got - size, "%s%lld", i > 0 ? " " : "",
                                 (long long)encoding.ids[i]);
    }
    assert_string_equal(got, want);
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void encodes(struct parts parts, const char *text, const char *want) {
    encodes_bytes(parts, 0, view_of(text), want);
}

#define USUAL ((struct parts){.padding = NULL})

static void covers_a_word_with_its_longest_pieces(void **state) {
    (void)state;
    encodes(USUAL, "unbelievable, world", "2 5 6 7 9 10 3");
}

static void word_that_cannot_be_covered_is_one_unknown(void **state) {
    (void)state;
    encodes(USUAL, "hello unbelievably worlds", "2 8 1 10 12 3");
}

static void word_of_more_characters_than_allowed_is_unknown(void **state) {
    (void)state;
    encodes((struct parts){.max_chars = "4"}, "aaaa", "2 19 18 18 18 3");
    encodes((struct parts){.max_chars = "4"}, "aaaaa", "2 1 3");
    /* Counted in characters, not bytes. */
    encodes((struct parts){.max_chars = "3", .normalizer = "null"},
            "\xef\xbf\xbd\xef\xbf\xbd", "2 14 15 3");
}

static void empty_text_gives_only_special_tokens(void **state) {
    (void)state;
    encodes(USUAL, "", "2 3");
    encodes(USUAL, " \t\n", "2 3");
}

static void lower_cases_and_drops_accents(void **state) {
    (void)state;
    encodes(USUAL, "H\xc3\x89LLO \xc3\x89T\xc3\xa9 e\xcc\x81te\xcc\x81", "2 8 13 13 3");
    encodes((struct parts){.normalizer = "null"}, "Hello HELLO", "2 21 1 3");
}

static void chinese_characters_stand_alone(void **state) {
    (void)state;
    encodes(USUAL, "hello\xe4\xb8\xad\xe4\xb8\xadworld", "2 8 11 11 10 3");
}

static void control_characters_vanish_and_do_not_split(void **state) {
    (void)state;
    encodes_bytes(USUAL, 0, (struct view){"he\0l\xe2\x80\x8blo", 9}, "2 8 3");
}

static void marks_that_stay_come_in_canonical_order(void **state) {
    (void)state;
    /* U+302E (class 224) before U+1D165 (216): swapped; U+0301 is dropped between them. */
    encodes(USUAL, "e\xe3\x80\xae\xcc\x81\xf0\x9d\x85\xa5", "2 16 3");
    encodes(USUAL, "e\xf0\x9d\x85\xa5\xe3\x80\xae", "2 16 3");
}

static void special_token_in_the_text_becomes_its_id(void **state) {
    (void)state;
    encodes(USUAL, "hello[MASK]world", "2 8 4 10 3");
    encodes(USUAL, "[mask]", "2 1 1 1 3");
    encodes(USUAL, "[MASK", "2 1 1 3");
}

#define ADDED(flags) "{\"id\":4,\"content\":\"[MASK]\",\"special\":true," flags "}"

static void added_token_strips_white_space_and_heeds_words(void **state) {
    (void)state;
    /* Without a normalizer and with "_" glued on, only what the strips took is gone. */
    encodes((struct parts){.added = ADDED("\"single_word\":true,\"lstrip\":false,"
                                          "\"rstrip\":false,\"normalized\":false")},
            "[MASK] a[MASK] _[MASK] ,[MASK]", "2 4 19 1 1 1 20 1 1 1 9 4 3");
    encodes((struct parts){.added = "{\"id\":9,\"content\":\" ,\",\"single_word\":false,"
                                    "\"lstrip\":true,\"rstrip\":true,\"normalized\":false,"
                                    "\"special\":false}"},
            "hello   ,   , world", "2 8 22 22 10 3");
}

static void added_token_not_in_the_vocabulary_gets_the_next_id(void **state) {
    (void)state;
    struct parts parts = {.added = "{\"id\":77,\"content\":\"<x>\",\"single_word\":false,"
                                   "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
                                   "\"special\":false}"};
    encodes(parts, "a<x>a", "2 19 22 19 3");
    struct tokenizer *tokenizer = must_parse(parts);
    assert_int_equal(tokenizer_vocab_size(tokenizer), 23);
    tokenizer_free(tokenizer);
}

static void normalized_added_token_is_found_after_normalization(void **state) {
    (void)state;
    encodes((struct parts){.added = "{\"id\":4,\"content\":\"\xc3\x89T\xc3\x89 X\","
                                    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                                    "\"normalized\":true,\"special\":false}"},
            "a e\xcc\x81te x,ETE X", "2 19 22 9 22 3");
}

static void truncates_on_the_side_the_file_says(void **state) {
    (void)state;
    encodes((struct parts){.truncation = CUT("4", "Right")}, "hello , world", "2 8 9 3");
    encodes((struct parts){.truncation = CUT("4", "Left")}, "hello , world", "2 9 10 3");
    encodes((struct parts){.truncation = CUT("2", "Right")}, "hello , world", "2 3");
}

static void argument_overrides_the_truncation_of_the_file(void **state) {
    (void)state;
    struct parts parts = {.truncation = CUT("4", "Right")};
    encodes_bytes(parts, 3, view_of("hello , world"), "2 8 3");
    encodes_bytes(parts, 5, view_of("hello , world"), "2 8 9 10 3");
    encodes_bytes(parts, 1, view_of("hello , world"), "2");
}

static void says_whether_it_truncated(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse((struct parts){.truncation = CUT("4", "Right")});
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    assert_int_equal(tokenizer_max_tokens(tokenizer), 4);
    assert_int_equal(tokenizer_encode(tokenizer, view_of("a a"), NULL, &arena, &encoding, NULL), ST_OK);
    assert_false(encoding.was_truncated);
    assert_int_equal(tokenizer_encode(tokenizer, view_of("a a a"), NULL, &arena, &encoding, NULL), ST_OK);
    assert_true(encoding.was_truncated);
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void type_ids_come_from_the_template(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(USUAL);
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    assert_int_equal(tokenizer_encode(tokenizer, view_of("a"), NULL, &arena, &encoding, NULL), ST_OK);
    assert_int_equal(encoding.count, 3);
    assert_int_equal(encoding.type_ids[0], 0);
    assert_int_equal(encoding.type_ids[1], 0);
    assert_int_equal(encoding.type_ids[2], 1);
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void bert_processing_and_none_are_understood(void **state) {
    (void)state;
    encodes((struct parts){.post_processor = "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],"
                                             "\"cls\":[\"[CLS]\",2]}"},
            "a", "2 19 3");
    encodes((struct parts){.post_processor = "null"}, "a", "19");
}

static void each_ill_formed_subpart_is_one_replacement_character(void **state) {
    (void)state;
    struct parts parts = {.normalizer = "null", .post_processor = "null"};
    encodes_bytes(parts, 0, view_of("\xff"), "14");
    encodes_bytes(parts, 0, view_of("\xe4\xb8"), "14");         /* cut short: one */
    encodes_bytes(parts, 0, view_of("\xed\xa0\x80"), "14 15 15"); /* a surrogate: each byte */
    encodes_bytes(parts, 0, view_of("a \xf0\x9f\x98 a\xc0"), "19 14 19 15");
}

static void text_longer_than_a_part_is_cut_between_words(void **state) {
    (void)state;
    enum { WORDS = 5000 };
    static char text[WORDS * 6 + 1];
    for (size_t i = 0; i < WORDS; i++) {
        memcpy(text + 6 * i, i % 2 ? "hello " : "WORLD\n", 6);
    }
    struct tokenizer *tokenizer = must_parse(USUAL);
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    assert_int_equal(tokenizer_encode(tokenizer, view_of(text), NULL, &arena, &encoding, NULL), ST_OK);
    assert_int_equal(encoding.count, WORDS + 2);
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_int_equal(encoding.ids[i + 1], i % 2 ? 8 : 10);
    }
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void padding_section_gives_the_pad_id(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(
        (struct parts){.padding = "{\"strategy\":{\"Fixed\":8},\"direction\":\"Right\","
                                  "\"pad_to_multiple_of\":null,\"pad_id\":7,\"pad_type_id\":0,"
                                  "\"pad_token\":\"[PAD]\"}"});
    assert_int_equal(tokenizer_padding(tokenizer).id, 7);
    tokenizer_free(tokenizer);
    tokenizer = must_parse(USUAL);
    assert_int_equal(tokenizer_padding(tokenizer).id, 0);
    tokenizer_free(tokenizer);
}

static void what_is_not_supported_is_named(void **state) {
    (void)state;
    static const struct {
        struct parts parts;
        enum status status;
        const char *name;
    } CASES[] = {
        {{.model_type = "Trigram"}, ST_UNSUPPORTED, "Trigram"},
        {{.normalizer = "{\"type\":\"NFX\"}"}, ST_UNSUPPORTED, "NFX"},
        {{.pre_tokenizer = "{\"type\":\"BitLevel\"}"}, ST_UNSUPPORTED, "BitLevel"},
        {{.post_processor = "{\"type\":\"AlbertProcessing\"}"}, ST_UNSUPPORTED, "Albert"},
        {{.more = ",\"novelty\":1"}, ST_UNSUPPORTED, "novelty"},
        {{.truncation = CUT("8", "Middle")}, ST_UNSUPPORTED, "Middle"},
        {{.truncation = CUT("1", "Right")}, ST_INVALID, "leaves no room"},
        {{.truncation = CUT("-1", "Right")}, ST_INVALID, "max_length"},
        {{.max_chars = "\"many\""}, ST_INVALID, "max_input_chars_per_word"},
        {{.added = MASK_TOKEN ",7"}, ST_INVALID, "added_tokens"},
        {{.padding = "{\"strategy\":\"BatchLongest\",\"direction\":\"Middle\",\"pad_id\":0,"
                     "\"pad_type_id\":0,\"pad_token\":\"x\"}"}, ST_UNSUPPORTED, "Middle"},
        {{.post_processor = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
                            "{\"id\":\"[X]\",\"type_id\":0}}],\"special_tokens\":{}}"},
         ST_INVALID, "[X]"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct tokenizer *tokenizer = NULL;
        struct err err;
        assert_int_equal(parse(CASES[i].parts, &tokenizer, &err), CASES[i].status);
        assert_null(tokenizer);
        if (strstr(err.text, CASES[i].name) == NULL || strstr(err.text, "test.json") == NULL) {
            fail_msg("\"%s\" does not name %s", err.text, CASES[i].name);
        }
    }
}

static void broken_or_missing_file_is_an_error(void **state) {
    (void)state;
    struct tokenizer *tokenizer = NULL;
    struct err err;
    assert_int_equal(tokenizer_parse(view_of("{\"version\":"), "x", &tokenizer, &err),
                     ST_INVALID);
    assert_int_equal(tokenizer_parse(view_of(""), "x", &tokenizer, &err), ST_INVALID);
    assert_int_equal(tokenizer_parse(view_of("[]"), "x", &tokenizer, &err), ST_INVALID);
    assert_int_equal(tokenizer_load("/nonexistent/tokenizer.json", &tokenizer, &err),
                     ST_NOT_FOUND);
    assert_null(tokenizer);
    tokenizer_free(NULL);
}

#define PAIR_TEMPLATE                                                                            \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"c\",\"type_id\":0}}," \
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":\"c\","       \
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\","        \
    "\"type_id\":1}}],\"special_tokens\":{\"c\":{\"id\":\"c\",\"ids\":[90],\"tokens\":[\"c\"]}}}"

static void pair_stands_as_its_template_says_with_offsets_of_each_text(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse((struct parts){.post_processor = PAIR_TEMPLATE});
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    const struct view second = view_of("\xc3\xa9 a");
    const struct encode_options options = {.pair = &second, .wants_offsets = true};
    assert_int_equal(tokenizer_encode(tokenizer, view_of("a"), &options, &arena, &encoding, NULL),
                     ST_OK);
    assert_int_equal(encoding.count, 4);
    static const struct {
        uint32_t type_id, start, end, special;
    } EXPECTED[] = {{0, 0, 0, 1}, {0, 0, 1, 0}, {1, 0, 1, 0}, {1, 2, 3, 0}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(encoding.type_ids[i], EXPECTED[i].type_id);
        assert_int_equal(encoding.offsets[i].start, EXPECTED[i].start);
        assert_int_equal(encoding.offsets[i].end, EXPECTED[i].end);
        assert_int_equal(encoding.special[i], EXPECTED[i].special);
    }
    const struct encode_options bare = {.pair = &second, .adds_no_special = true};
    assert_int_equal(tokenizer_encode(tokenizer, view_of("a"), &bare, &arena, &encoding, NULL),
                     ST_OK);
    assert_int_equal(encoding.count, 3);
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void pair_without_a_template_is_refused(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(
        (struct parts){.post_processor = "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":"
                                         "{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{}}"});
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding = {.count = 7};
    struct err err;
    const struct view second = view_of("a");
    const struct encode_options options = {.pair = &second};
    assert_int_equal(tokenizer_encode(tokenizer, second, &options, &arena, &encoding, &err),
                     ST_INVALID);
    assert_non_null(strstr(err.text, "pair"));
    assert_int_equal(encoding.count, 7);
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void only_second_refuses_a_long_single_text(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(
        (struct parts){.post_processor = "null",
                       .truncation = "{\"direction\":\"Right\",\"max_length\":2,"
                                     "\"strategy\":\"OnlySecond\",\"stride\":0}"});
    struct arena arena;
    arena_init(&arena);
    struct encoding encoding;
    struct err err;
    assert_int_equal(
        tokenizer_encode(tokenizer, view_of("a a"), NULL, &arena, &encoding, &err), ST_OK);
    assert_int_equal(
        tokenizer_encode(tokenizer, view_of("a a a"), NULL, &arena, &encoding, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "OnlySecond"));
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void decoding_passes_over_ids_that_do_not_exist(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(USUAL);
    struct arena arena;
    arena_init(&arena);
    struct view text;
    const int64_t a = tokenizer_find(tokenizer, view_of("a"));
    const int64_t ids[] = {-1, a, (int64_t)1 << 40, 100000, a};
    assert_int_equal(tokenizer_decode(tokenizer, ids, 5, true, &arena, &text), ST_OK);
    assert_true(view_is(text, "a a"));
    arena_done(&arena);
    tokenizer_free(tokenizer);
}

static void *encode_many(void *context) {
    const struct tokenizer *tokenizer = context;
    struct arena arena;
    arena_init(&arena);
    uintptr_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        struct encoding encoding;
        if (tokenizer_encode(tokenizer, view_of("Hello, unbelievable \xc3\xa9t\xc3\xa9 [MASK]"),
                             NULL, &arena, &encoding, NULL) != ST_OK
            || encoding.count != 9 || encoding.ids[6] != 13 || encoding.ids[7] != 4) {
            wrong++;
        }
        arena_clear(&arena);
    }
    arena_done(&arena);
    return (void *)wrong;
}

static void many_threads_share_one_tokenizer(void **state) {
    (void)state;
    struct tokenizer *tokenizer = must_parse(USUAL);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, encode_many, tokenizer), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_a_word_with_its_longest_pieces),
        cmocka_unit_test(word_that_cannot_be_covered_is_one_unknown),
        cmocka_unit_test(word_of_more_characters_than_allowed_is_unknown),
        cmocka_unit_test(empty_text_gives_only_special_tokens),
        cmocka_unit_test(lower_cases_and_drops_accents),
        cmocka_unit_test(chinese_characters_stand_alone),
        cmocka_unit_test(control_characters_vanish_and_do_not_split),
        cmocka_unit_test(marks_that_stay_come_in_canonical_order),
        cmocka_unit_test(special_token_in_the_text_becomes_its_id),
        cmocka_unit_test(added_token_strips_white_space_and_heeds_words),
        cmocka_unit_test(added_token_not_in_the_vocabulary_gets_the_next_id),
        cmocka_unit_test(normalized_added_token_is_found_after_normalization),
        cmocka_unit_test(truncates_on_the_side_the_file_says),
        cmocka_unit_test(argument_overrides_the_truncation_of_the_file),
        cmocka_unit_test(says_whether_it_truncated),
        cmocka_unit_test(type_ids_come_from_the_template),
        cmocka_unit_test(bert_processing_and_none_are_understood),
        cmocka_unit_test(each_ill_formed_subpart_is_one_replacement_character),
        cmocka_unit_test(text_longer_than_a_part_is_cut_between_words),
        cmocka_unit_test(padding_section_gives_the_pad_id),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(broken_or_missing_file_is_an_error),
        cmocka_unit_test(pair_stands_as_its_template_says_with_offsets_of_each_text),
        cmocka_unit_test(pair_without_a_template_is_refused),
        cmocka_unit_test(only_second_refuses_a_long_single_text),
        cmocka_unit_test(decoding_passes_over_ids_that_do_not_exist),
        cmocka_unit_test(many_threads_share_one_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

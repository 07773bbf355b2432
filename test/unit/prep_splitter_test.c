/* Splitters and patterns: what each cuts, what is refused, and that scanners give what PCRE2 gives
 * for the same pattern. Whose semantics these are: test/oracle/splitter_oracle.mjs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "prep/pattern_scan.h"
#include "prep/splitter.h"
#include <stdio.h>
#include <stdlib.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char *const WELL_KNOWN[] = {
    PATTERN_GPT2,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES,
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
    SPACES,
};
enum { WELL_KNOWN_COUNT = sizeof WELL_KNOWN / sizeof WELL_KNOWN[0] };

struct fixture {
    struct arena arena;
    struct unicode_table *unicode;
    struct err err;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->unicode = unicode_table_create();
    *state = fixture;
    return fixture->unicode == NULL;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    arena_done(&fixture->arena);
    unicode_table_free(fixture->unicode);
    free(fixture);
    return 0;
}

static enum status read_section(struct fixture *fixture, const char *json, struct splitter *out,
                                bool *out_is_byte_level) {
    struct json_document *document;
    struct json_value root;
    assert_int_equal(dom_open(view_of(json), &document, &root, &fixture->err), ST_OK);
    const enum status status = splitter_read(root, &fixture->arena, fixture->unicode, out,
                                             out_is_byte_level, &fixture->err);
    dom_close(document);
    return status;
}

/* The pieces of text, each followed by a bar. */
static const char *split(struct fixture *fixture, const char *json, const char *text) {
    struct splitter splitter;
    bool is_byte_level;
    assert_int_equal(read_section(fixture, json, &splitter, &is_byte_level), ST_OK);
    struct source *sources = arena_array(&fixture->arena, strlen(text) + 1, sizeof *sources);
    for (uint32_t i = 0; text[i] != 0; i++) sources[i] = (struct source){i, i + 1};
    const struct span_text in = {.arena = &fixture->arena, .data = (unsigned char *)text,
                                 .size = strlen(text), .sources = sources, .has_sources = true};
    struct span_text rewritten = {.arena = &fixture->arena, .has_sources = true};
    struct piece_list whole = {.arena = &fixture->arena}, pieces = {.arena = &fixture->arena};
    assert_true(piece_list_push(&whole, 0, (uint32_t)in.size));
    assert_true(splitter.run(splitter.self, &in, &whole, &rewritten, &pieces));
    const unsigned char *data = splitter.rewrites ? rewritten.data : in.data;
    struct span_text out = {.arena = &fixture->arena};
    for (size_t i = 0; i < pieces.count; i++) {
        const size_t size = pieces.items[i].end - pieces.items[i].start;
        assert_true(span_text_reserve(&out, size + 2));
        memcpy(out.data + out.size, data + pieces.items[i].start, size);
        out.size += size;
        out.data[out.size++] = '|';
    }
    if (splitter.done != NULL) splitter.done(splitter.self);
    return arena_copy(&fixture->arena, (struct view){(char *)out.data, out.size});
}

static void cuts_at_white_space_words_and_numbers(void **state) {
    struct fixture *f = *state;
    assert_string_equal(split(f, "{\"type\":\"Whitespace\"}", " it's_ok \n x!? "), "it|'|s_ok|x|!?|");
    assert_string_equal(split(f, "{\"type\":\"WhitespaceSplit\"}", " it's\xc2\xa0ok "), "it's|ok|");
    assert_string_equal(split(f, "{\"type\":\"Digits\",\"individual_digits\":true}", "a12\xc2\xbd"),
                        "a|1|2|\xc2\xbd|");
    assert_string_equal(split(f, "{\"type\":\"Digits\",\"individual_digits\":false}", "12a34"),
                        "12|a|34|");
    assert_string_equal(split(f, "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"}", "-a--b-"),
                        "a|b|");
    assert_string_equal(split(f, "{\"type\":\"FixedLength\",\"length\":2}", "a\xc3\xa9xyz"),
                        "a\xc3\xa9|xy|z|");
}

static void gives_matches_to_the_piece_that_the_behavior_says(void **state) {
    static const char *const CASES[][2] = {
        {"Removed", "a|b|c|"},
        {"Isolated", "-|a|-|-|b|-|c|-|-|"},
        {"MergedWithPrevious", "-|a-|-|b-|c-|-|"},
        {"MergedWithNext", "-a|-|-b|-c|-|-|"},
        {"Contiguous", "-|a|--|b|-|c|--|"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char json[200];
        (void)snprintf(json, sizeof json, "{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"},"
                       "\"behavior\":\"%s\",\"invert\":false}", CASES[i][0]);
        assert_string_equal(split(*state, json, "-a--b-c--"), CASES[i][1]);
    }
}

static void inverts_what_counts_as_a_match(void **state) {
    assert_string_equal(split(*state, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-z]+\"},"
                              "\"behavior\":\"Removed\",\"invert\":true}", "12ab.c"), "ab|c|");
}

static void goes_on_behind_an_empty_match(void **state) {
    assert_string_equal(split(*state, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x*\"},"
                              "\"behavior\":\"Isolated\",\"invert\":false}", "axxb\xc3\xa9"),
                        "a|xx|b|\xc3\xa9|");
}

static void puts_the_metaspace_before_words(void **state) {
    struct fixture *f = *state;
    assert_string_equal(split(f, "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "a  b_c"),
                        "_a|_|_b|_c|");
    assert_string_equal(split(f, "{\"type\":\"Metaspace\",\"replacement\":\"_\","
                              "\"prepend_scheme\":\"never\",\"split\":false}", "a b"), "a_b|");
    assert_string_equal(split(f, "{\"type\":\"Sequence\",\"pretokenizers\":["
                              "{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\","
                              "\"replacement\":\"_\",\"prepend_scheme\":\"first\"}]}", "a b"),
                        "_a|b|");
}

static void a_sequence_reads_what_the_last_one_wrote(void **state) {
    assert_string_equal(split(*state, "{\"type\":\"Sequence\",\"pretokenizers\":["
                              "{\"type\":\"Metaspace\",\"replacement\":\"_\"},"
                              "{\"type\":\"Digits\",\"individual_digits\":true},"
                              "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                              "\"trim_offsets\":true,\"use_regex\":true}]}", "ab 1"),
                        " _|ab| _| 1|");
}

static void byte_level_is_told_to_the_model(void **state) {
    struct fixture *f = *state;
    struct splitter splitter;
    bool is_byte_level = false;
    assert_int_equal(read_section(f, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                                  "\"trim_offsets\":true,\"use_regex\":false}", &splitter,
                                  &is_byte_level), ST_OK);
    assert_true(is_byte_level);
    assert_null(splitter.run);
    assert_int_equal(read_section(f, "null", &splitter, &is_byte_level), ST_OK);
    assert_false(is_byte_level);
}

static void refuses_by_name_what_it_cannot_do(void **state) {
    static const char *const CASES[][2] = {
        {"{\"type\":\"UnicodeScripts\"}", "UnicodeScripts"},
        {"{\"type\":\"Whitespace\",\"more\":1}", "more"},
        {"{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Other\","
         "\"invert\":false}", "Other"},
        {"{\"type\":\"Split\",\"pattern\":{\"Other\":\"a\"},\"behavior\":\"Removed\","
         "\"invert\":false}", "Other"},
        {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\","
         "\"add_prefix_space\":false,\"trim_offsets\":true},{\"type\":\"Digits\","
         "\"individual_digits\":true}]}", "Digits"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", "replacement"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"_\",\"add_prefix_space\":false}",
         "add_prefix_space"},
        {"{\"type\":\"FixedLength\",\"length\":0}", "length"},
        {"[]", "object"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct splitter splitter;
        bool is_byte_level;
        const enum status status = read_section(f, CASES[i][0], &splitter, &is_byte_level);
        assert_true(status == ST_UNSUPPORTED || status == ST_INVALID);
        assert_non_null(strstr(f->err.text, CASES[i][1]));
    }
}

static void refuses_expressions_that_mean_something_else_to_pcre2(void **state) {
    static const char *const CASES[] = {
        "\\h", "\\R", "\\K", "\\1", "\\G", "(?<n>a)", "(?m:a)", "(?#c)", "(*ACCEPT)", "a(?i)b",
        "[[:alpha:]]", "[a&&b]", "[]a]", "[a-\\d]", "\\p{Greek_Extended}", "\\pL", "\\p{w}",
        "\\xff", "\\ud800", "(?i:ss)", "(?i:\xc3\xa9)", "(?i:\\p{Lu})", "a{2}?", "a**", "*a",
        "(a", "a)", "[a", "a\\", "\\p{L", "\\x{110000}",
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pattern *pattern;
        if (pattern_create(view_of(CASES[i]), PATTERN_REGEX, &pattern, &f->err)
            != ST_UNSUPPORTED) {
            fail_msg("not refused: %s", CASES[i]);
        }
        assert_non_null(strstr(f->err.text, "regular expression"));
    }
}

static void gives_up_on_a_match_that_takes_too_many_steps(void **state) {
    struct fixture *f = *state;
    struct pattern *pattern;
    struct pattern_cursor cursor;
    assert_int_equal(pattern_create(view_of("(?:a|aa)+b"), PATTERN_REGEX, &pattern, &f->err),
                     ST_OK);
    assert_true(pattern_begin(pattern, &f->arena, &cursor));
    static const unsigned char TEXT[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!b";
    pattern_search(&cursor, TEXT, sizeof TEXT - 1);
    size_t start, end;
    assert_int_equal(pattern_next(&cursor, &start, &end), PATTERN_FAILED);
    pattern_free(pattern);
}

static void matches_more_than_the_jit_stack_holds(void **state) {
    struct fixture *f = *state;
    struct pattern *pattern;
    struct pattern_cursor cursor;
    const size_t size = 20000;
    unsigned char *text = arena_alloc(&f->arena, size);
    for (size_t i = 0; i < size; i++) text[i] = "ab"[i % 2];
    assert_int_equal(pattern_create(view_of("(a|b)+"), PATTERN_REGEX, &pattern, &f->err), ST_OK);
    assert_true(pattern_begin(pattern, &f->arena, &cursor));
    pattern_search(&cursor, text, size);
    size_t start, end;
    assert_int_equal(pattern_next(&cursor, &start, &end), PATTERN_MATCH);
    assert_int_equal(end, size);
    pattern_free(pattern);
}

static void hold_against_each_other(struct fixture *f, const struct pattern *scanner,
                                    const struct pattern *generic, const unsigned char *text,
                                    size_t size) {
    struct pattern_cursor one, other;
    assert_true(pattern_begin(scanner, &f->arena, &one));
    assert_true(pattern_begin(generic, &f->arena, &other));
    pattern_search(&one, text, size);
    pattern_search(&other, text, size);
    size_t bounds[4];
    enum pattern_found found;
    do {
        found = pattern_next(&one, &bounds[0], &bounds[1]);
        if (pattern_next(&other, &bounds[2], &bounds[3]) != found) fail_msg("%.*s", (int)size, text);
        if (found == PATTERN_MATCH && (bounds[0] != bounds[2] || bounds[1] != bounds[3])) {
            fail_msg("[%zu, %zu) and [%zu, %zu) of %.*s", bounds[0], bounds[1], bounds[2],
                     bounds[3], (int)size, text);
        }
    } while (found == PATTERN_MATCH);
}

static size_t random_text(uint32_t *seed, unsigned char *out) {
    static const char *const PARTS[] = {
        "'s", "'S", "'\xc5\xbf", "'re", "'LL", "'", " ", "  ", "\n", "\r\n", "\t", "\xc2\xa0",
        "\xe3\x80\x80", "a", "B", "word", "\xc7\x85", "\xca\xb0", "\xe4\xb8\xad", "\xcc\x81",
        "1", "234", "\xc2\xbd", "/", "!", "...", "_", "\xf0\x9f\x98\x80", "\xe1\xa0\x8e",
    };
    size_t size = 0;
    for (unsigned left = 12; left > 0; left--) {
        *seed = *seed * 1664525u + 1013904223u;
        const char *part = PARTS[(*seed >> 8) % (sizeof PARTS / sizeof PARTS[0])];
        memcpy(out + size, part, strlen(part));
        size += strlen(part);
    }
    return size;
}

static void scanners_give_what_pcre2_gives(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < WELL_KNOWN_COUNT; i++) {
        struct pattern *scanner, *generic;
        const struct view regex = view_of(WELL_KNOWN[i]);
        assert_int_equal(pattern_create(regex, PATTERN_REGEX, &scanner, &f->err), ST_OK);
        assert_int_equal(pattern_create(regex, PATTERN_REGEX_GENERIC, &generic, &f->err), ST_OK);
        assert_true(pattern_matches_all(scanner));
        assert_false(pattern_matches_all(generic));
        uint32_t seed = 7;
        unsigned char text[128];
        for (unsigned n = 0; n < 3000; n++) {
            hold_against_each_other(f, scanner, generic, text, random_text(&seed, text));
        }
        pattern_free(scanner);
        pattern_free(generic);
    }
}

/* Whichever Unicode version PCRE2 has: the sets are ours. */
static void a_category_is_the_table_s(void **state) {
    static const char *const NAMES[] = {"L", "N", "M", "Lu", "Ll", "Nd", "P", "S", "Z"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char regex[16];
        (void)snprintf(regex, sizeof regex, "\\p{%s}", NAMES[i]);
        struct pattern *pattern;
        struct pattern_cursor cursor;
        bool is_known;
        assert_int_equal(pattern_create(view_of(regex), PATTERN_REGEX, &pattern, &f->err), ST_OK);
        assert_true(pattern_begin(pattern, &f->arena, &cursor));
        struct pattern_set set = pattern_set_named(view_of(NAMES[i]), &is_known);
        size_t at = 0;
        for (uint32_t code = 1; code < CODE_POINTS; code++) {
            if (code >= 0xd800 && code <= 0xdfff) continue;
            unsigned char bytes[4];
            size_t start, end;
            while (at < set.count && set.ranges[at].last < code) at++;
            const bool is_in = at < set.count && set.ranges[at].first <= code;
            pattern_search(&cursor, bytes, utf8_encode(code, bytes));
            if ((pattern_next(&cursor, &start, &end) == PATTERN_MATCH) != is_in) {
                fail_msg("U+%04X and %s", code, regex);
            }
        }
        free(set.ranges);
        pattern_free(pattern);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cuts_at_white_space_words_and_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_matches_to_the_piece_that_the_behavior_says, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(inverts_what_counts_as_a_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_on_behind_an_empty_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(puts_the_metaspace_before_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sequence_reads_what_the_last_one_wrote, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(byte_level_is_told_to_the_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_by_name_what_it_cannot_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_expressions_that_mean_something_else_to_pcre2,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_up_on_a_match_that_takes_too_many_steps, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(matches_more_than_the_jit_stack_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scanners_give_what_pcre2_gives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_category_is_the_table_s, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

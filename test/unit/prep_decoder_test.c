/* Decoders, step by step. That real tokenizers decode as Hugging Face's library does is
 * test/oracle's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "prep/token_stages.h"
#include <stdlib.h>

struct fixture {
    struct arena memory, scratch;
    struct decoder decoder;
    struct err err;
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    arena_init(&f->memory);
    arena_init(&f->scratch);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    arena_done(&f->memory);
    arena_done(&f->scratch);
    free(f);
    return 0;
}

/* JSON is written with ' for ". */
static enum status open_decoder(struct fixture *f, const char *quoted) {
    struct json_document *document;
    struct json_value root;
    size_t size = strlen(quoted);
    char *json = malloc(size + 1);
    for (size_t i = 0; i <= size; i++) {
        json[i] = (char)(quoted[i] == '\'' ? '"' : quoted[i]);
    }
    assert_int_equal(dom_open((struct view){json, size}, &document, &root, &f->err), ST_OK);
    enum status status = decoder_read(root, &f->memory, &f->decoder, &f->err);
    dom_close(document);
    free(json);
    return status;
}

/* names are between bars: "|a|b" are a and b. */
static void assert_decodes(struct fixture *f, const char *quoted, const char *names,
                           const char *want) {
    struct view list[32], out;
    size_t count = 0;
    if (open_decoder(f, quoted) != ST_OK) {
        fail_msg("%s", f->err.text);
    }
    while (*names == '|') {
        size_t size = strcspn(names + 1, "|");
        list[count++] = (struct view){names + 1, size};
        names += size + 1;
    }
    assert_true(f->decoder.run(f->decoder.self, list, count, &f->scratch, &out));
    if (!view_is(out, want)) {
        fail_msg("\"%.*s\" is not \"%s\"", VIEW_ARGS(out), want);
    }
}

static void without_a_decoder_there_are_spaces(void **state) {
    assert_decodes(*state, "null", "|a|b|c", "a b c");
    assert_decodes(*state, "null", "", "");
}

static void wordpieces_are_joined(void **state) {
    const char *decoder = "{'type':'WordPiece','prefix':'##','cleanup':true}";
    assert_decodes(*state, decoder, "|un|##able|,|do|n't|.", "unable, don't.");
    assert_decodes(*state, decoder, "|##a|##b", "##ab"); /* the first keeps its prefix */
    assert_decodes(*state, "{'type':'WordPiece','prefix':'##','cleanup':false}", "|a|.", "a .");
}

static void letters_become_bytes(void **state) {
    const char *decoder = "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true}";
    assert_decodes(*state, decoder, "|\xc4\xa0" "a|\xc3\x83|\xc2\xa9", " a\xc3\xa9");
    /* half a character; a token with a character that is no letter stays as it is */
    assert_decodes(*state, decoder, "|\xc3\x83|a|<a b>", "\xef\xbf\xbd" "a<a b>");
}

static void bytes_are_put_together(void **state) {
    const char *decoder = "{'type':'ByteFallback'}";
    assert_decodes(*state, decoder, "|<0xC3>|<0xa9>|a|<0x4G>", "\xc3\xa9" "a<0x4G>");
    assert_decodes(*state, decoder, "|a|<0xC3>|<0xA9>|<0xC3>",
                   "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void the_first_metaspace_goes(void **state) {
    const char *names = "|\xe2\x96\x81" "a\xe2\x96\x81|\xe2\x96\x81" "b";
    assert_decodes(*state, "{'type':'Metaspace','replacement':'\xe2\x96\x81'}", names, "a b");
    assert_decodes(*state, "{'type':'Metaspace','replacement':'\xe2\x96\x81',"
                           "'prepend_scheme':'never'}", names, " a  b");
}

static void a_suffix_ends_a_word(void **state) {
    assert_decodes(*state, "{'type':'BPEDecoder','suffix':'</w>'}", "|a|b</w>|c</w>", "ab c");
}

static void repeats_and_blanks_go(void **state) {
    assert_decodes(*state, "{'type':'CTC','pad_token':'-','word_delimiter_token':'_',"
                           "'cleanup':true}", "|a|a|-|a|_|b|b|-|-", "aa b");
    assert_decodes(*state, "{'type':'CTC','pad_token':'-','word_delimiter_token':'_',"
                           "'cleanup':false}", "|a|_|b", "a_b");
}

static void ends_are_stripped(void **state) {
    assert_decodes(*state, "{'type':'Strip','content':' ','start':1,'stop':2}", "|  a   |b ",
                   " a b");
}

static void a_sequence_runs_in_order(void **state) {
    const char *llama = "{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':"
                        "'\xe2\x96\x81'},'content':' '},{'type':'ByteFallback'},{'type':'Fuse'},"
                        "{'type':'Strip','content':' ','start':1,'stop':0}]}";
    assert_decodes(*state, llama, "|\xe2\x96\x81\xe2\x96\x81" "a|<0x0A>|\xe2\x96\x81" "b",
                   " a\n b");
    assert_decodes(*state, llama, "", "");
    assert_decodes(*state, "{'type':'Sequence','decoders':[]}", "|a|b", "ab");
}

static void replaced_text_may_grow(void **state) {
    assert_decodes(*state, "{'type':'Replace','pattern':{'String':'a'},'content':'long'}",
                   "|aXa|b|aa", "longXlongblonglong");
    assert_decodes(*state, "{'type':'Replace','pattern':{'String':'aa'},'content':''}", "|aaa",
                   "a");
}

static void assert_refused(struct fixture *f, const char *quoted, enum status status,
                           const char *sentence) {
    assert_int_equal(open_decoder(f, quoted), status);
    if (strstr(f->err.text, sentence) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, sentence);
    }
}

static void what_is_not_supported_is_named(void **state) {
    assert_refused(*state, "{'type':'Nonsense'}", ST_UNSUPPORTED, "\"Nonsense\"");
    assert_refused(*state, "[]", ST_INVALID, "not an object");
    assert_refused(*state, "{'type':'Fuse','x':1}", ST_UNSUPPORTED, "\"x\"");
    assert_refused(*state, "{'type':'Replace','pattern':{'Regex':'a'},'content':''}",
                   ST_UNSUPPORTED, "String");
    assert_refused(*state, "{'type':'Strip','content':'ab','start':1,'stop':1}", ST_INVALID,
                   "one character");
    assert_refused(*state, "{'type':'Metaspace','replacement':'_','add_prefix_space':false}",
                   ST_INVALID, "add_prefix_space");
    assert_refused(*state, "{'type':'BPEDecoder','suffix':''}", ST_UNSUPPORTED, "suffix");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_decoder_there_are_spaces),
        TEST(wordpieces_are_joined),
        TEST(letters_become_bytes),
        TEST(bytes_are_put_together),
        TEST(the_first_metaspace_goes),
        TEST(a_suffix_ends_a_word),
        TEST(repeats_and_blanks_go),
        TEST(ends_are_stripped),
        TEST(a_sequence_runs_in_order),
        TEST(replaced_text_may_grow),
        TEST(what_is_not_supported_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory runs out at the first allocation, then at the second, and so on: loading and encoding
 * fail with ST_NO_MEMORY and leak nothing (AddressSanitizer looks). The sources are compiled
 * into this file, so that their allocations can be counted; simdjson's are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "counted.h"
#include "../../src/base/arena.c"
#include "../../src/prep/added.c"
#include "../../src/prep/tokenizer.c"
#include "../../src/prep/tokenizer_added.c"
#include "../../src/prep/tokenizer_file.c"
#include "../../src/prep/trie.c"
#include "../../src/prep/unicode_table.c"
#include "../../src/prep/vocab.c"
#include "../../src/prep/wordpiece.c"
#include "counted_end.h"

static const char FILE_TEXT[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":2,\"content\":\"[M]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":true},"
    "{\"id\":3,\"content\":\"zz\",\"single_word\":true,\"lstrip\":false,\"rstrip\":true,"
    "\"normalized\":true,\"special\":false}],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":false,"
    "\"handle_chinese_chars\":true,\"strip_accents\":true,\"lowercase\":true},"
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{"
    "\"type\":\"BertProcessing\",\"sep\":[\"s\",4],\"cls\":[\"c\",5]},\"decoder\":null,"
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
    "\"max_input_chars_per_word\":20,\"vocab\":{\"?\":0,\"a\":1,\"##a\":6,\"b\":7}}}";

static void loading_survives_every_allocation_that_fails(void **state) {
    (void)state;
    long failed = 0;
    for (;; failed++) {
        struct tokenizer *tokenizer = NULL;
        struct err err = {.text = ""};
        allocations_left = failed;
        enum status status = tokenizer_parse(view_of(FILE_TEXT), "x", &tokenizer, &err);
        allocations_left = -1;
        if (status == ST_OK) {
            tokenizer_free(tokenizer);
            break;
        }
        assert_int_equal(status, ST_NO_MEMORY);
        assert_null(tokenizer);
        assert_true(err.text[0] != '\0');
        assert_true(failed < 1000);
    }
    assert_true(failed >= 10); /* there were that many to fail */
}

static void encoding_survives_every_allocation_that_fails(void **state) {
    (void)state;
    /* Invalid UTF-8, marks that are reordered, and enough words to outgrow every first block. */
    static char text[40000];
    for (size_t i = 0; i + 16 <= sizeof text; i += 16) {
        memcpy(text + i, "a b\xe3\x80\xae\xf0\x9d\x85\xa5 zz\xff ", 16);
    }
    struct tokenizer *tokenizer = NULL;
    assert_int_equal(tokenizer_parse(view_of(FILE_TEXT), "x", &tokenizer, NULL), ST_OK);
    long failed = 0;
    for (;; failed++) {
        struct arena arena;
        struct encoding encoding = {.count = 0};
        arena_init(&arena);
        allocations_left = failed;
        enum status status = tokenizer_encode(tokenizer, (struct view){text, sizeof text}, NULL,
                                              &arena, &encoding, NULL);
        allocations_left = -1;
        arena_done(&arena);
        if (status == ST_OK) {
            assert_true(encoding.count > 1000);
            break;
        }
        assert_int_equal(status, ST_NO_MEMORY);
        assert_int_equal(encoding.count, 0);
        assert_true(failed < 1000);
    }
    assert_true(failed >= 3);
    tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_survives_every_allocation_that_fails),
        cmocka_unit_test(encoding_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

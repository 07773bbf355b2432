/* Memory runs out at the first allocation, then at the second, and so on: models and decoders fail
 * with ST_NO_MEMORY, encoding and decoding with false, and nothing leaks (AddressSanitizer looks).
 * The sources that call malloc are compiled into this file, so that it can be counted. */
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
#include "../../src/prep/trie.c"
#include "../../src/prep/unigram_file.c"
#include "counted_end.h"

enum { LETTERS = 9000, ENOUGH = 1000 };

/* Vocabularies are filled up, so that tables need blocks of their own. */
static const char *const MODELS[] = {
    ("{\"type\":\"BPE\",\"unk_token\":\"?\",\"merges\":[\"a a\",\"a b\"],\"vocab\":{\"?\":0,\"a\":1,"
     "\"b\":2,\"aa\":3,\"ab\":4,%s}}"),
    "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,%s}}",
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"aa\",-1.5],%s]}",
};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

static char *fill(const char *format, bool is_array) {
    char *more = calloc(1, 64 * 300);
    size_t size = 0;
    for (int i = 0; i < 300; i++) {
        size += (size_t)snprintf(more + size, 64, is_array ? "%s[\"x%d\",-%d]" : "%s\"x%d\":%d",
                                 i > 0 ? "," : "", i, i + 10);
    }
    char *json = calloc(1, strlen(format) + size + 1);
    char *mark = strstr(format, "%s");
    memcpy(json, format, (size_t)(mark - format));
    strncat(json, more, size);
    strncat(json, mark + 2, strlen(mark));
    free(more);
    return json;
}

struct loaded {
    struct arena memory;
    struct token_model model;
};

static enum status load(struct json_value root, bool is_byte_level, struct loaded *out) {
    struct err err = {.text = ""};
    arena_init(&out->memory);
    out->model = (struct token_model){.done = NULL};
    enum status status = model_read(root, &out->memory, is_byte_level, &out->model, &err);
    assert_true(status == ST_OK || err.text[0] != '\0');
    return status;
}

static void unload(struct loaded *loaded) {
    if (loaded->model.done != NULL) {
        loaded->model.done(loaded->model.self);
    }
    arena_done(&loaded->memory);
}

static void loading_survives_every_allocation_that_fails(void **state) {
    (void)state;
    for (int i = 0; i < 2 * MODEL_COUNT - 1; i++) { /* the last kind is never of bytes */
        char *json = fill(MODELS[i / 2], i / 2 == 2);
        struct json_document *document;
        struct json_value root;
        assert_int_equal(dom_open(view_of(json), &document, &root, NULL), ST_OK);
        long failed = 0;
        for (;; failed++) {
            struct loaded loaded;
            allocations_left = failed;
            enum status status = load(root, i % 2 == 1, &loaded);
            allocations_left = -1;
            unload(&loaded);
            if (status == ST_OK) {
                break;
            }
            assert_int_equal(status, ST_NO_MEMORY);
            assert_true(failed < ENOUGH);
        }
        assert_true(failed >= 2);
        dom_close(document);
        free(json);
    }
}

static void encoding_survives_every_allocation_that_fails(void **state) {
    static char text[LETTERS];
    (void)state;
    memset(text, 'a', sizeof text);
    for (int i = 0; i < MODEL_COUNT; i++) {
        char *json = fill(MODELS[i], i == 2);
        struct json_document *document;
        struct json_value root;
        struct loaded loaded;
        assert_int_equal(dom_open(view_of(json), &document, &root, NULL), ST_OK);
        assert_int_equal(load(root, false, &loaded), ST_OK);
        long failed = 0;
        for (bool is_done = false; !is_done; failed++) {
            struct arena arena;
            arena_init(&arena);
            struct token_list tokens = {.arena = &arena};
            allocations_left = failed;
            is_done = loaded.model.encode(loaded.model.self, (struct view){text, sizeof text},
                                          (struct piece){0, sizeof text}, &tokens);
            allocations_left = -1;
            arena_done(&arena);
            assert_true(failed < ENOUGH);
        }
        assert_true(failed >= 2);
        unload(&loaded);
        dom_close(document);
        free(json);
    }
}

static void decoding_survives_every_allocation_that_fails(void **state) {
    static const char JSON[] =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
        "\"content\":\"long\"},{\"type\":\"ByteFallback\"},{\"type\":\"WordPiece\","
        "\"prefix\":\"#\",\"cleanup\":true},{\"type\":\"CTC\",\"pad_token\":\"l\","
        "\"word_delimiter_token\":\"n\",\"cleanup\":true},{\"type\":\"ByteLevel\"},"
        "{\"type\":\"Fuse\"}]}";
    static struct view names[800];
    static char name[500];
    struct json_document *document;
    struct json_value root;
    (void)state;
    memset(name, 'a', sizeof name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        names[i] = i % 3 == 0 ? view_of("<0xC3>") : (struct view){name, i % sizeof name};
    }
    assert_int_equal(dom_open(view_of(JSON), &document, &root, NULL), ST_OK);
    long failed = 0;
    for (enum status status = ST_NO_MEMORY; status != ST_OK; failed++) {
        struct arena memory;
        struct decoder decoder;
        arena_init(&memory);
        allocations_left = failed;
        status = decoder_read(root, &memory, &decoder, NULL);
        struct view out;
        if (status == ST_OK
            && !decoder.run(decoder.self, names, sizeof names / sizeof *names, &memory, &out)) {
            status = ST_NO_MEMORY;
        }
        allocations_left = -1;
        arena_done(&memory);
        assert_true(status == ST_OK || status == ST_NO_MEMORY);
        assert_true(failed < ENOUGH);
    }
    assert_true(failed >= 5);
    dom_close(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_survives_every_allocation_that_fails),
        cmocka_unit_test(encoding_survives_every_allocation_that_fails),
        cmocka_unit_test(decoding_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

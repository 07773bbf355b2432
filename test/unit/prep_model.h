/* A token model from a few lines of JSON, for the tests of models. JSON is written with ' for "
 * and tokens as "id:start-end id:start-end". Include after cmocka.h. */
#ifndef TELLTALE_TEST_UNIT_PREP_MODEL_H
#define TELLTALE_TEST_UNIT_PREP_MODEL_H

#include "prep/token_stages.h"
#include <stdio.h>
#include <stdlib.h>

struct model_fixture {
    struct arena memory, scratch;
    struct token_model model;
    bool has_model;
    struct err err;
    char said[2048];
};

static inline int model_set_up(void **state) {
    struct model_fixture *f = calloc(1, sizeof *f);
    arena_init(&f->memory);
    arena_init(&f->scratch);
    *state = f;
    return 0;
}

static inline int model_tear_down(void **state) {
    struct model_fixture *f = *state;
    if (f->has_model && f->model.done != NULL) {
        f->model.done(f->model.self);
    }
    arena_done(&f->memory);
    arena_done(&f->scratch);
    free(f);
    return 0;
}

/* Reads the model, and forgets the text before it is used. */
static inline enum status model_open(struct model_fixture *f, const char *quoted,
                                     bool is_byte_level) {
    struct json_document *document;
    struct json_value root;
    size_t size = strlen(quoted);
    char *json = malloc(size + 1);
    for (size_t i = 0; i <= size; i++) {
        json[i] = (char)(quoted[i] == '\'' ? '"' : quoted[i]);
    }
    assert_int_equal(dom_open((struct view){json, size}, &document, &root, &f->err), ST_OK);
    enum status status = model_read(root, &f->memory, is_byte_level, &f->model, &f->err);
    f->has_model = status == ST_OK;
    dom_close(document);
    free(json);
    return status;
}

static inline void model_load(struct model_fixture *f, const char *quoted) {
    if (model_open(f, quoted, false) != ST_OK) {
        fail_msg("%s", f->err.text);
    }
}

static inline void model_load_bytes(struct model_fixture *f, const char *quoted) {
    if (model_open(f, quoted, true) != ST_OK) {
        fail_msg("%s", f->err.text);
    }
}

/* Tokens of text[start, end), which is in the middle of a text where start is not 0. */
static inline const char *model_say_piece(struct model_fixture *f, struct view text,
                                          struct piece piece) {
    struct token_list tokens = {.arena = &f->scratch};
    assert_true(f->model.encode(f->model.self, text, piece, &tokens));
    size_t size = 0;
    f->said[0] = '\0';
    for (size_t i = 0; i < tokens.count; i++) {
        size += (size_t)snprintf(f->said + size, sizeof f->said - size, "%s%u:%u-%u",
                                 i > 0 ? " " : "", tokens.items[i].id, tokens.items[i].start,
                                 tokens.items[i].end);
        assert_true(size < sizeof f->said);
    }
    return f->said;
}

static inline const char *model_say(struct model_fixture *f, const char *text) {
    struct view view = view_of(text);
    return model_say_piece(f, view, (struct piece){0, (uint32_t)view.size});
}

static inline void assert_refused(struct model_fixture *f, const char *quoted,
                                  enum status status, const char *sentence) {
    assert_int_equal(model_open(f, quoted, false), status);
    if (strstr(f->err.text, sentence) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, sentence);
    }
}

#endif

/* What preprocess.c and its two kinds of steps share. */
#ifndef TELLTALE_ENGINE_PREPROCESS_PRIVATE_H
#define TELLTALE_ENGINE_PREPROCESS_PRIVATE_H

#include "base/clock.h"
#include "engine/preprocess.h"

struct prepare {
    const struct engine_model *model;
    struct request *request;
    const struct bound_input *input;
    struct prepared *out;
    struct scratch *scratch;
    struct tensor *inputs; /* the model's, to be filled */
};

MUST_CHECK enum status preprocess_images(const struct prepare *at);
MUST_CHECK enum status preprocess_texts(const struct prepare *at);

/* The request's input of that name; NULL: none. */
const struct tensor *preprocess_input(const struct request *request, const char *name);
/* Adds the time since *since_ns to the step, and moves it on. */
void preprocess_step(struct request *request, enum step step, uint64_t *since_ns);

/* Walks a BYTES tensor that check_bytes has passed. */
static inline struct view preprocess_next(const char **at) {
    uint32_t size;
    memcpy(&size, *at, 4);
    const struct view element = {*at + 4, size};
    *at += 4 + (size_t)size;
    return element;
}

#endif

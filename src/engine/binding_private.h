/* What binding.c and binding_outputs.c share. */
#ifndef TELLTALE_ENGINE_BINDING_PRIVATE_H
#define TELLTALE_ENGINE_BINDING_PRIVATE_H

#include "engine/binding.h"

struct binder {
    struct binding *binding;
    const struct model *model;
    const struct signature *signature;
    const struct binding_files *files;
    struct arena *arena;
    struct err *err;
};

/* ST_INVALID, with the pipeline file and line (or the model) before the sentence. */
enum status binding_refuse(const struct binder *binder, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The pipeline's file, line and key before the text of a failure to read a file that it names;
 * returns status. */
enum status binding_file_failed(const struct binder *binder, unsigned line, const char *key,
                                enum status status);
enum status binding_no_memory(const struct binder *binder);
/* "scores FP32 [1,4420,2], boxes ..." into out; returns out. */
const char *binding_names(const struct io_spec *specs, uint32_t count, char *out, size_t size);
int binding_find(const struct io_spec *specs, uint32_t count, const char *name); /* NOT_FED: none */

MUST_CHECK enum status binding_output(const struct binder *binder, struct bound_output *output);
/* What a bound output is shown as; returns how many, at most MADE_MAX. */
uint32_t binding_made(const struct bound_output *output, const struct signature *signature,
                      struct io_spec out[MADE_MAX]);
/* The key that names the made output of that index: "boxes". */
const char *binding_name_key(const struct bound_output *output, uint32_t index);

#endif

/* A model's configuration: config.pbtxt, or the same as JSON from a load request, to the struct
 * that the compiler made of model_config.proto, with what can be said of it without the model.
 *
 *     struct model_config config;
 *     status = model_config_read(path, &arena, &config, &err);     ST_NOT_FOUND: no such file
 *     if (status == ST_NOT_FOUND) status = model_config_empty(&arena, &config, &err);
 *     status = model_config_check(&config, directory_name, &err);
 *     for (i < config.warning_count) log(config.warnings[i].text);
 *     ... complete config.message from the model ...
 *
 * Any thread, the arena's owner; nothing is global. Which fields do what: config_fields.c. */
#ifndef TELLTALE_SCHEMA_MODEL_CONFIG_H
#define TELLTALE_SCHEMA_MODEL_CONFIG_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"
#include "base/view.h"
#include "schema/model_config.pb-c.h"
#include <stdint.h>

struct config_warning {
    const char *path; /* "instance_group.gpus" */
    uint32_t line;    /* where the field is first given; 0: not known (JSON) */
    const char *text; /* the whole sentence: "a/config.pbtxt: line 7: ... has no effect: ..." */
};

/* Where a field stands in the file. */
struct config_place {
    const char *path;
    uint32_t line;
};

/* All of it lives in the arena that it was read into. The message may be changed there
 * (message_put()), as completing it from the model does. */
struct model_config {
    Inference__ModelConfig *message;
    const char *origin; /* how faults call it: the file's path, "the configuration" */
    const struct config_warning *warnings;
    size_t warning_count;
    struct config_place *places; /* in the order of the file; see model_config_line() */
    size_t place_count;
};

/* A configuration that says nothing. */
MUST_CHECK enum status model_config_empty(struct arena *arena, struct model_config *out,
                                          struct err *err);
/* ST_NOT_FOUND: there is no such file, err is set. ST_UNSUPPORTED: it uses a field whose row is
 * CONFIG_REFUSED. Every fault names the file and the line. out is untouched on failure. */
MUST_CHECK enum status model_config_read(const char *path, struct arena *arena,
                                         struct model_config *out, struct err *err);
/* The same of a text, or of JSON as the load request's parameter "config" has it. origin is
 * copied. */
MUST_CHECK enum status model_config_parse(struct view text, const char *origin,
                                          struct arena *arena, struct model_config *out,
                                          struct err *err);
MUST_CHECK enum status model_config_parse_json(struct view json, const char *origin,
                                               struct arena *arena, struct model_config *out,
                                               struct err *err);

/* Whether the configuration is whole and consistent as far as can be told without the model:
 * names, types, dims, reshapes, priorities, instances, versions, warm-up, ensembles. directory: the
 * name of the model's directory, which `name` must be where it is given. Call it again after
 * completing the message: what depends on max_batch_size is only checked where that is above 0.
 * Data types and dims may be left out (TYPE_INVALID, none), but not of an ensemble. */
MUST_CHECK enum status model_config_check(const struct model_config *config, const char *directory,
                                          struct err *err);

/* The line of the field at path, of its index-th occurrence in the file ("input", 2: the third
 * input; "input.dims", 0: the first that is given in any input). 0: not known. */
uint32_t model_config_line(const struct model_config *config, const char *path, size_t index);
/* A fault at that place: "models/a/config.pbtxt: line 7: " and the sentence. Returns status. */
enum status model_config_fault(const struct model_config *config, const char *path, size_t index,
                               enum status status, struct err *err, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* --- what the message says, pure --- */

/* False for TYPE_INVALID and numbers that are no type. */
bool model_config_dtype(Inference__DataType type, enum dtype *out);
Inference__DataType model_config_data_type(enum dtype dtype);

/* The versions to serve, ascending, of those there are (ascending): written to out, which has room
 * for count. No policy: the newest. NULL policy allowed. */
size_t model_config_versions(const Inference__ModelVersionPolicy *policy, const uint64_t *there,
                             size_t count, uint64_t *out);

/* The string value of a parameter, NULL where it is not given. */
const char *model_config_parameter(const Inference__ModelConfig *config, const char *key);

bool model_config_is_ensemble(const Inference__ModelConfig *config);

/* True for a path that stays below the directory it is joined to: relative, not empty, no "..". */
bool model_config_is_below(const char *path);

#endif

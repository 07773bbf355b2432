/* The two small documents beside the lines. Any thread. Invariant: a member that is missing or of
 * another kind leaves its field unknown. Read next: run_read.c. */
#include "diag/run_json.h"

#include "diag/run_line.h"
#include "report/json_file.h"

#include <stdio.h>
#include <string.h>

static uint64_t number_of(const json_t *object, const char *name) {
    const json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static void text_of(const json_t *object, const char *name, char *out, size_t out_size) {
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(out, out_size, "%s", text == NULL ? "" : text);
}

/* The member of an array whose `key` is name; the first where name is "". */
static const json_t *find_named(const json_t *array, const char *key, const char *name) {
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item) {
        const char *text = json_string_value(json_object_get(item, key));
        if (*name == 0 || (text != NULL && strcmp(text, name) == 0)) return item;
    }
    return NULL;
}

void run_set_summary(struct run *run, const json_t *document) {
    struct run_summary *summary = &run->summary;
    const json_t *sampling = json_object_get(document, "sampling");
    summary->is_known = json_is_object(document);
    summary->is_complete = json_is_true(json_object_get(json_object_get(document, "written"),
                                                        "complete"));
    summary->is_all = json_is_true(json_object_get(sampling, "all"));
    summary->slow_share = json_number_value(json_object_get(sampling, "slow_share"));
    summary->dropped = number_of(document, "dropped");
    const json_t *model = find_named(json_object_get(document, "models"), "model", run->model);
    summary->requests = number_of(model, "requests");
    summary->ok = number_of(json_object_get(model, "by_status"), "ok");
    summary->out_of_order = number_of(model, "stamps_out_of_order");
}

void run_set_config(struct run *run, const json_t *document) {
    struct run_config *config = &run->config;
    config->is_known = json_is_object(document);
    text_of(document, "queue", config->queue, sizeof config->queue);
    text_of(document, "policy", config->policy, sizeof config->policy);
    text_of(document, "preprocess", config->preprocess, sizeof config->preprocess);
    text_of(document, "simulate", config->simulate, sizeof config->simulate);
    config->max_batch = number_of(document, "max_batch");
    config->max_delay_us = number_of(document, "max_delay_us");
    config->instances = number_of(document, "instances");
    config->intra_op_threads = number_of(document, "intra_op_threads");
    config->workers = number_of(document, "workers");
    config->processors = number_of(document, "processors");
    const json_t *model = find_named(json_object_get(document, "models"), "name", run->model);
    text_of(model, "backend", config->backend, sizeof config->backend);
    text_of(model, "sha256", config->sha256, sizeof config->sha256);
    if (model != NULL && number_of(model, "max_batch") > 0)
        config->max_batch = number_of(model, "max_batch");
}

static enum status read_document(const char *directory, const char *name, json_t **out,
                                 struct err *err) {
    char path[RUN_PATH_SIZE];
    const enum status status = run_path(directory, name, path, err);
    return status == ST_OK ? json_file_read(path, out, err) : status;
}

enum status run_read_summary(const char *directory, struct run *run, struct err *err) {
    json_t *document = NULL;
    const enum status status = read_document(directory, "summary.json", &document, err);
    if (status == ST_OK) run_set_summary(run, document);
    json_decref(document);
    return status == ST_NOT_FOUND ? ST_OK : status;
}

enum status run_read_config(const char *directory, struct run *run, struct err *err) {
    json_t *document = NULL;
    const enum status status = read_document(directory, "config.json", &document, err);
    if (status == ST_OK) run_set_config(run, document);
    json_decref(document);
    return status == ST_NOT_FOUND ? ST_OK : status;
}

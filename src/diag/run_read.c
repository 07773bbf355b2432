/* Files into a run. The trace's lines have some forty members in a fixed order, and there can be
 * a million lines: hence tables of fields, each looked for first where it was last time.
 * Any thread. Invariant: a line that is broken ends the reading with its number, unless it is
 * the last one and was cut. Read next: jsonl.c (members), run_client.c (the client's side). */
#include "diag/run_read.h"

#include "diag/jsonl.h"
#include "diag/run_client.h"
#include "diag/run_json.h"
#include "diag/run_line.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request_line {
    struct run_request request;
    struct jsonl_value id, model, status, sampled, holder, reason, steps;
    uint64_t stage_ns[STAGE_COUNT];
    float share;
    bool is_uniform;
};

#define REQUEST(name, kind, member)                                                            \
    {name, kind, false, offsetof(struct request_line, request.member)}
static const struct line_field REQUEST_FIELDS[] = {
    {"id", LINE_VALUE, true, offsetof(struct request_line, id)},
    {"model", LINE_VALUE, true, offsetof(struct request_line, model)},
    {"status", LINE_VALUE, true, offsetof(struct request_line, status)},
    {"sampled", LINE_VALUE, true, offsetof(struct request_line, sampled)},
    {"uniform", LINE_BOOLEAN, false, offsetof(struct request_line, is_uniform)},
    {"uniform_share", LINE_FLOAT, false, offsetof(struct request_line, share)},
    {"start_ns", LINE_U64, true, offsetof(struct request_line, request.start_ns)},
    {"total_ns", LINE_U64, true, offsetof(struct request_line, request.total_ns)},
#define X(name, text, help)                                                                    \
    {text "_ns", LINE_U64, true, offsetof(struct request_line, stage_ns[STAGE_##name])},
    STAGE_TABLE(X)
#undef X
    {"steps", LINE_NESTED, false, offsetof(struct request_line, steps)},
    REQUEST("lock_wait_ns", LINE_FLOAT, lock_wait_ns),
    {"lock_holder", LINE_VALUE, false, offsetof(struct request_line, holder)},
    REQUEST("batch", LINE_U64, batch),
    REQUEST("batch_size", LINE_U32, batch_size),
    REQUEST("rows", LINE_U32, rows),
    {"reason", LINE_VALUE, false, offsetof(struct request_line, reason)},
    REQUEST("instance", LINE_U8, instance),
    REQUEST("tokens", LINE_U32, tokens),
    REQUEST("padded", LINE_U32, padded),
    REQUEST("bytes_in", LINE_U32, bytes_in),
    REQUEST("bytes_out", LINE_U32, bytes_out),
    REQUEST("pictures", LINE_U32, pictures),
    REQUEST("scalable_jpegs", LINE_U32, scalable_jpegs),
    REQUEST("enqueued_ns", LINE_U64, enqueued_ns),
    REQUEST("instance_free_ns", LINE_U64, free_ns),
    REQUEST("batch_ready_ns", LINE_U64, ready_ns),
    REQUEST("taken_ns", LINE_U64, taken_ns),
};

struct batch_line {
    struct run_batch batch;
    struct jsonl_value model, reason;
};

#define BATCH(name, kind, is_needed, member)                                                   \
    {name, kind, is_needed, offsetof(struct batch_line, batch.member)}
static const struct line_field BATCH_FIELDS[] = {
    BATCH("batch", LINE_U64, true, batch),
    {"model", LINE_VALUE, true, offsetof(struct batch_line, model)},
    BATCH("free_ns", LINE_U64, true, free_ns),
    BATCH("ready_ns", LINE_U64, true, ready_ns),
    BATCH("taken_ns", LINE_U64, true, taken_ns),
    BATCH("inputs_ready_ns", LINE_U64, true, inputs_ready_ns),
    BATCH("executed_ns", LINE_U64, true, executed_ns),
    BATCH("outputs_ready_ns", LINE_U64, true, outputs_ready_ns),
    BATCH("inline_preprocess_ns", LINE_U64, false, inline_ns),
    BATCH("real_elements", LINE_U64, false, real_elements),
    BATCH("padded_elements", LINE_U64, false, padded_elements),
    BATCH("cpu_ns", LINE_U64, false, cpu_ns),
    BATCH("run_delay_ns", LINE_U64, false, run_delay_ns),
    BATCH("requests", LINE_U32, true, requests),
    BATCH("rows", LINE_U32, false, rows),
    BATCH("max_batch", LINE_U32, false, max_batch),
    BATCH("waiting", LINE_U32, false, waiting),
    BATCH("instance", LINE_U8, false, instance),
    {"reason", LINE_VALUE, false, offsetof(struct batch_line, reason)},
    BATCH("failed", LINE_BOOLEAN, false, failed),
    BATCH("simulated", LINE_BOOLEAN, false, simulated),
};

static uint8_t reason_of(const struct jsonl_value *value) {
    for (unsigned i = 0; i < REASON_COUNT; i++)
        if (view_is(value->text, reason_name((enum reason)i))) return (uint8_t)i;
    return REASON_COUNT;
}

static uint8_t sampled_of(const struct jsonl_value *value) {
    static const char *const NAMES[SAMPLED_COUNT] = {
#define X(name, text) [SAMPLED_##name] = text,
        SAMPLED_TABLE(X)
#undef X
    };
    for (unsigned i = 0; i < SAMPLED_COUNT; i++)
        if (NAMES[i] != NULL && view_is(value->text, NAMES[i])) return (uint8_t)i;
    return SAMPLED_BATCH;
}

static uint8_t holder_of(const struct jsonl_value *value) {
    if (value->text.size == 0) return HOLDER_NONE;
    for (unsigned i = 0; i < HOLDER_COUNT; i++)
        if (view_is(value->text, holder_name((enum holder)i))) return (uint8_t)i;
    return HOLDER_OTHER;
}

/* Index of the model's name; RUN_MODELS_MAX: too many. */
static uint32_t model_of(struct run *run, const struct jsonl_value *value) {
    char name[RUN_TEXT];
    jsonl_text(value, name, sizeof name);
    for (uint32_t i = 0; i < run->model_count; i++)
        if (strcmp(run->models[i], name) == 0) return i;
    if (run->model_count == RUN_MODELS_MAX) return RUN_MODELS_MAX;
    memcpy(run->models[run->model_count], name, sizeof name);
    return run->model_count++;
}

static enum status too_many_models(struct err *err) {
    return err_set(err, ST_TOO_LARGE, "more than %d models in one trace", RUN_MODELS_MAX);
}

/* Integers until here, floats from here on. */
static void set_parts(struct run *run, struct request_line *line) {
    struct run_request *request = &line->request;
    uint64_t sum = 0;
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        sum += line->stage_ns[i];
        request->part_ns[i] = (float)line->stage_ns[i];
    }
    const double residual = fabs((double)request->total_ns - (double)sum);
    if (residual > run->residual_max_ns) run->residual_max_ns = residual;
    request->whole_ns = (double)request->total_ns;
    if (line->is_uniform && line->share > 0) request->weight = 1 / line->share;
}

/* Steps that this program does not know are passed over, as unknown members are. */
static enum status set_steps(struct request_line *line, struct err *err) {
    struct jsonl steps;
    struct view key;
    struct jsonl_value value;
    if (line->steps.text.size == 0) return ST_OK; /* written before there were steps */
    jsonl_begin(&steps, line->steps.text);
    while (jsonl_next(&steps, &key, &value)) {
        if (value.kind != JSONL_NUMBER || !value.is_integer)
            return err_set(err, ST_INVALID, "steps: %.*s is not an integer, or too large",
                           (int)(key.size < 40 ? key.size : 40), key.data);
        for (unsigned i = 0; i < STEP_COUNT; i++)
            if (view_is(key, step_name((enum step)i)))
                line->request.step_ns[i] = (float)value.integer;
    }
    return steps.problem == NULL ? ST_OK : err_set(err, ST_INVALID, "steps: %s", steps.problem);
}

/* "w<step>-<number>": what the bench sends before it measures (docs/bench.md). */
static bool is_warm_up(const char *id) {
    if (id[0] != 'w') return false;
    const size_t step = strspn(id + 1, "0123456789");
    if (step == 0 || id[1 + step] != '-') return false;
    const char *number = id + step + 2;
    return *number != 0 && strspn(number, "0123456789") == strlen(number);
}

enum status run_read_request(struct run *run, struct view text, struct err *err) {
    struct request_line line = {0};
    const enum status status =
        line_read(REQUEST_FIELDS, sizeof REQUEST_FIELDS / sizeof *REQUEST_FIELDS, text, &line, err);
    if (status != ST_OK) return status;
    const uint32_t model = model_of(run, &line.model);
    if (model == RUN_MODELS_MAX) return too_many_models(err);
    char id[RUN_TEXT];
    const size_t id_size = jsonl_text(&line.id, id, sizeof id);
    if (is_warm_up(id)) {
        run->warm_up++;
        return ST_OK;
    }
    struct run_request *request = &line.request;
    const enum status steps = set_steps(&line, err);
    if (steps != ST_OK) return steps;
    set_parts(run, &line);
    request->model = (uint16_t)model;
    request->is_ok = view_is(line.status.text, "ok");
    request->sampled = sampled_of(&line.sampled);
    request->holder = holder_of(&line.holder);
    request->reason = reason_of(&line.reason);
    request->batch_index = NO_BATCH;
    if (run->ids.size > UINT32_MAX - sizeof id)
        return err_set(err, ST_TOO_LARGE, "more requests than can be looked at at once");
    request->id = (uint32_t)run->ids.size;
    buf_append(&run->ids, id, id_size + 1);
    run->model_requests[model]++;
    run->lines++;
    if (!run_add_request(run, request) || run->ids.failed)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu requests", run->count);
    return ST_OK;
}

enum status run_read_batch(struct run *run, struct view text, struct err *err) {
    struct batch_line line = {0};
    const enum status status =
        line_read(BATCH_FIELDS, sizeof BATCH_FIELDS / sizeof *BATCH_FIELDS, text, &line, err);
    if (status != ST_OK) return status;
    const uint32_t model = model_of(run, &line.model);
    if (model == RUN_MODELS_MAX) return too_many_models(err);
    line.batch.model = (uint16_t)model;
    line.batch.reason = reason_of(&line.reason);
    if (!run_add_batch(run, &line.batch))
        return err_set(err, ST_NO_MEMORY, "no memory for %zu batches", run->batch_count);
    return ST_OK;
}

static enum status read_file(const char *directory, const char *name,
                             enum status (*read_line)(struct run *, struct view, struct err *),
                             struct run *run, struct err *err) {
    char path[RUN_PATH_SIZE];
    const enum status status = run_path(directory, name, path, err);
    return status == ST_OK ? line_read_file(path, read_line, run, err) : status;
}

static enum status read_client(const struct run_source *source, struct run *run, struct err *err) {
    struct run_client *client = NULL;
    const char *directory = source->client != NULL ? source->client : source->directory;
    char path[RUN_PATH_SIZE];
    run->step = source->step;
    enum status status = run_path(directory, "client.jsonl", path, err);
    if (status == ST_OK) status = run_client_create(run, &client, err);
    if (status == ST_OK) status = run_client_read(client, path, err);
    run_client_free(client);
    if (status == ST_NOT_FOUND && source->client == NULL) return ST_OK;
    if (status == ST_OK) run_keep_step(run);
    return status;
}

enum status run_read(const struct run_source *source, struct run *out, struct err *err) {
    run_init(out);
    enum status status = read_file(source->directory, "requests.jsonl", run_read_request, out, err);
    if (status == ST_NOT_FOUND)
        return err_set(err, ST_NOT_FOUND,
                       "%s holds no requests.jsonl: record a run with telltale serve --trace DIR, "
                       "or telltale bench --out DIR in process", source->directory);
    if (status != ST_OK) return status;
    status = read_file(source->directory, "batches.jsonl", run_read_batch, out, err);
    if (status != ST_OK && status != ST_NOT_FOUND) return status;
    status = read_client(source, out, err);
    if (status == ST_OK) status = run_finish(out, source->model, err);
    if (status == ST_OK) status = run_read_summary(source->directory, out, err);
    if (status == ST_OK) status = run_read_config(source->directory, out, err);
    return status;
}

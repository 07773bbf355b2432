/* Models that come and go, over gRPC. Loop thread only, but for on_done, which the engine's loaders
 * call.
 *
 * A load goes on when the client that asked for it has left.
 * Read next: engine/control.h, grpc_control.h. */
#include "engine/control.h"
#include "serve/grpc_control.h"
#include "serve/grpc_methods.h"

typedef Inference__RepositoryIndexResponse Index;
typedef Inference__RepositoryIndexResponse__ModelIndex Entry;
typedef Inference__RepositoryModelLoadRequest__ParametersEntry LoadEntry;
typedef Inference__RepositoryModelUnloadRequest__ParametersEntry UnloadEntry;

static enum status check_repository(struct grpc_unary *call, const char *name) {
    if (name[0] == '\0' || engine_has_repository(call->grpc->server->engine, view_of(name)))
        return ST_OK;
    return err_set(call->err, ST_NOT_FOUND, "there is no repository \"%.100s\"", name);
}

static enum status list_index(struct grpc_unary *call, const struct model_index *index) {
    Index *response = grpc_take(call, sizeof *response);
    Entry **list = arena_array(call->arena, index->count, sizeof *list);
    Entry *entries = arena_array(call->arena, index->count, sizeof *entries);
    if (!response || !list || !entries)
        return grpc_no_memory(call);
    inference__repository_index_response__init(response);
    for (size_t i = 0; i < index->count; i++) {
        const struct model_index_entry *item = &index->items[i];
        const bool is_unknown = item->state == MODEL_UNKNOWN;
        inference__repository_index_response__model_index__init(&entries[i]);
        entries[i].name = arena_copy(call->arena, view_of(item->name));
        entries[i].version = arena_copy(call->arena, view_of(item->version));
        entries[i].state = (char *)(uintptr_t)(is_unknown ? "" : model_state_name(item->state));
        entries[i].reason = arena_copy(call->arena, view_of(item->reason));
        if (!entries[i].name || !entries[i].version || !entries[i].reason)
            return grpc_no_memory(call);
        list[i] = &entries[i];
    }
    response->models = list;
    response->n_models = index->count;
    call->response = &response->base;
    return ST_OK;
}

enum status grpc_repository_index(struct grpc_unary *call) {
    const Inference__RepositoryIndexRequest *request = call->request;
    struct model_index index;
    enum status status = check_repository(call, request->repository_name);
    if (status != ST_OK)
        return status;
    status = engine_index(call->grpc->server->engine, request->ready, &index, call->err);
    if (status == ST_OK)
        status = list_index(call, &index);
    engine_index_done(&index);
    return status;
}

/* ---- load and unload ---- */

struct changing {
    struct grpc_control control; /* first */
    bool is_load;
};

/* A loader's thread. */
static void on_done(void *ctx, enum status status, const struct err *err) {
    struct changing *change = ctx;
    change->control.status = status;
    change->control.err = *err;
    grpc_control_done(&change->control);
}

static void finish(struct grpc_control *control) {
    static const Inference__RepositoryModelLoadResponse LOADED =
        INFERENCE__REPOSITORY_MODEL_LOAD_RESPONSE__INIT;
    static const Inference__RepositoryModelUnloadResponse UNLOADED =
        INFERENCE__REPOSITORY_MODEL_UNLOAD_RESPONSE__INIT;
    const struct changing *change = (const struct changing *)control;
    struct grpc_stream *stream = control->stream;
    if (stream && !stream->is_done && control->status == ST_OK) {
        grpc_stream_reply(stream, change->is_load ? &LOADED.base : &UNLOADED.base);
        grpc_stream_finish(stream, NULL, 0);
    } else if (stream) {
        grpc_stream_fail(stream, control->status, control->err.text);
    }
    grpc_control_free(control);
}

static struct changing *begin(struct grpc_unary *call, bool is_load) {
    struct changing *change =
        (struct changing *)grpc_control_create(call->stream, sizeof *change, finish);
    if (change)
        change->is_load = is_load;
    return change;
}

static enum status take_file(struct grpc_unary *call, const char *key,
                             const Inference__ModelRepositoryParameter *value,
                             struct override_file *out) {
    if (value->parameter_choice_case !=
        INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_BYTES_PARAM)
        return err_set(call->err, ST_INVALID, "parameters: %.100s must be bytes", key);
    *out = (struct override_file){.path = key + strlen("file:"),
                                  .data = value->bytes_param.data,
                                  .size = value->bytes_param.len};
    return ST_OK;
}

static enum status take_overrides(struct grpc_unary *call, LoadEntry **entries, size_t count,
                                  struct model_overrides *out) {
    struct override_file *files = arena_array(call->arena, count, sizeof *files);
    if (!files)
        return grpc_no_memory(call);
    for (size_t i = 0; i < count; i++) {
        const char *key = entries[i]->key;
        const Inference__ModelRepositoryParameter *value = entries[i]->value;
        if (!value)
            return err_set(call->err, ST_INVALID, "parameters: %.100s has no value", key);
        if (strcmp(key, "config") == 0) {
            if (value->parameter_choice_case !=
                INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_STRING_PARAM)
                return err_set(call->err, ST_INVALID, "parameters: config must be a string");
            out->config_json = value->string_param;
        } else if (strncmp(key, "file:", 5) == 0) {
            const enum status status = take_file(call, key, value, &files[out->file_count++]);
            if (status != ST_OK)
                return status;
        } else {
            return err_set(call->err, ST_INVALID, "parameters: \"%.100s\" is not known: config and "
                           "file:PATH are", key);
        }
    }
    out->files = files;
    return ST_OK;
}

enum status grpc_repository_load(struct grpc_unary *call) {
    const Inference__RepositoryModelLoadRequest *request = call->request;
    struct model_overrides overrides = {.config_json = NULL};
    enum status status = check_repository(call, request->repository_name);
    if (status == ST_OK)
        status = take_overrides(call, request->parameters, request->n_parameters, &overrides);
    struct changing *change = status == ST_OK ? begin(call, true) : NULL;
    if (status == ST_OK && !change)
        status = grpc_no_memory(call);
    if (status != ST_OK)
        return status;
    const bool has_any = overrides.config_json || overrides.file_count;
    status = engine_load(call->grpc->server->engine, view_of(request->model_name),
                         has_any ? &overrides : NULL, on_done, change, call->err);
    if (status != ST_OK)
        grpc_control_free(&change->control);
    return status;
}

static enum status takes_dependents(struct grpc_unary *call, UnloadEntry **entries, size_t count,
                                    bool *out) {
    for (size_t i = 0; i < count; i++) {
        const Inference__ModelRepositoryParameter *value = entries[i]->value;
        if (strcmp(entries[i]->key, "unload_dependents") != 0)
            continue;
        if (!value || value->parameter_choice_case !=
                          INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM)
            return err_set(call->err, ST_INVALID,
                           "parameters: unload_dependents must be true or false");
        *out = value->bool_param;
    }
    return ST_OK;
}

enum status grpc_repository_unload(struct grpc_unary *call) {
    const Inference__RepositoryModelUnloadRequest *request = call->request;
    bool with_dependents = false;
    enum status status = check_repository(call, request->repository_name);
    if (status == ST_OK)
        status = takes_dependents(call, request->parameters, request->n_parameters,
                                  &with_dependents);
    struct changing *change = status == ST_OK ? begin(call, false) : NULL;
    if (status == ST_OK && !change)
        status = grpc_no_memory(call);
    if (status != ST_OK)
        return status;
    status = engine_unload(call->grpc->server->engine, view_of(request->model_name),
                           with_dependents, on_done, change, call->err);
    if (status != ST_OK)
        grpc_control_free(&change->control);
    return status;
}

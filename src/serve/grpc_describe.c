/* What the server says of itself and its models over gRPC. Loop thread only.
 *
 * Invariant: as over HTTP (metadata.c): the same names, versions, shapes.
 * Read next: grpc_config.c. */
#include "serve/grpc_methods.h"
#include "serve/metadata.h"

/* protobuf-c's strings are not const; nobody writes to them. */
static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

enum status grpc_server_live(struct grpc_unary *call) {
    static const Inference__ServerLiveResponse LIVE = {
        PROTOBUF_C_MESSAGE_INIT(&inference__server_live_response__descriptor), 1};
    call->response = &LIVE.base;
    return ST_OK;
}

enum status grpc_server_ready(struct grpc_unary *call) {
    static const Inference__ServerReadyResponse READY = {
        PROTOBUF_C_MESSAGE_INIT(&inference__server_ready_response__descriptor), 1};
    static const Inference__ServerReadyResponse NOT_READY = {
        PROTOBUF_C_MESSAGE_INIT(&inference__server_ready_response__descriptor), 0};
    call->response = call->grpc->server->is_draining ? &NOT_READY.base : &READY.base;
    return ST_OK;
}

enum status grpc_model_ready(struct grpc_unary *call) {
    const Inference__ModelReadyRequest *request = call->request;
    Inference__ModelReadyResponse *response = grpc_take(call, sizeof *response);
    const struct served_model *served = NULL;
    if (!response)
        return grpc_no_memory(call);
    if (request->name[0] == '\0')
        return err_set(call->err, ST_INVALID, "name is missing");
    inference__model_ready_response__init(response);
    served = engine_find(call->grpc->server->engine, view_of(request->name),
                         view_of(request->version));
    response->ready = served != NULL && !call->grpc->server->is_draining;
    engine_release(served);
    call->response = &response->base;
    return ST_OK;
}

enum status grpc_server_metadata(struct grpc_unary *call) {
    static const char *const EXTENSIONS[] = {"classification",        "schedule_policy",
                                             "model_configuration",   "system_shared_memory",
                                             "binary_tensor_data",    "parameters",
                                             "statistics"};
    enum { COUNT = sizeof EXTENSIONS / sizeof EXTENSIONS[0] };
    Inference__ServerMetadataResponse *response = grpc_take(call, sizeof *response);
    char **extensions = arena_array(call->arena, COUNT, sizeof *extensions);
    if (!response || !extensions)
        return grpc_no_memory(call);
    for (int i = 0; i < COUNT; i++)
        extensions[i] = text_of(EXTENSIONS[i]);
    inference__server_metadata_response__init(response);
    response->name = text_of("telltale");
    response->version = text_of(TELLTALE_VERSION);
    response->extensions = extensions;
    response->n_extensions = COUNT;
    call->response = &response->base;
    return ST_OK;
}

typedef Inference__ModelMetadataResponse__TensorMetadata TensorMetadata;

/* A repeated field of the specs; NULL: no memory. */
static TensorMetadata **tensors_of(struct grpc_unary *call, const struct io_spec *specs,
                                   uint32_t count) {
    TensorMetadata **list = arena_array(call->arena, count, sizeof *list);
    TensorMetadata *items = arena_array(call->arena, count, sizeof *items);
    if (!list || !items)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        inference__model_metadata_response__tensor_metadata__init(&items[i]);
        items[i].name = arena_copy(call->arena, view_of(specs[i].name));
        items[i].datatype = text_of(dtype_name(specs[i].dtype));
        items[i].shape = arena_array(call->arena, specs[i].rank, sizeof *items[i].shape);
        if (!items[i].name || !items[i].shape)
            return NULL;
        items[i].n_shape = specs[i].rank;
        for (uint32_t d = 0; d < specs[i].rank; d++)
            items[i].shape[d] = specs[i].shape[d];
        list[i] = &items[i];
    }
    return list;
}

static enum status describe(struct grpc_unary *call, const struct served_model *served) {
    Inference__ModelMetadataResponse *response = grpc_take(call, sizeof *response);
    char **versions = grpc_take(call, sizeof *versions);
    if (!response || !versions)
        return grpc_no_memory(call);
    inference__model_metadata_response__init(response);
    response->name = arena_copy(call->arena, view_of(served->model->name));
    versions[0] = arena_copy(call->arena, view_of(served->model->version));
    response->versions = versions;
    response->n_versions = 1;
    response->platform = text_of(metadata_platform(served));
    response->inputs = tensors_of(call, served->shown.inputs, served->shown.input_count);
    response->n_inputs = served->shown.input_count;
    response->outputs = tensors_of(call, served->shown.outputs, served->shown.output_count);
    response->n_outputs = served->shown.output_count;
    if (!response->name || !versions[0] || !response->inputs || !response->outputs)
        return grpc_no_memory(call);
    call->response = &response->base;
    return ST_OK;
}

enum status grpc_model_metadata(struct grpc_unary *call) {
    const Inference__ModelMetadataRequest *request = call->request;
    const struct served_model *served = NULL;
    enum status status = grpc_find_model(call->grpc, view_of(request->name),
                                         view_of(request->version), &served, call->err);
    if (status == ST_OK)
        status = describe(call, served);
    engine_release(served);
    return status;
}

/* Shared memory over gRPC: the same regions as over HTTP (shared_memory.h). Loop thread only.
 *
 * There is no CUDA shared memory here: its status is empty, its registration an error. */
#include "serve/grpc_methods.h"

enum status grpc_shared_register(struct grpc_unary *call) {
    static const Inference__SystemSharedMemoryRegisterResponse DONE =
        INFERENCE__SYSTEM_SHARED_MEMORY_REGISTER_RESPONSE__INIT;
    const Inference__SystemSharedMemoryRegisterRequest *request = call->request;
    call->response = &DONE.base;
    return shared_memory_register(call->grpc->server->shared_memory, view_of(request->name),
                                  view_of(request->key), request->offset, request->byte_size,
                                  call->err);
}

enum status grpc_shared_unregister(struct grpc_unary *call) {
    static const Inference__SystemSharedMemoryUnregisterResponse DONE =
        INFERENCE__SYSTEM_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    const Inference__SystemSharedMemoryUnregisterRequest *request = call->request;
    shared_memory_unregister(call->grpc->server->shared_memory, view_of(request->name));
    call->response = &DONE.base;
    return ST_OK;
}

typedef Inference__SystemSharedMemoryStatusResponse Status;
typedef Inference__SystemSharedMemoryStatusResponse__RegionStatus Region;
typedef Inference__SystemSharedMemoryStatusResponse__RegionsEntry Entry;

static enum status list_regions(struct grpc_unary *call, Status *response,
                                const struct shared_region *regions, size_t count) {
    Entry **list = arena_array(call->arena, count, sizeof *list);
    Entry *entries = arena_array(call->arena, count, sizeof *entries);
    Region *values = arena_array(call->arena, count, sizeof *values);
    if (!list || !entries || !values)
        return grpc_no_memory(call);
    for (size_t i = 0; i < count; i++) {
        inference__system_shared_memory_status_response__regions_entry__init(&entries[i]);
        inference__system_shared_memory_status_response__region_status__init(&values[i]);
        values[i].name = arena_copy(call->arena, regions[i].name);
        values[i].key = arena_copy(call->arena, regions[i].key);
        values[i].offset = regions[i].offset;
        values[i].byte_size = regions[i].byte_size;
        if (!values[i].name || !values[i].key)
            return grpc_no_memory(call);
        entries[i].key = values[i].name;
        entries[i].value = &values[i];
        list[i] = &entries[i];
    }
    response->regions = list;
    response->n_regions = count;
    call->response = &response->base;
    return ST_OK;
}

enum status grpc_shared_status(struct grpc_unary *call) {
    const Inference__SystemSharedMemoryStatusRequest *request = call->request;
    Status *response = grpc_take(call, sizeof *response);
    struct shared_region *regions = NULL;
    size_t count = 0;
    if (!response)
        return grpc_no_memory(call);
    inference__system_shared_memory_status_response__init(response);
    const enum status status =
        shared_memory_list(call->grpc->server->shared_memory, view_of(request->name), call->arena,
                           &regions, &count, call->err);
    return status == ST_OK ? list_regions(call, response, regions, count) : status;
}

enum status grpc_cuda_status(struct grpc_unary *call) {
    static const Inference__CudaSharedMemoryStatusResponse NONE =
        INFERENCE__CUDA_SHARED_MEMORY_STATUS_RESPONSE__INIT;
    const Inference__CudaSharedMemoryStatusRequest *request = call->request;
    call->response = &NONE.base;
    if (request->name[0] == '\0')
        return ST_OK;
    return err_set(call->err, ST_NOT_FOUND, "no region \"%.100s\" of CUDA shared memory is "
                   "registered", request->name);
}

enum status grpc_cuda_register(struct grpc_unary *call) {
    return err_set(call->err, ST_UNSUPPORTED, "CUDA shared memory is not supported: send the "
                   "tensors in the message or in system shared memory");
}

enum status grpc_cuda_unregister(struct grpc_unary *call) {
    static const Inference__CudaSharedMemoryUnregisterResponse DONE =
        INFERENCE__CUDA_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    call->response = &DONE.base; /* forgetting what is not there is no fault */
    return ST_OK;
}

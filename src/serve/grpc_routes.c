/* The table of methods. Loop thread only.
 *
 * Read next: grpc_describe.c, grpc_infer.c. */
#include "serve/grpc_methods.h"

#define INFERENCE(name) "/inference.GRPCInferenceService/" name

static const struct grpc_method METHODS[] = {
    /* the frequent ones first */
    {INFERENCE("ModelInfer"), GRPC_INFER, NULL, NULL},
    {INFERENCE("ModelStreamInfer"), GRPC_STREAM_INFER, NULL, NULL},
    {INFERENCE("ServerLive"), GRPC_UNARY, &inference__server_live_request__descriptor,
     grpc_server_live},
    {INFERENCE("ServerReady"), GRPC_UNARY, &inference__server_ready_request__descriptor,
     grpc_server_ready},
    {INFERENCE("ModelReady"), GRPC_UNARY, &inference__model_ready_request__descriptor,
     grpc_model_ready},
    {INFERENCE("ServerMetadata"), GRPC_UNARY, &inference__server_metadata_request__descriptor,
     grpc_server_metadata},
    {INFERENCE("ModelMetadata"), GRPC_UNARY, &inference__model_metadata_request__descriptor,
     grpc_model_metadata},
    {INFERENCE("ModelConfig"), GRPC_UNARY, &inference__model_config_request__descriptor,
     grpc_model_config},
    {INFERENCE("ModelStatistics"), GRPC_UNARY, &inference__model_statistics_request__descriptor,
     grpc_model_statistics},
    {INFERENCE("RepositoryIndex"), GRPC_UNARY, &inference__repository_index_request__descriptor,
     grpc_repository_index},
    {INFERENCE("RepositoryModelLoad"), GRPC_UNARY_LATER,
     &inference__repository_model_load_request__descriptor, grpc_repository_load},
    {INFERENCE("RepositoryModelUnload"), GRPC_UNARY_LATER,
     &inference__repository_model_unload_request__descriptor, grpc_repository_unload},
    {INFERENCE("SystemSharedMemoryStatus"), GRPC_UNARY,
     &inference__system_shared_memory_status_request__descriptor, grpc_shared_status},
    {INFERENCE("SystemSharedMemoryRegister"), GRPC_UNARY,
     &inference__system_shared_memory_register_request__descriptor, grpc_shared_register},
    {INFERENCE("SystemSharedMemoryUnregister"), GRPC_UNARY,
     &inference__system_shared_memory_unregister_request__descriptor, grpc_shared_unregister},
    {INFERENCE("CudaSharedMemoryStatus"), GRPC_UNARY,
     &inference__cuda_shared_memory_status_request__descriptor, grpc_cuda_status},
    {INFERENCE("CudaSharedMemoryRegister"), GRPC_UNARY,
     &inference__cuda_shared_memory_register_request__descriptor, grpc_cuda_register},
    {INFERENCE("CudaSharedMemoryUnregister"), GRPC_UNARY,
     &inference__cuda_shared_memory_unregister_request__descriptor, grpc_cuda_unregister},
    {INFERENCE("TraceSetting"), GRPC_UNARY, &inference__trace_setting_request__descriptor,
     grpc_trace_setting},
    {INFERENCE("LogSettings"), GRPC_UNARY, &inference__log_settings_request__descriptor,
     grpc_log_settings},
    {"/grpc.health.v1.Health/Check", GRPC_UNARY,
     &grpc__health__v1__health_check_request__descriptor, grpc_health_check},
    {"/grpc.health.v1.Health/Watch", GRPC_WATCH,
     &grpc__health__v1__health_check_request__descriptor, grpc_health_watch},
};

const struct grpc_method *grpc_method_find(struct view path) {
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++)
        if (view_is(path, METHODS[i].path))
            return &METHODS[i];
    return NULL;
}

enum status grpc_no_memory(struct grpc_unary *call) {
    return err_set(call->err, ST_NO_MEMORY, "no memory for the answer");
}

void *grpc_take(struct grpc_unary *call, size_t size) { return arena_zalloc(call->arena, size); }

enum status grpc_find_model(struct grpc_server *grpc, struct view name, struct view version,
                            const struct served_model **out, struct err *err) {
    struct engine *engine = grpc->server->engine;
    const struct view any = {.data = "", .size = 0};
    const int shown = (int)(name.size < 200 ? name.size : 200);
    *out = engine_find(engine, name, version);
    if (*out)
        return ST_OK;
    const struct served_model *other = version.size ? engine_find(engine, name, any) : NULL;
    engine_release(other);
    if (!other)
        return err_set(err, ST_NOT_FOUND, "Request for unknown model: no model \"%.*s\" is served", shown, name.data);
    return err_set(err, ST_NOT_FOUND, "model %.*s has no version \"%.*s\"", shown, name.data,
                   (int)(version.size < 40 ? version.size : 40), version.data);
}

/* A model's configuration and statistics over gRPC. Loop thread only.
 *
 * Invariant: the numbers are those of GET /v2/models/stats (statistics.c).
 * Read next: statistics.h. */
#include "serve/grpc_methods.h"
#include "serve/metadata.h"
#include "serve/statistics.h"

static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

/* ---- configuration ---- */

static Inference__DataType type_of(enum dtype dtype) {
    static const Inference__DataType TYPES[DTYPE_COUNT] = {
        [DTYPE_BOOL] = INFERENCE__DATA_TYPE__TYPE_BOOL,
        [DTYPE_UINT8] = INFERENCE__DATA_TYPE__TYPE_UINT8,
        [DTYPE_UINT16] = INFERENCE__DATA_TYPE__TYPE_UINT16,
        [DTYPE_UINT32] = INFERENCE__DATA_TYPE__TYPE_UINT32,
        [DTYPE_UINT64] = INFERENCE__DATA_TYPE__TYPE_UINT64,
        [DTYPE_INT8] = INFERENCE__DATA_TYPE__TYPE_INT8,
        [DTYPE_INT16] = INFERENCE__DATA_TYPE__TYPE_INT16,
        [DTYPE_INT32] = INFERENCE__DATA_TYPE__TYPE_INT32,
        [DTYPE_INT64] = INFERENCE__DATA_TYPE__TYPE_INT64,
        [DTYPE_FP16] = INFERENCE__DATA_TYPE__TYPE_FP16,
        [DTYPE_FP32] = INFERENCE__DATA_TYPE__TYPE_FP32,
        [DTYPE_FP64] = INFERENCE__DATA_TYPE__TYPE_FP64,
        [DTYPE_BF16] = INFERENCE__DATA_TYPE__TYPE_BF16,
        [DTYPE_BYTES] = INFERENCE__DATA_TYPE__TYPE_STRING};
    return TYPES[dtype];
}

/* dims leave the batch dimension out where the model is batched. NULL: no memory. */
static int64_t *dims_of(struct grpc_unary *call, const struct io_spec *spec, bool is_batched,
                        size_t *out_count) {
    const uint32_t first = is_batched && spec->rank > 0 ? 1 : 0;
    int64_t *dims = arena_array(call->arena, spec->rank, sizeof *dims);
    for (uint32_t i = first; dims && i < spec->rank; i++)
        dims[i - first] = spec->shape[i];
    *out_count = spec->rank - first;
    return dims;
}

static bool put_inputs(struct grpc_unary *call, const struct signature *shown, bool is_batched,
                       Inference__ModelConfig *config) {
    config->n_input = shown->input_count;
    config->input = arena_array(call->arena, shown->input_count, sizeof *config->input);
    Inference__ModelInput *items = arena_array(call->arena, shown->input_count, sizeof *items);
    for (uint32_t i = 0; i < shown->input_count; i++) {
        if (!config->input || !items)
            return false;
        inference__model_input__init(&items[i]);
        items[i].name = arena_copy(call->arena, view_of(shown->inputs[i].name));
        items[i].data_type = type_of(shown->inputs[i].dtype);
        items[i].dims = dims_of(call, &shown->inputs[i], is_batched, &items[i].n_dims);
        if (!items[i].name || !items[i].dims)
            return false;
        config->input[i] = &items[i];
    }
    return true;
}

static bool put_outputs(struct grpc_unary *call, const struct signature *shown, bool is_batched,
                        Inference__ModelConfig *config) {
    config->n_output = shown->output_count;
    config->output = arena_array(call->arena, shown->output_count, sizeof *config->output);
    Inference__ModelOutput *items = arena_array(call->arena, shown->output_count, sizeof *items);
    for (uint32_t i = 0; i < shown->output_count; i++) {
        if (!config->output || !items)
            return false;
        inference__model_output__init(&items[i]);
        items[i].name = arena_copy(call->arena, view_of(shown->outputs[i].name));
        items[i].data_type = type_of(shown->outputs[i].dtype);
        items[i].dims = dims_of(call, &shown->outputs[i], is_batched, &items[i].n_dims);
        if (!items[i].name || !items[i].dims)
            return false;
        config->output[i] = &items[i];
    }
    return true;
}

/* Of a model that has none: as much as clients read. NULL: no memory. */
static Inference__ModelConfig *make_config(struct grpc_unary *call,
                                           const struct served_model *served) {
    const struct server *server = call->grpc->server;
    const uint64_t max_batch = metadata_max_batch(server, served);
    Inference__ModelConfig *config = grpc_take(call, sizeof *config);
    Inference__ModelDynamicBatching *batching = grpc_take(call, sizeof *batching);
    if (!config || !batching)
        return NULL;
    inference__model_config__init(config);
    inference__model_dynamic_batching__init(batching);
    config->name = arena_copy(call->arena, view_of(served->model->name));
    config->platform = text_of(metadata_platform(served));
    config->backend = text_of(served->model->backend->name);
    config->max_batch_size = (int32_t)max_batch;
    if (max_batch) {
        batching->max_queue_delay_microseconds = server->config->engine.max_delay_us;
        config->dynamic_batching = batching;
        config->scheduling_choice_case =
            INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING;
    }
    return config->name && put_inputs(call, &served->shown, max_batch > 0, config) &&
                   put_outputs(call, &served->shown, max_batch > 0, config)
               ? config : NULL;
}

enum status grpc_model_config(struct grpc_unary *call) {
    const Inference__ModelConfigRequest *request = call->request;
    Inference__ModelConfigResponse *response = grpc_take(call, sizeof *response);
    const struct served_model *served = NULL;
    if (!response)
        return grpc_no_memory(call);
    const enum status status = grpc_find_model(call->grpc, view_of(request->name),
                                               view_of(request->version), &served, call->err);
    if (status != ST_OK)
        return status;
    inference__model_config_response__init(response);
    /* The model's own outlives this call only with its reference: packed before that is given
     * back, by grpc_stream_reply below. */
    response->config = served->config ? (Inference__ModelConfig *)(uintptr_t)served->config
                                      : make_config(call, served);
    if (response->config)
        grpc_stream_reply(call->stream, &response->base);
    engine_release(served);
    return response->config ? ST_OK : grpc_no_memory(call);
}

/* ---- statistics ---- */

enum { DURATIONS = 8 };

static Inference__StatisticDuration *duration(Inference__StatisticDuration *to, uint64_t count,
                                              uint64_t ns) {
    inference__statistic_duration__init(to);
    to->count = count;
    to->ns = ns;
    return to;
}

static Inference__ModelStatistics *statistics_of(struct grpc_unary *call,
                                                 const struct served_model *served) {
    struct tracer *tracer = engine_tracer(call->grpc->server->engine);
    Inference__ModelStatistics *out = grpc_take(call, sizeof *out);
    Inference__InferStatistics *infer = grpc_take(call, sizeof *infer);
    Inference__StatisticDuration *d = arena_array(call->arena, DURATIONS, sizeof *d);
    char *name = arena_copy(call->arena, view_of(served->model->name));
    char *version = arena_copy(call->arena, view_of(served->model->version));
    if (!out || !infer || !d || !name || !version)
        return NULL;
    inference__model_statistics__init(out);
    inference__infer_statistics__init(infer);
    const struct trace_stats *stats = tracer_stats_lock(tracer, served->trace_model);
    const struct triton_durations sums = statistics_durations(stats);
    out->inference_count = stats->rows;
    out->execution_count = stats->batches;
    tracer_stats_unlock(tracer);
    out->name = name;
    out->version = version;
    infer->success = duration(&d[0], sums.success, sums.request_ns);
    infer->fail = duration(&d[1], sums.failure, 0);
    infer->queue = duration(&d[2], sums.success, sums.queue_ns);
    infer->compute_input = duration(&d[3], sums.success, sums.input_ns);
    infer->compute_infer = duration(&d[4], sums.success, sums.infer_ns);
    infer->compute_output = duration(&d[5], sums.success, sums.output_ns);
    infer->cache_hit = duration(&d[6], 0, 0);
    infer->cache_miss = duration(&d[7], 0, 0);
    out->inference_stats = infer;
    return out;
}

static enum status list_statistics(struct grpc_unary *call, const struct served_model **models,
                                   size_t count) {
    Inference__ModelStatisticsResponse *response = grpc_take(call, sizeof *response);
    Inference__ModelStatistics **list = arena_array(call->arena, count, sizeof *list);
    if (!response || !list)
        return grpc_no_memory(call);
    inference__model_statistics_response__init(response);
    for (size_t i = 0; i < count; i++) {
        list[i] = statistics_of(call, models[i]);
        if (!list[i])
            return grpc_no_memory(call);
    }
    response->model_stats = list;
    response->n_model_stats = count;
    call->response = &response->base;
    return ST_OK;
}

enum status grpc_model_statistics(struct grpc_unary *call) {
    const Inference__ModelStatisticsRequest *request = call->request;
    if (request->name[0] != '\0') {
        const struct served_model *served = NULL;
        enum status status = grpc_find_model(call->grpc, view_of(request->name),
                                             view_of(request->version), &served, call->err);
        if (status == ST_OK)
            status = list_statistics(call, &served, 1);
        engine_release(served);
        return status;
    }
    struct engine_models models;
    enum status status = engine_models_get(call->grpc->server->engine, &models, call->err);
    if (status != ST_OK)
        return status;
    status = list_statistics(call, models.items, models.count);
    engine_models_done(&models);
    return status;
}

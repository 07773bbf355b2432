/* What Telltale does with each field of config.pbtxt. Constant. Invariant: every field of
 * model_config.proto has a row, itself or through one that it is part of (a test walks them). */
#include "schema/config_fields.h"

#include "schema/message.h"
#include <stdio.h>

#define HONOURED(path, remark) {path, CONFIG_HONOURED, remark}
#define WARNED(path, remark) {path, CONFIG_WARNED, remark}
#define REFUSED(path, remark) {path, CONFIG_REFUSED, remark}

static const struct config_field TABLE[] = {
    HONOURED("name", "the model's directory; may be left out, must not differ"),
    HONOURED("platform", "onnxruntime_onnx or ensemble; may be left out"),
    HONOURED("backend", "onnxruntime; may be left out"),
    WARNED("runtime", "Telltale has one ONNX Runtime, which --onnxruntime chooses"),
    HONOURED("version_policy", "latest (1 unless num_versions says more), all or specific"),
    HONOURED("max_batch_size", "rows of a batch at most; 0: the model does not batch"),
    HONOURED("default_model_filename", "the file in the version's directory; model.onnx otherwise"),
    WARNED("cc_model_filenames", "no file is chosen by a GPU's compute capability"),
    WARNED("metric_tags", "metrics carry the model's name and version and no further labels"),

    HONOURED("input.name", "one of the model's inputs"),
    HONOURED("input.data_type", "compared with the model's; left out: taken from it"),
    HONOURED("input.format", "shown to clients; pictures have three dims"),
    HONOURED("input.dims",
             "compared with the model's, without the batch; left out: taken from it"),
    HONOURED("input.reshape", "the shape that the model gets in place of the one clients send"),
    REFUSED("input.is_shape_tensor", "shape tensors are TensorRT's, and ONNX Runtime has none"),
    REFUSED("input.allow_ragged_batch",
            "requests of different shape run in batches of their own and are never concatenated, "
            "which such a model is written for"),
    HONOURED("input.optional", "a request may leave it out"),
    REFUSED("input.is_non_linear_format_io",
            "such layouts are TensorRT's, and ONNX Runtime has none"),
    HONOURED("output.name", "one of the model's outputs"),
    HONOURED("output.data_type", "compared with the model's; left out: taken from it"),
    HONOURED("output.dims",
             "compared with the model's, without the batch; left out: taken from it"),
    HONOURED("output.label_filename", "labels for the classification extension, one a line"),
    HONOURED("output.reshape", "the shape that clients get in place of the model's"),
    REFUSED("output.is_shape_tensor", "shape tensors are TensorRT's, and ONNX Runtime has none"),
    REFUSED("output.is_non_linear_format_io",
            "such layouts are TensorRT's, and ONNX Runtime has none"),
    REFUSED("batch_input",
            "requests are not concatenated, so there are no counts to give the model"),
    REFUSED("batch_output", "requests are not concatenated, so no output is scattered by shape"),

    HONOURED("dynamic_batching.preferred_batch_size", "a batch of such a size is not held"),
    HONOURED("dynamic_batching.max_queue_delay_microseconds",
             "the longest that a free instance waits for company"),
    HONOURED("dynamic_batching.preserve_ordering", "answers leave in the order of the requests"),
    HONOURED("dynamic_batching.priority_levels", "levels of priority, 1 the highest"),
    HONOURED("dynamic_batching.default_priority_level", "the level of requests that name none"),
    HONOURED("dynamic_batching.default_queue_policy",
             "timeouts, exact to a millisecond, and the queue's bound"),
    HONOURED("dynamic_batching.priority_queue_policy", "the same for one level"),
    REFUSED("sequence_batching",
            "no state is kept between requests; serve the model without it only where its requests "
            "do not depend on each other"),

    HONOURED("ensemble_scheduling.step.model_name", "the step's model"),
    HONOURED("ensemble_scheduling.step.model_version", "its version; -1 or left out: the newest"),
    HONOURED("ensemble_scheduling.step.input_map", "the model's inputs to the ensemble's tensors"),
    HONOURED("ensemble_scheduling.step.output_map",
             "the model's outputs to the ensemble's tensors"),
    WARNED("ensemble_scheduling.step.model_namespace", "names of models are one space"),
    WARNED("ensemble_scheduling.max_inflight_requests",
           "the queues of the steps' models bound what is under way"),

    HONOURED("instance_group.name", "shown to clients"),
    HONOURED("instance_group.kind",
             "KIND_CPU, KIND_AUTO and KIND_MODEL; KIND_GPU where ONNX Runtime has a GPU"),
    HONOURED("instance_group.count", "instances, each with a thread; summed over the groups"),
    WARNED("instance_group.gpus", "the device is ONNX Runtime's choice"),
    REFUSED("instance_group.profile", "profiles are TensorRT's, and ONNX Runtime has none"),
    WARNED("instance_group.rate_limiter", "instances run whenever there is a batch for them"),
    WARNED("instance_group.passive", "the instances are like any other"),
    WARNED("instance_group.secondary_devices", "there are no secondary devices"),
    WARNED("instance_group.host_policy",
           "threads are not bound to processors by the configuration"),

    HONOURED("optimization.graph.level", "-1 none, 1 basic, otherwise all of ONNX Runtime's"),
    WARNED("optimization.priority", "models have the same priority"),
    WARNED("optimization.cuda.graphs", "there are no CUDA graphs"),
    WARNED("optimization.cuda.busy_wait_events", "there are no CUDA graphs"),
    WARNED("optimization.cuda.graph_spec", "there are no CUDA graphs"),
    WARNED("optimization.cuda.output_copy_stream", "there are no CUDA streams"),
    WARNED("optimization.execution_accelerators.gpu_execution_accelerator",
           "the model runs on ONNX Runtime's own kernels"),
    WARNED("optimization.execution_accelerators.cpu_execution_accelerator",
           "the model runs on ONNX Runtime's own kernels"),
    WARNED("optimization.input_pinned_memory.enable", "there is no pinned memory"),
    WARNED("optimization.output_pinned_memory.enable", "there is no pinned memory"),
    WARNED("optimization.gather_kernel_buffer_threshold", "rows are gathered by the processor"),
    WARNED("optimization.eager_batching", "a batch is closed when an instance takes it"),

    HONOURED("parameters", "those of the ONNX Runtime back end; others are shown to clients"),
    HONOURED("model_warmup", "requests that are run on each instance before the model is ready"),
    REFUSED("model_operations", "libraries of custom operators are not loaded"),
    REFUSED("model_transaction_policy.decoupled", "a request has one answer"),
    REFUSED("model_repository_agents",
            "there are no agents, and what one is to check would go unchecked"),
    HONOURED("response_cache.enable", "answers are kept, where --cache-size gives room"),
    WARNED("model_metrics", "histograms have buckets of their own, a few per cent wide"),
};
enum { ROWS = sizeof TABLE / sizeof TABLE[0] };

const struct config_field *config_fields(size_t *out_count) {
    *out_count = ROWS;
    return TABLE;
}

const char *config_action_name(enum config_action action) {
    static const char *const names[CONFIG_ACTION_COUNT] = {"honoured", "warned", "refused"};
    return names[action];
}

const struct config_field *config_field_of(const char *path) {
    for (size_t i = 0; i < ROWS; i++) {
        const size_t size = strlen(TABLE[i].path);
        if (strncmp(TABLE[i].path, path, size) == 0 && (path[size] == '\0' || path[size] == '.')) {
            return &TABLE[i];
        }
    }
    return NULL;
}

/* --- which rows a configuration uses --- */

enum { MAX_PATH_BYTES = 256 };

static bool is_default(const ProtobufCFieldDescriptor *field, union message_value value) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return value.string == NULL || value.string[0] == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return value.bytes.len == 0;
    case PROTOBUF_C_TYPE_FLOAT:
        return value.f32 == 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return value.f64 == 0;
    default:
        return value.u64 == 0; /* message_get() zeroes what the type leaves */
    }
}

static void mark_used(const ProtobufCMessage *message, const char *path, bool *used);

static void mark_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       const char *path, bool *used) {
    const size_t count = message_count(message, field);
    const bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    const struct config_field *row = config_field_of(path);
    if (row != NULL) {
        const bool is_used =
            count > 0 && (is_repeated || field->type == PROTOBUF_C_TYPE_MESSAGE ||
                          !is_default(field, message_get(message, field, 0)));
        used[row - TABLE] = used[row - TABLE] || is_used;
        return;
    }
    for (size_t i = 0; i < count && field->type == PROTOBUF_C_TYPE_MESSAGE; i++) {
        mark_used(message_get(message, field, i).message, path, used);
    }
}

static void mark_used(const ProtobufCMessage *message, const char *path, bool *used) {
    char inner[MAX_PATH_BYTES];
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        snprintf(inner, sizeof inner, "%s%s%s", path, path[0] == '\0' ? "" : ".", field->name);
        mark_field(message, field, inner, used);
    }
}

void config_fields_used(const ProtobufCMessage *config, config_field_fn visit, void *context) {
    bool used[ROWS] = {false};
    mark_used(config, "", used);
    for (size_t i = 0; i < ROWS; i++) {
        if (used[i] && TABLE[i].action != CONFIG_HONOURED) {
            visit(context, &TABLE[i]);
        }
    }
}

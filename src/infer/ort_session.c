/* Opens a model with ONNX Runtime and reads its signature.
 *
 * The loader's thread. Invariant: a session that opened has only dense tensors of types and
 * ranks that struct tensor can hold, so that the request path need not ask.
 * Read next: ort.c, which runs it. */
#include "infer/ort_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ORT_API_HAS_SHAPE = 24 };

static const struct { enum dtype dtype; ONNXTensorElementDataType type; } DTYPES[] = {
    {DTYPE_BOOL, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
    {DTYPE_UINT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},
    {DTYPE_UINT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16},
    {DTYPE_UINT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32},
    {DTYPE_UINT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64},
    {DTYPE_INT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},
    {DTYPE_INT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16},
    {DTYPE_INT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},
    {DTYPE_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
    {DTYPE_FP16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
    {DTYPE_FP32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
    {DTYPE_FP64, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
    {DTYPE_BF16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16},
    {DTYPE_BYTES, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING},
};
enum { DTYPE_PAIRS = sizeof DTYPES / sizeof DTYPES[0] };

bool ort_dtype_from(ONNXTensorElementDataType type, enum dtype *out_dtype) {
    for (size_t i = 0; i < DTYPE_PAIRS; i++) {
        if (DTYPES[i].type == type) {
            *out_dtype = DTYPES[i].dtype;
            return true;
        }
    }
    return false;
}

ONNXTensorElementDataType ort_dtype_to(enum dtype dtype) {
    for (size_t i = 0; i < DTYPE_PAIRS; i++) {
        if (DTYPES[i].dtype == dtype) {
            return DTYPES[i].type;
        }
    }
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/* True where the model declares no rank, which older libraries cannot tell from a scalar. */
static bool is_shape_unknown(const struct ort_library *library,
                             const OrtTensorTypeAndShapeInfo *info, size_t rank) {
    if (rank > 0) {
        return false;
    }
#if ORT_API_VERSION >= 24
    /* Asked by version first: GetApi prints to standard error when it has no such table. */
    if (strtol(strchr(library->version, '.') ? strchr(library->version, '.') + 1 : "0", NULL, 10) >=
        ORT_API_HAS_SHAPE) {
        const OrtApi *api = library->base->GetApi(ORT_API_HAS_SHAPE);
        return api && !api->TensorTypeAndShape_HasShape(info);
    }
#else
    (void)library;
    (void)info;
#endif
    return true;
}

static OrtStatus *shape_read(const struct ort_library *library,
                             const OrtTensorTypeAndShapeInfo *info, struct io_spec *io,
                             bool *out_has_memory) {
    const char *names[TENSOR_MAX_RANK] = {NULL};
    OrtStatus *failed = library->api->GetDimensions(info, io->shape, io->rank);
    if (!failed) {
        failed = library->api->GetSymbolicDimensions(info, names, io->rank);
    }
    for (uint32_t d = 0; !failed && d < io->rank; d++) {
        if (io->shape[d] >= 0) {
            continue;
        }
        io->shape[d] = -1;
        if (names[d] && *names[d]) {
            io->dim_names[d] = strdup(names[d]);
            *out_has_memory = *out_has_memory && io->dim_names[d];
        }
    }
    return failed;
}

static enum status tensor_info_read(const struct ort_library *library,
                                    const OrtTensorTypeAndShapeInfo *info, struct io_spec *io,
                                    struct err *err) {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    OrtStatus *failed = library->api->GetTensorElementType(info, &type);
    if (!failed) {
        failed = library->api->GetDimensionsCount(info, &rank);
    }
    if (failed) {
        return ort_fail(library, failed, err, io->name);
    }
    if (!ort_dtype_from(type, &io->dtype)) {
        return err_set(err, ST_UNSUPPORTED, "%s: element type %d of ONNX is not supported",
                       io->name, (int)type);
    }
    if (rank > TENSOR_MAX_RANK) {
        return err_set(err, ST_UNSUPPORTED, "%s: %zu dimensions, at most %d are supported",
                       io->name, rank, TENSOR_MAX_RANK);
    }
    io->rank = (uint32_t)rank;
    io->is_any_shape = is_shape_unknown(library, info, rank);
    bool has_memory = true;
    failed = shape_read(library, info, io, &has_memory);
    if (failed) {
        return ort_fail(library, failed, err, io->name);
    }
    return has_memory ? ST_OK : err_set(err, ST_NO_MEMORY, "out of memory reading %s", io->name);
}

/* Copies a name that ONNX Runtime allocated and gives that one back. */
static enum status name_take(const struct ort_library *library, OrtStatus *failed, char *name,
                             struct io_spec *io, struct err *err) {
    if (failed) {
        return ort_fail(library, failed, err, "reading the model's inputs and outputs");
    }
    io->name = strdup(name);
    library->allocator->Free(library->allocator, name);
    return io->name ? ST_OK : err_set(err, ST_NO_MEMORY, "out of memory reading the model");
}

static enum status io_read(const struct ort_library *library, const OrtTypeInfo *type_info,
                           struct io_spec *io, struct err *err) {
    ONNXType type = ONNX_TYPE_UNKNOWN;
    const OrtTensorTypeAndShapeInfo *info = NULL; /* type_info's own */
    OrtStatus *failed = library->api->GetOnnxTypeFromTypeInfo(type_info, &type);
    if (!failed && type != ONNX_TYPE_TENSOR) {
        static const char *const NAMES[] = {"of unknown type", "a tensor", "a sequence", "a map",
                                            "opaque", "a sparse tensor", "optional"};
        const size_t at = (size_t)type < sizeof NAMES / sizeof NAMES[0] ? (size_t)type : 0;
        return err_set(err, ST_UNSUPPORTED, "%s is %s: only tensors are supported", io->name,
                       NAMES[at]);
    }
    if (!failed) {
        failed = library->api->CastTypeInfoToTensorInfo(type_info, &info);
    }
    if (failed) {
        return ort_fail(library, failed, err, io->name);
    }
    return tensor_info_read(library, info, io, err);
}

/* Inputs that only override an initializer are not among SessionGetInputCount's: they keep
 * the model's value. */
static enum status ios_read(struct session *session, bool is_input, struct err *err) {
    const struct ort_library *library = session->library;
    const OrtApi *api = library->api;
    struct io_spec *ios = is_input ? session->signature.inputs : session->signature.outputs;
    const char *kind = is_input ? "input" : "output";
    size_t count = 0;
    OrtStatus *failed = is_input ? api->SessionGetInputCount(session->session, &count)
                                 : api->SessionGetOutputCount(session->session, &count);
    if (failed) {
        return ort_fail(library, failed, err, "reading the model's inputs and outputs");
    }
    if (count > MODEL_MAX_IO) {
        return err_set(err, ST_UNSUPPORTED, "%zu %ss, at most %d are supported", count, kind,
                       MODEL_MAX_IO);
    }
    for (size_t i = 0; i < count; i++) {
        char *name = NULL;
        OrtTypeInfo *info = NULL;
        failed = is_input
                     ? api->SessionGetInputName(session->session, i, library->allocator, &name)
                     : api->SessionGetOutputName(session->session, i, library->allocator, &name);
        enum status status = name_take(library, failed, name, &ios[i], err);
        if (status != ST_OK) {
            return status;
        }
        failed = is_input ? api->SessionGetInputTypeInfo(session->session, i, &info)
                          : api->SessionGetOutputTypeInfo(session->session, i, &info);
        status = failed ? ort_fail(library, failed, err, ios[i].name)
                        : io_read(library, info, &ios[i], err);
        if (info) {
            api->ReleaseTypeInfo(info);
        }
        if (status != ST_OK) {
            err_prefix(err, "%s", kind);
            return status;
        }
        (is_input ? session->input_names : session->output_names)[i] = ios[i].name;
    }
    *(is_input ? &session->signature.input_count : &session->signature.output_count) =
        (uint32_t)count;
    return ST_OK;
}

static bool is_named_in_inputs(const struct signature *signature, const char *dim_name) {
    for (uint32_t i = 0; i < signature->input_count; i++) {
        for (uint32_t d = 0; d < signature->inputs[i].rank; d++) {
            const char *name = signature->inputs[i].dim_names[d];
            if (name && strcmp(name, dim_name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Every dimension fixed, or one of the inputs' by name. String tensors are left out: their
 * elements are ONNX Runtime's objects, not a buffer worth keeping. */
static bool is_derived(const struct signature *signature, const struct io_spec *output) {
    bool all = !output->is_any_shape && output->dtype != DTYPE_BYTES;
    for (uint32_t d = 0; all && d < output->rank; d++) {
        all = output->shape[d] >= 0 ||
              (output->dim_names[d] && is_named_in_inputs(signature, output->dim_names[d]));
    }
    return all;
}

/* Sequential, so that a session's callers are the parallelism; no spinning unless asked, since
 * spinning threads take the cores from the others; memory pattern off, since it keeps a plan for
 * every combination of input shapes ever seen, and texts in batches have thousands of them (it
 * would gain 2 to 4 % on the sample model, nothing on one with fixed shapes and one node). */
static OrtStatus *options_fill(const OrtApi *api, OrtSessionOptions *options,
                               const struct session_config *config) {
    const char *spinning = config->allow_spinning ? "1" : "0";
    const char *denormal = config->denormal_as_zero ? "1" : "0";
    const int threads = config->intra_op_threads > 0 ? (int)config->intra_op_threads : 1;
    OrtStatus *failed = api->SetSessionExecutionMode(options, ORT_SEQUENTIAL);
    failed = failed ? failed : api->SetIntraOpNumThreads(options, threads);
    failed = failed ? failed : api->SetInterOpNumThreads(options, 1);
    failed = failed ? failed : api->DisableMemPattern(options);
    failed = failed ? failed : api->EnableCpuMemArena(options);
    failed = failed ? failed : api->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL);
    failed = failed ? failed : api->AddSessionConfigEntry(
                                   options, "session.intra_op.allow_spinning", spinning);
    failed = failed ? failed : api->AddSessionConfigEntry(
                                   options, "session.inter_op.allow_spinning", spinning);
    failed = failed ? failed : api->AddSessionConfigEntry(
                                   options, "session.set_denormal_as_zero", denormal);
    return failed;
}

static enum status session_create(struct session *session, const struct session_config *config,
                                  struct err *err) {
    const struct ort_library *library = session->library;
    const OrtApi *api = library->api;
    OrtSessionOptions *options = NULL;
    OrtStatus *failed = api->CreateSessionOptions(&options);
    failed = failed ? failed : options_fill(api, options, config);
    failed = failed ? failed : api->CreateSession(library->env, config->model_path, options,
                                                  &session->session);
    failed = failed ? failed : api->CreateRunOptions(&session->run_options);
    /* A request that cannot run is the client's to hear of, not the log's. */
    failed = failed ? failed : api->RunOptionsSetRunLogSeverityLevel(session->run_options,
                                                                     ORT_LOGGING_LEVEL_FATAL);
    if (options) {
        api->ReleaseSessionOptions(options);
    }
    if (!failed) {
        return ST_OK;
    }
    const enum status status = ort_fail(library, failed, err, "cannot open the model");
    return status == ST_NO_MEMORY ? status : ST_INVALID;
}

enum status ort_session_open(const struct session_config *config, struct session **out,
                             struct err *err) {
    if (!config->model_path || access(config->model_path, R_OK) != 0) {
        return err_set(err, ST_NOT_FOUND, "%s: %s",
                       config->model_path ? config->model_path : "no model file",
                       config->model_path ? strerror(errno) : "ONNX Runtime needs one");
    }
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        return err_set(err, ST_NO_MEMORY, "out of memory opening %s", config->model_path);
    }
    enum status status = ort_library_get(config->onnxruntime_path, &session->library, err);
    if (status != ST_OK) {
        ort_session_close(session);
        return status;
    }
    status = session_create(session, config, err);
    if (status == ST_OK) {
        status = ios_read(session, true, err);
    }
    if (status == ST_OK) {
        status = ios_read(session, false, err);
    }
    if (status != ST_OK) {
        ort_session_close(session);
        err_prefix(err, "%s", config->model_path);
        return status;
    }
    for (uint32_t i = 0; i < session->signature.output_count; i++) {
        session->is_output_derived[i] =
            is_derived(&session->signature, &session->signature.outputs[i]);
    }
    snprintf(session->description, sizeof session->description, "ONNX Runtime %s, CPU",
             session->library->version);
    *out = session;
    return ST_OK;
}

void ort_session_close(struct session *session) {
    if (!session) {
        return;
    }
    if (session->run_options) {
        session->library->api->ReleaseRunOptions(session->run_options);
    }
    if (session->session) {
        session->library->api->ReleaseSession(session->session);
    }
    signature_done(&session->signature);
    free(session);
}

/* The ONNX Runtime back end: a slot binds a batch's tensors to OrtValues and runs them.
 *
 * Instance threads, one a slot; a session is shared, since Run may be called by several.
 * Invariant: start only binds, finish runs. So the last batch's answers, which lie in the slot,
 * stay valid while the next batch is bound, and are overwritten only by the next run.
 * What is cheap to keep is kept: an input's OrtValue while its address and shape stay, an
 * output's while every input's shape stays and the model says that it depends on nothing else.
 * Read next: ort_session.c for what opening a model settles. */
#include "infer/ort_api.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bound_input {
    OrtValue *value; /* over data; NULL when nothing is bound */
    const void *data;
    uint32_t rank;
    int64_t shape[TENSOR_MAX_RANK];
};

struct packed { /* a string output as BYTES */
    char *bytes;
    size_t capacity;
    size_t *offsets;
    size_t offset_capacity; /* in elements */
};

struct slot {
    struct session *session;
    struct bound_input inputs[MODEL_MAX_IO];
    const OrtValue *input_values[MODEL_MAX_IO]; /* the same values, as Run wants them */
    OrtValue *outputs[MODEL_MAX_IO];
    struct tensor results[MODEL_MAX_IO]; /* describe outputs */
    struct packed packed[MODEL_MAX_IO];
    bool is_started;
    bool are_shapes_same;   /* as in the last good run */
    bool may_keep_outputs;  /* false once the model's declared shapes turned out wrong */
};

static const char EMPTY[16] __attribute__((aligned(16))) = {0};

static enum status ort_slot_open(struct session *session, struct slot **out, struct err *err) {
    struct slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        return err_set(err, ST_NO_MEMORY, "out of memory opening an instance");
    }
    slot->session = session;
    slot->may_keep_outputs = true;
    *out = slot;
    return ST_OK;
}

static void output_release(struct slot *slot, uint32_t i) {
    if (slot->outputs[i]) {
        slot->session->library->api->ReleaseValue(slot->outputs[i]);
        slot->outputs[i] = NULL;
    }
}

static void input_release(struct slot *slot, uint32_t i) {
    if (slot->inputs[i].value) {
        slot->session->library->api->ReleaseValue(slot->inputs[i].value);
        slot->inputs[i].value = NULL;
        slot->input_values[i] = NULL;
    }
}

static void ort_slot_close(struct slot *slot) {
    if (!slot) {
        return;
    }
    for (uint32_t i = 0; i < MODEL_MAX_IO; i++) {
        input_release(slot, i);
        output_release(slot, i);
        free(slot->packed[i].bytes);
        free(slot->packed[i].offsets);
    }
    free(slot);
}

/* What must hold for memory's sake; whether the shape suits the model is ONNX Runtime's to say. */
static enum status input_check(const struct io_spec *io, const struct tensor *tensor,
                               size_t *out_count, struct err *err) {
    if (tensor->dtype != io->dtype) {
        return err_set(err, ST_INVALID, "input %s: %s, the model wants %s", io->name,
                       dtype_name(tensor->dtype), dtype_name(io->dtype));
    }
    if (!tensor_elements(tensor->shape, tensor->rank, out_count)) {
        return err_set(err, ST_INVALID, "input %s: the shape has a negative or too large dimension",
                       io->name);
    }
    const bool fits = io->dtype == DTYPE_BYTES
                          ? tensor_bytes_valid(tensor->data, tensor->size, *out_count)
                          : tensor->size / dtype_size(io->dtype) == *out_count &&
                                tensor->size % dtype_size(io->dtype) == 0;
    if (!fits) {
        return err_set(err, ST_INVALID, "input %s: %zu bytes are not %zu elements of %s", io->name,
                       tensor->size, *out_count, dtype_name(io->dtype));
    }
    assert(io->dtype == DTYPE_BYTES || (uintptr_t)tensor->data % dtype_size(io->dtype) == 0);
    return ST_OK;
}

static OrtStatus *strings_fill(const OrtApi *api, OrtValue *value, const struct tensor *tensor,
                               size_t count) {
    const char *at = tensor->data;
    for (size_t i = 0; i < count; i++) {
        uint32_t size;
        char *buffer = NULL;
        memcpy(&size, at, sizeof size);
        OrtStatus *failed = api->GetResizedStringTensorElementBuffer(value, i, size, &buffer);
        if (failed) {
            return failed;
        }
        if (size > 0) {
            memcpy(buffer, at + sizeof size, size);
        }
        at += sizeof size + size;
    }
    return NULL;
}

static OrtStatus *value_create(struct slot *slot, uint32_t i, const struct tensor *tensor) {
    const struct ort_library *library = slot->session->library;
    const ONNXTensorElementDataType type = ort_dtype_to(tensor->dtype);
    OrtValue **out = &slot->inputs[i].value;
    if (tensor->dtype == DTYPE_BYTES) {
        return library->api->CreateTensorAsOrtValue(library->allocator, tensor->shape,
                                                    tensor->rank, type, out);
    }
    /* ONNX Runtime does not write to inputs; its interface just has no const there. */
    void *data = (void *)(uintptr_t)(tensor->size > 0 ? tensor->data : EMPTY);
    return library->api->CreateTensorWithDataAsOrtValue(
        library->cpu_memory, data, tensor->size, tensor->shape, tensor->rank, type, out);
}

static enum status input_bind(struct slot *slot, uint32_t i, const struct tensor *tensor,
                              struct err *err) {
    const struct ort_library *library = slot->session->library;
    const struct io_spec *io = &slot->session->signature.inputs[i];
    struct bound_input *bound = &slot->inputs[i];
    size_t count = 0;
    const enum status status = input_check(io, tensor, &count, err);
    if (status != ST_OK) {
        return status;
    }
    const bool is_same_shape =
        bound->value && bound->rank == tensor->rank &&
        memcmp(bound->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) == 0;
    slot->are_shapes_same = slot->are_shapes_same && is_same_shape;
    OrtStatus *failed = NULL;
    if (!is_same_shape || (tensor->dtype != DTYPE_BYTES && bound->data != tensor->data)) {
        input_release(slot, i);
        failed = value_create(slot, i, tensor);
    }
    if (!failed && tensor->dtype == DTYPE_BYTES) {
        failed = strings_fill(library->api, bound->value, tensor, count);
    }
    if (failed) {
        input_release(slot, i);
        char doing[96];
        snprintf(doing, sizeof doing, "input %.80s", io->name);
        return ort_fail(library, failed, err, doing);
    }
    slot->input_values[i] = bound->value;
    bound->data = tensor->data;
    bound->rank = tensor->rank;
    memcpy(bound->shape, tensor->shape, sizeof bound->shape);
    return ST_OK;
}

static enum status ort_start(struct slot *slot, const struct tensor *inputs, uint32_t rows,
                             struct err *err) {
    assert(!slot->is_started);
    (void)rows;
    for (uint32_t i = 0; i < slot->session->signature.input_count; i++) {
        const enum status status = input_bind(slot, i, &inputs[i], err);
        if (status != ST_OK) {
            slot->are_shapes_same = false;
            return status;
        }
    }
    slot->is_started = true;
    return ST_OK;
}

/* Runs what is bound. Outputs that may be kept are written in place, the others are new. */
static OrtStatus *run_once(struct slot *slot, bool *out_any_kept) {
    const struct session *session = slot->session;
    const struct signature *signature = &session->signature;
    *out_any_kept = false;
    for (uint32_t i = 0; i < signature->output_count; i++) {
        if (slot->may_keep_outputs && slot->are_shapes_same && session->is_output_derived[i] &&
            slot->outputs[i]) {
            *out_any_kept = true;
        } else {
            output_release(slot, i);
        }
    }
    OrtStatus *failed = session->library->api->Run(
        session->session, session->run_options, session->input_names, slot->input_values,
        signature->input_count, session->output_names, signature->output_count, slot->outputs);
    if (failed) {
        for (uint32_t i = 0; i < signature->output_count; i++) {
            output_release(slot, i);
        }
    }
    return failed;
}

/* With a kept output that does not fit after all (a model's declared shapes are promises, not
 * facts), the run is repeated with new ones, and where that helps, none is kept any more. */
static OrtStatus *run(struct slot *slot, bool *out_any_kept) {
    const struct ort_library *library = slot->session->library;
    OrtStatus *failed = run_once(slot, out_any_kept);
    if (!failed || !*out_any_kept) {
        return failed;
    }
    library->api->ReleaseStatus(failed);
    failed = run_once(slot, out_any_kept);
    if (!failed) {
        slot->may_keep_outputs = false;
    }
    return failed;
}

static bool packed_reserve(struct packed *packed, size_t size, size_t count) {
    if (size > packed->capacity || !packed->bytes) {
        char *bytes = realloc(packed->bytes, size > 0 ? size : 1);
        if (!bytes) {
            return false;
        }
        packed->bytes = bytes;
        packed->capacity = size;
    }
    if (count > packed->offset_capacity || !packed->offsets) {
        size_t *offsets = realloc(packed->offsets, (count > 0 ? count : 1) * sizeof *offsets);
        if (!offsets) {
            return false;
        }
        packed->offsets = offsets;
        packed->offset_capacity = count;
    }
    return true;
}

/* ONNX Runtime gives the elements' bytes without gaps, and where each begins. They go to the
 * end of the buffer first and are then moved down behind their lengths, first to last. */
static enum status strings_pack(struct slot *slot, uint32_t i, size_t count, struct err *err) {
    const struct ort_library *library = slot->session->library;
    struct packed *packed = &slot->packed[i];
    size_t text_size = 0;
    OrtStatus *failed = library->api->GetStringTensorDataLength(slot->outputs[i], &text_size);
    if (failed) {
        return ort_fail(library, failed, err, slot->session->output_names[i]);
    }
    const size_t lengths_size = count * sizeof(uint32_t);
    if (!packed_reserve(packed, text_size + lengths_size, count)) {
        return err_set(err, ST_NO_MEMORY, "output %s: no memory for %zu bytes",
                       slot->session->output_names[i], text_size + lengths_size);
    }
    const char *text = packed->bytes + lengths_size;
    failed = count == 0 ? NULL
                        : library->api->GetStringTensorContent(
                              slot->outputs[i], packed->bytes + lengths_size, text_size,
                              packed->offsets, count);
    if (failed) {
        return ort_fail(library, failed, err, slot->session->output_names[i]);
    }
    char *to = packed->bytes;
    for (size_t k = 0; k < count; k++) {
        const size_t end = k + 1 < count ? packed->offsets[k + 1] : text_size;
        const size_t size = end - packed->offsets[k];
        if (size > UINT32_MAX) {
            return err_set(err, ST_INTERNAL, "output %s: an element has %zu bytes",
                           slot->session->output_names[i], size);
        }
        const uint32_t length = (uint32_t)size;
        memcpy(to, &length, sizeof length);
        memmove(to + sizeof length, text + packed->offsets[k], size);
        to += sizeof length + size;
    }
    slot->results[i].data = packed->bytes;
    slot->results[i].size = text_size + lengths_size;
    return ST_OK;
}

static OrtStatus *result_shape(const OrtApi *api, const OrtValue *value, struct tensor *result,
                               size_t *out_rank) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtStatus *failed = api->GetTensorTypeAndShape(value, &info);
    failed = failed ? failed : api->GetDimensionsCount(info, out_rank);
    if (!failed && *out_rank <= TENSOR_MAX_RANK) {
        failed = api->GetDimensions(info, result->shape, *out_rank);
        result->rank = (uint32_t)*out_rank;
    }
    if (info) {
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    return failed;
}

static enum status result_read(struct slot *slot, uint32_t i, struct err *err) {
    const struct ort_library *library = slot->session->library;
    const struct io_spec *io = &slot->session->signature.outputs[i];
    struct tensor *result = &slot->results[i];
    size_t rank = 0, count = 0;
    *result = (struct tensor){.name = view_of(io->name), .dtype = io->dtype};
    OrtStatus *failed = result_shape(library->api, slot->outputs[i], result, &rank);
    if (failed) {
        return ort_fail(library, failed, err, io->name);
    }
    if (rank > TENSOR_MAX_RANK || !tensor_elements(result->shape, result->rank, &count)) {
        return err_set(err, ST_UNSUPPORTED, "output %s: %zu dimensions, at most %d are supported",
                       io->name, rank, TENSOR_MAX_RANK);
    }
    if (io->dtype == DTYPE_BYTES) {
        return strings_pack(slot, i, count, err);
    }
    void *data = NULL;
    failed = library->api->GetTensorMutableData(slot->outputs[i], &data);
    if (failed) {
        return ort_fail(library, failed, err, io->name);
    }
    result->size = count * dtype_size(io->dtype);
    result->data = result->size > 0 ? data : EMPTY;
    return ST_OK;
}

static enum status ort_finish(struct slot *slot, struct tensor *out_outputs, struct err *err) {
    assert(slot->is_started);
    slot->is_started = false;
    const struct signature *signature = &slot->session->signature;
    bool any_kept = false;
    OrtStatus *failed = run(slot, &any_kept);
    if (failed) {
        slot->are_shapes_same = false;
        return ort_fail(slot->session->library, failed, err, "the model failed");
    }
    for (uint32_t i = 0; i < signature->output_count; i++) {
        /* A kept output has the address and shape that it had. */
        const bool is_known = any_kept && slot->session->is_output_derived[i];
        const enum status status = is_known ? ST_OK : result_read(slot, i, err);
        if (status != ST_OK) {
            slot->are_shapes_same = false;
            return status;
        }
    }
    slot->are_shapes_same = true;
    memcpy(out_outputs, slot->results, signature->output_count * sizeof *out_outputs);
    return ST_OK;
}

static const struct signature *ort_signature(const struct session *session) {
    return &session->signature;
}

static const char *ort_describe(const struct session *session) { return session->description; }

static uint64_t ort_device_busy_ns(const struct session *session) {
    (void)session; /* the processor is everybody's: CPU time is measured elsewhere */
    return 0;
}

const struct backend backend_ort = {
    .name = "onnxruntime",
    .is_simulated = false,
    .is_async = false,
    .session_open = ort_session_open,
    .session_close = ort_session_close,
    .signature = ort_signature,
    .describe = ort_describe,
    .device_busy_ns = ort_device_busy_ns,
    .slot_open = ort_slot_open,
    .slot_close = ort_slot_close,
    .start = ort_start,
    .finish = ort_finish,
};

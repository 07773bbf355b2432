/* ModelInferResponse by hand, and the client's side of both messages. Pure.
 *
 * Lengths are reckoned before anything is written, since every level says its own: the functions
 * *_size and put_* below go in pairs and must agree.
 * Read next: infer_pb.h, grpc.h (the prefix). */
#include "proto/infer_pb.h"

#include "proto/grpc.h"
#include "proto/pb.h"

/* ModelInferResponse's fields; those of its outputs; ModelStreamInferResponse's. */
enum { MODEL_NAME = 1, MODEL_VERSION = 2, ID = 3, PARAMETERS = 4, OUTPUTS = 5, RAW = 6 };
enum { TENSOR_NAME = 1, TENSOR_DATATYPE = 2, TENSOR_SHAPE = 3, TENSOR_PARAMETERS = 4 };
enum { STREAM_ERROR = 1, STREAM_RESPONSE = 2 };
/* InferParameter's, and a map entry's. */
enum { PARAM_BOOL = 1, PARAM_INT64 = 2, PARAM_STRING = 3, KEY = 1, VALUE = 2 };

static size_t text_size(uint32_t number, struct view text) {
    return text.size ? pb_bytes_size(number, text.size) : 0;
}

static void put_text(struct buf *out, uint32_t number, struct view text) {
    if (text.size)
        pb_put_bytes(out, number, text);
}

/* ---- parameters ---- */

static size_t number_entry_size(struct view key, uint32_t kind, uint64_t value) {
    return pb_bytes_size(KEY, key.size) + pb_bytes_size(VALUE, pb_number_size(kind, value));
}

static void put_number_entry(struct buf *out, uint32_t field, struct view key, uint32_t kind,
                             uint64_t value) {
    pb_put_head(out, field, number_entry_size(key, kind, value));
    pb_put_bytes(out, KEY, key);
    pb_put_head(out, VALUE, pb_number_size(kind, value));
    pb_put_number(out, kind, value);
}

static size_t text_entry_size(struct view key, struct view text) {
    return pb_bytes_size(KEY, key.size) +
           pb_bytes_size(VALUE, pb_bytes_size(PARAM_STRING, text.size));
}

static void put_text_entry(struct buf *out, uint32_t field, struct view key, struct view text) {
    pb_put_head(out, field, text_entry_size(key, text));
    pb_put_bytes(out, KEY, key);
    pb_put_head(out, VALUE, pb_bytes_size(PARAM_STRING, text.size));
    pb_put_bytes(out, PARAM_STRING, text);
}

static struct view key_simulated(void) { return view_of("simulated"); }
static struct view key_final(void) { return view_of("triton_final_response"); }
static struct view key_region(void) { return view_of("shared_memory_region"); }
static struct view key_bytes(void) { return view_of("shared_memory_byte_size"); }
static struct view key_offset(void) { return view_of("shared_memory_offset"); }

/* Parameters of a tensor that lies in shared memory; size: of the bytes written there. */
static size_t shared_size(const struct shared_place *shared, size_t size) {
    size_t bytes = pb_bytes_size(TENSOR_PARAMETERS, text_entry_size(key_region(), shared->region)) +
                   pb_bytes_size(TENSOR_PARAMETERS,
                                 number_entry_size(key_bytes(), PARAM_INT64, size));
    if (shared->offset)
        bytes += pb_bytes_size(TENSOR_PARAMETERS,
                               number_entry_size(key_offset(), PARAM_INT64, shared->offset));
    return bytes;
}

static void put_shared(struct buf *out, const struct shared_place *shared, size_t size) {
    put_text_entry(out, TENSOR_PARAMETERS, key_region(), shared->region);
    put_number_entry(out, TENSOR_PARAMETERS, key_bytes(), PARAM_INT64, size);
    if (shared->offset)
        put_number_entry(out, TENSOR_PARAMETERS, key_offset(), PARAM_INT64, shared->offset);
}

/* ---- tensors, without their bytes ---- */

static size_t shape_size(const struct tensor *tensor) {
    size_t size = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        size += pb_varint_size((uint64_t)tensor->shape[i]);
    return size;
}

static const struct shared_place *shared_of(const struct infer_pb_answer *answer, uint32_t index) {
    const struct shared_place *shared = answer->shared ? &answer->shared[index] : NULL;
    return shared && shared->region.size ? shared : NULL;
}

static size_t tensor_size(const struct tensor *tensor, const struct shared_place *shared) {
    return text_size(TENSOR_NAME, tensor->name) +
           text_size(TENSOR_DATATYPE, view_of(dtype_name(tensor->dtype))) +
           (tensor->rank ? pb_bytes_size(TENSOR_SHAPE, shape_size(tensor)) : 0) +
           (shared ? shared_size(shared, tensor->size) : 0);
}

static void put_tensor(struct buf *out, uint32_t field, const struct tensor *tensor,
                       const struct shared_place *shared) {
    pb_put_head(out, field, tensor_size(tensor, shared));
    put_text(out, TENSOR_NAME, tensor->name);
    put_text(out, TENSOR_DATATYPE, view_of(dtype_name(tensor->dtype)));
    if (tensor->rank) {
        pb_put_head(out, TENSOR_SHAPE, shape_size(tensor));
        for (uint32_t i = 0; i < tensor->rank; i++)
            pb_put_varint(out, (uint64_t)tensor->shape[i]);
    }
    if (shared)
        put_shared(out, shared, tensor->size);
}

/* ---- the answer ---- */

/* An empty entry for a shared output: clients count entries and outputs alike. */
static size_t raw_size(const struct infer_pb_answer *answer, uint32_t index) {
    return shared_of(answer, index) ? 0 : answer->outputs[index].size;
}

static size_t answer_size(const struct infer_pb_answer *answer) {
    size_t size = text_size(MODEL_NAME, answer->model_name) +
                  text_size(MODEL_VERSION, answer->model_version) + text_size(ID, answer->id);
    if (answer->is_simulated)
        size += pb_bytes_size(PARAMETERS, number_entry_size(key_simulated(), PARAM_BOOL, 1));
    if (answer->is_final_marked)
        size += pb_bytes_size(PARAMETERS, number_entry_size(key_final(), PARAM_BOOL, 1));
    for (uint32_t i = 0; i < answer->output_count; i++)
        size += pb_bytes_size(OUTPUTS, tensor_size(&answer->outputs[i], shared_of(answer, i))) +
                pb_bytes_size(RAW, raw_size(answer, i));
    return size;
}

static void put_answer(struct buf *out, const struct infer_pb_answer *answer,
                       struct infer_pb_gap *gaps, uint32_t *gap_count) {
    put_text(out, MODEL_NAME, answer->model_name);
    put_text(out, MODEL_VERSION, answer->model_version);
    put_text(out, ID, answer->id);
    if (answer->is_simulated)
        put_number_entry(out, PARAMETERS, key_simulated(), PARAM_BOOL, 1);
    if (answer->is_final_marked)
        put_number_entry(out, PARAMETERS, key_final(), PARAM_BOOL, 1);
    for (uint32_t i = 0; i < answer->output_count; i++)
        put_tensor(out, OUTPUTS, &answer->outputs[i], shared_of(answer, i));
    for (uint32_t i = 0; i < answer->output_count; i++) {
        const size_t size = raw_size(answer, i);
        pb_put_head(out, RAW, size);
        if (gaps && size > INFER_PB_INLINE_BYTES)
            gaps[(*gap_count)++] = (struct infer_pb_gap){out->size, {answer->outputs[i].data, size}};
        else if (size)
            buf_append(out, answer->outputs[i].data, size);
    }
}

enum status infer_pb_answer_write(struct buf *out, const struct infer_pb_answer *answer,
                                  struct infer_pb_gap *out_gaps, uint32_t *out_gap_count,
                                  struct err *err) {
    const size_t inner = answer_size(answer);
    const size_t size = answer->is_streamed ? pb_bytes_size(STREAM_RESPONSE, inner) : inner;
    if (size > UINT32_MAX)
        return err_set(err, ST_UNSUPPORTED, "the answer has %zu bytes: a gRPC message has 4 GiB at "
                       "most, ask for fewer outputs or rows", size);
    const size_t before = out->size;
    char prefix[GRPC_PREFIX_BYTES];
    uint32_t gap_count = 0;
    grpc_write_prefix(prefix, false, size);
    buf_append(out, prefix, sizeof prefix);
    if (answer->is_streamed)
        pb_put_head(out, STREAM_RESPONSE, inner);
    put_answer(out, answer, out_gaps, &gap_count);
    if (out->failed) {
        out->size = before;
        return err_set(err, ST_NO_MEMORY, "no memory for an answer of %zu bytes", size);
    }
    if (out_gaps)
        *out_gap_count = gap_count;
    return ST_OK;
}

void infer_pb_stream_error_write(struct buf *out, const char *text, struct view id) {
    const struct view sentence = view_of(text);
    const size_t inner = text_size(ID, id);
    const size_t size = pb_bytes_size(STREAM_ERROR, sentence.size) +
                        (inner ? pb_bytes_size(STREAM_RESPONSE, inner) : 0);
    char prefix[GRPC_PREFIX_BYTES];
    grpc_write_prefix(prefix, false, size);
    buf_append(out, prefix, sizeof prefix);
    pb_put_bytes(out, STREAM_ERROR, sentence);
    if (inner) {
        pb_put_head(out, STREAM_RESPONSE, inner);
        put_text(out, ID, id);
    }
}

/* ---- the client's side ---- */

void infer_pb_request_write(struct buf *out, struct view model_name, struct view model_version,
                            struct view id, const struct tensor *inputs, uint32_t input_count) {
    enum { INPUTS = 5, RAW_INPUTS = 7 };
    put_text(out, MODEL_NAME, model_name);
    put_text(out, MODEL_VERSION, model_version);
    put_text(out, ID, id);
    for (uint32_t i = 0; i < input_count; i++)
        put_tensor(out, INPUTS, &inputs[i], NULL);
    for (uint32_t i = 0; i < input_count; i++) {
        pb_put_head(out, RAW_INPUTS, inputs[i].size);
        if (inputs[i].size)
            buf_append(out, inputs[i].data, inputs[i].size);
    }
}

static bool read_tensor(struct view message, struct tensor *out) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    while (pb_next(&reader, &field)) {
        if (field.number == TENSOR_NAME)
            out->name = field.bytes;
        else if (field.number == TENSOR_DATATYPE && !dtype_parse(field.bytes, &out->dtype))
            return false;
        if (field.number != TENSOR_SHAPE)
            continue;
        struct pb_reader shape = pb_reader_of(field.bytes);
        uint64_t value = field.value;
        bool has_more = field.wire == PB_VARINT || pb_next_varint(&shape, &value);
        for (; has_more; has_more = field.wire == PB_BYTES && pb_next_varint(&shape, &value)) {
            if (out->rank == TENSOR_MAX_RANK)
                return false;
            out->shape[out->rank++] = (int64_t)value;
        }
    }
    return !reader.is_malformed;
}

enum status infer_pb_response_parse(struct view message, struct arena *arena,
                                    struct infer_response *out, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    uint32_t outputs = 0, raws = 0;
    *out = (struct infer_response){.output_count = 0};
    out->outputs = arena_array(arena, INFER_MAX_TENSORS, sizeof *out->outputs);
    if (!out->outputs)
        return err_set(err, ST_NO_MEMORY, "no memory for the answer's tensors");
    while (pb_next(&reader, &field)) {
        if (field.number < MODEL_NAME || field.number > RAW)
            continue;
        if (field.wire != PB_BYTES)
            return err_set(err, ST_INVALID, "field %u of the answer has a wrong wire type",
                           field.number);
        if (field.number == MODEL_NAME)
            out->model_name = field.bytes;
        else if (field.number == MODEL_VERSION)
            out->model_version = field.bytes;
        else if (field.number == ID)
            out->id = field.bytes;
        if (field.number < OUTPUTS)
            continue;
        uint32_t *index = field.number == OUTPUTS ? &outputs : &raws;
        if (*index == INFER_MAX_TENSORS)
            return err_set(err, ST_INVALID, "the answer has more than %d outputs",
                           INFER_MAX_TENSORS);
        struct tensor *tensor = &out->outputs[(*index)++];
        if (field.number == RAW) {
            tensor->data = field.bytes.data;
            tensor->size = field.bytes.size;
        } else if (!read_tensor(field.bytes, tensor)) {
            return err_set(err, ST_INVALID, "outputs[%u] of the answer is malformed", outputs - 1);
        }
    }
    if (reader.is_malformed || outputs != raws)
        return err_set(err, ST_INVALID, "the answer is malformed: %u outputs, %u raw contents",
                       outputs, raws);
    out->output_count = outputs;
    return ST_OK;
}

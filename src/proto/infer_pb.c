/* ModelInferRequest to struct infer_request. Pure.
 *
 * Where a message says something twice the last one counts, as protobuf has it; of inputs, outputs
 * and raw contents the order is that of the message.
 * Invariant: what is written out points into the message or the arena.
 * Read next: infer_pb_contents.c (typed contents), infer_pb_write.c, infer_json.h. */
#include "proto/infer_pb.h"

#include "proto/infer_pb_private.h"
#include "proto/json_text.h"
#include <string.h>

enum {
    MOST_FIELDS = 4096, /* of a message's outermost ones: some 50 us to walk */
    SHOWN_NAME_BYTES = 64
};

/* ModelInferRequest's fields */
enum { NAME = 1, VERSION = 2, ID = 3, PARAMETERS = 4, INPUTS = 5, OUTPUTS = 6, RAW = 7 };

static enum status malformed(struct err *err, const char *what) {
    return err_set(err, ST_INVALID, "%s is no Protocol Buffers message: a field ends behind its end, "
                   "or has a wire type that is not used any more", what);
}

static enum status wrong_wire(struct err *err, const char *what) {
    return err_set(err, ST_INVALID, "%s has another wire type than the protocol says", what);
}

static enum status take_text(const struct pb_field *field, const char *what, struct view *out,
                             struct err *err) {
    if (field->wire != PB_BYTES)
        return wrong_wire(err, what);
    if (!json_text_is_utf8(field->bytes.data, field->bytes.size))
        return err_set(err, ST_INVALID, "%s is not UTF-8", what);
    *out = field->bytes;
    return ST_OK;
}

enum status infer_pb_route(struct view message, struct infer_pb_route *out, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    enum status status = ST_OK;
    *out = (struct infer_pb_route){.field_count = 0};
    while (status == ST_OK && pb_next(&reader, &field)) {
        if (++out->field_count > MOST_FIELDS)
            return err_set(err, ST_INVALID, "the message has more than %d fields", MOST_FIELDS);
        if (field.number == NAME)
            status = take_text(&field, "model_name", &out->model_name, err);
        else if (field.number == VERSION)
            status = take_text(&field, "model_version", &out->model_version, err);
        else if (field.number == ID)
            status = take_text(&field, "id", &out->id, err);
        out->has_raw |= field.number == RAW;
    }
    return status == ST_OK && reader.is_malformed ? malformed(err, "the request") : status;
}

/* ---- parameters ---- */

enum parameter_kind { PARAM_NONE, PARAM_BOOL, PARAM_INT, PARAM_TEXT, PARAM_DOUBLE, PARAM_UINT };

struct parameter {
    struct view name;
    enum parameter_kind kind;
    uint64_t number;
    struct view text;
};

static bool read_value(struct view value, struct parameter *out) {
    static const enum parameter_kind KINDS[] = {PARAM_NONE,   PARAM_BOOL, PARAM_INT, PARAM_TEXT,
                                                PARAM_DOUBLE, PARAM_UINT};
    static const enum pb_wire WIRES[] = {PB_BYTES,   PB_VARINT, PB_VARINT, PB_BYTES,
                                         PB_FIXED64, PB_VARINT};
    struct pb_reader reader = pb_reader_of(value);
    struct pb_field field;
    while (pb_next(&reader, &field)) {
        if (field.number >= sizeof KINDS / sizeof KINDS[0])
            continue;
        if (field.wire != WIRES[field.number])
            return false;
        out->kind = KINDS[field.number];
        out->number = field.value;
        out->text = field.bytes;
    }
    return !reader.is_malformed;
}

/* An entry of map<string, InferParameter>. A value that comes twice is merged, as any message. */
static bool read_parameter(struct view entry, struct parameter *out) {
    struct pb_reader reader = pb_reader_of(entry);
    struct pb_field field;
    *out = (struct parameter){.name = {.data = "", .size = 0}};
    while (pb_next(&reader, &field)) {
        if ((field.number == 1 || field.number == 2) && field.wire != PB_BYTES)
            return false;
        if (field.number == 1)
            out->name = field.bytes;
        else if (field.number == 2 && !read_value(field.bytes, out))
            return false;
    }
    return !reader.is_malformed;
}

/* A whole number from 0 on, whichever way it was sent. */
static bool parameter_count(const struct parameter *parameter, uint64_t *out) {
    if (parameter->kind != PARAM_UINT &&
        !(parameter->kind == PARAM_INT && parameter->number <= INT64_MAX))
        return false;
    *out = parameter->number;
    return true;
}

/* What a client sends that has no sequence. */
static bool is_nothing(const struct parameter *parameter) {
    return parameter->kind == PARAM_TEXT ? parameter->text.size == 0 : parameter->number == 0;
}

static enum status take_request_parameter(struct view entry, struct infer_request *out,
                                          struct infer_pb_options *options, struct err *err) {
    struct parameter parameter;
    if (!read_parameter(entry, &parameter))
        return malformed(err, "an entry of parameters");
    const struct view name = parameter.name;
    if (view_is(name, "timeout")) {
        out->has_timeout = true;
        if (!parameter_count(&parameter, &out->timeout_us))
            return err_set(err, ST_INVALID,
                           "parameters: timeout must be a whole number of microseconds");
    } else if (view_is(name, "priority")) {
        if (!parameter_count(&parameter, &out->priority))
            return err_set(err, ST_INVALID,
                           "parameters: priority must be a whole number from 0 on");
    } else if (view_is(name, "triton_enable_empty_final_response")) {
        if (parameter.kind != PARAM_BOOL)
            return err_set(err, ST_INVALID, "parameters: triton_enable_empty_final_response must "
                                            "be true or false");
        options->wants_final_flag = parameter.number != 0;
    } else if ((view_is(name, "sequence_id") || view_is(name, "sequence_start") ||
                view_is(name, "sequence_end")) && !is_nothing(&parameter)) {
        return err_set(err, ST_UNSUPPORTED,
                       "parameters: %.*s: a model that keeps state between the requests of a "
                       "sequence is not supported", VIEW_ARGS(name));
    }
    return ST_OK;
}

/* ---- tensors ---- */

enum status infer_pb_fail(const struct infer_pb_place *at, enum status status, struct err *err) {
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    if (at->name.size == 0)
        return err_set(err, status, "%s[%u]: %s", at->list, at->index, text);
    const int shown = (int)(at->name.size < SHOWN_NAME_BYTES ? at->name.size : SHOWN_NAME_BYTES);
    return err_set(err, status, "%s[%u] (%.*s): %s", at->list, at->index, shown, at->name.data,
                   text);
}

static enum status fail_at(const struct infer_pb_place *at, struct err *err, const char *text) {
    (void)err_set(err, ST_INVALID, "%s", text);
    return infer_pb_fail(at, ST_INVALID, err);
}

struct tensor_parameters {
    struct shared_place shared;
    bool has_offset, has_size;
    uint64_t classification;
};

static enum status take_tensor_parameter(const struct infer_pb_place *at, struct view entry,
                                         struct tensor_parameters *out, struct err *err) {
    struct parameter parameter;
    if (!read_parameter(entry, &parameter))
        return fail_at(at, err, "an entry of parameters is malformed");
    if (view_is(parameter.name, "shared_memory_region")) {
        if (parameter.kind != PARAM_TEXT || parameter.text.size == 0)
            return fail_at(at, err, "shared_memory_region must be a region's name");
        out->shared.region = parameter.text;
    } else if (view_is(parameter.name, "shared_memory_byte_size")) {
        out->has_size = true;
        if (!parameter_count(&parameter, &out->shared.size))
            return fail_at(at, err, "shared_memory_byte_size must be a number of bytes");
    } else if (view_is(parameter.name, "shared_memory_offset")) {
        out->has_offset = true;
        if (!parameter_count(&parameter, &out->shared.offset))
            return fail_at(at, err, "shared_memory_offset must be a number of bytes");
    } else if (view_is(parameter.name, "classification")) {
        if (!parameter_count(&parameter, &out->classification) ||
            out->classification > INFER_MAX_CLASSES)
            return fail_at(at, err, "classification must be a number up to 1000000");
    }
    return ST_OK;
}

static enum status check_shared(const struct infer_pb_place *at,
                                const struct tensor_parameters *parameters, struct err *err) {
    if (parameters->shared.region.size == 0)
        return parameters->has_size || parameters->has_offset
                   ? fail_at(at, err, "shared_memory_region is missing") : ST_OK;
    return parameters->has_size
               ? ST_OK : fail_at(at, err, "shared_memory_byte_size must be a number of bytes");
}

static enum status take_dimension(const struct infer_pb_place *at, uint64_t value,
                                  struct tensor *tensor, struct err *err) {
    if (tensor->rank == TENSOR_MAX_RANK)
        return fail_at(at, err, "shape has more than 8 dimensions");
    if (value > INT64_MAX)
        return fail_at(at, err, "shape has a negative dimension");
    tensor->shape[tensor->rank++] = (int64_t)value;
    return ST_OK;
}

static enum status take_shape(const struct infer_pb_place *at, const struct pb_field *field,
                              struct tensor *tensor, struct err *err) {
    if (field->wire == PB_VARINT)
        return take_dimension(at, field->value, tensor, err);
    if (field->wire != PB_BYTES)
        return fail_at(at, err, "shape has another wire type than the protocol says");
    struct pb_reader reader = pb_reader_of(field->bytes);
    uint64_t value = 0;
    enum status status = ST_OK;
    while (status == ST_OK && pb_next_varint(&reader, &value))
        status = take_dimension(at, value, tensor, err);
    return status == ST_OK && reader.is_malformed ? fail_at(at, err, "shape is malformed") : status;
}

/* The name first, for the sentences about the rest. */
static struct view name_of(struct view message) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    struct view name = {.data = "", .size = 0};
    while (pb_next(&reader, &field))
        if (field.number == 1 && field.wire == PB_BYTES)
            name = field.bytes;
    return name;
}

static enum status read_input_field(const struct infer_pb_place *at, const struct pb_field *field,
                                    struct tensor *tensor, bool *has_datatype,
                                    struct tensor_parameters *parameters, struct err *err) {
    enum { DATATYPE = 2, SHAPE = 3, INPUT_PARAMETERS = 4 };
    if (field->number == SHAPE)
        return take_shape(at, field, tensor, err);
    if ((field->number >= 1 && field->number <= 5) && field->wire != PB_BYTES)
        return fail_at(at, err, "a field has another wire type than the protocol says");
    if (field->number == INPUT_PARAMETERS)
        return take_tensor_parameter(at, field->bytes, parameters, err);
    if (field->number != DATATYPE)
        return ST_OK;
    *has_datatype = dtype_parse(field->bytes, &tensor->dtype);
    if (*has_datatype)
        return ST_OK;
    const int shown = (int)(field->bytes.size < 32 ? field->bytes.size : 32);
    (void)err_set(err, ST_INVALID, "datatype \"%.*s\" is not known", shown, field->bytes.data);
    return infer_pb_fail(at, ST_INVALID, err);
}

/* Everything but the contents. */
static enum status read_input(const struct infer_pb_place *at, struct view message,
                              struct tensor *tensor, struct shared_place *shared, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    struct tensor_parameters parameters = {.has_size = false};
    bool has_datatype = false;
    enum status status = ST_OK;
    *tensor = (struct tensor){.name = at->name};
    while (status == ST_OK && pb_next(&reader, &field))
        status = read_input_field(at, &field, tensor, &has_datatype, &parameters, err);
    if (status != ST_OK)
        return status;
    if (reader.is_malformed)
        return fail_at(at, err, "malformed");
    if (at->name.size == 0)
        return fail_at(at, err, "name is missing");
    if (!json_text_is_utf8(at->name.data, at->name.size))
        return fail_at(at, err, "name is not UTF-8");
    if (!has_datatype)
        return fail_at(at, err, "datatype is missing");
    size_t count = 0;
    if (!tensor_elements(tensor->shape, tensor->rank, &count))
        return fail_at(at, err, "shape has more elements than fit into memory");
    *shared = parameters.shared;
    return check_shared(at, &parameters, err);
}

static enum status read_output(const struct infer_pb_place *at, struct view message,
                               struct requested_output *out, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    struct tensor_parameters parameters = {.has_size = false};
    enum status status = ST_OK;
    while (status == ST_OK && pb_next(&reader, &field)) {
        if ((field.number == 1 || field.number == 2) && field.wire != PB_BYTES)
            return fail_at(at, err, "a field has another wire type than the protocol says");
        if (field.number == 2)
            status = take_tensor_parameter(at, field.bytes, &parameters, err);
    }
    if (status != ST_OK)
        return status;
    if (reader.is_malformed)
        return fail_at(at, err, "malformed");
    if (at->name.size == 0)
        return fail_at(at, err, "name is missing");
    *out = (struct requested_output){.name = at->name,
                                     .wants_binary = true,
                                     .classification = (uint32_t)parameters.classification,
                                     .shared = parameters.shared};
    return check_shared(at, &parameters, err);
}

/* ---- the message ---- */

struct lists {
    struct view *inputs, *outputs, *raws; /* INPUTS, OUTPUTS, RAW as they came */
    uint32_t input_count, output_count, raw_count;
};

static enum status count_lists(struct view message, struct lists *lists, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    while (pb_next(&reader, &field)) {
        if (field.number < INPUTS || field.number > RAW)
            continue;
        if (field.wire != PB_BYTES)
            return wrong_wire(err, "a field of inputs, outputs or raw_input_contents");
        uint32_t *count = field.number == INPUTS    ? &lists->input_count
                          : field.number == OUTPUTS ? &lists->output_count : &lists->raw_count;
        if (++*count > INFER_MAX_TENSORS)
            return err_set(err, ST_INVALID, "%s: more than %d",
                           field.number == INPUTS    ? "inputs"
                           : field.number == OUTPUTS ? "outputs" : "raw_input_contents",
                           INFER_MAX_TENSORS);
    }
    return reader.is_malformed ? malformed(err, "the request") : ST_OK;
}

static enum status collect(struct view message, struct lists *lists, struct infer_request *out,
                           struct infer_pb_options *options, struct err *err) {
    struct pb_reader reader = pb_reader_of(message);
    struct pb_field field;
    uint32_t inputs = 0, outputs = 0, raws = 0;
    enum status status = ST_OK;
    while (status == ST_OK && pb_next(&reader, &field)) {
        struct view unused;
        switch (field.number) {
        case NAME: /* the caller has them already: infer_pb_route */
        case VERSION:
            status = take_text(&field, "model_name or model_version", &unused, err);
            break;
        case ID:
            status = take_text(&field, "id", &out->id, err);
            break;
        case PARAMETERS:
            status = field.wire == PB_BYTES
                         ? take_request_parameter(field.bytes, out, options, err)
                         : wrong_wire(err, "parameters");
            break;
        case INPUTS:
            lists->inputs[inputs++] = field.bytes;
            break;
        case OUTPUTS:
            lists->outputs[outputs++] = field.bytes;
            break;
        case RAW:
            lists->raws[raws++] = field.bytes;
            break;
        default:
            break;
        }
    }
    return status;
}

static bool name_comes_before(const struct view *names, size_t stride, uint32_t index) {
    const char *base = (const char *)names;
    const struct view *present = (const void *)(base + index * stride);
    for (uint32_t i = 0; i < index; i++)
        if (view_eq(*(const struct view *)(const void *)(base + i * stride), *present))
            return true;
    return false;
}

/* where: what says the size. */
static enum status check_size(const struct infer_pb_place *at, const struct tensor *tensor,
                              const char *where, struct err *err) {
    const size_t width = dtype_size(tensor->dtype);
    size_t count = 0;
    char shape[96];
    (void)tensor_elements(tensor->shape, tensor->rank, &count);
    if (width == 0 || tensor->size == count * width)
        return ST_OK;
    (void)err_set(err, ST_INVALID, "%s has %zu bytes, shape %s of %s needs %zu", where,
                  tensor->size,
                  tensor_shape_text(tensor->shape, tensor->rank, shape, sizeof shape),
                  dtype_name(tensor->dtype), count * width);
    return infer_pb_fail(at, ST_INVALID, err);
}

/* The bytes of an input that is not shared. */
static enum status take_data(const struct infer_pb_place *at, const struct lists *lists,
                             uint32_t *raw, struct arena *arena, struct tensor *tensor,
                             struct err *err) {
    const struct view contents = infer_pb_contents(lists->inputs[at->index]);
    if (lists->raw_count == 0)
        return infer_pb_read_contents(at, contents, arena, tensor, err);
    if (contents.size)
        return fail_at(at, err, "contents must not be given where raw_input_contents is used");
    if (*raw == lists->raw_count)
        return fail_at(at, err, "raw_input_contents has no entry for it");
    const struct view bytes = lists->raws[(*raw)++];
    tensor->data = bytes.data;
    tensor->size = bytes.size;
    enum status status = check_size(at, tensor, "raw_input_contents", err);
    if (status != ST_OK)
        return status;
    status = infer_data_check(tensor, err);
    return status == ST_OK ? ST_OK : infer_pb_fail(at, status, err);
}

static enum status take_shared(const struct infer_pb_place *at, const struct lists *lists,
                               const struct shared_place *shared, struct arena *arena,
                               struct infer_request *out, struct err *err) {
    struct tensor *tensor = &out->inputs[at->index];
    if (infer_pb_contents(lists->inputs[at->index]).size)
        return fail_at(at, err, "contents must not be given where the tensor is in shared memory");
    tensor->size = (size_t)shared->size;
    const enum status status = check_size(at, tensor, "its place in shared memory", err);
    if (status != ST_OK)
        return status;
    if (!out->shared_inputs)
        out->shared_inputs = arena_array(arena, lists->input_count, sizeof *out->shared_inputs);
    if (!out->shared_inputs)
        return err_set(err, ST_NO_MEMORY, "no memory for %u inputs", lists->input_count);
    out->shared_inputs[at->index] = *shared;
    return ST_OK;
}

static enum status read_inputs(const struct lists *lists, struct arena *arena,
                               struct infer_request *out, struct err *err) {
    uint32_t raw = 0;
    for (uint32_t i = 0; i < lists->input_count; i++) {
        struct tensor *tensor = &out->inputs[i];
        struct shared_place shared = {.size = 0};
        const struct infer_pb_place at = {"inputs", i, name_of(lists->inputs[i])};
        enum status status = read_input(&at, lists->inputs[i], tensor, &shared, err);
        if (status == ST_OK && name_comes_before(&out->inputs[0].name, sizeof *tensor, i))
            return fail_at(&at, err, "an input of this name came before");
        if (status == ST_OK && shared.region.size == 0)
            status = take_data(&at, lists, &raw, arena, tensor, err);
        else if (status == ST_OK)
            status = take_shared(&at, lists, &shared, arena, out, err);
        if (status != ST_OK)
            return status;
    }
    if (raw < lists->raw_count)
        return err_set(err, ST_INVALID, "raw_input_contents has %u entries, the inputs need %u",
                       lists->raw_count, raw);
    return ST_OK;
}

static enum status read_outputs(const struct lists *lists, struct infer_request *out,
                                struct err *err) {
    for (uint32_t i = 0; i < lists->output_count; i++) {
        const struct infer_pb_place at = {"outputs", i, name_of(lists->outputs[i])};
        const enum status status = read_output(&at, lists->outputs[i], &out->outputs[i], err);
        if (status != ST_OK)
            return status;
        if (name_comes_before(&out->outputs[0].name, sizeof out->outputs[0], i))
            return fail_at(&at, err, "an output of this name came before");
    }
    return ST_OK;
}

enum status infer_pb_request_parse(struct view message, struct arena *arena,
                                   struct infer_request *out, struct infer_pb_options *out_options,
                                   struct err *err) {
    struct lists lists = {.input_count = 0};
    struct infer_request parsed = {.wants_binary = true};
    struct infer_pb_options options = {.wants_final_flag = false};
    enum status status = count_lists(message, &lists, err);
    if (status != ST_OK)
        return status;
    lists.inputs = arena_array(arena, lists.input_count, sizeof *lists.inputs);
    lists.outputs = arena_array(arena, lists.output_count, sizeof *lists.outputs);
    lists.raws = arena_array(arena, lists.raw_count, sizeof *lists.raws);
    parsed.inputs = arena_array(arena, lists.input_count, sizeof *parsed.inputs);
    parsed.outputs = arena_array(arena, lists.output_count, sizeof *parsed.outputs);
    if (!lists.inputs || !lists.outputs || !lists.raws || !parsed.inputs || !parsed.outputs)
        return err_set(err, ST_NO_MEMORY, "no memory for the inference request's tensors");
    parsed.input_count = lists.input_count;
    parsed.output_count = lists.output_count;
    status = collect(message, &lists, &parsed, &options, err);
    if (status == ST_OK)
        status = read_inputs(&lists, arena, &parsed, err);
    if (status == ST_OK)
        status = read_outputs(&lists, &parsed, err);
    if (status == ST_OK) {
        *out_options = options;
        *out = parsed;
    } else {
        out->id = parsed.id; /* so that the error can say whose it is */
    }
    return status;
}

// Inference JSON, parsed: requests as the server reads them, responses and model metadata as a
// client does. simdjson's DOM does the reading; this turns it into views and arrays in the arena.
//
// Thread: any; each keeps one parser, given back when a document was large. No exception is thrown
// or crosses: simdjson is used through its error codes, and nothing else here allocates but the
// arena. Invariant: out is written only when everything was right.
//
// Read next: infer_data.hpp (tensor elements), infer_write.c (the other direction).
extern "C" {
#include "proto/infer_json.h"
#include "proto/json_text.h"
}
#define SIMDJSON_EXCEPTIONS 0
#include "proto/infer_parameters.hpp"
#include "proto/json_parser.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace infer;

namespace {

enum status parse_root(simdjson::dom::parser *parser, struct view body, size_t json_size,
                       struct err *err, object *out_root) {
    if (json_size > body.size)
        return err_set(err, ST_INVALID,
                       "Inference-Header-Content-Length is %zu, the body has only %zu bytes",
                       json_size, body.size);
    if (json_size == 0)
        return err_set(err, ST_INVALID, "the body is empty, it must begin with a JSON object");
    element root;
    const auto code = parser ? parser->parse(body.data, json_size, false).get(root)
                             : simdjson::MEMALLOC;
    if (code == simdjson::MEMALLOC)
        return err_set(err, ST_NO_MEMORY, "no memory to parse %zu bytes of JSON", json_size);
    if (code == simdjson::CAPACITY)
        return err_set(err, ST_TOO_LARGE, "%zu bytes of JSON are more than can be parsed",
                       json_size);
    if (code == simdjson::NUMBER_ERROR)
        return err_set(err, ST_INVALID, "the JSON does not parse: a number is malformed, or beyond "
                                        "64 bits or the range of a double");
    if (code != SUCCESS)
        return err_set(err, ST_INVALID, "the JSON does not parse: %s",
                       simdjson::error_message(code));
    if (root.get(*out_root) != SUCCESS)
        return err_set(err, ST_INVALID, "the JSON must be an object, not %s",
                       root.is_array() ? "an array" : "a single value");
    return ST_OK;
}

struct tensor_members {
    enum { NAME, SHAPE, DATATYPE, PARAMETERS, DATA, COUNT };
    member all[COUNT] = {{"name", {}, false},
                         {"shape", {}, false},
                         {"datatype", {}, false},
                         {"parameters", {}, false},
                         {"data", {}, false}};
};

enum status read_shape(const reading &r, const place &at, const member &from,
                       struct tensor *tensor) {
    array dims;
    if (!from.is_present)
        return fail_at(r, at, ST_INVALID, "shape is missing");
    if (from.value.get(dims) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "shape must be an array of integers");
    tensor->rank = 0;
    for (const element dim : dims) {
        int64_t value = 0;
        if (tensor->rank == TENSOR_MAX_RANK)
            return fail_at(r, at, ST_INVALID, "shape has more than %d dimensions",
                           int(TENSOR_MAX_RANK));
        if (dim.get(value) != SUCCESS || value < (r.any_shape ? -1 : 0)) {
            char text[64];
            return fail_at(r, at, ST_INVALID, "shape[%u] is %s, not %s", tensor->rank,
                           show(dim, text),
                           r.any_shape ? "an integer from -1 on" : "a whole number of elements");
        }
        tensor->shape[tensor->rank++] = value;
    }
    return ST_OK;
}

enum status explain_data(const reading &r, const place &at, const struct tensor *tensor,
                         const array &data, const walk_state &state, problem found) {
    char shape[96], text[64];
    tensor_shape_text(tensor->shape, tensor->rank, shape, sizeof shape);
    const char *type = dtype_name(tensor->dtype);
    switch (found) {
    case problem::mixed:
        return fail_at(r, at, ST_INVALID, "data mixes arrays and values on one level");
    case problem::not_integer:
        return fail_at(r, at, ST_INVALID,
                       "data[%zu] is %s or the like, %s takes integers, written without fraction "
                       "or exponent", state.index, show(state.bad, text), type);
    case problem::wrong_type:
    case problem::out_of_range:
        return fail_at(r, at, ST_INVALID, "data[%zu] is %s, %s %s", state.index,
                       show(state.bad, text), type, range_text(tensor->dtype));
    default:
        break;
    }
    walk_state counting = {0, SIZE_MAX, state.depth, nullptr, {}};
    count_sink count;
    if (walk(data, 1, counting, count) == problem::mixed)
        return fail_at(r, at, ST_INVALID, "data mixes arrays and values on one level");
    if (found == problem::nesting && counting.index == state.limit)
        return fail_at(r, at, ST_INVALID, "data is not nested as its shape %s says", shape);
    return fail_at(r, at, ST_INVALID, "data has %zu elements, shape %s needs %zu", counting.index,
                   shape, state.limit);
}

problem fill(struct tensor *tensor, char *to, const array &data, walk_state &state) {
    switch (tensor->dtype) {
#define NUMBERS(dtype, type)                                                                   \
    case DTYPE_##dtype: {                                                                      \
        number_sink<type> sink{to};                                                            \
        return walk(data, 1, state, sink);                                                     \
    }
        NUMBERS(UINT8, uint8_t)
        NUMBERS(UINT16, uint16_t)
        NUMBERS(UINT32, uint32_t)
        NUMBERS(UINT64, uint64_t)
        NUMBERS(INT8, int8_t)
        NUMBERS(INT16, int16_t)
        NUMBERS(INT32, int32_t)
        NUMBERS(INT64, int64_t)
        NUMBERS(FP32, float)
        NUMBERS(FP64, double)
#undef NUMBERS
    case DTYPE_BOOL: {
        bool_sink sink{to};
        return walk(data, 1, state, sink);
    }
    default: {
        bytes_copy_sink sink{to};
        return walk(data, 1, state, sink);
    }
    }
}

enum status read_json_data(const reading &r, const place &at, const element &from, size_t count,
                           struct tensor *tensor) {
    array data;
    if (tensor->dtype == DTYPE_FP16 || tensor->dtype == DTYPE_BF16)
        return fail_at(r, at, ST_INVALID, "%s cannot be sent as JSON, use binary data",
                       dtype_name(tensor->dtype));
    if (from.get(data) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "data must be an array");
    const uint32_t rank = tensor->rank > 0 ? tensor->rank : 1;
    walk_state start;
    start.limit = count;
    start.depth = depth_of(data, rank);
    if (start.depth > rank)
        return fail_at(r, at, ST_INVALID, "data is nested deeper than its shape's %u dimensions",
                       tensor->rank);
    if (start.depth == tensor->rank)
        start.shape = tensor->shape;
    if (count > r.json_size) // each element takes a byte: shape cannot be right
        return explain_data(r, at, tensor, data, start, problem::too_many);
    tensor->size = count * dtype_size(tensor->dtype);
    if (tensor->dtype == DTYPE_BYTES) {
        walk_state state = start;
        bytes_size_sink size;
        const problem found = walk(data, 1, state, size);
        if (found != problem::none)
            return explain_data(r, at, tensor, data, state, found);
        tensor->size = size.size;
    }
    char *to = static_cast<char *>(arena_alloc_aligned64(r.arena, tensor->size));
    if (!to)
        return no_memory(r);
    walk_state state = start;
    problem found = fill(tensor, to, data, state);
    if (found == problem::none && state.index != count)
        found = problem::too_many; // or too few: the sentence is the same
    if (found != problem::none)
        return explain_data(r, at, tensor, data, state, found);
    tensor->data = to;
    return ST_OK;
}

enum status check_data(const reading &r, const place &at, const struct tensor *tensor) {
    struct err why = {};
    const enum status status = infer_data_check(tensor, &why);
    return status == ST_OK ? ST_OK : fail_at(r, at, status, "%s", why.text);
}

// The next size bytes of the binary part.
enum status take_binary(reading &r, const place &at, uint64_t size, struct tensor *tensor) {
    const size_t left = r.binary.size - r.binary_used;
    if (size > left)
        return fail_at(r, at, ST_INVALID,
                       "binary_data_size is %llu, only %zu bytes of binary data are left",
                       static_cast<unsigned long long>(size), left);
    tensor->data = r.binary.data + r.binary_used;
    tensor->size = size_t(size);
    r.binary_used += size_t(size);
    return check_data(r, at, tensor);
}

enum status take_shared(const reading &r, const place &at, const struct shared_place *shared,
                        size_t count, struct tensor *tensor) {
    const size_t width = dtype_size(tensor->dtype);
    tensor->size = size_t(shared->size);
    if (width > 0 && shared->size != count * width) {
        char shape[96];
        return fail_at(r, at, ST_INVALID, "shared_memory_byte_size is %llu, shape %s of %s needs %zu",
                       static_cast<unsigned long long>(shared->size),
                       tensor_shape_text(tensor->shape, tensor->rank, shape, 96),
                       dtype_name(tensor->dtype), count * width);
    }
    return ST_OK;
}

enum status read_tensor_data(reading &r, const place &at, const tensor_members &m,
                             struct tensor *tensor, struct shared_place *out_shared) {
    const member &data = m.all[m.DATA];
    struct tensor_parameters parameters;
    const enum status status =
        read_tensor_parameters(r, at, m.all[m.PARAMETERS], &parameters);
    if (status != ST_OK)
        return status;
    size_t count = 0;
    if (!tensor_elements(tensor->shape, tensor->rank, &count))
        return fail_at(r, at, ST_INVALID, "shape has more elements than can be counted");
    const bool is_shared = parameters.shared.region.size > 0;
    if (data.is_present && (parameters.has_size || is_shared))
        return fail_at(r, at, ST_INVALID, "has both data and %s",
                       is_shared ? "shared_memory_region" : "binary_data_size");
    if (parameters.has_size && is_shared)
        return fail_at(r, at, ST_INVALID, "has both binary_data_size and shared_memory_region");
    *out_shared = parameters.shared;
    if (is_shared)
        return take_shared(r, at, out_shared, count, tensor);
    if (parameters.has_size)
        return take_binary(r, at, parameters.binary_size, tensor);
    if (data.is_present)
        return read_json_data(r, at, data.value, count, tensor);
    const size_t width = dtype_size(tensor->dtype);
    // The size may be left out where the shape gives it.
    if (r.binary.size == 0 || width == 0)
        return fail_at(r, at, ST_INVALID, "data is missing");
    return take_binary(r, at, uint64_t(count) * width, tensor);
}

// has_data: false for metadata. A tensor that is in shared memory is said to be in out_shared.
enum status read_tensor(reading &r, const element &from, const char *list, uint32_t index,
                        bool has_data, struct tensor *tensor, struct shared_place *out_shared) {
    place at = {list, index, {}};
    object members;
    tensor_members m;
    std::string_view text;
    *tensor = {};
    if (from.get(members) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "must be an object");
    const char *twice = find_members(members, m.all, m.COUNT);
    if (twice)
        return fail_at(r, at, ST_INVALID, "%s comes twice", twice);
    if (!m.all[m.NAME].is_present || m.all[m.NAME].value.get(text) != SUCCESS || text.empty())
        return fail_at(r, at, ST_INVALID, "name must be a string that is not empty");
    enum status status = copy_text(r, text, &tensor->name);
    if (status != ST_OK)
        return status;
    at.name = text;
    if (!m.all[m.DATATYPE].is_present)
        return fail_at(r, at, ST_INVALID, "datatype is missing");
    if (m.all[m.DATATYPE].value.get(text) != SUCCESS ||
        !dtype_parse({text.data(), text.size()}, &tensor->dtype)) {
        char shown[64];
        return fail_at(r, at, ST_INVALID, "datatype %s is unknown (FP32, INT64, BYTES, ...)",
                       show(m.all[m.DATATYPE].value, shown));
    }
    status = read_shape(r, at, m.all[m.SHAPE], tensor);
    if (status != ST_OK || !has_data)
        return status;
    return read_tensor_data(r, at, m, tensor, out_shared);
}

enum status keep_shared(const reading &r, const struct shared_place &shared, uint32_t index,
                        size_t count, struct shared_place **wanted, struct shared_place **places) {
    if (!wanted)
        return err_set(r.err, ST_INVALID, "the tensor is in shared memory, which was not asked for");
    if (!*places)
        *places = static_cast<struct shared_place *>(arena_array(r.arena, count, sizeof **places));
    if (!*places)
        return no_memory(r);
    (*places)[index] = shared;
    return ST_OK;
}

// out_shared (by tensor, or NULL) is for requests; elsewhere nothing can be shared.
enum status read_tensors(reading &r, const member &from, bool has_data, struct tensor **out,
                         uint32_t *out_count, struct shared_place **out_shared) {
    const char *list_name = from.name.data();
    array list;
    if (!from.is_present)
        return err_set(r.err, ST_INVALID, "%s is missing", list_name);
    if (from.value.get(list) != SUCCESS)
        return err_set(r.err, ST_INVALID, "%s must be an array", list_name);
    const size_t count = list.size();
    if (count > INFER_MAX_TENSORS)
        return err_set(r.err, ST_INVALID, "%s has %zu entries, the limit is %d", list_name, count,
                       int(INFER_MAX_TENSORS));
    struct tensor *tensors =
        static_cast<struct tensor *>(arena_array(r.arena, count + 1, sizeof *tensors));
    if (!tensors)
        return no_memory(r);
    struct shared_place *places = nullptr;
    uint32_t index = 0;
    for (const element e : list) {
        struct shared_place shared = {};
        enum status status =
            read_tensor(r, e, list_name, index, has_data, &tensors[index], &shared);
        if (status == ST_OK && shared.region.size > 0)
            status = keep_shared(r, shared, index, count, out_shared, &places);
        if (status != ST_OK)
            return status;
        const struct view name = tensors[index].name;
        for (uint32_t i = 0; i < index; i++)
            if (view_eq(tensors[i].name, name))
                return fail_at(r, {list_name, index, {name.data, name.size}}, ST_INVALID,
                               "has the same name as %s[%u]", list_name, i);
        index++;
    }
    if (out_shared)
        *out_shared = places;
    *out = tensors;
    *out_count = index;
    return ST_OK;
}

enum status check_binary_used(const reading &r, const char *list) {
    if (r.binary_used == r.binary.size)
        return ST_OK;
    return err_set(r.err, ST_INVALID, "%zu bytes follow the JSON, the %s account for %zu of them",
                   r.binary.size, list, r.binary_used);
}

enum status read_output(const reading &r, const element &from, uint32_t index, bool wants_binary,
                        struct requested_output *out) {
    place at = {"outputs", index, {}};
    object members;
    member m[] = {{"name", {}, false}, {"parameters", {}, false}};
    std::string_view name;
    if (from.get(members) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "must be an object");
    if (const char *twice = find_members(members, m, 2))
        return fail_at(r, at, ST_INVALID, "%s comes twice", twice);
    if (!m[0].is_present || m[0].value.get(name) != SUCCESS || name.empty())
        return fail_at(r, at, ST_INVALID, "name must be a string that is not empty");
    at.name = name;
    *out = {};
    out->wants_binary = wants_binary;
    enum status status = copy_text(r, name, &out->name);
    if (status != ST_OK || !m[1].is_present)
        return status;
    if (m[1].value.get(members) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "parameters must be an object");
    member known[] = {{"binary_data", {}, false}, {"classification", {}, false}};
    shared_members shared;
    const char *twice = find_members(members, known, 2);
    if (!twice)
        twice = find_members(members, shared.all, shared.COUNT);
    if (twice)
        return fail_at(r, at, ST_INVALID, "parameter %s comes twice", twice);
    uint64_t top = 0;
    if (known[0].is_present && known[0].value.get(out->wants_binary) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "binary_data must be true or false");
    if (known[1].is_present &&
        (known[1].value.get(top) != SUCCESS || top > uint64_t(INFER_MAX_CLASSES)))
        return fail_at(r, at, ST_INVALID, "classification must be a number up to %d",
                       int(INFER_MAX_CLASSES));
    out->classification = uint32_t(top);
    status = read_shared(r, at, shared, &out->shared);
    if (status == ST_OK && top > 0 && out->shared.region.size > 0)
        return fail_at(r, at, ST_INVALID,
                       "has both classification and shared_memory_region: classes are sent");
    return status;
}

enum status read_outputs(const reading &r, const member &from, struct infer_request *out) {
    if (!from.is_present)
        return ST_OK;
    array list;
    if (from.value.get(list) != SUCCESS)
        return err_set(r.err, ST_INVALID, "outputs must be an array");
    const size_t count = list.size();
    if (count > INFER_MAX_TENSORS)
        return err_set(r.err, ST_INVALID, "outputs has %zu entries, the limit is %d", count,
                       int(INFER_MAX_TENSORS));
    out->outputs = static_cast<struct requested_output *>(
        arena_array(r.arena, count + 1, sizeof *out->outputs));
    if (!out->outputs)
        return no_memory(r);
    for (const element e : list) {
        const uint32_t index = out->output_count;
        struct requested_output *output = &out->outputs[index];
        const enum status status = read_output(r, e, index, out->wants_binary, output);
        if (status != ST_OK)
            return status;
        for (uint32_t i = 0; i < index; i++)
            if (view_eq(out->outputs[i].name, output->name))
                return fail_at(r, {"outputs", index, {output->name.data, output->name.size}},
                               ST_INVALID, "has the same name as outputs[%u]", i);
        out->output_count++;
    }
    return ST_OK;
}

// A member that is a string where it is there.
enum status read_text(const reading &r, const member &from, struct view *out) {
    std::string_view text;
    if (!from.is_present)
        return ST_OK;
    if (from.value.get(text) != SUCCESS)
        return err_set(r.err, ST_INVALID, "%s must be a string", from.name.data());
    return copy_text(r, text, out);
}

reading reading_of(struct view body, size_t json_size, struct arena *arena, struct err *err) {
    return {arena, err, {body.data + json_size, body.size - json_size}, 0, false, json_size};
}

} // namespace

extern "C" enum status infer_request_parse(struct view body, size_t json_size, struct arena *arena,
                                           struct infer_request *out, struct err *err) {
    const parser_lease lease;
    object root;
    enum status status = parse_root(lease.parser, body, json_size, err, &root);
    if (status != ST_OK)
        return status;
    reading r = reading_of(body, json_size, arena, err);
    enum { ID, PARAMETERS, INPUTS, OUTPUTS, COUNT };
    member m[COUNT] = {{"id", {}, false},
                       {"parameters", {}, false},
                       {"inputs", {}, false},
                       {"outputs", {}, false}};
    if (const char *twice = find_members(root, m, COUNT))
        return err_set(err, ST_INVALID, "%s comes twice", twice);
    struct infer_request request = {};
    status = read_text(r, m[ID], &request.id);
    if (status == ST_OK)
        status = read_request_parameters(r, m[PARAMETERS], &request);
    if (status == ST_OK)
        status = read_tensors(r, m[INPUTS], true, &request.inputs, &request.input_count,
                              &request.shared_inputs);
    if (status == ST_OK)
        status = check_binary_used(r, "inputs");
    if (status == ST_OK)
        status = read_outputs(r, m[OUTPUTS], &request);
    if (status == ST_OK)
        *out = request;
    return status;
}

extern "C" enum status infer_response_parse(struct view body, size_t json_size, struct arena *arena,
                                            struct infer_response *out, struct err *err) {
    const parser_lease lease;
    object root;
    enum status status = parse_root(lease.parser, body, json_size, err, &root);
    if (status != ST_OK)
        return status;
    reading r = reading_of(body, json_size, arena, err);
    enum { NAME, VERSION, ID, OUTPUTS, ERROR, COUNT };
    member m[COUNT] = {{"model_name", {}, false},
                       {"model_version", {}, false},
                       {"id", {}, false},
                       {"outputs", {}, false},
                       {"error", {}, false}};
    if (const char *twice = find_members(root, m, COUNT))
        return err_set(err, ST_INVALID, "%s comes twice", twice);
    std::string_view text;
    if (m[ERROR].is_present && m[ERROR].value.get(text) == SUCCESS)
        return err_set(err, ST_INVALID, "the server answered: %.*s",
                       int(text.size() < 400 ? text.size() : 400), text.data());
    struct infer_response response = {};
    status = read_text(r, m[NAME], &response.model_name);
    if (status == ST_OK)
        status = read_text(r, m[VERSION], &response.model_version);
    if (status == ST_OK)
        status = read_text(r, m[ID], &response.id);
    if (status == ST_OK)
        status = read_tensors(r, m[OUTPUTS], true, &response.outputs,
                              &response.output_count, nullptr);
    if (status == ST_OK)
        status = check_binary_used(r, "outputs");
    if (status == ST_OK)
        *out = response;
    return status;
}

extern "C" enum status model_metadata_parse(struct view body, struct arena *arena,
                                            struct model_metadata *out, struct err *err) {
    const parser_lease lease;
    object root;
    enum status status = parse_root(lease.parser, body, body.size, err, &root);
    if (status != ST_OK)
        return status;
    reading r = reading_of(body, body.size, arena, err);
    r.any_shape = true;
    enum { NAME, PLATFORM, INPUTS, OUTPUTS, COUNT };
    member m[COUNT] = {{"name", {}, false},
                       {"platform", {}, false},
                       {"inputs", {}, false},
                       {"outputs", {}, false}};
    if (const char *twice = find_members(root, m, COUNT))
        return err_set(err, ST_INVALID, "%s comes twice", twice);
    struct model_metadata metadata = {};
    status = read_text(r, m[NAME], &metadata.name);
    if (status == ST_OK)
        status = read_text(r, m[PLATFORM], &metadata.platform);
    if (status == ST_OK)
        status = read_tensors(r, m[INPUTS], false, &metadata.inputs,
                              &metadata.input_count, nullptr);
    if (status == ST_OK)
        status = read_tensors(r, m[OUTPUTS], false, &metadata.outputs,
                              &metadata.output_count, nullptr);
    if (status == ST_OK)
        *out = metadata;
    return status;
}

extern "C" enum status infer_data_check(const struct tensor *tensor, struct err *err) {
    size_t count = 0;
    if (!tensor_elements(tensor->shape, tensor->rank, &count))
        return err_set(err, ST_INVALID, "shape has more elements than can be counted");
    if (tensor->dtype == DTYPE_BYTES) {
        if (tensor_bytes_valid(tensor->data, tensor->size, count))
            return ST_OK;
        return err_set(err, ST_INVALID,
                       "its %zu bytes of binary data are not %zu elements, each a 4-byte length "
                       "and that many bytes", tensor->size, count);
    }
    const size_t width = dtype_size(tensor->dtype);
    if (tensor->size != count * width) {
        char shape[96];
        return err_set(err, ST_INVALID, "binary_data_size is %zu, shape %s of %s needs %zu",
                       tensor->size,
                       tensor_shape_text(tensor->shape, tensor->rank, shape, sizeof shape),
                       dtype_name(tensor->dtype), count * width);
    }
    const unsigned char *bytes = static_cast<const unsigned char *>(tensor->data);
    for (size_t i = 0; tensor->dtype == DTYPE_BOOL && i < tensor->size; i++)
        if (bytes[i] > 1)
            return err_set(err, ST_INVALID, "data[%zu] is %u, BOOL takes 0 or 1", i,
                           unsigned(bytes[i]));
    return ST_OK;
}

// to_chars writes negative zero as "-0", an integer to most readers, which have only one zero.
template <typename T> static size_t number_text(T value, char *out) {
    if (value == 0 && std::signbit(value)) {
        std::memcpy(out, "-0.0", 4);
        return 4;
    }
    char *end = std::to_chars(out, out + JSON_TEXT_MAX_NUMBER, value).ptr;
    // 18446744073709551616: an integer beyond 64 bits to most readers, which refuse it.
    if (std::fabs(value) >= T(0x1p63) &&
        std::all_of(out, end, [](char c) { return c == '-' || (c >= '0' && c <= '9'); })) {
        std::memcpy(end, ".0", 2);
        end += 2;
    }
    return size_t(end - out);
}

extern "C" size_t json_text_f32(float value, char out[JSON_TEXT_MAX_NUMBER]) {
    return number_text(value, out);
}

extern "C" size_t json_text_f64(double value, char out[JSON_TEXT_MAX_NUMBER]) {
    return number_text(value, out);
}

extern "C" bool json_text_is_utf8(const char *text, size_t size) {
    return simdjson::validate_utf8(text, size);
}

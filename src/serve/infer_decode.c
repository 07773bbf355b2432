/* HTTP message to inference request: JSON, JSON with binary tensors, or one raw binary tensor
 * (Inference-Header-Content-Length: 0). Loop thread only.
 *
 * Invariant: tensors point into the message's body or into the request's arena, nowhere else.
 * Read next: proto/infer_json.h. */
#include "serve/infer_decode.h"

#include "engine/engine.h"
#include <strings.h>

/* Two of them would be read differently by two programs, like two Content-Length. */
static bool comes_twice(const struct http_message *message, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < message->header_count; i++)
        count += message->headers[i].name.size == strlen(name) &&
                 strncasecmp(message->headers[i].name.data, name, strlen(name)) == 0;
    return count > 1;
}

static enum status parse_json_size(const struct http_message *message, size_t *out_size,
                                   struct err *err) {
    const struct view text = http_header(message, "Inference-Header-Content-Length");
    *out_size = message->body.size;
    if (!text.data)
        return ST_OK;
    if (comes_twice(message, "Inference-Header-Content-Length"))
        return err_set(err, ST_INVALID, "Inference-Header-Content-Length comes twice");
    size_t size = 0;
    bool is_number = text.size > 0 && text.size <= 15;
    for (size_t i = 0; is_number && i < text.size; i++) {
        is_number = text.data[i] >= '0' && text.data[i] <= '9';
        size = size * 10 + (size_t)(text.data[i] - '0');
    }
    if (!is_number)
        return err_set(err, ST_INVALID, "Inference-Header-Content-Length: \"%.*s\" is no length",
                       (int)(text.size < 40 ? text.size : 40), text.data);
    if (size > message->body.size)
        return err_set(err, ST_INVALID,
                       "Inference-Header-Content-Length: %zu is more than the body's %zu bytes",
                       size, message->body.size);
    *out_size = size;
    return ST_OK;
}

/* Shape of a raw tensor: a batch of one, and whatever is left for one variable dimension. */
static enum status raw_shape(const struct io_spec *spec, struct tensor *tensor, struct err *err) {
    int64_t known = 1;
    int variable = -1;
    tensor->rank = spec->rank;
    for (uint32_t i = 0; i < spec->rank; i++) {
        tensor->shape[i] = spec->shape[i];
        if (i == 0 && spec->shape[0] < 0 && (spec->rank > 1 || spec->dtype == DTYPE_BYTES))
            tensor->shape[0] = 1;
        if (tensor->shape[i] >= 0)
            known *= tensor->shape[i];
        else if (variable >= 0)
            return err_set(err, ST_INVALID,
                           "%s: a raw binary request needs at most one variable dimension",
                           spec->name);
        else
            variable = (int)i;
    }
    const int64_t unit = known * (int64_t)dtype_size(spec->dtype);
    if (variable >= 0 && unit > 0)
        tensor->shape[variable] = (int64_t)tensor->size / unit;
    size_t count = 0;
    if (!tensor_elements(tensor->shape, tensor->rank, &count) ||
        count * dtype_size(spec->dtype) != tensor->size) {
        char shape[96];
        return err_set(err, ST_INVALID, "%s: %zu bytes do not fill %s of %s", spec->name,
                       tensor->size,
                       tensor_shape_text(spec->shape, spec->rank, shape, sizeof shape),
                       dtype_name(spec->dtype));
    }
    return ST_OK;
}

/* The whole body is the model's only input; all outputs go back in binary. */
static enum status decode_raw(struct exchange *exchange, const struct http_message *message) {
    struct request *request = &exchange->request;
    const struct signature *shown = &request->model->shown;
    if (shown->input_count != 1)
        return err_set(&request->err, ST_INVALID,
                       "Inference-Header-Content-Length: 0 needs a model with one input; this one "
                       "has %u", shown->input_count);
    const struct io_spec *spec = &shown->inputs[0];
    struct tensor *tensor = arena_zalloc(&request->arena, sizeof *tensor);
    if (!tensor)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the input");
    *tensor = (struct tensor){.name = view_of(spec->name), .dtype = spec->dtype,
                              .data = message->body.data, .size = message->body.size};
    if (spec->dtype == DTYPE_BYTES) {
        /* One element, the body; the length before it is ours to write. */
        if (message->body.size > UINT32_MAX - 4)
            return err_set(&request->err, ST_TOO_LARGE, "%s: more than 4 GiB", spec->name);
        char *element = arena_alloc(&request->arena, message->body.size + 4);
        if (!element)
            return err_set(&request->err, ST_NO_MEMORY, "no memory for the input");
        const uint32_t length = (uint32_t)message->body.size;
        memcpy(element, &length, 4);
        if (length)
            memcpy(element + 4, message->body.data, length);
        tensor->data = element;
        tensor->size = message->body.size + 4;
        tensor->rank = spec->rank;
        for (uint32_t i = 0; i < spec->rank; i++)
            tensor->shape[i] = 1;
    } else {
        const enum status status = raw_shape(spec, tensor, &request->err);
        if (status != ST_OK)
            return status;
    }
    request->inputs = tensor;
    request->input_count = 1;
    exchange->wants_binary = true;
    return ST_OK;
}

static enum status take_wanted(struct exchange *exchange, const struct infer_request *parsed) {
    struct request *request = &exchange->request;
    exchange->wants_binary = parsed->wants_binary;
    if (parsed->output_count == 0)
        return ST_OK;
    struct view *names = arena_array(&request->arena, parsed->output_count, sizeof *names);
    if (!names)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the outputs' names");
    for (uint32_t i = 0; i < parsed->output_count; i++) {
        if (parsed->outputs[i].classification)
            return err_set(&request->err, ST_UNSUPPORTED,
                           "outputs[%u] (%.*s): classification is not supported", i,
                           VIEW_ARGS(parsed->outputs[i].name));
        names[i] = parsed->outputs[i].name;
    }
    request->wanted = names;
    request->wanted_count = parsed->output_count;
    exchange->wanted = parsed->outputs;
    return ST_OK;
}

enum status infer_decode(struct exchange *exchange, const struct http_message *message,
                         struct infer_request *out_parsed) {
    struct request *request = &exchange->request;
    const struct view encoding = http_header(message, "Content-Encoding");
    if (encoding.data && !view_is(encoding, "identity"))
        return err_set(&request->err, ST_UNSUPPORTED_TYPE,
                       "Content-Encoding: \"%.*s\" is not supported, send the body as it is",
                       (int)(encoding.size < 40 ? encoding.size : 40), encoding.data);
    size_t json_size = 0;
    enum status status = parse_json_size(message, &json_size, &request->err);
    if (status != ST_OK)
        return status;
    if (json_size == 0 && http_header(message, "Inference-Header-Content-Length").data)
        return decode_raw(exchange, message);
    status = infer_request_parse(message->body, json_size, &request->arena, out_parsed,
                                 &request->err);
    if (status != ST_OK)
        return status;
    request->inputs = out_parsed->inputs;
    request->input_count = out_parsed->input_count;
    return take_wanted(exchange, out_parsed);
}

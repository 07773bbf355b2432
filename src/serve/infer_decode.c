/* HTTP message to inference request: JSON, JSON with binary tensors, one raw binary tensor
 * (Inference-Header-Content-Length: 0), or a picture or text as it is (Content-Type). The header
 * is looked at on the loop, the body on whatever thread decodes it.
 *
 * Invariant: tensors point into the message's body or into the request's arena, nowhere else.
 * Read next: infer_run.c (who decodes where), proto/infer_json.h. */
#include "serve/infer_decode.h"

#include "prep/image.h"
#include "serve/exchange.h"
#include <strings.h>

enum {
    /* JSON of this size takes about 50 us to parse, as long as handing it to a worker and waking
     * that takes in all, of which the loop pays 5 us. */
    LOOP_JSON_BYTES = 16 * 1024,
    /* Binary tensors are views, but BYTES have their elements counted. */
    LOOP_BODY_BYTES = 1024 * 1024
};

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

/* One element, the body: the length before it goes into the room that the parser leaves. */
static enum status decode_element(struct exchange *exchange) {
    struct request *request = &exchange->request;
    const struct io_spec *spec = exchange->incoming.input;
    const struct view bytes = exchange->incoming.bytes;
    struct tensor *tensor = arena_zalloc(&request->arena, sizeof *tensor);
    char *empty = arena_zalloc(&request->arena, sizeof(uint32_t)); /* an empty body has no room */
    if (!tensor || !empty)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the input");
    if (bytes.size > UINT32_MAX - sizeof(uint32_t))
        return err_set(&request->err, ST_TOO_LARGE, "%s: more than 4 GiB", spec->name);
    const uint32_t length = (uint32_t)bytes.size;
    /* Not const: the message's room is its handler's. */
    char *element = length ? (char *)(uintptr_t)bytes.data - sizeof length : empty;
    memcpy(element, &length, sizeof length);
    *tensor = (struct tensor){.name = view_of(spec->name), .dtype = DTYPE_BYTES,
                              .rank = spec->rank, .data = element,
                              .size = sizeof length + bytes.size};
    for (uint32_t i = 0; i < spec->rank; i++)
        tensor->shape[i] = 1;
    request->inputs = tensor;
    request->input_count = 1;
    return ST_OK;
}

/* The whole body is the model's only input; all outputs go back in binary. */
static enum status decode_tensor(struct exchange *exchange) {
    struct request *request = &exchange->request;
    const struct io_spec *spec = exchange->incoming.input;
    exchange->wants_binary = true;
    if (spec->dtype == DTYPE_BYTES)
        return decode_element(exchange);
    struct tensor *tensor = arena_zalloc(&request->arena, sizeof *tensor);
    if (!tensor)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the input");
    *tensor = (struct tensor){.name = view_of(spec->name), .dtype = spec->dtype,
                              .data = exchange->incoming.bytes.data,
                              .size = exchange->incoming.bytes.size};
    request->inputs = tensor;
    request->input_count = 1;
    return raw_shape(spec, tensor, &request->err);
}

static enum status take_wanted(struct exchange *exchange, const struct infer_request *parsed) {
    struct request *request = &exchange->request;
    exchange->wants_binary = parsed->wants_binary;
    if (parsed->output_count == 0)
        return ST_OK;
    struct view *names = arena_array(&request->arena, parsed->output_count, sizeof *names);
    if (!names)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the outputs' names");
    for (uint32_t i = 0; i < parsed->output_count; i++)
        names[i] = parsed->outputs[i].name;
    request->wanted = names;
    request->wanted_count = parsed->output_count;
    exchange->wanted = parsed->outputs;
    return ST_OK;
}

/* ---- what the header says ---- */

/* "image/jpeg; x=y" is of "image/"; "text/plain;charset=utf-8" is "text/plain". */
static bool is_type(struct view value, const char *type) {
    const size_t size = strlen(type);
    if (value.size < size || strncasecmp(value.data, type, size) != 0)
        return false;
    return type[size - 1] == '/' || value.size == size || value.data[size] == ';' ||
           value.data[size] == ' ' || value.data[size] == '\t';
}

static uint32_t count_bytes_inputs(const struct signature *shown, const struct io_spec **out_first) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < shown->input_count; i++) {
        if (shown->inputs[i].dtype != DTYPE_BYTES)
            continue;
        if (count++ == 0)
            *out_first = &shown->inputs[i];
    }
    return count;
}

/* A picture or a text as the body. */
static enum status take_element(struct view type, const struct served_model *served,
                                struct infer_body *out, struct err *err) {
    const int type_size = (int)(type.size < 60 ? type.size : 60);
    const char *name = served->model->name;
    switch (count_bytes_inputs(&served->shown, &out->input)) {
    case 0:
        return err_set(err, ST_UNSUPPORTED_TYPE,
                       "Content-Type %.*s: model %s takes no BYTES input; send its tensors as "
                       "application/json, or give it a pipeline.yaml that takes pictures or texts",
                       type_size, type.data, name);
    case 1:
        if (served->is_text && is_type(type, "image/"))
            return err_set(err, ST_UNSUPPORTED_TYPE,
                           "Content-Type %.*s: model %s takes texts, not pictures: send text/plain",
                           type_size, type.data, name);
        out->kind = INFER_BODY_ELEMENT;
        out->json_size = 0;
        return ST_OK;
    default:
        return err_set(err, ST_UNSUPPORTED_TYPE,
                       "Content-Type %.*s: model %s takes several BYTES inputs, %s first: send "
                       "them by name as application/json",
                       type_size, type.data, name, out->input->name);
    }
}

enum status infer_body_of(const struct http_message *message, const struct served_model *served,
                          struct infer_body *out, struct err *err) {
    const struct view encoding = http_header(message, "Content-Encoding");
    if (encoding.data && !view_is(encoding, "identity"))
        return err_set(err, ST_UNSUPPORTED_TYPE,
                       "Content-Encoding: \"%.*s\" is not supported, send the body as it is",
                       (int)(encoding.size < 40 ? encoding.size : 40), encoding.data);
    struct infer_body body = {.kind = INFER_BODY_JSON, .bytes = message->body};
    enum status status = parse_json_size(message, &body.json_size, err);
    if (status != ST_OK)
        return status;
    const struct signature *shown = &served->shown;
    const bool has_json_size = http_header(message, "Inference-Header-Content-Length").data != NULL;
    const struct view type = http_header(message, "Content-Type");
    if (has_json_size && body.json_size == 0) {
        if (shown->input_count != 1)
            return err_set(err, ST_INVALID,
                           "Inference-Header-Content-Length: 0 needs a model with one input; this "
                           "one has %u", shown->input_count);
        body.kind = INFER_BODY_TENSOR;
        body.input = &shown->inputs[0];
    } else if (!has_json_size && (is_type(type, "image/") || is_type(type, "text/plain"))) {
        status = take_element(type, served, &body, err);
    } else if (!has_json_size && is_type(type, "application/octet-stream") &&
               shown->input_count == 1 && shown->inputs[0].dtype == DTYPE_BYTES) {
        status = take_element(type, served, &body, err);
    }
    if (status == ST_OK)
        *out = body;
    return status;
}

bool infer_body_is_large(const struct infer_body *body) {
    return body->json_size > LOOP_JSON_BYTES ||
           (body->kind == INFER_BODY_JSON && body->bytes.size > LOOP_BODY_BYTES);
}

enum status infer_decode(struct exchange *exchange, struct infer_request *out_parsed) {
    struct request *request = &exchange->request;
    const struct infer_body *body = &exchange->incoming;
    if (body->kind == INFER_BODY_TENSOR)
        return decode_tensor(exchange);
    if (body->kind == INFER_BODY_ELEMENT)
        return decode_element(exchange);
    const enum status status = infer_request_parse(body->bytes, body->json_size, &request->arena,
                                                   out_parsed, &request->err);
    if (status != ST_OK && image_is_known(body->bytes)) /* curl without -H is the usual slip */
        return err_set(&request->err, ST_UNSUPPORTED_TYPE,
                       "the body is a picture and not JSON: send it with Content-Type: image/jpeg "
                       "(or image/png, image/webp)");
    if (status != ST_OK)
        return status;
    request->inputs = out_parsed->inputs;
    request->input_count = out_parsed->input_count;
    return take_wanted(exchange, out_parsed);
}

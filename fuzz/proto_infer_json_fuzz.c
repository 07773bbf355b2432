/* Any bytes as an inference request, a response and model metadata. What is accepted must be
 * consistent, and a request that is accepted must read back as written. Bytes 0 and 1: how much of
 * the rest is binary data (0: none). */
#include "proto/infer_json.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PADDING = 64 };

static void require(bool is_true) {
    if (!is_true) {
        abort();
    }
}

static void check_tensor(const struct tensor *tensor) {
    size_t count = 0;
    uint64_t sum = 0;
    require(tensor->rank <= TENSOR_MAX_RANK && tensor->name.size > 0);
    require(tensor_elements(tensor->shape, tensor->rank, &count));
    for (size_t i = 0; i < tensor->size; i++) {
        sum += ((const unsigned char *)tensor->data)[i];
    }
    require(sum <= tensor->size * 255u);
    if (tensor->dtype == DTYPE_BYTES) {
        require(tensor_bytes_valid(tensor->data, tensor->size, count));
    } else {
        require(tensor->size == count * dtype_size(tensor->dtype));
    }
}

static void read_back(const struct infer_request *request, bool binary) {
    struct buf out;
    struct arena arena;
    struct infer_request again;
    struct err err;
    size_t json_size = 0;
    buf_init(&out);
    arena_init(&arena);
    infer_request_write(&out, request->id, request->inputs, request->input_count, binary,
                        request->wants_binary, &json_size);
    buf_reserve(&out, PADDING);
    if (!out.failed) { /* NaN from binary data cannot be written as JSON */
        require(infer_request_parse(buf_view(&out), json_size, &arena, &again, &err) == ST_OK);
        require(again.input_count == request->input_count && view_eq(again.id, request->id));
        for (uint32_t i = 0; i < again.input_count; i++) {
            const struct tensor *a = &again.inputs[i];
            const struct tensor *b = &request->inputs[i];
            require(view_eq(a->name, b->name) && a->dtype == b->dtype && a->rank == b->rank);
            require(a->size == b->size);
            require(a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
        }
    }
    require(binary || !out.failed || request->input_count > 0);
    arena_done(&arena);
    buf_done(&out);
}

static void parse_all(struct view body, size_t json_size) {
    struct arena arena;
    struct infer_request request;
    struct infer_response response;
    struct model_metadata metadata;
    struct err err = {0};
    arena_init(&arena);
    if (infer_request_parse(body, json_size, &arena, &request, &err) == ST_OK) {
        for (uint32_t i = 0; i < request.input_count; i++) {
            check_tensor(&request.inputs[i]);
        }
        read_back(&request, false);
        read_back(&request, true);
    } else {
        require(err.text[0] != '\0');
    }
    arena_clear(&arena);
    if (infer_response_parse(body, json_size, &arena, &response, &err) == ST_OK) {
        for (uint32_t i = 0; i < response.output_count; i++) {
            check_tensor(&response.outputs[i]);
        }
    }
    arena_clear(&arena);
    if (json_size == body.size && model_metadata_parse(body, &arena, &metadata, &err) == ST_OK) {
        require(metadata.input_count <= INFER_MAX_TENSORS);
    }
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    const size_t body_size = size - 2;
    const size_t asked = (size_t)data[0] | (size_t)data[1] << 8;
    const size_t binary = asked < body_size ? asked : body_size;
    char *body = malloc(body_size + PADDING);
    require(body != NULL);
    memcpy(body, data + 2, body_size);
    memset(body + body_size, ']', PADDING);
    parse_all((struct view){.data = body, .size = body_size}, body_size - binary);
    free(body);
    return 0;
}

/* Any bytes as a ModelInferRequest and as a ModelInferResponse. What is taken must hold what it
 * promises: as many bytes as the shape needs, and nothing that the schema's own reader refuses. */
#include "proto/infer_pb.h"
#include "schema/grpc_service.pb-c.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum_of(struct view bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes.size; i++)
        sum = sum * 31 + (unsigned char)bytes.data[i]; /* so that all of it is read */
    return sum;
}

static uint64_t check_request(const struct infer_request *request) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tensor *tensor = &request->inputs[i];
        if (request->shared_inputs && request->shared_inputs[i].region.size)
            continue;
        struct err err;
        if (infer_data_check(tensor, &err) != ST_OK)
            abort();
        sum += sum_of((struct view){tensor->data, tensor->size}) + sum_of(tensor->name);
    }
    for (uint32_t i = 0; i < request->output_count; i++)
        sum += sum_of(request->outputs[i].name);
    return sum + sum_of(request->id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct view message = {(const char *)data, size};
    struct arena arena;
    struct err err = {.text = ""};
    struct infer_request request = {.input_count = 0};
    struct infer_pb_options options;
    struct infer_pb_route route;
    struct infer_response response;
    volatile uint64_t sum = 0;
    arena_init(&arena);
    if (infer_pb_route(message, &route, &err) == ST_OK)
        sum += sum_of(route.model_name) + sum_of(route.model_version) + sum_of(route.id);
    if (infer_pb_request_parse(message, &arena, &request, &options, &err) == ST_OK) {
        sum += check_request(&request);
        Inference__ModelInferRequest *theirs =
            inference__model_infer_request__unpack(NULL, size, data);
        if (!theirs || theirs->n_inputs != request.input_count)
            abort();
        inference__model_infer_request__free_unpacked(theirs, NULL);
    } else if (!err.text[0]) {
        abort(); /* every fault has a sentence */
    }
    arena_clear(&arena);
    if (infer_pb_response_parse(message, &arena, &response, &err) == ST_OK)
        for (uint32_t i = 0; i < response.output_count; i++)
            sum += sum_of((struct view){response.outputs[i].data, response.outputs[i].size});
    arena_done(&arena);
    (void)sum;
    return 0;
}

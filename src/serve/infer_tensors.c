/* Shared memory and classes, between the protocols' tensors and the engine's. Any thread that has
 * the exchange.
 *
 * Invariant: no memory is taken for a shared input before its place was found to lie in a region.
 * Read next: shared_memory.h, classification.h, infer_run.c (who calls this when). */
#include "serve/infer_tensors.h"

#include "serve/classification.h"
#include "serve/server.h"

/* Copying is that much faster than writing JSON. */
enum { COPIED_BYTES_A_TEXT_BYTE = 16 };

enum status infer_inputs_locate(struct exchange *exchange, const struct infer_request *parsed,
                                size_t *out_bytes) {
    struct err *err = &exchange->request.err;
    const struct server *server = exchange->server;
    uint64_t left = server->config->max_body;
    *out_bytes = 0;
    exchange->shared_inputs = parsed->shared_inputs;
    exchange->inputs = parsed->inputs;
    for (uint32_t i = 0; parsed->shared_inputs && i < parsed->input_count; i++) {
        const struct shared_place *place = &parsed->shared_inputs[i];
        if (place->region.size == 0)
            continue;
        const enum status status = shared_memory_check(server->shared_memory, place, err);
        if (status != ST_OK) {
            err_prefix(err, "inputs[%u] (%.*s)", i, VIEW_ARGS(parsed->inputs[i].name));
            return status;
        }
        if (place->size > left)
            return err_set(err, ST_TOO_LARGE,
                           "inputs[%u] (%.*s): the inputs in shared memory have more than the %llu "
                           "bytes of --max-body", i, VIEW_ARGS(parsed->inputs[i].name),
                           (unsigned long long)server->config->max_body);
        left -= place->size;
        *out_bytes += (size_t)place->size;
    }
    return ST_OK;
}

static enum status fetch(struct exchange *exchange, const struct shared_place *place,
                         struct tensor *tensor) {
    struct request *request = &exchange->request;
    char *bytes = arena_alloc_aligned64(&request->arena, (size_t)place->size);
    if (!bytes)
        return err_set(&request->err, ST_NO_MEMORY, "no memory for %llu bytes",
                       (unsigned long long)place->size);
    const enum status status =
        shared_memory_read(exchange->server->shared_memory, place, bytes, &request->err);
    if (status != ST_OK)
        return status;
    tensor->data = bytes;
    tensor->size = (size_t)place->size;
    return infer_data_check(tensor, &request->err);
}

enum status infer_inputs_fetch(struct exchange *exchange) {
    struct request *request = &exchange->request;
    for (uint32_t i = 0; exchange->shared_inputs && i < request->input_count; i++) {
        const struct shared_place *place = &exchange->shared_inputs[i];
        if (place->region.size == 0)
            continue;
        const enum status status = fetch(exchange, place, &exchange->inputs[i]);
        if (status != ST_OK) {
            err_prefix(&request->err, "inputs[%u] (%.*s)", i,
                       VIEW_ARGS(exchange->inputs[i].name));
            return status;
        }
    }
    return ST_OK;
}

static enum status make_classes(struct exchange *exchange, uint32_t top, struct tensor *output) {
    struct request *request = &exchange->request;
    const struct model *model = request->model->model;
    const bool is_batched = model->can_batch && exchange->server->config->engine.max_batch > 0;
    const struct class_labels labels = {.texts = NULL};
    const struct tensor scores = *output;
    return classification_make(&scores, top, is_batched, labels, &request->arena, output,
                               &request->err);
}

enum status infer_outputs_finish(struct exchange *exchange) {
    struct request *request = &exchange->request;
    for (uint32_t i = 0; exchange->wanted && i < request->output_count; i++) {
        const struct requested_output *wanted = &exchange->wanted[i];
        struct tensor *output = &request->outputs[i];
        enum status status = ST_OK;
        if (wanted->classification)
            status = make_classes(exchange, wanted->classification, output);
        else if (wanted->shared.region.size)
            status = shared_memory_write(exchange->server->shared_memory, &wanted->shared,
                                         output->data, output->size, &request->err);
        if (status == ST_OK)
            continue;
        if (!wanted->classification)
            err_prefix(&request->err, "outputs[%u] (%.*s)", i, VIEW_ARGS(wanted->name));
        return status;
    }
    return ST_OK;
}

size_t infer_outputs_finish_bytes(const struct exchange *exchange) {
    const struct request *request = &exchange->request;
    size_t bytes = 0;
    for (uint32_t i = 0; exchange->wanted && i < request->output_count; i++)
        if (exchange->wanted[i].classification || exchange->wanted[i].shared.region.size)
            bytes += request->outputs[i].size / COPIED_BYTES_A_TEXT_BYTE;
    return bytes;
}

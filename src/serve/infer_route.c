/* The HTTP front of an inference request. Loop thread only, but for encode and encode_bytes, which
 * a worker may call.
 *
 * Read next: infer_run.c (the request's life), infer_decode.c (the body), http_conn.c. */
#include "serve/infer_route.h"

#include "serve/http_conn.h"
#include "serve/infer_run.h"
#include "serve/server_timing.h"

static enum status encode(struct exchange *exchange, struct buf *out) {
    enum { FEW = 16 };
    struct request *request = &exchange->request;
    struct infer_output few[FEW];
    struct infer_output *outputs = few;
    if (request->output_count > FEW) {
        outputs = arena_array(&request->arena, request->output_count, sizeof *outputs);
        if (!outputs)
            return err_set(&request->err, ST_NO_MEMORY, "no memory for %u outputs",
                           request->output_count);
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        const struct requested_output *wanted = exchange->wanted ? &exchange->wanted[i] : NULL;
        outputs[i] = (struct infer_output){
            .tensor = request->outputs[i],
            .binary = wanted ? wanted->wants_binary : exchange->wants_binary,
            .shared = wanted && wanted->shared.region.size ? &wanted->shared : NULL};
    }
    const struct model *model = request->model->model;
    return infer_response_write(out, view_of(model->name), view_of(model->version), exchange->id,
                                outputs, request->output_count,
                                model->backend->is_simulated ? "\"simulated\":true" : NULL,
                                &exchange->answer_json_size, &request->err);
}

/* Roughly the bytes of JSON that its outputs will be: eight a number. */
static size_t encode_bytes(const struct exchange *exchange) {
    const struct request *request = &exchange->request;
    size_t bytes = 0;
    for (uint32_t i = 0; i < request->output_count; i++) {
        const struct tensor *tensor = &request->outputs[i];
        const size_t size = dtype_size(tensor->dtype);
        if (exchange->wanted ? exchange->wanted[i].wants_binary ||
                                   exchange->wanted[i].shared.region.size ||
                                   exchange->wanted[i].classification
                             : exchange->wants_binary)
            continue; /* the last two: infer_outputs_finish_bytes */
        bytes += size ? tensor->size / size * 8 : tensor->size;
    }
    return bytes;
}

static void write_extra_headers(struct exchange *exchange, size_t json_size) {
    struct buf *extra = &exchange->server->extra;
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(&exchange->request.trace, durations);
    buf_clear(extra);
    if (json_size) {
        buf_text(extra, "Inference-Header-Content-Length: ");
        buf_u64(extra, json_size);
        buf_append(extra, "\r\n", 2);
    }
    server_timing_write(extra, durations, total_ns);
    if (exchange->request.model->model->backend->is_simulated)
        buf_text(extra, "Telltale-Simulated: true\r\n");
}

static uint64_t answer(struct exchange *exchange, const struct buf *body) {
    struct http_conn *hc = exchange->waiter;
    const struct request *request = &exchange->request;
    const size_t json_size = request->status == ST_OK ? exchange->answer_json_size : 0;
    write_extra_headers(exchange, json_size);
    if (request->status == ST_OK)
        http_conn_answer_with(hc, 200, json_size ? "application/octet-stream" : "application/json",
                              body);
    else
        http_conn_fail(hc, request->status, request->err.text);
    /* hc outlives this call even when it was closed: it is freed on a later turn. */
    return hc->free_ns;
}

/* The tensors may point into the message's body. */
static char *let_go(struct exchange *exchange) {
    struct http_conn *hc = exchange->waiter;
    hc->exchange = NULL;
    return exchange->is_submitted ? http_parser_take_body(hc->parser) : NULL;
}

static void fail(void *waiter, enum status status, const char *text) {
    struct http_conn *hc = waiter;
    buf_clear(&hc->server->extra);
    http_conn_fail(hc, status, text);
}

static const struct infer_front HTTP_FRONT = {.decode = infer_decode,
                                              .encode = encode,
                                              .encode_bytes = encode_bytes,
                                              .answer = answer,
                                              .let_go = let_go,
                                              .fail = fail};

void infer_route_start(struct http_conn *hc, const struct served_model *served,
                       const struct http_message *message) {
    struct exchange *exchange = exchange_take(hc->server);
    if (!exchange) {
        engine_release(served);
        http_conn_fail(hc, ST_NO_MEMORY, "no memory for another request");
        return;
    }
    struct request *request = &exchange->request;
    hc->exchange = exchange;
    exchange->front = &HTTP_FRONT;
    exchange->waiter = hc;
    request->status = infer_body_of(message, served, &exchange->incoming, &request->err);
    infer_run_start(exchange, served, hc->start_ns, message->body.size,
                    infer_body_is_large(&exchange->incoming));
}

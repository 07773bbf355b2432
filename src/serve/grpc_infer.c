/* The gRPC front of an inference request: ModelInfer and ModelStreamInfer. Loop thread only, but
 * for decode, encode and encode_bytes, which a worker may call.
 *
 * The answers of a stream go out as they are ready, not in the order of the requests; a client
 * that has several under way tells them apart by id. A request of a stream that fails is answered
 * by error_message, and the stream goes on; with triton_grpc_error: true it ends with the status.
 *
 * Invariant: a call in its stream's list is working (no answer yet) or is_queued (an answer is with
 * the session).
 * Read next: infer_run.c, grpc_stream.c. */
#include "base/clock.h"
#include "proto/compress.h"
#include "proto/infer_pb.h"
#include "serve/grpc_control.h"
#include "serve/grpc_methods.h"
#include "serve/server_timing.h"

enum {
    LOOP_TYPED_BYTES = 16 * 1024,    /* typed contents have to be converted */
    LOOP_RAW_BYTES = 1024 * 1024,    /* raw ones are views, but BYTES have their elements counted */
    LOOP_INFLATE_BYTES = 1024,       /* a megabyte at most comes of it */
    LEAST_COMPRESSED_BYTES = 1024    /* smaller answers are sent as they are */
};

static bool is_streamed(const struct grpc_stream *stream) {
    return stream->method->kind == GRPC_STREAM_INFER;
}

/* ---- the front: any thread ---- */

static enum status take_wanted(struct exchange *exchange, const struct infer_request *parsed) {
    struct request *request = &exchange->request;
    exchange->wants_binary = true;
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

static enum status decode(struct exchange *exchange, struct infer_request *out_parsed) {
    struct request *request = &exchange->request;
    struct infer_pb_options options = {.wants_final_flag = false};
    const enum status status = infer_pb_request_parse(exchange->incoming.bytes, &request->arena,
                                                      out_parsed, &options, &request->err);
    if (status != ST_OK)
        return status;
    exchange->grpc.is_final_marked = exchange->grpc.is_streamed && options.wants_final_flag;
    request->inputs = out_parsed->inputs;
    request->input_count = out_parsed->input_count;
    return take_wanted(exchange, out_parsed);
}

static bool make_shared(struct exchange *exchange, struct infer_pb_answer *answer) {
    const uint32_t count = exchange->request.output_count;
    bool has_any = false;
    for (uint32_t i = 0; exchange->wanted && i < count; i++)
        has_any |= exchange->wanted[i].shared.region.size != 0;
    if (!has_any)
        return true;
    struct shared_place *shared =
        arena_array(&exchange->request.arena, count, sizeof *shared);
    for (uint32_t i = 0; shared && i < count; i++)
        shared[i] = exchange->wanted[i].shared;
    answer->shared = shared;
    return shared != NULL;
}

/* What encode wrote, compressed, in its place. */
static enum status compress(struct buf *out, size_t begin, int level, struct err *err) {
    struct buf plain;
    const struct view message = {out->data + begin + GRPC_PREFIX_BYTES,
                                 out->size - begin - GRPC_PREFIX_BYTES};
    if (message.size < LEAST_COMPRESSED_BYTES)
        return ST_OK;
    buf_init(&plain);
    buf_append(&plain, message.data, message.size);
    out->size = begin + GRPC_PREFIX_BYTES;
    enum status status = plain.failed ? err_set(err, ST_NO_MEMORY, "no memory for the answer")
                                      : deflate_body(CODING_GZIP, level, buf_view(&plain), out, err);
    if (status == ST_OK)
        grpc_write_prefix(out->data + begin, true, out->size - begin - GRPC_PREFIX_BYTES);
    buf_done(&plain);
    return status;
}

static enum status encode(struct exchange *exchange, struct buf *out) {
    struct request *request = &exchange->request;
    const struct model *model = request->model->model;
    const int level = exchange->grpc.compression;
    struct infer_pb_answer answer = {.model_name = view_of(model->name),
                                     .model_version = view_of(model->version),
                                     .id = exchange->id,
                                     .outputs = request->outputs,
                                     .output_count = request->output_count,
                                     .is_simulated = model->backend->is_simulated,
                                     .is_final_marked = exchange->grpc.is_final_marked,
                                     .is_streamed = exchange->grpc.is_streamed};
    struct infer_pb_gap *gaps = NULL;
    if (!make_shared(exchange, &answer))
        return err_set(&request->err, ST_NO_MEMORY, "no memory for the answer");
    if (level == 0) {
        gaps = arena_array(&request->arena, request->output_count, sizeof *gaps);
        if (!gaps)
            return err_set(&request->err, ST_NO_MEMORY, "no memory for the answer");
    }
    exchange->grpc.gap_count = 0;
    const size_t begin = out->size;
    const enum status status =
        infer_pb_answer_write(out, &answer, gaps, &exchange->grpc.gap_count, &request->err);
    exchange->grpc.gaps = gaps;
    return status == ST_OK && level ? compress(out, begin, level, &request->err) : status;
}

/* Raw outputs are not converted. Compressing a byte costs some thirty times what printing does. */
static size_t encode_bytes(const struct exchange *exchange) {
    const struct request *request = &exchange->request;
    size_t bytes = 0;
    for (uint32_t i = 0; exchange->grpc.compression && i < request->output_count; i++)
        bytes += request->outputs[i].size;
    return bytes;
}

/* ---- the front: the loop ---- */

/* The message's pieces: encode's bytes with the outputs that were left out between them. False: no
 * memory. */
static bool make_pieces(struct grpc_call *call, struct exchange *exchange) {
    const uint32_t gap_count = exchange->grpc.gap_count;
    const struct buf *bytes = &exchange->answer;
    if (gap_count == 0) {
        call->piece = buf_view(bytes);
        call->out = (struct h2_message){.pieces = &call->piece, .count = 1};
        return true;
    }
    struct view *pieces =
        arena_array(&exchange->request.arena, 2 * (size_t)gap_count + 1, sizeof *pieces);
    if (!pieces)
        return false;
    size_t at = 0;
    for (uint32_t i = 0; i < gap_count; i++) {
        const struct infer_pb_gap *gap = &exchange->grpc.gaps[i];
        pieces[2 * i] = (struct view){bytes->data + at, gap->at - at};
        pieces[2 * i + 1] = gap->bytes;
        at = gap->at;
    }
    pieces[2 * gap_count] = (struct view){bytes->data + at, bytes->size - at};
    call->out = (struct h2_message){.pieces = pieces, .count = 2 * gap_count + 1};
    return true;
}

static void send_timing(struct grpc_stream *stream, struct exchange *exchange) {
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(&exchange->request.trace, durations);
    struct buf *text = &stream->conn->grpc->text;
    static const char NAME[] = "Server-Timing: ";
    buf_clear(text);
    server_timing_write(text, durations, total_ns);
    const struct view value = {text->data + sizeof NAME - 1, text->size - (sizeof NAME - 1) - 2};
    const struct h2_header extra = {view_of("server-timing"), value};
    grpc_stream_finish(stream, &extra, text->failed ? 0 : 1);
}

/* A request of a stream that failed: told as a message, or as the stream's end. */
static void send_error(struct grpc_stream *stream, struct grpc_call *call, enum status status,
                       const char *text, struct view id) {
    buf_clear(&call->bytes);
    infer_pb_stream_error_write(&call->bytes, text[0] ? text : status_sentence(status), id);
    if (stream->wants_status || call->bytes.failed) {
        grpc_stream_fail(stream, status, text);
        return;
    }
    call->piece = buf_view(&call->bytes);
    call->out = (struct h2_message){.pieces = &call->piece, .count = 1};
    grpc_stream_send(stream, call);
    stream->conn->grpc->counts.stream_messages++;
}

/* What has no message to wait for is sent with whatever the connection sends next. */
static void settle_later(struct grpc_call *call) {
    struct grpc_conn *gc = call->conn;
    grpc_call_detach(call);
    call->next = gc->sending;
    gc->sending = call;
    grpc_conn_touch(gc);
}

static uint64_t answer(struct exchange *exchange, const struct buf *body) {
    struct grpc_call *call = exchange->waiter;
    struct grpc_stream *stream = call->stream;
    struct request *request = &exchange->request;
    enum status status = request->status;
    stream->working_count--;
    if (status == ST_OK && !exchange->is_encoded)
        buf_append(&exchange->answer, body->data, body->size); /* body is the next one's, too */
    if (status == ST_OK && (exchange->answer.failed || !make_pieces(call, exchange)))
        status = request->status = err_set(&request->err, ST_NO_MEMORY, "no memory for the answer");
    if (status == ST_OK) {
        grpc_stream_send(stream, call);
        if (is_streamed(stream))
            stream->conn->grpc->counts.stream_messages++;
        else if (stream->wants_timing)
            send_timing(stream, exchange);
        else
            grpc_stream_finish(stream, NULL, 0);
    } else if (is_streamed(stream)) {
        send_error(stream, call, status, request->err.text, exchange->id);
    } else {
        grpc_stream_fail(stream, status, request->err.text);
    }
    if (!call->is_queued)
        settle_later(call);
    grpc_stream_go_on(stream);
    return 0;
}

/* The message goes with the exchange, whose tensors may point into it. */
static char *let_go(struct exchange *exchange) {
    struct grpc_call *call = exchange->waiter;
    call->exchange = NULL;
    if (call->stream && !call->is_queued)
        call->stream->working_count--;
    return grpc_message_give(&call->message, &call->conn->grpc->quota);
}

/* Without an exchange: it has been let go of, or there never was one. */
static void fail_call(struct grpc_call *call, enum status status, const char *text) {
    struct grpc_stream *stream = call->stream;
    if (is_streamed(stream))
        send_error(stream, call, status, text, call->id);
    else
        grpc_stream_fail(stream, status, text);
    if (!call->is_queued)
        grpc_call_release(call);
    grpc_stream_go_on(stream);
}

static void fail(void *waiter, enum status status, const char *text) {
    fail_call(waiter, status, text);
}

static const struct infer_front GRPC_FRONT = {.decode = decode,
                                              .encode = encode,
                                              .encode_bytes = encode_bytes,
                                              .answer = answer,
                                              .let_go = let_go,
                                              .fail = fail};

/* ---- the beginning ---- */

static void begin(struct grpc_call *call, struct exchange *exchange,
                  const struct served_model *served, const struct infer_pb_route *route,
                  uint64_t start_ns) {
    struct grpc_stream *stream = call->stream;
    const struct serve_config *config = call->conn->grpc->server->config;
    static const int LEVELS[] = {0, COMPRESS_FASTEST, COMPRESS_USUAL, COMPRESS_SMALLEST};
    const size_t size = call->message.size;
    call->exchange = exchange;
    exchange->front = &GRPC_FRONT;
    exchange->waiter = call;
    exchange->incoming = (struct infer_body){.kind = INFER_BODY_JSON,
                                             .bytes = {call->message.bytes, size}};
    exchange->client_deadline_ns = stream->deadline_ns;
    exchange->grpc = (struct exchange_grpc){
        .is_streamed = is_streamed(stream),
        .compression = stream->accepts_gzip ? LEVELS[config->grpc_compression] : 0};
    infer_run_start(exchange, served, start_ns, size,
                    size > (route->has_raw ? LOOP_RAW_BYTES : LOOP_TYPED_BYTES));
}

/* The message is whole and plain. */
static void start_call(struct grpc_call *call, uint64_t start_ns) {
    struct grpc_stream *stream = call->stream;
    struct grpc_server *grpc = call->conn->grpc;
    struct infer_pb_route route;
    const struct served_model *served = NULL;
    struct err err = {.text = ""};
    enum status status =
        infer_pb_route((struct view){call->message.bytes, call->message.size}, &route, &err);
    if (status == ST_OK) {
        call->id = route.id;
        status = grpc_find_model(grpc, route.model_name, route.model_version, &served, &err);
    }
    if (status == ST_OK && stream->deadline_ns && mono_ns() >= stream->deadline_ns)
        status = err_set(&err, ST_TIMEOUT, "grpc-timeout was over when the request was whole");
    struct exchange *exchange = status == ST_OK ? exchange_take(grpc->server) : NULL;
    if (status == ST_OK && !exchange)
        status = err_set(&err, ST_NO_MEMORY, "no memory for another request");
    if (status == ST_OK) {
        begin(call, exchange, served, &route, start_ns);
        return;
    }
    engine_release(served);
    stream->working_count--;
    fail_call(call, status, err.text);
}

static void inflated(struct grpc_stream *stream, struct grpc_message *message, uint64_t start_ns,
                     enum status status, const char *text) {
    struct grpc_call *call = stream->is_done ? NULL : grpc_call_take(stream);
    if (!call) {
        stream->working_count--;
        grpc_stream_fail(stream, ST_NO_MEMORY, "no memory for another request");
        return;
    }
    call->id = (struct view){.data = "", .size = 0};
    call->message = *message;
    *message = (struct grpc_message){.bytes = NULL};
    if (status == ST_OK) {
        start_call(call, start_ns);
    } else {
        stream->working_count--;
        fail_call(call, status, text);
    }
}

void grpc_infer_start(struct grpc_stream *stream, struct grpc_message *message,
                      uint64_t start_ns) {
    struct grpc_server *grpc = stream->conn->grpc;
    struct err err = {.text = ""};
    enum status status = ST_OK;
    stream->working_count++;
    if (message->is_compressed && message->size > LOOP_INFLATE_BYTES) {
        status = grpc_inflate_later(stream, message, start_ns, inflated, &err);
        if (status == ST_OK)
            return;
    } else if (message->is_compressed) {
        status = grpc_inflate(grpc, message, &err);
    }
    inflated(stream, message, start_ns, status, err.text);
    grpc_message_free(message, &grpc->quota);
}

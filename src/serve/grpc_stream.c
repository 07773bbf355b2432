/* The life of a call: its headers are judged, its messages put together, its status given. Loop
 * thread only; all of it but the sweep runs within the session's events.
 *
 * Invariant: a stream that is_done has had its status; whatever else comes for it is dropped.
 * Read next: grpc_infer.c, grpc_routes.c. */
#include "serve/grpc_stream.h"

#include "base/clock.h"
#include "schema/allocator.h"
#include "serve/grpc_control.h"
#include "serve/server_timing.h"
#include <stdio.h>
#include <stdlib.h>

enum { KEPT_CALLS = 1024 };

/* ---- calls ---- */

struct grpc_call *grpc_call_take(struct grpc_stream *stream) {
    struct grpc_server *grpc = stream->conn->grpc;
    struct grpc_call *call = grpc->free_calls;
    if (call) {
        grpc->free_calls = call->next;
        grpc->free_call_count--;
    } else {
        call = calloc(1, sizeof *call);
        if (!call)
            return NULL;
        buf_init(&call->bytes);
    }
    call->stream = stream;
    call->conn = stream->conn;
    call->previous = NULL;
    call->next = stream->calls;
    if (call->next)
        call->next->previous = call;
    stream->calls = call;
    stream->call_count++;
    return call;
}

void grpc_call_detach(struct grpc_call *call) {
    struct grpc_stream *stream = call->stream;
    if (!stream)
        return;
    if (call->previous)
        call->previous->next = call->next;
    else
        stream->calls = call->next;
    if (call->next)
        call->next->previous = call->previous;
    call->previous = call->next = NULL;
    call->stream = NULL;
    stream->call_count--;
}

void grpc_call_release(struct grpc_call *call) {
    struct grpc_server *grpc = call->conn->grpc;
    grpc_call_detach(call);
    grpc_message_free(&call->message, &grpc->quota);
    call->is_queued = false;
    if (call->bytes.capacity > 4096) {
        buf_done(&call->bytes);
        buf_init(&call->bytes);
    }
    buf_clear(&call->bytes);
    if (grpc->free_call_count >= KEPT_CALLS) {
        buf_done(&call->bytes);
        free(call);
        return;
    }
    call->next = grpc->free_calls;
    grpc->free_calls = call;
    grpc->free_call_count++;
}

static struct grpc_call *call_of(struct h2_message *message) {
    return (struct grpc_call *)(void *)((char *)message - offsetof(struct grpc_call, out));
}

/* ---- answers ---- */

static enum status send_headers(struct grpc_stream *stream) {
    const struct h2_header headers[] = {
        {view_of(":status"), view_of("200")},
        {view_of("content-type"), view_of("application/grpc")},
        {view_of("grpc-accept-encoding"), view_of("identity,gzip")},
        {view_of("grpc-encoding"), view_of("gzip")}};
    const bool may_compress =
        stream->accepts_gzip && stream->conn->grpc->server->config->grpc_compression > 0;
    return h2_respond(stream->h2, headers, may_compress ? 4 : 3, false);
}

static void count_code(struct grpc_stream *stream, unsigned code) {
    stream->conn->grpc->counts.by_code[code < GRPC_CODE_COUNT ? code : 2]++;
}

void grpc_stream_send(struct grpc_stream *stream, struct grpc_call *call) {
    if (!stream->h2->has_responded && send_headers(stream) != ST_OK)
        return;
    call->is_queued = true;
    h2_send(stream->h2, &call->out);
    grpc_conn_touch(stream->conn);
}

void grpc_stream_finish(struct grpc_stream *stream, const struct h2_header *extra,
                        uint32_t count) {
    struct h2_header trailers[4] = {{view_of("grpc-status"), view_of("0")}};
    if (stream->is_done)
        return;
    stream->is_done = true;
    count_code(stream, 0);
    if (!stream->h2->has_responded && send_headers(stream) != ST_OK)
        return;
    for (uint32_t i = 0; i < count && i < 3; i++)
        trailers[1 + i] = extra[i];
    (void)h2_finish(stream->h2, trailers, 1 + count);
    grpc_conn_touch(stream->conn);
}

/* What was asked for this call is of no use any more. */
static void drop_input(struct grpc_stream *stream) {
    struct grpc_server *grpc = stream->conn->grpc;
    grpc_reader_done(&stream->reader);
    grpc_message_free(&stream->message, &grpc->quota);
    grpc->quota.used_bytes -= stream->held.size;
    buf_done(&stream->held);
    buf_init(&stream->held);
    stream->held_used = 0;
    stream->waits_ns = 0;
}

/* Nobody will read the answers of requests that the engine still works on. */
static void abandon_calls(struct grpc_stream *stream) {
    struct grpc_call *next = NULL;
    for (struct grpc_call *call = stream->calls; call; call = next) {
        next = call->next;
        if (!call->exchange || !call->exchange->is_submitted)
            continue;
        infer_run_abandon(call->exchange);
        grpc_call_release(call);
    }
}

void grpc_stream_fail(struct grpc_stream *stream, enum status status, const char *text) {
    if (stream->is_done)
        return;
    struct buf *message = &stream->conn->grpc->text;
    const unsigned code = (unsigned)status_grpc(status);
    char digits[2] = {(char)('0' + code / 10), (char)('0' + code % 10)};
    buf_clear(message);
    grpc_encode_message(message, text[0] ? text : status_sentence(status));
    const struct h2_header headers[] = {
        {view_of(":status"), view_of("200")},
        {view_of("content-type"), view_of("application/grpc")},
        {view_of("grpc-status"), {digits + (code < 10), code < 10 ? 1 : 2}},
        {view_of("grpc-message"), buf_view(message)}};
    stream->is_done = true;
    count_code(stream, code);
    drop_input(stream);
    abandon_calls(stream);
    grpc_conn_touch(stream->conn);
    h2_end_early(stream->h2); /* whatever it still wants to send */
    if (stream->h2->has_responded)
        (void)h2_finish(stream->h2, headers + 2, 2);
    else
        (void)!h2_respond(stream->h2, headers, 4, true); /* a failure has reset the stream */
}

/* With its prefix, behind what out has. */
static bool pack(const ProtobufCMessage *message, struct buf *out) {
    const size_t size = protobuf_c_message_get_packed_size(message);
    char prefix[GRPC_PREFIX_BYTES];
    grpc_write_prefix(prefix, false, size);
    buf_append(out, prefix, sizeof prefix);
    buf_reserve(out, size);
    if (out->failed)
        return false;
    if (size) /* an empty message writes nothing, and data may be full */
        out->size += protobuf_c_message_pack(message, (uint8_t *)out->data + out->size);
    return true;
}

void grpc_stream_reply(struct grpc_stream *stream, const ProtobufCMessage *message) {
    struct grpc_call *call = grpc_call_take(stream);
    if (!call) {
        grpc_stream_fail(stream, ST_NO_MEMORY, "no memory for the answer");
        return;
    }
    if (!pack(message, &call->bytes)) {
        buf_done(&call->bytes);
        buf_init(&call->bytes);
        grpc_call_release(call);
        grpc_stream_fail(stream, ST_NO_MEMORY, "no memory for the answer");
        return;
    }
    call->piece = buf_view(&call->bytes);
    call->out = (struct h2_message){.pieces = &call->piece, .count = 1};
    grpc_stream_send(stream, call);
}

static void run_unary(struct grpc_stream *stream, struct arena *arena) {
    struct err err = {.text = ""};
    ProtobufCAllocator allocator = schema_allocator(arena);
    struct grpc_unary call = {.stream = stream, .grpc = stream->conn->grpc, .arena = arena,
                              .err = &err};
    const struct grpc_message *message = &stream->message;
    call.request = protobuf_c_message_unpack(stream->method->request, &allocator, message->size,
                                             (const uint8_t *)message->bytes);
    if (!call.request) {
        grpc_stream_fail(stream, ST_INVALID, "the message is not of the method's type");
        return;
    }
    const enum status status = stream->method->answer(&call);
    if (status != ST_OK)
        grpc_stream_fail(stream, status, err.text);
    else if (call.response)
        grpc_stream_reply(stream, call.response);
    if (stream->method->kind == GRPC_UNARY)
        grpc_stream_finish(stream, NULL, 0);
}

static void run_method(struct grpc_stream *stream) {
    struct arena arena;
    arena_init(&arena);
    run_unary(stream, &arena);
    arena_done(&arena);
    grpc_message_free(&stream->message, &stream->conn->grpc->quota);
}

/* ---- messages ---- */

static bool takes_many(const struct grpc_stream *stream) {
    return stream->method->kind == GRPC_STREAM_INFER;
}

/* A compressed message of a method that is small is inflated here; ModelInfer's see to it later. */
static enum status inflate_small(struct grpc_stream *stream, struct err *err) {
    struct grpc_message *message = &stream->message;
    if (!message->is_compressed)
        return ST_OK;
    return grpc_inflate(stream->conn->grpc, message, err);
}

static void take_message(struct grpc_stream *stream) {
    struct grpc_message message = grpc_reader_take(&stream->reader);
    struct grpc_server *grpc = stream->conn->grpc;
    stream->waits_ns = 0;
    if (message.is_compressed && !stream->is_gzip) {
        grpc_message_free(&message, &grpc->quota);
        grpc_stream_fail(stream, ST_INTERNAL,
                         "a message says that it is compressed, and grpc-encoding does not say how");
    } else if (takes_many(stream)) {
        grpc_infer_start(stream, &message, stream->start_ns);
    } else if (stream->has_message) {
        grpc_message_free(&message, &grpc->quota);
        grpc_stream_fail(stream, ST_INVALID, "this method takes one message, a second one came");
    } else {
        stream->message = message;
        stream->has_message = true;
    }
}

/* Whole messages out of bytes; returns how many bytes are used: all, unless it is paused. */
static size_t take_bytes(struct grpc_stream *stream, const char *bytes, size_t size) {
    size_t done = 0;
    while (done < size && !stream->is_done && !stream->is_paused) {
        struct err err = {.text = ""};
        enum status status = ST_OK;
        size_t used = 0;
        if (grpc_reader_is_idle(&stream->reader)) {
            stream->waits_ns = grpc_conn_input_ns(stream->conn);
            if (takes_many(stream))
                stream->start_ns = stream->waits_ns;
        }
        const enum grpc_read read =
            grpc_reader_feed(&stream->reader, bytes + done, size - done, &used, &status, &err);
        done += used;
        if (read == GRPC_FAILED)
            grpc_stream_fail(stream, status, err.text);
        else if (read == GRPC_MESSAGE)
            take_message(stream);
        if (stream->call_count >= GRPC_STREAM_CALLS)
            stream->is_paused = true;
    }
    return stream->is_done ? size : done;
}

static void end_if_answered(struct grpc_stream *stream) {
    if (!stream->has_ended || stream->is_done || !takes_many(stream) || stream->held.size)
        return;
    if (!grpc_reader_is_idle(&stream->reader))
        grpc_stream_fail(stream, ST_INVALID, "the call ended in the middle of a message");
    else if (stream->working_count == 0)
        grpc_stream_finish(stream, NULL, 0);
}

void grpc_stream_go_on(struct grpc_stream *stream) {
    if (!stream->is_paused || stream->call_count >= GRPC_STREAM_CALLS / 2) {
        end_if_answered(stream);
        return;
    }
    stream->is_paused = false;
    const size_t used = take_bytes(stream, stream->held.data + stream->held_used,
                                   stream->held.size - stream->held_used);
    if (stream->is_done)
        return;
    stream->held_used += used;
    h2_consume(stream->h2, used);
    grpc_conn_touch(stream->conn);
    if (stream->held_used == stream->held.size) {
        stream->conn->grpc->quota.used_bytes -= stream->held.size;
        buf_done(&stream->held);
        buf_init(&stream->held);
        stream->held_used = 0;
    }
    end_if_answered(stream);
}

/* ---- the session's events ---- */

static bool on_open(void *ctx, struct h2_stream *h2) {
    struct grpc_conn *gc = ctx;
    const struct serve_config *config = gc->grpc->server->config;
    struct grpc_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return false;
    stream->conn = gc;
    stream->h2 = h2;
    stream->start_ns = grpc_conn_input_ns(gc);
    grpc_reader_init(&stream->reader, config->grpc_max_message, &gc->grpc->quota);
    buf_init(&stream->held);
    stream->next = gc->streams;
    if (stream->next)
        stream->next->previous = stream;
    gc->streams = stream;
    gc->idle_ns = 0;
    gc->grpc->stream_count++;
    h2->ctx = stream;
    return true;
}

static void fault(struct grpc_stream *stream, enum status status, const char *text) {
    if (stream->fault == ST_OK) {
        stream->fault = status;
        stream->fault_text = text;
    }
}

static void on_header(void *ctx, struct h2_stream *h2, struct view name, struct view value) {
    (void)ctx;
    struct grpc_stream *stream = h2->ctx;
    uint64_t timeout_ns = 0;
    if (view_is(name, ":path")) {
        const size_t size =
            value.size < sizeof stream->path - 1 ? value.size : sizeof stream->path - 1;
        memcpy(stream->path, value.data, size);
        stream->method = grpc_method_find(value);
    } else if (view_is(name, ":method")) {
        stream->is_post = view_is(value, "POST");
    } else if (view_is(name, "content-type")) {
        stream->has_type = grpc_is_content_type(value);
    } else if (view_is(name, "grpc-timeout")) {
        if (grpc_timeout_parse(value, &timeout_ns))
            stream->deadline_ns = stream->start_ns + timeout_ns;
        else
            fault(stream, ST_INVALID, "grpc-timeout is no timeout: up to eight digits and a unit");
    } else if (view_is(name, "grpc-encoding")) {
        stream->is_gzip = view_is(value, "gzip");
        if (!stream->is_gzip && !view_is(value, "identity"))
            fault(stream, ST_UNSUPPORTED, "grpc-encoding: only identity and gzip are taken");
    } else if (view_is(name, "grpc-accept-encoding")) {
        stream->accepts_gzip = grpc_accepts(value, "gzip");
    } else if (view_is(name, "triton_grpc_error")) {
        stream->wants_status = view_is(value, "true");
    } else if (view_is(name, "telltale-timing")) {
        stream->wants_timing = true;
    }
}

/* Not gRPC at all: HTTP's own status. */
static void refuse(struct grpc_stream *stream, const char *status) {
    const struct h2_header headers[] = {
        {view_of(":status"), view_of(status)},
        {view_of("content-type"), view_of("application/grpc")},
        {view_of("grpc-status"), view_of("2")},
        {view_of("grpc-message"), view_of("this port takes POST with application/grpc")}};
    stream->is_done = true;
    count_code(stream, 2);
    h2_end_early(stream->h2);
    (void)!h2_respond(stream->h2, headers, 4, true); /* a failure has reset the stream */
    grpc_conn_touch(stream->conn);
}

static void on_deadline(void *ctx) {
    struct grpc_stream *stream = ctx;
    grpc_stream_fail(stream, ST_TIMEOUT, "the call did not end within its grpc-timeout");
}

/* An inference request alone has its exchange's timer; every other call that lasts has this. */
static void arm(struct grpc_stream *stream) {
    struct loop *loop = stream->conn->grpc->server->loop;
    if (!stream->deadline_ns || stream->timer)
        return;
    stream->timer = loop_timer_create(loop, on_deadline, stream);
    if (stream->timer)
        loop_timer_set(stream->timer, stream->deadline_ns);
}

static void on_headers(void *ctx, struct h2_stream *h2, bool is_trailer, bool is_too_large) {
    (void)ctx;
    struct grpc_stream *stream = h2->ctx;
    if (is_trailer || stream->is_done)
        return;
    char text[160];
    if (is_too_large) {
        grpc_stream_fail(stream, ST_HEADER_TOO_LARGE, "the metadata is larger than --max-header");
    } else if (!stream->is_post) {
        refuse(stream, "405");
    } else if (!stream->has_type) {
        refuse(stream, "415");
    } else if (!stream->method) {
        (void)snprintf(text, sizeof text, "there is no method %s", stream->path);
        grpc_stream_fail(stream, ST_UNSUPPORTED, text);
    } else if (stream->fault != ST_OK) {
        grpc_stream_fail(stream, stream->fault, stream->fault_text);
    } else if (stream->deadline_ns && mono_ns() >= stream->deadline_ns) {
        grpc_stream_fail(stream, ST_TIMEOUT, "grpc-timeout was over when the call came");
    } else {
        stream->waits_ns = stream->start_ns;
        if (stream->method->kind != GRPC_UNARY && stream->method->kind != GRPC_INFER)
            arm(stream);
    }
}

static void on_data(void *ctx, struct h2_stream *h2, const char *bytes, size_t size) {
    (void)ctx;
    struct grpc_stream *stream = h2->ctx;
    size_t used = size;
    if (!stream->is_done)
        used = stream->held.size ? 0 : take_bytes(stream, bytes, size);
    if (used < size) {
        struct grpc_quota *quota = &stream->conn->grpc->quota;
        buf_append(&stream->held, bytes + used, size - used);
        quota->used_bytes += size - used;
        if (stream->held.failed || quota->used_bytes > quota->limit_bytes) {
            if (stream->held.failed)
                quota->used_bytes -= size - used;
            grpc_stream_fail(stream, ST_OVERLOADED,
                             "more is waiting to be read than --grpc-memory allows");
        }
    }
    h2_consume(h2, used);
}

static void on_stream_end(void *ctx, struct h2_stream *h2) {
    (void)ctx;
    struct grpc_stream *stream = h2->ctx;
    stream->has_ended = true;
    stream->waits_ns = 0;
    if (stream->is_done)
        return;
    struct err err = {.text = ""};
    if (takes_many(stream)) {
        end_if_answered(stream);
    } else if (!grpc_reader_is_idle(&stream->reader)) {
        grpc_stream_fail(stream, ST_INVALID, "the call ended in the middle of a message");
    } else if (!stream->has_message) {
        grpc_stream_fail(stream, ST_INVALID, "the call ended without a message");
    } else if (stream->method->kind == GRPC_INFER) {
        grpc_infer_start(stream, &stream->message, stream->start_ns);
    } else {
        const enum status status = inflate_small(stream, &err);
        if (status == ST_OK)
            run_method(stream);
        else
            grpc_stream_fail(stream, status, err.text);
    }
}

/* The answer's last byte is in the connection's buffer: settled when the kernel has that. */
static void on_sent(void *ctx, struct h2_stream *h2, struct h2_message *message) {
    (void)h2;
    struct grpc_conn *gc = ctx;
    struct grpc_call *call = call_of(message);
    struct grpc_stream *stream = call->stream;
    call->is_queued = false;
    grpc_call_detach(call);
    call->next = gc->sending;
    gc->sending = call;
    if (stream)
        grpc_stream_go_on(stream);
}

static void on_unsent(void *ctx, struct h2_stream *h2, struct h2_message *message) {
    (void)ctx;
    (void)h2;
    struct grpc_call *call = call_of(message);
    call->is_queued = false;
    if (call->exchange)
        infer_run_abandon(call->exchange);
    grpc_call_release(call);
}

static void on_close(void *ctx, struct h2_stream *h2, uint32_t error_code) {
    struct grpc_conn *gc = ctx;
    struct grpc_stream *stream = h2->ctx;
    (void)error_code;
    if (!stream->is_done) {
        gc->grpc->counts.cancelled++;
        if (stream->working_count)
            gc->grpc->server->counts.vanished++;
    }
    stream->is_done = true;
    struct grpc_call *next = NULL;
    for (struct grpc_call *call = stream->calls; call; call = next) {
        next = call->next;
        if (call->is_queued) { /* on_unsent comes for it */
            grpc_call_detach(call);
            continue;
        }
        if (call->exchange)
            infer_run_abandon(call->exchange);
        grpc_call_release(call);
    }
    grpc_control_forget(stream);
    drop_input(stream);
    loop_timer_close(stream->timer);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        gc->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    if (!gc->streams)
        gc->idle_ns = mono_ns();
    gc->grpc->stream_count--;
    free(stream);
    grpc_conn_touch(gc);
}

const struct h2_events GRPC_STREAM_EVENTS = {.on_open = on_open,
                                             .on_header = on_header,
                                             .on_headers = on_headers,
                                             .on_data = on_data,
                                             .on_end = on_stream_end,
                                             .on_sent = on_sent,
                                             .on_close = on_close,
                                             .on_unsent = on_unsent};

/* ---- time ---- */

/* A client that takes nothing of an answer holds its memory. */
static bool is_stalled(struct grpc_stream *stream, uint64_t now_ns, uint64_t timeout_ns) {
    if (stream->h2->unsent_bytes == 0) {
        stream->stalled_ns = 0;
        return false;
    }
    if (!stream->stalled_ns || stream->h2->unsent_bytes != stream->unsent_bytes) {
        stream->unsent_bytes = stream->h2->unsent_bytes;
        stream->stalled_ns = now_ns;
    }
    return now_ns - stream->stalled_ns >= timeout_ns;
}

void grpc_stream_sweep(struct grpc_stream *stream, uint64_t now_ns) {
    const struct serve_config *config = stream->conn->grpc->server->config;
    const uint64_t timeout_ns = config->read_timeout_ns;
    if (timeout_ns && is_stalled(stream, now_ns, timeout_ns)) {
        stream->conn->grpc->counts.timeouts++;
        h2_reset(stream->h2, H2_CANCEL);
        grpc_conn_touch(stream->conn);
        return;
    }
    if (stream->is_done)
        return;
    const bool is_late = stream->deadline_ns && now_ns >= stream->deadline_ns;
    const bool is_idle_stream = takes_many(stream) && grpc_reader_is_idle(&stream->reader);
    if (stream->waits_ns && is_late)
        grpc_stream_fail(stream, ST_TIMEOUT, "the request was not whole within its grpc-timeout");
    else if (timeout_ns && stream->waits_ns && !is_idle_stream &&
             now_ns - stream->waits_ns >= timeout_ns)
        grpc_stream_fail(stream, ST_REQUEST_TIMEOUT,
                         "the request did not arrive whole within the read timeout");
}

/* The server is going away: a stream without an end of its own gets one. */
void grpc_stream_drain(struct grpc_stream *stream) {
    if (stream->is_done)
        return;
    if (stream->is_watching)
        grpc_stream_fail(stream, ST_UNAVAILABLE, "the server is shutting down");
    else if (stream->method && takes_many(stream) && stream->working_count == 0)
        grpc_stream_fail(stream, ST_UNAVAILABLE, "the server is shutting down: connect anew");
}

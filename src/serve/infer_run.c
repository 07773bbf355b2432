/* The part of an inference request that no protocol changes. Loop thread only, but for what the
 * engine calls from its own threads: decode_large, on_request_done and what they call. Those touch
 * nothing of the server and of an exchange only what exchange.h allows.
 *
 * Invariant: every request that got here ends in exactly one trace record and one release,
 * whether it was answered, refused, timed out or left by its client.
 * Read next: infer_route.c (the HTTP front), engine/engine.h, measure/trace.h (the stamps). */
#include "serve/infer_run.h"

#include "base/clock.h"
#include "engine/work.h"
#include "serve/infer_tensors.h"
#include "serve/slow_log.h"
#include <stdlib.h>

enum {
    /* JSON of this size takes the loop about as long as handing it to a worker and back. */
    LOOP_ANSWER_BYTES = 16 * 1024,
    LOOP_FETCH_BYTES = 256 * 1024 /* copied out of shared memory: likewise */
};

static struct exchange *exchange_of(struct request *request) {
    return request->owner;
}

/* The client's id, where it gave one. */
static void take_id(struct exchange *exchange, struct view client) {
    char *id = exchange->request.trace.id;
    exchange->id = client;
    if (client.size == 0)
        return;
    const size_t size = client.size < TRACE_ID_SIZE - 1 ? client.size : TRACE_ID_SIZE - 1;
    memcpy(id, client.data, size);
    id[size] = '\0';
}

static void number(struct server *server, struct exchange *exchange) {
    char *id = exchange->request.trace.id;
    char digits[20];
    size_t count = 0;
    for (uint64_t n = ++server->request_number; n; n /= 10)
        digits[count++] = (char)('0' + n % 10);
    *id++ = 'r';
    *id++ = '-';
    while (count)
        *id++ = digits[--count];
    *id = '\0';
}

static uint32_t clamp_u32(size_t size) {
    return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

/* Ends the record of an exchange and gives it back to the pool. */
static void finish(struct exchange *exchange, enum status status, int status_http_code) {
    struct server *server = exchange->server;
    struct trace_record *record = &exchange->request.trace;
    record->status = (uint8_t)status;
    record->status_http = (uint16_t)status_http_code;
    slow_log_look(server, record, exchange->request.model->model->name);
    request_trace(&exchange->request, server->ring);
    exchange_release(exchange);
}

/* What only we can repair is said once, by us: the client cannot. */
static void log_failure(struct server *server, const struct exchange *exchange,
                        enum status status) {
    uint64_t held_back = 0;
    if (status_http(status) != 500 ||
        !log_limit_pass(&server->failure_limit, mono_ns(), &held_back))
        return;
    const struct request *request = &exchange->request;
    log_line(LOG_ERROR, "request %s to model %s failed, held back %llu like it before: %s",
             request->trace.id, request->model->model->name, (unsigned long long)held_back,
             request->err.text[0] ? request->err.text : status_sentence(status));
}

/* ---- encoding ---- */

static enum status encode(struct exchange *exchange, struct buf *out) {
    const enum status status = infer_outputs_finish(exchange);
    return status == ST_OK ? exchange->front->encode(exchange, out) : status;
}

static size_t encode_bytes(const struct exchange *exchange) {
    return exchange->front->encode_bytes(exchange) + infer_outputs_finish_bytes(exchange);
}

static void encode_large(struct exchange *exchange) {
    struct request *request = &exchange->request;
    request->trace.at[AT_ENCODE_START] = mono_ns();
    request->status = encode(exchange, &exchange->answer);
    exchange->is_encoded = true;
    request->trace.at[AT_ENCODED] = mono_ns();
    exchange_tell(exchange, NOTE_DONE);
}

static void run_encode(struct pool_job *job, unsigned worker) {
    (void)worker;
    struct request *request =
        (struct request *)(void *)((char *)job - offsetof(struct request, pool_job));
    /* What it waited for was a worker, and not the hand-over to the loop. */
    request->trace.at[AT_POSTPROCESS_START] = request->trace.at[AT_POSTPROCESS_END] = mono_ns();
    encode_large(exchange_of(request));
}

/* An engine thread: hands over to the loop, a large answer by way of a worker. A worker that
 * comes here has postprocessed the request and encodes it too; an instance has better to do. */
static void on_request_done(struct request *request) {
    struct exchange *exchange = exchange_of(request);
    if (request->status == ST_OK && !flag_is_up(&request->job.is_cancelled) &&
        encode_bytes(exchange) > LOOP_ANSWER_BYTES) {
        if (role_get() == ROLE_WORKER) {
            encode_large(exchange);
            return;
        }
        request->pool_job.run = run_encode;
        if (engine_work(exchange->server->engine, &request->pool_job))
            return;
    }
    exchange_tell(exchange, NOTE_DONE);
}

/* Answers and, through infer_run_sent, ends the exchange as soon as the kernel has it all. */
static uint64_t answer(struct exchange *exchange, uint64_t now_ns) {
    struct server *server = exchange->server;
    struct request *request = &exchange->request;
    const struct buf *body = exchange->is_encoded ? &exchange->answer : &server->body;
    buf_clear(&server->body);
    if (!exchange->is_encoded) {
        request->trace.at[AT_ENCODE_START] = now_ns;
        if (request->status == ST_OK)
            request->status = encode(exchange, &server->body);
        request->trace.at[AT_ENCODED] = mono_ns();
    }
    request->trace.bytes_out = clamp_u32(body->size);
    request->trace.status = (uint8_t)request->status;
    if (request->status != ST_OK)
        log_failure(server, exchange, request->status);
    return exchange->front->answer(exchange, body);
}

/* ---- deadlines, clients that leave ---- */

/* Parts exchange and waiter while the engine still has the request. */
static void let_go(struct exchange *exchange, enum status why) {
    exchange_disarm(exchange);
    exchange->left_ns = mono_ns();
    exchange->left_status = why;
    exchange->body = exchange->front->let_go(exchange);
    exchange->waiter = NULL;
    request_cancel(&exchange->request);
}

/* The timer of a request's deadline: answers now, whatever the engine is doing with it. */
static void expire(void *ctx) {
    struct exchange *exchange = ctx;
    const struct infer_front *front = exchange->front;
    void *waiter = exchange->waiter;
    const uint64_t timeout_ns = exchange->armed_ns - exchange->request.trace.at[AT_RECEIVED];
    let_go(exchange, ST_TIMEOUT);
    struct err err;
    const enum status status =
        err_set(&err, ST_TIMEOUT, "the request did not finish within its timeout of %.3f ms",
                (double)timeout_ns / 1e6);
    front->fail(waiter, status, err.text);
}

/* The earliest of the server's timeout and the client's two; counted from the whole request. */
static uint64_t deadline_of(const struct exchange *exchange, const struct infer_request *parsed) {
    uint64_t timeout_us = exchange->server->config->request_timeout_ms * 1000;
    if (parsed->has_timeout && parsed->timeout_us &&
        (timeout_us == 0 || parsed->timeout_us < timeout_us))
        timeout_us = parsed->timeout_us;
    uint64_t deadline_ns = 0;
    if (timeout_us != 0 && timeout_us <= UINT64_MAX / 2000)
        deadline_ns = exchange->request.trace.at[AT_RECEIVED] + timeout_us * 1000;
    if (exchange->client_deadline_ns &&
        (deadline_ns == 0 || exchange->client_deadline_ns < deadline_ns))
        deadline_ns = exchange->client_deadline_ns;
    return deadline_ns;
}

/* ---- decoding, submitting ---- */

/* *out_bytes: what is still to be fetched from shared memory. */
static enum status decode(struct exchange *exchange, struct infer_request *out_parsed,
                          size_t *out_bytes) {
    const enum status status = exchange->front->decode(exchange, out_parsed);
    take_id(exchange, out_parsed->id);
    return status == ST_OK ? infer_inputs_locate(exchange, out_parsed, out_bytes) : status;
}

/* A worker: what the loop does with a small body, and the rest is told to the loop. */
static enum status decode_large(struct request *request) {
    struct exchange *exchange = exchange_of(request);
    struct infer_request parsed = {.id = {.data = NULL}};
    size_t bytes = 0;
    enum status status = decode(exchange, &parsed, &bytes);
    if (status == ST_OK)
        status = infer_inputs_fetch(exchange);
    if (status != ST_OK)
        return status;
    const uint64_t deadline_ns = deadline_of(exchange, &parsed);
    if (deadline_ns == request->deadline_ns) /* the server's own: the timer stands at it */
        return ST_OK;
    request->deadline_ns = exchange->body_deadline_ns = deadline_ns;
    exchange_tell(exchange, NOTE_DEADLINE);
    return ST_OK;
}

/* The timer is there from the start: what the body says may only bring it forward. */
static enum status submit_large(struct exchange *exchange) {
    static const struct infer_request NOTHING = {.id = {.data = NULL}};
    struct request *request = &exchange->request;
    request->decode = decode_large;
    request->deadline_ns = deadline_of(exchange, &NOTHING);
    const enum status status = exchange_arm(exchange, request->deadline_ns, expire);
    return status == ST_OK ? engine_submit(exchange->server->engine, request) : status;
}

/* A worker: the body is decoded, tensors of it are in shared memory. */
static enum status fetch_large(struct request *request) {
    return infer_inputs_fetch(exchange_of(request));
}

static enum status submit(struct exchange *exchange) {
    struct request *request = &exchange->request;
    struct infer_request parsed = {.id = {.data = NULL}};
    size_t bytes = 0;
    enum status status = decode(exchange, &parsed, &bytes);
    if (status == ST_OK && bytes > LOOP_FETCH_BYTES)
        request->decode = fetch_large;
    else if (status == ST_OK)
        status = infer_inputs_fetch(exchange);
    if (!request->decode)
        request->trace.at[AT_DECODED] = mono_ns();
    if (status != ST_OK)
        return status;
    request->deadline_ns = deadline_of(exchange, &parsed);
    if (request->deadline_ns)
        status = exchange_arm(exchange, request->deadline_ns, expire);
    return status == ST_OK ? engine_submit(exchange->server->engine, request) : status;
}

void infer_run_start(struct exchange *exchange, const struct served_model *served,
                     uint64_t start_ns, size_t bytes_in, bool is_large) {
    struct request *request = &exchange->request;
    request->model = served;
    request->owner = exchange;
    request->on_done = on_request_done;
    request->trace.model = served->trace_model;
    request->trace.bytes_in = clamp_u32(bytes_in);
    request->trace.at[AT_START] = start_ns;
    request->trace.at[AT_RECEIVED] = mono_ns();
    number(exchange->server, exchange);

    enum status status = request->status;
    if (status == ST_OK)
        status = is_large ? submit_large(exchange) : submit(exchange);
    exchange->is_submitted = status == ST_OK;
    if (status == ST_OK)
        return;
    if (request->trace.at[AT_DECODED] == 0)
        request->trace.at[AT_DECODED] = mono_ns();
    request->status = status;
    answer(exchange, mono_ns());
}

/* ---- the end ---- */

static uint64_t done(struct exchange *exchange, uint64_t now_ns) {
    exchange->is_submitted = false;
    if (!exchange->waiter) {
        exchange_cut_trace(&exchange->request.trace, exchange->left_ns);
        finish(exchange, exchange->left_status, status_http(exchange->left_status));
        return now_ns;
    }
    exchange_disarm(exchange);
    const uint64_t at_ns = answer(exchange, now_ns);
    return at_ns > now_ns ? at_ns : mono_ns();
}

uint64_t infer_run_note(struct note *note, uint64_t now_ns) {
    struct exchange *exchange = note->exchange;
    if (note->kind == NOTE_DONE)
        return done(exchange, now_ns);
    if (exchange->waiter) /* else its client has had its error, or left */
        exchange_rearm(exchange, exchange->body_deadline_ns);
    return now_ns;
}

void infer_run_abandon(struct exchange *exchange) {
    if (exchange->is_submitted) {
        let_go(exchange, ST_CANCELLED);
        return;
    }
    /* Answered, but the client left before it had read everything. */
    free(exchange->front->let_go(exchange));
    exchange->request.trace.at[AT_SENT] = mono_ns();
    finish(exchange, ST_CANCELLED, status_http(ST_CANCELLED));
}

void infer_run_sent(struct exchange *exchange, uint64_t at_ns) {
    const enum status status = exchange->request.status;
    exchange->request.trace.at[AT_SENT] = at_ns;
    finish(exchange, status, status_http(status));
}

/* Sends the load to the engine in this process. Loop thread, but for on_request_done, which
 * comes on an instance or worker thread.
 *
 * Invariant: a carrier is in exactly one place: spare, lent to the engine, or in the queue of
 * answers. An abandoned carrier has no call and goes back to spare when its answer comes.
 * Read next: engine/engine.h. */
#include "load/target.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "sync/mpsc.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct carrier {
    struct request request;
    struct engine_target *owner;
    struct call *call; /* NULL: abandoned */
    struct carrier *next_spare;
};

struct engine_target {
    struct target base;
    struct loop *loop;
    struct engine *engine;
    const struct served_model *model;
    struct trace_ring *ring;  /* of the loop thread */
    struct loop_wake *wake;
    struct mpsc answers;      /* pushed by the engine's threads */
    struct carrier *spare;
    uint64_t lent;            /* carriers not in spare */
    bool is_closing;
};

static struct engine_target *of(struct target *target) { return (struct engine_target *)target; }

static void on_request_done(struct request *request) {
    struct carrier *carrier = request->owner;
    struct engine_target *t = carrier->owner;
    if (mpsc_push(&t->answers, &request->done_node)) loop_wake_send(t->wake);
}

static void give_back(struct engine_target *t, struct carrier *carrier) {
    request_clear(&carrier->request);
    carrier->next_spare = t->spare;
    t->spare = carrier;
    t->lent--;
}

static void read_result(const struct request *request, struct call *call) {
    struct sample *sample = &call->sample;
    uint64_t stage_ns[STAGE_COUNT] = {0};
    sample->server_total_ns = trace_durations(&request->trace, stage_ns);
    sample->has_stages = true;
    for (int i = 0; i < STAGE_COUNT; i++) sample->stage_us[i] = (float)stage_ns[i] / 1000;
    if (request->trace.tokens > 0) sample->tokens = request->trace.tokens;
    sample->http = (uint16_t)status_http(request->status);
    for (uint32_t i = 0; i < request->output_count; i++)
        sample->bytes_in += (uint32_t)request->outputs[i].size;
    sample->outcome = request->status == ST_OK ? OUTCOME_OK : OUTCOME_REFUSED;
    if (request->status != ST_OK)
        snprintf(call->detail, sizeof call->detail, "%.*s", CALL_DETAIL_SIZE - 1,
                 request->err.text[0] != 0 ? request->err.text : status_sentence(request->status));
}

static void stamp_end(struct request *request, uint64_t now_ns) {
    struct trace_record *trace = &request->trace;
    trace->at[AT_ENCODE_START] = trace->at[AT_ENCODED] = trace->at[AT_SENT] = now_ns;
    trace->status = (uint8_t)request->status;
    trace->status_http = (uint16_t)status_http(request->status);
    for (uint32_t i = 0; i < request->output_count; i++)
        trace->bytes_out += (uint32_t)request->outputs[i].size;
}

static void on_answers(void *ctx) {
    struct engine_target *t = ctx;
    struct mpsc_node *node = mpsc_take_all(&t->answers);
    while (node != NULL) {
        struct mpsc_node *next = node->next; /* give_back makes the node reusable */
        struct request *request =
            (struct request *)((char *)node - offsetof(struct request, done_node));
        struct carrier *carrier = request->owner;
        struct call *call = carrier->call;
        uint64_t now_ns = mono_ns();
        stamp_end(request, now_ns);
        if (call != NULL) {
            call->sample.done_ns = call->sample.first_byte_ns = now_ns;
            read_result(request, call);
        }
        request_trace(request, t->ring);
        give_back(t, carrier);
        if (call != NULL) t->base.on_done(t->base.ctx, call);
        node = next;
    }
    if (t->is_closing && t->lent == 0) loop_stop(t->loop);
}

static void on_turn_end(void *ctx) {
    struct engine_target *t = ctx;
    engine_flush(t->engine);
}

static struct carrier *take_carrier(struct engine_target *t) {
    struct carrier *carrier = t->spare;
    if (carrier != NULL) {
        t->spare = carrier->next_spare;
    } else {
        carrier = calloc(1, sizeof *carrier);
        if (carrier == NULL) return NULL;
        request_init(&carrier->request);
        carrier->owner = t;
    }
    t->lent++;
    return carrier;
}

static bool engine_send(struct target *target, struct call *call) {
    struct engine_target *t = of(target);
    struct carrier *carrier = take_carrier(t);
    call->sample.sent_ns = mono_ns();
    if (carrier == NULL) {
        call->sample.outcome = OUTCOME_REFUSED;
        call->sample.http = (uint16_t)status_http(ST_NO_MEMORY);
        call->sample.done_ns = call->sample.sent_ns;
        snprintf(call->detail, sizeof call->detail, "%s", status_sentence(ST_NO_MEMORY));
        return false;
    }
    const struct input *input = &t->base.inputs->items[call->sample.input];
    struct request *request = &carrier->request;
    carrier->call = call;
    call->carrier = carrier;
    request->model = engine_share(t->model);
    request->inputs = input->tensors;
    request->input_count = input->tensor_count;
    request->on_done = on_request_done;
    request->owner = carrier;
    for (uint32_t i = 0; i < input->tensor_count; i++)
        call->sample.bytes_out += (uint32_t)input->tensors[i].size;
    struct trace_record *trace = &request->trace;
    trace->at[AT_START] = trace->at[AT_RECEIVED] = trace->at[AT_DECODED] = call->sample.sent_ns;
    trace->bytes_in = call->sample.bytes_out;
    trace->model = t->model->trace_model;
    snprintf(trace->id, sizeof trace->id, "%s", call->id);
    enum status status = engine_submit(t->engine, request);
    if (status == ST_OK) return true;
    request->status = status;
    uint64_t now_ns = mono_ns();
    stamp_end(request, now_ns);
    call->sample.done_ns = now_ns;
    read_result(request, call);
    request_trace(request, t->ring);
    give_back(t, carrier);
    return false;
}

static void engine_abandon(struct target *target, struct call *call) {
    (void)target;
    struct carrier *carrier = call->carrier;
    carrier->call = NULL;
    request_cancel(&carrier->request);
}

static void engine_target_free(struct target *target) {
    struct engine_target *t = of(target);
    t->is_closing = true;
    engine_flush(t->engine);
    while (t->lent > 0) loop_run(t->loop); /* the engine still writes to these */
    loop_on_turn_end(t->loop, NULL, NULL);
    if (t->wake != NULL) loop_wake_close(t->wake);
    while (t->spare != NULL) {
        struct carrier *carrier = t->spare;
        t->spare = carrier->next_spare;
        request_done(&carrier->request);
        free(carrier);
    }
    free(t);
}

enum status target_engine_create(struct loop *loop, struct engine *engine,
                                 const struct served_model *model, const struct inputs *inputs,
                                 struct target **out, struct err *err) {
    static const struct target_table TABLE = {engine_send, engine_abandon, engine_target_free};
    struct engine_target *t = aligned_alloc(_Alignof(struct engine_target), sizeof *t);
    if (t == NULL) return err_set(err, ST_NO_MEMORY, "out of memory");
    *t = (struct engine_target){
        .base = {.table = &TABLE,
                 .inputs = inputs,
                 .is_simulated = model->model->backend->is_simulated},
        .loop = loop,
        .engine = engine,
        .model = model,
    };
    mpsc_init(&t->answers);
    t->wake = loop_wake_create(loop, on_answers, t);
    t->ring = tracer_ring(engine_tracer(engine));
    if (t->wake == NULL || t->ring == NULL) {
        engine_target_free(&t->base);
        return err_set(err, ST_NO_MEMORY, "out of memory for the engine's answers");
    }
    loop_on_turn_end(loop, on_turn_end, t);
    *out = &t->base;
    return ST_OK;
}

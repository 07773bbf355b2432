/* What other threads do for a stream, and how the loop hears of its end.
 *
 * Invariant: a control is in its stream's list as long as control->stream is set; only the loop
 * looks at either.
 * Read next: grpc_routes.c, grpc_infer.c. */
#include "serve/grpc_control.h"

#include "engine/work.h"
#include "proto/compress.h"
#include <stdlib.h>

struct grpc_control *grpc_control_create(struct grpc_stream *stream, size_t size,
                                         void (*finish)(struct grpc_control *control)) {
    struct grpc_control *control = calloc(1, size);
    if (!control)
        return NULL;
    control->grpc = stream->conn->grpc;
    control->stream = stream;
    control->finish = finish;
    control->next = stream->controls;
    stream->controls = control;
    control->grpc->server->in_flight++; /* draining waits for it */
    return control;
}

void grpc_control_free(struct grpc_control *control) {
    struct grpc_stream *stream = control->stream;
    struct grpc_control **at = stream ? &stream->controls : NULL;
    while (at && *at && *at != control)
        at = &(*at)->next;
    if (at && *at)
        *at = control->next;
    control->grpc->server->in_flight--;
    free(control);
}

void grpc_control_forget(struct grpc_stream *stream) {
    for (struct grpc_control *control = stream->controls; control; control = control->next)
        control->stream = NULL;
    stream->controls = NULL;
}

void grpc_control_done(struct grpc_control *control) {
    struct grpc_server *grpc = control->grpc;
    if (mpsc_push(&grpc->done, &control->node))
        loop_wake_send(grpc->wake);
}

void grpc_control_collect(struct grpc_server *grpc) {
    struct mpsc_node *node = mpsc_take_all(&grpc->done);
    while (node) {
        struct mpsc_node *next = node->next;
        struct grpc_control *control =
            (struct grpc_control *)(void *)((char *)node - offsetof(struct grpc_control, node));
        control->finish(control);
        node = next;
    }
}

/* ---- gzip ---- */

/* bytes to a message of its own, counted by the caller. */
static enum status inflate(struct view bytes, uint64_t max_bytes, struct grpc_message *out,
                           struct err *err) {
    enum { RATIO_ANY = 0 };
    const struct inflate_limits limits = {.max_size = max_bytes, .max_ratio = RATIO_ANY};
    char *memory = NULL;
    struct view body = {.data = NULL};
    enum status status = inflate_body(CODING_GZIP, bytes, limits, &memory, &body, err);
    if (status != ST_OK) {
        err_prefix(err, "the compressed message");
        return status;
    }
    memmove(memory, body.data, body.size); /* what is freed must be what is read */
    *out = (struct grpc_message){.bytes = memory, .size = body.size, .capacity = body.size};
    return ST_OK;
}

static enum status count(struct grpc_server *grpc, struct grpc_message *message, struct err *err) {
    grpc->quota.used_bytes += message->capacity;
    if (grpc->quota.used_bytes <= grpc->quota.limit_bytes)
        return ST_OK;
    grpc_message_free(message, &grpc->quota);
    return err_set(err, ST_OVERLOADED, "the messages being received and worked on take more than "
                   "--grpc-memory allows: send fewer at once");
}

enum status grpc_inflate(struct grpc_server *grpc, struct grpc_message *message, struct err *err) {
    struct grpc_message inflated = {.bytes = NULL};
    enum status status = inflate((struct view){message->bytes, message->size},
                                 grpc->server->config->grpc_max_message, &inflated, err);
    if (status == ST_OK)
        status = count(grpc, &inflated, err);
    grpc_message_free(message, &grpc->quota);
    if (status == ST_OK)
        *message = inflated;
    return status;
}

struct inflating {
    struct grpc_control control; /* first */
    struct pool_job job;
    struct grpc_message from, to;
    uint64_t start_ns;
    void (*done)(struct grpc_stream *stream, struct grpc_message *message, uint64_t start_ns,
                 enum status status, const char *text);
};

static void run_inflate(struct pool_job *job, unsigned worker) {
    (void)worker;
    struct inflating *task =
        (struct inflating *)(void *)((char *)job - offsetof(struct inflating, job));
    struct grpc_control *control = &task->control;
    control->status = inflate((struct view){task->from.bytes, task->from.size},
                              control->grpc->server->config->grpc_max_message, &task->to,
                              &control->err);
    grpc_control_done(control);
}

static void finish_inflate(struct grpc_control *control) {
    struct inflating *task = (struct inflating *)control;
    struct grpc_server *grpc = control->grpc;
    struct grpc_stream *stream = control->stream;
    grpc_message_free(&task->from, &grpc->quota);
    if (control->status == ST_OK)
        control->status = count(grpc, &task->to, &control->err);
    if (stream)
        task->done(stream, &task->to, task->start_ns, control->status, control->err.text);
    grpc_message_free(&task->to, &grpc->quota);
    grpc_control_free(control);
}

enum status grpc_inflate_later(struct grpc_stream *stream, struct grpc_message *message,
                               uint64_t start_ns,
                               void (*done)(struct grpc_stream *stream,
                                            struct grpc_message *message, uint64_t start_ns,
                                            enum status status, const char *text),
                               struct err *err) {
    struct inflating *task =
        (struct inflating *)grpc_control_create(stream, sizeof *task, finish_inflate);
    if (!task)
        return err_set(err, ST_NO_MEMORY, "no memory to inflate a message");
    task->job.run = run_inflate;
    task->from = *message;
    task->start_ns = start_ns;
    task->done = done;
    if (!engine_work(stream->conn->grpc->server->engine, &task->job)) {
        grpc_control_free(&task->control);
        return err_set(err, ST_OVERLOADED, "too much waits for a worker");
    }
    *message = (struct grpc_message){.bytes = NULL};
    return ST_OK;
}

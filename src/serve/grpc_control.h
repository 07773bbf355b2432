/* Work for a stream that another thread does: a model loaded or unloaded, a message inflated. The
 * stream may be gone when it is done. */
#ifndef TELLTALE_SERVE_GRPC_CONTROL_H
#define TELLTALE_SERVE_GRPC_CONTROL_H

#include "serve/grpc_stream.h"

struct grpc_control {
    struct mpsc_node node;
    struct grpc_server *grpc;
    struct grpc_stream *stream;    /* the loop's; NULL: gone */
    struct grpc_control *next;     /* of the stream's */
    /* The loop: it is done, and control is to be freed. stream may be NULL. */
    void (*finish)(struct grpc_control *control);
    enum status status;
    struct err err;
};

/* The loop: size bytes that begin with a control, in the stream's list; NULL: no memory. */
struct grpc_control *grpc_control_create(struct grpc_stream *stream, size_t size,
                                         void (*finish)(struct grpc_control *control));
/* The loop: it did not begin, or is finished. */
void grpc_control_free(struct grpc_control *control);
/* Any thread: done; control is the loop's again. */
void grpc_control_done(struct grpc_control *control);
/* The loop: finishes what is done. */
void grpc_control_collect(struct grpc_server *grpc);
/* The stream is going. */
void grpc_control_forget(struct grpc_stream *stream);

/* Inflates a small message here and now; at most --grpc-max-message. */
MUST_CHECK enum status grpc_inflate(struct grpc_server *grpc, struct grpc_message *message,
                                    struct err *err);
/* The same on a worker; done gets the message, or the failure, on the loop, unless the stream is
 * gone by then. Takes the message where it returns ST_OK. */
MUST_CHECK enum status grpc_inflate_later(struct grpc_stream *stream, struct grpc_message *message,
                                          uint64_t start_ns,
                                          void (*done)(struct grpc_stream *stream,
                                                       struct grpc_message *message,
                                                       uint64_t start_ns, enum status status,
                                                       const char *text),
                                          struct err *err);

#endif

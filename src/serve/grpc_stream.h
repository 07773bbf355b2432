/* One call of a method: headers, messages, status. Loop thread only. */
#ifndef TELLTALE_SERVE_GRPC_STREAM_H
#define TELLTALE_SERVE_GRPC_STREAM_H

#include "serve/grpc_conn.h"
#include "serve/infer_run.h"
#include <protobuf-c/protobuf-c.h>

struct grpc_stream;

enum grpc_method_kind {
    GRPC_UNARY,        /* answers at once, by `answer` */
    GRPC_UNARY_LATER,  /* begins by `answer` what a control ends */
    GRPC_INFER,
    GRPC_STREAM_INFER,
    GRPC_WATCH
};

/* A method that takes one message and answers one, while it is worked on. */
struct grpc_unary {
    struct grpc_stream *stream;
    struct grpc_server *grpc;
    struct arena *arena;              /* gone when it returns */
    const void *request;              /* of the method's type, in arena */
    const ProtobufCMessage *response; /* set by it, in arena or for ever; NULL: it comes later */
    struct err *err;
};

struct grpc_method {
    const char *path;
    enum grpc_method_kind kind;
    const ProtobufCMessageDescriptor *request; /* NULL: of the inference methods */
    /* A failure has its sentence in err. */
    enum status (*answer)(struct grpc_unary *call);
};

enum { GRPC_STREAM_CALLS = 64 }; /* requests and answers of one ModelStreamInfer at once */

struct grpc_stream {
    struct grpc_conn *conn;
    struct h2_stream *h2;
    struct grpc_stream *previous, *next;
    const struct grpc_method *method; /* NULL: unknown */
    char path[96];                    /* as much of it as an error shows */
    struct grpc_reader reader;
    struct grpc_message message;      /* of a method that takes one */
    struct buf held;                  /* input of a stream that has too many calls */
    size_t held_used;
    struct grpc_call *calls;          /* list */
    uint32_t call_count;              /* in it */
    uint32_t working_count;           /* of those, not yet answered */
    struct grpc_control *controls;    /* list: what other threads do for it */
    struct loop_timer *timer;         /* of a deadline, where one is needed */
    uint64_t start_ns;                /* the first byte of the present message, or of the call */
    uint64_t deadline_ns;             /* by grpc-timeout; 0: none */
    uint64_t waits_ns;                /* since when the rest of a message is awaited; 0: it is not */
    uint64_t stalled_ns;              /* since when the client has taken nothing; 0: it takes */
    size_t unsent_bytes;              /* at that time */
    enum status fault;                /* found in the headers; text in fault_text */
    const char *fault_text;
    bool is_post, has_type, is_gzip, has_other_encoding;
    bool accepts_gzip, wants_status, wants_timing;
    bool has_message, has_ended;
    bool is_done;                     /* its status is given */
    bool is_paused;                   /* too many calls: input is held */
    bool is_watching;
    int watched_state;                /* last told */
};

/* An inference request on a stream: the exchange's waiter. */
struct grpc_call {
    struct grpc_stream *stream;       /* NULL: gone, or the answer is on its way */
    struct grpc_conn *conn;
    struct exchange *exchange;        /* NULL: let go of */
    struct grpc_call *previous, *next; /* of the stream's, of conn->sending, of the free ones */
    struct grpc_message message;
    struct view id;                   /* the request's, in message */
    struct h2_message out;
    struct view piece;
    struct buf bytes;                 /* of an answer that is not an exchange's */
    bool is_queued;                   /* out is with h2 */
};

extern const struct h2_events GRPC_STREAM_EVENTS; /* their ctx: struct grpc_conn */

/* Ends the stream with a status other than OK. text "": the status's own sentence. */
void grpc_stream_fail(struct grpc_stream *stream, enum status status, const char *text);
/* Ends it with OK once what is queued is out. */
void grpc_stream_finish(struct grpc_stream *stream, const struct h2_header *extra, uint32_t count);
/* Sends a message (with its prefix) in a call's bytes: headers first where they are not out yet. */
void grpc_stream_send(struct grpc_stream *stream, struct grpc_call *call);
/* Sends a message. */
void grpc_stream_reply(struct grpc_stream *stream, const ProtobufCMessage *message);
void grpc_stream_sweep(struct grpc_stream *stream, uint64_t now_ns);
void grpc_stream_drain(struct grpc_stream *stream);

/* NULL: no memory. In the stream's list. */
struct grpc_call *grpc_call_take(struct grpc_stream *stream);
/* Frees it; its exchange is gone. */
void grpc_call_release(struct grpc_call *call);
/* An answer is out or given up: a stream that was held up goes on. */
void grpc_call_detach(struct grpc_call *call);
void grpc_stream_go_on(struct grpc_stream *stream);

/* grpc_infer.c: a whole message of ModelInfer or ModelStreamInfer. Takes the message. */
void grpc_infer_start(struct grpc_stream *stream, struct grpc_message *message, uint64_t start_ns);
/* grpc_routes.c; NULL: there is none. */
const struct grpc_method *grpc_method_find(struct view path);
/* grpc_health.c: sends the state where it differs from what was told last. */
void grpc_health_tell(struct grpc_stream *stream);

#endif

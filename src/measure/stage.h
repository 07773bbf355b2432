/* The journey of a request: its stages in order. The stages are disjoint and their sum is the
 * total; what no stage claims is STAGE_OTHER. */
#ifndef TELLTALE_MEASURE_STAGE_H
#define TELLTALE_MEASURE_STAGE_H

#include <stdbool.h>

#define STAGE_TABLE(X)                                                                         \
    X(RECEIVE,          "receive",          "first byte readable to body complete")           \
    X(DECODE,           "decode",           "HTTP framing and JSON or binary to tensors")     \
    X(PREPROCESS_WAIT,  "preprocess_wait",  "waiting for a worker")                            \
    X(PREPROCESS,       "preprocess",       "tokenizing; decoding and resizing pictures")       \
    X(BATCH_ENQUEUE,    "batch_enqueue",    "entering the queue, lock wait included")         \
    X(BATCH_HOLD,       "batch_hold",       "an instance was free and the policy waited for company") \
    X(INSTANCE_WAIT,    "instance_wait",    "every instance was busy")                        \
    X(DISPATCH,         "dispatch",         "batch ready, instance free, its thread not yet running") \
    X(INPUT_COPY,       "input_copy",       "gathering, padding, copying to the device")      \
    X(EXECUTE,          "execute",          "the model")                                       \
    X(OUTPUT_COPY,      "output_copy",      "copying from the device, scattering")            \
    X(POSTPROCESS_WAIT, "postprocess_wait", "waiting for a worker")                           \
    X(POSTPROCESS,      "postprocess",      "labels, boxes, embeddings, text")                  \
    X(ENCODE,           "encode",           "answer to JSON or binary")                        \
    X(SEND,             "send",             "until the last byte is handed to the kernel")    \
    X(OTHER,            "other",            "hand-overs between threads and what no stage claims")

enum stage {
#define X(name, text, help) STAGE_##name,
    STAGE_TABLE(X)
#undef X
    STAGE_COUNT
};

const char *stage_name(enum stage stage);
const char *stage_help(enum stage stage);
/* Triton's queue duration: batch_enqueue + batch_hold + instance_wait + dispatch. */
bool stage_is_queue(enum stage stage);

/* Why a batch was dispatched. */
#define REASON_TABLE(X)                                                                        \
    X(FULL,     "full",     "max batch reached")                                               \
    X(TIMER,    "timer",    "the oldest request had waited the maximum delay")                \
    X(EAGER,    "eager",    "an instance was free; the policy does not hold")                 \
    X(GAP,      "gap",      "held while requests kept arriving; then none came within the gap") \
    X(DEADLINE, "deadline", "a request's deadline left no more time")                         \
    X(DRAIN,    "drain",    "shutting down")                                                   \
    X(ALONE,    "alone",    "cannot be batched: run on its own")                               \
    X(PREFERRED, "preferred", "a preferred size was reached")

enum reason {
#define X(name, text, help) REASON_##name,
    REASON_TABLE(X)
#undef X
    REASON_COUNT
};
const char *reason_name(enum reason reason);

#endif

/* What runs a batch: ONNX Runtime (ort.c) or the simulated accelerator (sim.c), behind one small
 * table. A session belongs to a model and is shared by its instances; a slot is one instance's
 * buffers. */
#ifndef TELLTALE_INFER_BACKEND_H
#define TELLTALE_INFER_BACKEND_H

#include "base/status.h"
#include "base/tensor.h"
#include <stdbool.h>
#include <stdint.h>

enum { MODEL_MAX_IO = 64 };

struct io_spec {            /* one input or output, as the model declares it */
    char *name;
    enum dtype dtype;
    uint32_t rank;
    bool is_any_shape;      /* the model declares no rank: rank is 0, every shape is allowed */
    int64_t shape[TENSOR_MAX_RANK]; /* -1: any */
    char *dim_names[TENSOR_MAX_RANK]; /* symbolic name of a -1 dimension; NULL when it has none */
};

struct signature {          /* owned by the session */
    struct io_spec inputs[MODEL_MAX_IO];
    struct io_spec outputs[MODEL_MAX_IO];
    uint32_t input_count, output_count;
};

void signature_done(struct signature *signature); /* frees the names; zeroed allowed */
/* True when dimension 0 of every input and output is free. */
bool signature_can_batch(const struct signature *signature);

struct session_config {
    const char *model_path;       /* ONNX file; NULL for a simulation without one */
    const char *onnxruntime_path; /* NULL: search (ort_library.c) */
    uint32_t intra_op_threads;    /* >= 1 */
    bool allow_spinning;          /* ONNX Runtime's threads spin after a run: false */
    bool denormal_as_zero;
    const char *simulate;         /* "a=4ms,b=0.05ms": NULL for ONNX Runtime */
    bool simulate_text;           /* simulation: a text classifier's signature */
};

struct session; /* a back end's own */
struct slot;    /* a back end's own */

struct backend {
    const char *name;     /* "onnxruntime" or "simulated": shown in every output */
    bool is_simulated;
    bool is_async;        /* start returns before the device is done */

    enum status (*session_open)(const struct session_config *config, struct session **out,
                                struct err *err);
    void (*session_close)(struct session *session);
    const struct signature *(*signature)(const struct session *session);
    /* One line for manifests: "ONNX Runtime 1.30.0, CPU", "simulated accelerator a=4ms b=50us". */
    const char *(*describe)(const struct session *session);
    /* Device busy time in ns so far; 0 where the back end cannot tell. */
    uint64_t (*device_busy_ns)(const struct session *session);

    enum status (*slot_open)(struct session *session, struct slot **out, struct err *err);
    void (*slot_close)(struct slot *slot);
    /* inputs: signature's order and count, whole batch, shapes without -1; their bytes must live
     * until finish returns and be aligned to the element's size. rows: batch size in rows (for
     * the simulation's cost). Cheap for every back end: where !is_async the model runs in
     * finish, so that answers can go out between start and finish. ST_INVALID when a shape,
     * type or size does not fit; nothing is started then. */
    enum status (*start)(struct slot *slot, const struct tensor *inputs, uint32_t rows,
                         struct err *err);
    /* Blocks until done. outputs: signature's order; data points into the slot and is valid until
     * the next finish of the same slot. A slot has at most one batch started but not finished;
     * after finish, failed or not, it has none. ST_INVALID when the model refuses the input
     * (shape, index out of range), else ST_INTERNAL or ST_NO_MEMORY. A slot may be closed with
     * a batch started. */
    enum status (*finish)(struct slot *slot, struct tensor *out_outputs, struct err *err);
};

extern const struct backend backend_ort;
extern const struct backend backend_sim;

#endif

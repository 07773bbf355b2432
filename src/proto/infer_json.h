/* The inference request and response of the Open Inference Protocol: JSON, and JSON followed by
 * binary tensors. Parsing gives views and arrays in the request's arena. simdjson and
 * to_chars do the work (infer_json.cc, the only C++ file); writing is infer_write.c. */
#ifndef TELLTALE_PROTO_INFER_JSON_H
#define TELLTALE_PROTO_INFER_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/tensor.h"
#include <stdbool.h>

enum { INFER_MAX_TENSORS = 256 };

/* Where a tensor's bytes are when they do not come with the message: in a region of shared memory
 * that the client has registered. */
struct shared_place {
    struct view region;    /* its name; empty: the tensor is not shared */
    uint64_t offset, size; /* bytes */
};

struct requested_output {
    struct view name;
    bool wants_binary;
    uint32_t classification; /* 0: none; else so many of the largest elements, as "value:index" */
    struct shared_place shared;
};

struct infer_request {
    struct view id;              /* empty when absent */
    struct tensor *inputs;       /* data in host order, ready to run (BYTES: length-prefixed) */
    uint32_t input_count;
    /* By input; NULL: none is shared. A shared one's data is NULL, its size the place's; the caller
     * fetches the bytes and checks those of BYTES and BOOL with infer_data_check. */
    struct shared_place *shared_inputs;
    struct requested_output *outputs; /* empty: all */
    uint32_t output_count;
    bool wants_binary;           /* request-level binary_data_output */
    bool has_timeout;
    uint64_t timeout_us;         /* parameters.timeout */
    uint64_t priority;           /* parameters.priority; 0: the model's default, 1: the highest */
};

enum { INFER_MAX_CLASSES = 1000000 };

/* body: the whole body, with 64 readable bytes after it. json_size: value of
 * Inference-Header-Content-Length, or body.size where the header is absent. Tensors that came in
 * binary are views into body (which must outlive the request); those from JSON are in arena.
 * Checks: known datatypes, shape against number of elements, range of each number for its
 * datatype, BOOL 0/1, BYTES lengths, binary sizes that add up, FP16/BF16 only in binary, rank at
 * most TENSOR_MAX_RANK, duplicate names, nesting. Errors name the field:
 * "inputs[1] (attention_mask): data has 7 elements, shape [1,8] needs 8".
 *
 * Views into body are as aligned as chance has it: copy elements out, do not cast. Integers
 * written as 1.0 or 1e3 are refused for integer datatypes. data may be flat or nested: nested
 * to the shape's rank it must have the shape's lengths. A name, id or key is copied into the
 * arena. NUL bytes in names are possible: use their size. */
MUST_CHECK enum status infer_request_parse(struct view body, size_t json_size,
                                           struct arena *arena, struct infer_request *out,
                                           struct err *err);

/* Whether bytes that did not come in JSON are count elements of tensor's datatype: the size, the
 * lengths inside BYTES, 0 and 1 in BOOL. err says "4 bytes, shape [2] of FP32 needs 8"; whose they
 * are is for the caller to say. */
MUST_CHECK enum status infer_data_check(const struct tensor *tensor, struct err *err);

/* The client's side: writes the JSON part (and says its size) and the binary part after it.
 * binary: tensors go as binary, else as JSON data (FP16 and BF16 always as binary: send
 * Inference-Header-Content-Length whenever out grew by more than *out_json_size). A tensor that
 * cannot be written (NaN or bytes that are not UTF-8 as JSON, a size that is not its shape's)
 * sets out->failed. */
void infer_request_write(struct buf *out, struct view id, const struct tensor *inputs,
                         uint32_t input_count, bool binary, bool want_binary_output,
                         size_t *out_json_size);

struct infer_output {
    struct tensor tensor;
    bool binary;
    const struct shared_place *shared; /* where its bytes have been written; NULL: they are sent */
};
/* Response body; *out_json_size is what Inference-Header-Content-Length must say when any output
 * is binary (0 otherwise). Floats are printed shortest; NaN and infinities in JSON are an error
 * (ST_INVALID, "ask for binary_data"), and so are BYTES that are not UTF-8. FP16 and BF16 only
 * in binary. On failure out has the size it came with. parameters: JSON members without braces
 * ("\"simulated\":true") or NULL. */
MUST_CHECK enum status infer_response_write(struct buf *out, struct view model_name,
                                            struct view model_version, struct view id,
                                            const struct infer_output *outputs, uint32_t count,
                                            const char *parameters, size_t *out_json_size,
                                            struct err *err);
/* Response as a client reads it: outputs as tensors (views into body or arrays in arena). */
struct infer_response {
    struct view model_name, model_version, id;
    struct tensor *outputs;
    uint32_t output_count;
};
MUST_CHECK enum status infer_response_parse(struct view body, size_t json_size,
                                            struct arena *arena, struct infer_response *out,
                                            struct err *err);

/* GET /v2/models/M as a client reads it (platform, inputs, outputs; names in arena). */
struct model_metadata {
    struct view name, platform;
    struct tensor *inputs;  /* data NULL; -1 in shapes allowed */
    struct tensor *outputs;
    uint32_t input_count, output_count;
};
MUST_CHECK enum status model_metadata_parse(struct view body, struct arena *arena,
                                            struct model_metadata *out, struct err *err);

#endif

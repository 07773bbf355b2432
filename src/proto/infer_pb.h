/* The inference request and response of the Open Inference Protocol as protobuf messages. The
 * request's fields are walked by hand, so that raw_input_contents stay where they came in; the
 * response is written by hand, so that large outputs are sent from where the model left them.
 * What small messages need goes through schema/grpc_service.proto. Pure. */
#ifndef TELLTALE_PROTO_INFER_PB_H
#define TELLTALE_PROTO_INFER_PB_H

#include "proto/infer_json.h"

/* What has to be known of a message before it is decoded. Views into it. */
struct infer_pb_route {
    struct view model_name, model_version, id; /* empty: not there */
    uint32_t field_count;
    bool has_raw;          /* raw_input_contents */
};
/* Walks the outermost fields; their number is bounded. */
MUST_CHECK enum status infer_pb_route(struct view message, struct infer_pb_route *out,
                                      struct err *err);

/* Parameters that change how a stream is answered, beside struct infer_request's. */
struct infer_pb_options {
    bool wants_final_flag; /* triton_enable_empty_final_response */
};

/* Checks as infer_request_parse does, with the same sentences where it can. Names, id and raw
 * tensors are views into message, which must outlive the request; tensors from typed contents are
 * in arena, those that have to be converted. Every output is wanted in binary. */
MUST_CHECK enum status infer_pb_request_parse(struct view message, struct arena *arena,
                                              struct infer_request *out,
                                              struct infer_pb_options *out_options,
                                              struct err *err);
/* The client's side: raw contents. */
void infer_pb_request_write(struct buf *out, struct view model_name, struct view model_version,
                            struct view id, const struct tensor *inputs, uint32_t input_count);

struct infer_pb_answer {
    struct view model_name, model_version, id;
    const struct tensor *outputs; /* data NULL: not in the message (shared memory) */
    const struct shared_place *shared; /* by output; NULL: none of them is shared */
    uint32_t output_count;
    bool is_simulated;    /* parameters: simulated = true */
    bool is_final_marked; /* parameters: triton_final_response = true */
    bool is_streamed;     /* wrapped into a ModelStreamInferResponse */
};

/* Where an output's bytes belong that were left out of the buffer: after `at` of its bytes. */
struct infer_pb_gap { size_t at; struct view bytes; };

enum { INFER_PB_INLINE_BYTES = 4096 }; /* smaller outputs are copied */

/* Appends the gRPC prefix and the message; outputs of more than INFER_PB_INLINE_BYTES stay where
 * they are: out_gaps has room for output_count, *out_gap_count are used. out_gaps NULL: all is
 * copied. */
MUST_CHECK enum status infer_pb_answer_write(struct buf *out, const struct infer_pb_answer *answer,
                                             struct infer_pb_gap *out_gaps,
                                             uint32_t *out_gap_count, struct err *err);
/* A ModelStreamInferResponse that says error_message, and of which request (id; may be empty), with
 * the prefix. */
void infer_pb_stream_error_write(struct buf *out, const char *text, struct view id);

/* The answer as a client reads it; views into message, raw contents only. */
MUST_CHECK enum status infer_pb_response_parse(struct view message, struct arena *arena,
                                               struct infer_response *out, struct err *err);

#endif

/* The body of an inference request to the engine's tensors, in two steps: what the header says of
 * the body (the loop), and the body itself (any thread, a large one on a worker). */
#ifndef TELLTALE_SERVE_INFER_DECODE_H
#define TELLTALE_SERVE_INFER_DECODE_H

#include "engine/engine.h"
#include "proto/http1.h"
#include "proto/infer_json.h"

enum infer_body_kind {
    INFER_BODY_JSON,    /* perhaps with binary tensors behind it */
    INFER_BODY_TENSOR,  /* the bytes of the model's one input; answered in binary */
    INFER_BODY_ELEMENT  /* a picture or a text: the element of the model's BYTES input */
};

struct infer_body {
    enum infer_body_kind kind;
    struct view bytes;           /* the message's body; see http1.h for the room around it */
    size_t json_size;            /* of INFER_BODY_JSON; else 0 */
    const struct io_spec *input; /* of the other two */
};

/* Looks at the header alone. Errors name the header's line and the remedy. */
MUST_CHECK enum status infer_body_of(const struct http_message *message,
                                     const struct served_model *served, struct infer_body *out,
                                     struct err *err);
/* Is decoding it more than the loop should do in a turn? */
bool infer_body_is_large(const struct infer_body *body);

struct exchange;
/* Fills exchange (wanted outputs, binary or not) and its request (inputs, wanted) from
 * exchange->incoming; touches nothing else, the server least of all. The reason of a failure is
 * in the request's err. out_parsed is filled as far as parsing got. */
MUST_CHECK enum status infer_decode(struct exchange *exchange, struct infer_request *out_parsed);

#endif

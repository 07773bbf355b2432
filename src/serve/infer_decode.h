/* The body of an inference request to the engine's tensors. Loop thread only. */
#ifndef TELLTALE_SERVE_INFER_DECODE_H
#define TELLTALE_SERVE_INFER_DECODE_H

#include "proto/http1.h"
#include "serve/exchange.h"

/* Fills exchange (wanted outputs, binary or not) and its request (inputs, wanted); the reason of
 * a failure is in the request's err. out_parsed is filled as far as parsing got. */
MUST_CHECK enum status infer_decode(struct exchange *exchange, const struct http_message *message,
                                    struct infer_request *out_parsed);

#endif

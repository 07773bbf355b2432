/* What a request's tensors need beside decoding and encoding, whatever protocol they came by: bytes
 * in shared memory, classes instead of scores. Any thread that has the exchange. */
#ifndef TELLTALE_SERVE_INFER_TENSORS_H
#define TELLTALE_SERVE_INFER_TENSORS_H

#include "serve/exchange.h"

/* After decoding: whether all shared inputs lie in their regions and are no more than --max-body in
 * all; the exchange keeps where they are. *out_bytes: how much infer_inputs_fetch will copy. */
MUST_CHECK enum status infer_inputs_locate(struct exchange *exchange,
                                           const struct infer_request *parsed, size_t *out_bytes);
/* Copies the shared inputs into the request's arena. */
MUST_CHECK enum status infer_inputs_fetch(struct exchange *exchange);
/* Before encoding: outputs that were asked for as classes become BYTES, those that go into shared
 * memory are written there. */
MUST_CHECK enum status infer_outputs_finish(struct exchange *exchange);
/* Roughly how many bytes of text the same work is worth. */
size_t infer_outputs_finish_bytes(const struct exchange *exchange);

#endif

/* POST /v2/models/M/infer: decode, submit, and once the engine is done encode and answer.
 * Loop thread only; a worker decodes and encodes what is large. */
#ifndef TELLTALE_SERVE_INFER_ROUTE_H
#define TELLTALE_SERVE_INFER_ROUTE_H

#include "proto/http1.h"
#include "serve/exchange.h"
#include "serve/server.h"

/* Takes the message: the answer follows, at once when it is an error. */
void infer_route_start(struct http_conn *hc, const struct served_model *served,
                       const struct http_message *message);
/* What an engine thread has told. now_ns: a recent instant; returns a later one. */
uint64_t infer_route_note(struct note *note, uint64_t now_ns);
/* The client has left: cancels. */
void infer_route_abandon(struct exchange *exchange);
/* The last byte of the answer was handed to the kernel at at_ns: ends the record. */
void infer_route_sent(struct exchange *exchange, uint64_t at_ns);

#endif

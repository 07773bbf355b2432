/* POST /v2/models/M/infer: an HTTP message to an exchange and back. Loop thread only; what is
 * large a worker decodes and encodes. */
#ifndef TELLTALE_SERVE_INFER_ROUTE_H
#define TELLTALE_SERVE_INFER_ROUTE_H

#include "proto/http1.h"
#include "serve/server.h"

/* Takes the message: the answer follows, at once when it is an error. */
void infer_route_start(struct http_conn *hc, const struct served_model *served,
                       const struct http_message *message);

#endif

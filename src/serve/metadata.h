/* What the server says about itself and its models: JSON bodies of the GET routes. Each writes
 * server->body. Loop thread only. */
#ifndef TELLTALE_SERVE_METADATA_H
#define TELLTALE_SERVE_METADATA_H

#include "serve/server.h"

/* The extensions of the protocol that are served, for GET /v2 and for gRPC. */
size_t metadata_extension_count(const struct server *server);
const char *metadata_extension(const struct server *server, size_t index);
MUST_CHECK enum status metadata_write_server(struct server *server,
                                             const struct served_model *served, struct err *err);
MUST_CHECK enum status metadata_write_live(struct server *server, const struct served_model *served,
                                           struct err *err);
/* {"ready":false} and ST_UNAVAILABLE with err empty while draining. */
MUST_CHECK enum status metadata_write_ready(struct server *server,
                                            const struct served_model *served, struct err *err);
MUST_CHECK enum status metadata_write_model(struct server *server,
                                            const struct served_model *served, struct err *err);
MUST_CHECK enum status metadata_write_model_ready(struct server *server,
                                                  const struct served_model *served,
                                                  struct err *err);
/* Triton's model configuration, as much of it as clients read. */
MUST_CHECK enum status metadata_write_config(struct server *server,
                                             const struct served_model *served, struct err *err);
/* Largest batch as clients see it; 0: the model is not batched. */
uint64_t metadata_max_batch(const struct server *server, const struct served_model *served);
const char *metadata_platform(const struct served_model *served);

#endif

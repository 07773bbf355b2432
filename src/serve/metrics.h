/* GET /metrics: Prometheus text. The names are documented in docs/metrics.md. Loop thread only. */
#ifndef TELLTALE_SERVE_METRICS_H
#define TELLTALE_SERVE_METRICS_H

#include "serve/server.h"

MUST_CHECK enum status metrics_write(struct server *server, const struct served_model *served,
                                     struct err *err);
/* The families of metrics_model.c: what is counted a model. */
void metrics_write_models(struct server *server);

#endif

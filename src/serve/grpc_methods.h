/* The methods that answer at once, by file. Each gets its request unpacked and sets call->response.
 * Loop thread only. */
#ifndef TELLTALE_SERVE_GRPC_METHODS_H
#define TELLTALE_SERVE_GRPC_METHODS_H

#include "schema/grpc_service.pb-c.h"
#include "schema/health.pb-c.h"
#include "serve/grpc_stream.h"


/* grpc_describe.c */
MUST_CHECK enum status grpc_server_live(struct grpc_unary *call);
MUST_CHECK enum status grpc_server_ready(struct grpc_unary *call);
MUST_CHECK enum status grpc_model_ready(struct grpc_unary *call);
MUST_CHECK enum status grpc_server_metadata(struct grpc_unary *call);
MUST_CHECK enum status grpc_model_metadata(struct grpc_unary *call);
/* grpc_config.c */
MUST_CHECK enum status grpc_model_config(struct grpc_unary *call);
MUST_CHECK enum status grpc_model_statistics(struct grpc_unary *call);
/* grpc_repository.c */
MUST_CHECK enum status grpc_repository_index(struct grpc_unary *call);
MUST_CHECK enum status grpc_repository_load(struct grpc_unary *call);
MUST_CHECK enum status grpc_repository_unload(struct grpc_unary *call);
/* grpc_memory.c */
MUST_CHECK enum status grpc_shared_status(struct grpc_unary *call);
MUST_CHECK enum status grpc_shared_register(struct grpc_unary *call);
MUST_CHECK enum status grpc_shared_unregister(struct grpc_unary *call);
MUST_CHECK enum status grpc_cuda_status(struct grpc_unary *call);
MUST_CHECK enum status grpc_cuda_register(struct grpc_unary *call);
MUST_CHECK enum status grpc_cuda_unregister(struct grpc_unary *call);
/* grpc_settings.c */
MUST_CHECK enum status grpc_trace_setting(struct grpc_unary *call);
MUST_CHECK enum status grpc_log_settings(struct grpc_unary *call);
/* grpc_health.c */
MUST_CHECK enum status grpc_health_check(struct grpc_unary *call);
MUST_CHECK enum status grpc_health_watch(struct grpc_unary *call);

/* A model by name and version, with a reference; a failure names what there is not. */
MUST_CHECK enum status grpc_find_model(struct grpc_server *grpc, struct view name,
                                       struct view version, const struct served_model **out,
                                       struct err *err);
MUST_CHECK enum status grpc_no_memory(struct grpc_unary *call);
/* size zeroed bytes; NULL: no memory. */
void *grpc_take(struct grpc_unary *call, size_t size);

#endif

/* Models that come and go, over gRPC. Loop thread only. */
#include "serve/grpc_methods.h"

static enum status not_yet(struct grpc_unary *call) {
    return err_set(call->err, ST_UNSUPPORTED,
                   "models are loaded when the server starts and stay until it ends");
}

enum status grpc_repository_index(struct grpc_unary *call) { return not_yet(call); }
enum status grpc_repository_load(struct grpc_unary *call) { return not_yet(call); }
enum status grpc_repository_unload(struct grpc_unary *call) { return not_yet(call); }

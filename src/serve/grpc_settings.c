/* Trace and log settings over gRPC. Loop thread only. */
#include "serve/grpc_methods.h"

enum status grpc_trace_setting(struct grpc_unary *call) {
    return err_set(call->err, ST_UNSUPPORTED, "trace settings cannot be read or changed over gRPC "
                   "yet: give --trace and its options at start");
}

enum status grpc_log_settings(struct grpc_unary *call) {
    return err_set(call->err, ST_UNSUPPORTED, "log settings cannot be read or changed over gRPC "
                   "yet: give --log-level at start");
}

/* gRPC's health service: Check answers once, Watch now and whenever it changes. Loop thread only.
 *
 * Known are "" (the server), the inference service and the health service. A server that drains is
 * NOT_SERVING from the signal on, before anything closes.
 * Read next: drain.c. */
#include "serve/grpc_methods.h"

typedef Grpc__Health__V1__HealthCheckRequest Request;
typedef Grpc__Health__V1__HealthCheckResponse Response;

enum {
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN
};

static bool is_known(const char *service) {
    return service[0] == '\0' || strcmp(service, "inference.GRPCInferenceService") == 0 ||
           strcmp(service, "grpc.health.v1.Health") == 0;
}

static int state_of(const struct grpc_server *grpc) {
    return grpc->server->is_draining ? NOT_SERVING : SERVING;
}

enum status grpc_health_check(struct grpc_unary *call) {
    const Request *request = call->request;
    Response *response = grpc_take(call, sizeof *response);
    if (!response)
        return grpc_no_memory(call);
    if (!is_known(request->service))
        return err_set(call->err, ST_NOT_FOUND, "service \"%.100s\" is not known",
                       request->service);
    grpc__health__v1__health_check_response__init(response);
    response->status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)state_of(call->grpc);
    call->response = &response->base;
    return ST_OK;
}

static void tell(struct grpc_stream *stream, int state) {
    Response response;
    grpc__health__v1__health_check_response__init(&response);
    response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)state;
    stream->watched_state = state;
    grpc_stream_reply(stream, &response.base);
}

void grpc_health_tell(struct grpc_stream *stream) {
    const int state = state_of(stream->conn->grpc);
    if (!stream->is_done && stream->watched_state != SERVICE_UNKNOWN &&
        stream->watched_state != state)
        tell(stream, state);
}

enum status grpc_health_watch(struct grpc_unary *call) {
    const Request *request = call->request;
    call->stream->is_watching = true;
    tell(call->stream, is_known(request->service) ? state_of(call->grpc) : SERVICE_UNKNOWN);
    return ST_OK;
}

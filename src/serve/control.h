/* Routes that are neither inference nor plain metadata: they have parameters in the path, a JSON
 * body, or two methods. Loop thread only.
 *
 * A handler writes server->body (or nothing) and returns ST_OK, or a failure with its sentence in
 * err; one that answers later sets is_taken. */
#ifndef TELLTALE_SERVE_CONTROL_H
#define TELLTALE_SERVE_CONTROL_H

#include "proto/http1.h"
#include "serve/server.h"
#include <jansson.h>

enum { CONTROL_BODY_BYTES = 1024 * 1024, CONTROL_NAME_BYTES = 256, CONTROL_NAMES = 2 };

struct control_call {
    struct http_conn *hc;
    struct server *server;
    const struct http_message *message;
    char names[CONTROL_NAMES][CONTROL_NAME_BYTES]; /* from the path, in its order, decoded */
    bool is_taken;
};

typedef enum status (*control_fn)(struct control_call *call, struct err *err);

struct control_route {
    const char *pattern; /* "/v2/models/?/load": ? is one part of the path, a name */
    control_fn get, post; /* NULL: not allowed */
};
/* The route of a path, with call->names filled in; NULL: none. */
const struct control_route *control_find(const struct control_route *routes, size_t count,
                                         struct view path, struct control_call *call);

/* The body as a JSON object ({} where there is none), to be given back with json_decref. Content
 * codings are undone. max_bytes: of the body, decoded. */
MUST_CHECK enum status control_body(const struct control_call *call, size_t max_bytes, json_t **out,
                                    struct err *err);
/* A member of it: ST_INVALID where it is of another type, or missing. */
MUST_CHECK enum status control_text(const json_t *object, const char *key, struct view *out,
                                    struct err *err);
MUST_CHECK enum status control_uint(const json_t *object, const char *key, uint64_t *out,
                                    struct err *err);

/* The handlers: control_shared.c, control_settings.c, control_repository.c. */
enum status control_shared_status(struct control_call *call, struct err *err);
enum status control_shared_register(struct control_call *call, struct err *err);
enum status control_shared_unregister(struct control_call *call, struct err *err);
enum status control_cuda_status(struct control_call *call, struct err *err);
enum status control_cuda_register(struct control_call *call, struct err *err);
enum status control_cuda_unregister(struct control_call *call, struct err *err);
enum status control_log_get(struct control_call *call, struct err *err);
enum status control_log_post(struct control_call *call, struct err *err);
enum status control_trace_get(struct control_call *call, struct err *err);
enum status control_trace_post(struct control_call *call, struct err *err);

#endif

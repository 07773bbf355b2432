/* The table of routes. Loop thread only.
 *
 * Invariant: a route writes server->body and returns ST_OK, or returns a failure with a sentence
 * in err (or, with err empty, with a body of its own); the inference route alone answers later.
 * Read next: metadata.c, metrics.c, infer_route.c. */
#include "serve/routes.h"

#include "serve/control.h"
#include "serve/http_conn.h"
#include "serve/infer_route.h"
#include "serve/metadata.h"
#include "serve/metrics.h"
#include "serve/statistics.h"

typedef enum status (*route_fn)(struct server *server, const struct served_model *served,
                                struct err *err);

struct route {
    const char *path; /* of a model's route: what follows the name and version */
    enum http_method method;
    route_fn write;   /* NULL: inference */
    const char *content_type;
};

static const char JSON[] = "application/json";
static const char PROMETHEUS[] = "text/plain; version=0.0.4; charset=utf-8";

static const struct route SERVER_ROUTES[] = {
    {"/v2", HTTP_METHOD_GET, metadata_write_server, JSON},
    {"/v2/health/live", HTTP_METHOD_GET, metadata_write_live, JSON},
    {"/v2/health/ready", HTTP_METHOD_GET, metadata_write_ready, JSON},
    {"/v2/models/stats", HTTP_METHOD_GET, statistics_write, JSON},
    {"/metrics", HTTP_METHOD_GET, metrics_write, PROMETHEUS},
};

static const struct route MODEL_ROUTES[] = {
    {"/infer", HTTP_METHOD_POST, NULL, JSON},
    {"", HTTP_METHOD_GET, metadata_write_model, JSON},
    {"/ready", HTTP_METHOD_GET, metadata_write_model_ready, JSON},
    {"/config", HTTP_METHOD_GET, metadata_write_config, JSON},
    {"/stats", HTTP_METHOD_GET, statistics_write, JSON},
};

static const struct control_route CONTROL_ROUTES[] = {
    {"/v2/systemsharedmemory/status", control_shared_status, NULL},
    {"/v2/systemsharedmemory/region/?/status", control_shared_status, NULL},
    {"/v2/systemsharedmemory/region/?/register", NULL, control_shared_register},
    {"/v2/systemsharedmemory/unregister", NULL, control_shared_unregister},
    {"/v2/systemsharedmemory/region/?/unregister", NULL, control_shared_unregister},
    {"/v2/cudasharedmemory/status", control_cuda_status, NULL},
    {"/v2/cudasharedmemory/region/?/status", control_cuda_status, NULL},
    {"/v2/cudasharedmemory/region/?/register", NULL, control_cuda_register},
    {"/v2/cudasharedmemory/unregister", NULL, control_cuda_unregister},
    {"/v2/cudasharedmemory/region/?/unregister", NULL, control_cuda_unregister},
    {"/v2/logging", control_log_get, control_log_post},
    {"/v2/trace/setting", control_trace_get, control_trace_post},
    {"/v2/models/?/trace/setting", control_trace_get, control_trace_post},
};

#define COUNT_OF(table) (sizeof(table) / sizeof(table)[0])

static const struct route *find_route(const struct route *routes, size_t count, struct view path) {
    for (size_t i = 0; i < count; i++)
        if (view_is(path, routes[i].path))
            return &routes[i];
    return NULL;
}

static struct view segment(struct view *rest) {
    const char *slash = rest->size ? memchr(rest->data, '/', rest->size) : NULL;
    const size_t size = slash ? (size_t)(slash - rest->data) : rest->size;
    const struct view out = {.data = rest->data, .size = size};
    rest->data += size;
    rest->size -= size;
    return out;
}

static bool skip(struct view *rest, const char *prefix) {
    const size_t size = strlen(prefix);
    if (rest->size < size || memcmp(rest->data, prefix, size) != 0)
        return false;
    rest->data += size;
    rest->size -= size;
    return true;
}

bool model_path_parse(struct view path, struct model_path *out) {
    struct view rest = path;
    if (!skip(&rest, "/v2/models/"))
        return false;
    struct model_path parsed = {.name = segment(&rest)};
    parsed.version = (struct view){.data = rest.data, .size = 0};
    if (parsed.name.size == 0)
        return false;
    if (skip(&rest, "/versions/")) {
        parsed.version = segment(&rest);
        if (parsed.version.size == 0)
            return false;
    }
    parsed.tail = rest;
    *out = parsed;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool path_decode(struct view text, char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        int c = (unsigned char)text.data[i];
        if (c == '%') {
            if (i + 2 >= text.size)
                return false;
            const int high = hex_digit(text.data[i + 1]);
            const int low = hex_digit(text.data[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0 || used + 1 >= size)
            return false;
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return true;
}

static void wrong_method(struct http_conn *hc, bool has_get, bool has_post) {
    buf_text(&hc->server->extra, !has_get    ? "Allow: POST, PUT\r\n"
                                 : !has_post ? "Allow: GET, HEAD\r\n"
                                             : "Allow: GET, HEAD, POST, PUT\r\n");
    http_conn_fail(hc, ST_METHOD,
                   !has_get    ? "this path answers POST (and PUT, as curl -T sends) only"
                   : !has_post ? "this path answers GET and HEAD only"
                               : "this path answers GET, HEAD, POST and PUT only");
}

static bool is_reading(const struct http_message *message) {
    return message->method == HTTP_METHOD_GET || message->method == HTTP_METHOD_HEAD;
}

static bool is_writing(const struct http_message *message) {
    return message->method == HTTP_METHOD_POST || message->method == HTTP_METHOD_PUT;
}

static void not_found(struct http_conn *hc, struct view path) {
    struct err err;
    const enum status status = err_set(&err, ST_NOT_FOUND, "nothing is served at \"%.*s\"",
                                       (int)(path.size < 200 ? path.size : 200), path.data);
    http_conn_fail(hc, status, err.text);
}

/* Takes the reference to served, if any. */
static void run_route(struct http_conn *hc, const struct route *route,
                      const struct served_model *served, const struct http_message *message) {
    const bool is_get = route->method == HTTP_METHOD_GET;
    if (is_get ? !is_reading(message) : !is_writing(message)) {
        wrong_method(hc, is_get, !is_get);
        return;
    }
    if (!route->write) {
        infer_route_start(hc, served, message);
        return;
    }
    struct err err = {.text = ""};
    const enum status status = route->write(hc->server, served, &err);
    engine_release(served);
    if (status != ST_OK && err.text[0])
        http_conn_fail(hc, status, err.text);
    else
        http_conn_answer(hc, status_http(status), route->content_type);
}

static void dispatch_model(struct http_conn *hc, const struct http_message *message) {
    struct model_path path;
    char name[ROUTE_NAME_MAX];
    const struct route *route = NULL;
    if (model_path_parse(message->path, &path))
        route = find_route(MODEL_ROUTES, COUNT_OF(MODEL_ROUTES), path.tail);
    if (!route) {
        not_found(hc, message->path);
        return;
    }
    struct err err;
    if (!path_decode(path.name, name, sizeof name)) {
        (void)err_set(&err, ST_NOT_FOUND, "\"%.*s\" is no model's name",
                      (int)(path.name.size < 200 ? path.name.size : 200), path.name.data);
        http_conn_fail(hc, ST_NOT_FOUND, err.text);
        return;
    }
    const struct engine *engine = hc->server->engine;
    const struct served_model *served = engine_find(engine, view_of(name), path.version);
    if (!served) {
        const struct served_model *other =
            path.version.size ? engine_find(engine, view_of(name), (struct view){"", 0}) : NULL;
        if (other)
            (void)err_set(&err, ST_NOT_FOUND, "model %s has no version \"%.*s\"", name,
                          (int)(path.version.size < 40 ? path.version.size : 40),
                          path.version.data);
        else
            (void)err_set(&err, ST_NOT_FOUND, "Request for unknown model: no model \"%s\" is served", name);
        engine_release(other);
        http_conn_fail(hc, ST_NOT_FOUND, err.text);
        return;
    }
    run_route(hc, route, served, message);
}

/* False: no control route has that path. */
static bool dispatch_control(struct http_conn *hc, const struct http_message *message) {
    struct control_call call = {.hc = hc, .server = hc->server, .message = message};
    const struct control_route *route =
        control_find(CONTROL_ROUTES, COUNT_OF(CONTROL_ROUTES), message->path, &call);
    if (!route)
        return false;
    const control_fn handle = is_reading(message)  ? route->get
                              : is_writing(message) ? route->post
                                                    : NULL;
    if (!handle) {
        wrong_method(hc, route->get != NULL, route->post != NULL);
        return true;
    }
    struct err err = {.text = ""};
    const enum status status = handle(&call, &err);
    if (status != ST_OK)
        http_conn_fail(hc, status, err.text);
    else if (!call.is_taken)
        http_conn_answer(hc, 200, JSON);
    return true;
}

void routes_dispatch(struct http_conn *hc, const struct http_message *message) {
    const struct route *route =
        find_route(SERVER_ROUTES, COUNT_OF(SERVER_ROUTES), message->path);
    if (hc->kind == HTTP_CONN_METRICS && (!route || route->write != metrics_write)) {
        not_found(hc, message->path);
        return;
    }
    if (route)
        run_route(hc, route, NULL, message);
    else if (!dispatch_control(hc, message))
        dispatch_model(hc, message);
}

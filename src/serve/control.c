/* What the control routes share: paths with names in them, JSON bodies. Loop thread only.
 *
 * Invariant: a name from a path has no NUL, no slash and less than CONTROL_NAME_BYTES bytes.
 * Read next: routes.c (the table), control_shared.c, control_settings.c. */
#include "serve/control.h"

#include "proto/compress.h"
#include "serve/routes.h"
#include <stdlib.h>

/* One part of the path into the next name. */
static bool take_name(struct view *rest, char *out) {
    const char *slash = rest->size ? memchr(rest->data, '/', rest->size) : NULL;
    const size_t size = slash ? (size_t)(slash - rest->data) : rest->size;
    const struct view part = {.data = rest->data, .size = size};
    if (size == 0 || !path_decode(part, out, CONTROL_NAME_BYTES) || strchr(out, '/'))
        return false;
    rest->data += size;
    rest->size -= size;
    return true;
}

static bool matches(const char *pattern, struct view rest, struct control_call *call) {
    size_t names = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '?') {
            if (names == CONTROL_NAMES || !take_name(&rest, call->names[names++]))
                return false;
            continue;
        }
        if (rest.size == 0 || rest.data[0] != *pattern)
            return false;
        rest.data++;
        rest.size--;
    }
    return rest.size == 0;
}

const struct control_route *control_find(const struct control_route *routes, size_t count,
                                         struct view path, struct control_call *call) {
    for (size_t i = 0; i < count; i++) {
        call->names[0][0] = call->names[1][0] = '\0';
        if (matches(routes[i].pattern, path, call))
            return &routes[i];
    }
    return NULL;
}

static enum status too_large(size_t max_bytes, struct err *err) {
    return err_set(err, ST_TOO_LARGE, "the body is larger than the %zu bytes that this path takes",
                   max_bytes);
}

static enum status parse(struct view body, json_t **out, struct err *err) {
    json_error_t error;
    json_t *root = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return err_set(err, ST_INVALID, "the JSON does not parse: line %d: %s", error.line,
                       error.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(err, ST_INVALID, "the JSON must be an object");
    }
    *out = root;
    return ST_OK;
}

enum status control_body(const struct control_call *call, size_t max_bytes, json_t **out,
                         struct err *err) {
    const enum coding coding = coding_of(http_header(call->message, "Content-Encoding"));
    struct view body = call->message->body;
    char *memory = NULL;
    if (coding == CODING_OTHER)
        return err_set(err, ST_UNSUPPORTED_TYPE,
                       "Content-Encoding: gzip, deflate and identity are supported");
    if (body.size > max_bytes)
        return too_large(max_bytes, err);
    if (coding != CODING_IDENTITY) {
        const struct inflate_limits limits = {.max_size = max_bytes};
        const enum status status = inflate_body(coding, body, limits, &memory, &body, err);
        if (status != ST_OK)
            return status;
    }
    enum status status = ST_OK;
    if (body.size > 0)
        status = parse(body, out, err);
    else if (!(*out = json_object()))
        status = err_set(err, ST_NO_MEMORY, "no memory for the request");
    free(memory);
    return status;
}

enum status control_text(const json_t *object, const char *key, struct view *out,
                         struct err *err) {
    const json_t *member = json_object_get(object, key);
    if (!member)
        return err_set(err, ST_INVALID, "%s is missing", key);
    if (!json_is_string(member))
        return err_set(err, ST_INVALID, "%s must be a string", key);
    *out = (struct view){.data = json_string_value(member), .size = json_string_length(member)};
    return ST_OK;
}

enum status control_uint(const json_t *object, const char *key, uint64_t *out, struct err *err) {
    const json_t *member = json_object_get(object, key);
    if (!member)
        return err_set(err, ST_INVALID, "%s is missing", key);
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return err_set(err, ST_INVALID, "%s must be a whole number from 0 on", key);
    *out = (uint64_t)json_integer_value(member);
    return ST_OK;
}

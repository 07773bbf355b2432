/* Log and trace settings over HTTP. Loop thread only.
 *
 * Invariant: a request that is refused has changed nothing.
 * Read next: settings.h. */
#include "serve/control.h"

#include "serve/settings.h"

enum { LEVELS_MAX = 8 };

static void write_log_settings(struct buf *out) {
    struct log_settings settings;
    log_settings_read(&settings);
    for (size_t i = 0; i < LOG_SETTING_COUNT; i++) {
        struct setting_value value;
        buf_text(out, i ? ",\"" : "{\"");
        buf_text(out, log_settings_at(&settings, i, &value));
        buf_text(out, "\":");
        if (value.kind == SETTING_BOOL)
            buf_text(out, value.is_on ? "true" : "false");
        else if (value.kind == SETTING_UINT)
            buf_u64(out, value.number);
        else
            buf_json_string(out, value.text);
    }
    buf_char(out, '}');
}

enum status control_log_get(struct control_call *call, struct err *err) {
    (void)err;
    write_log_settings(&call->server->body);
    return ST_OK;
}

static enum status value_of(const char *key, const json_t *from, struct setting_value *out,
                            struct err *err) {
    *out = (struct setting_value){.kind = SETTING_BOOL, .is_on = json_is_true(from)};
    if (json_is_integer(from) && json_integer_value(from) >= 0) {
        out->kind = SETTING_UINT;
        out->number = (uint64_t)json_integer_value(from);
    } else if (json_is_string(from)) {
        out->kind = SETTING_TEXT;
        out->text = (struct view){.data = json_string_value(from), .size = json_string_length(from)};
    } else if (!json_is_boolean(from)) {
        return err_set(err, ST_INVALID, "%.60s must be true, false, a number or a string", key);
    }
    return ST_OK;
}

enum status control_log_post(struct control_call *call, struct err *err) {
    json_t *body = NULL;
    const char *key = NULL;
    json_t *member = NULL;
    struct log_settings settings;
    log_settings_read(&settings);
    enum status status = control_body(call, CONTROL_BODY_BYTES, &body, err);
    json_object_foreach(body, key, member) {
        struct setting_value value;
        if (status == ST_OK)
            status = value_of(key, member, &value, err);
        if (status == ST_OK)
            status = log_settings_change(&settings, view_of(key), &value, err);
    }
    json_decref(body);
    if (status != ST_OK)
        return status;
    log_settings_apply(&settings);
    write_log_settings(&call->server->body);
    return ST_OK;
}

/* ---- trace ---- */

static enum status check_model(const struct control_call *call, struct err *err) {
    const struct view any = {.data = "", .size = 0};
    if (!call->names[0][0])
        return ST_OK;
    const struct served_model *served =
        engine_find(call->server->engine, view_of(call->names[0]), any);
    if (!served)
        return err_set(err, ST_NOT_FOUND, "no model \"%s\" is served", call->names[0]);
    engine_release(served);
    return ST_OK;
}

static void write_trace_settings(struct server *server) {
    struct buf *out = &server->body;
    struct trace_settings settings;
    char scratch[SETTING_TEXT_BYTES];
    trace_settings_read(engine_tracer(server->engine), &settings);
    for (size_t i = 0; i < TRACE_SETTING_COUNT; i++) {
        const char *value = NULL;
        buf_text(out, i ? ",\"" : "{\"");
        buf_text(out, trace_settings_at(&settings, i, scratch, &value));
        buf_text(out, i ? "\":" : "\":[");
        buf_json_string(out, view_of(value));
        if (i == 0)
            buf_char(out, ']');
    }
    buf_char(out, '}');
}

enum status control_trace_get(struct control_call *call, struct err *err) {
    const enum status status = check_model(call, err);
    if (status == ST_OK)
        write_trace_settings(call->server);
    return status;
}

static enum status one_value(const char *key, const json_t *from, struct view *out,
                             struct err *err) {
    if (!json_is_string(from))
        return err_set(err, ST_INVALID, "%.60s must be a string, an array of strings or null", key);
    *out = (struct view){.data = json_string_value(from), .size = json_string_length(from)};
    return ST_OK;
}

static enum status change(struct trace_settings *settings, const char *key, const json_t *from,
                          const struct trace_settings *started, struct err *err) {
    struct view values[LEVELS_MAX];
    size_t count = 0;
    enum status status = ST_OK;
    if (json_is_array(from)) {
        if (json_array_size(from) > LEVELS_MAX)
            return err_set(err, ST_INVALID, "%.60s has more than %d values", key, LEVELS_MAX);
        for (; status == ST_OK && count < json_array_size(from); count++)
            status = one_value(key, json_array_get(from, count), &values[count], err);
    } else if (!json_is_null(from)) {
        status = one_value(key, from, &values[count++], err);
    }
    if (status != ST_OK)
        return status;
    return trace_settings_change(settings, view_of(key), values, count, started, err);
}

enum status control_trace_post(struct control_call *call, struct err *err) {
    struct tracer *tracer = engine_tracer(call->server->engine);
    struct trace_settings settings, started;
    json_t *body = NULL;
    const char *key = NULL;
    json_t *member = NULL;
    trace_settings_read(tracer, &settings);
    trace_settings_started(tracer, call->server->config->engine.trace_sample, &started);
    enum status status = check_model(call, err);
    if (status == ST_OK && call->names[0][0])
        return err_set(err, ST_UNSUPPORTED, "a model has no trace settings of its own: set the "
                                            "server's at /v2/trace/setting");
    if (status == ST_OK)
        status = control_body(call, CONTROL_BODY_BYTES, &body, err);
    json_object_foreach(body, key, member) {
        if (status == ST_OK)
            status = change(&settings, key, member, &started, err);
    }
    json_decref(body);
    if (status != ST_OK)
        return status;
    trace_settings_apply(tracer, &settings);
    write_trace_settings(call->server);
    return ST_OK;
}

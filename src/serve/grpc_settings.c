/* Trace and log settings over gRPC: the same as over HTTP (settings.h). Loop thread only.
 *
 * Invariant: a call that is refused has changed nothing. */
#include "serve/grpc_methods.h"

#include "serve/settings.h"

enum { LEVELS_MAX = 8 };

/* ---- trace ---- */

typedef Inference__TraceSettingResponse__SettingsEntry TraceEntry;
typedef Inference__TraceSettingResponse__SettingValue TraceValue;

static enum status show_trace(struct grpc_unary *call, const struct trace_settings *settings) {
    Inference__TraceSettingResponse *response = grpc_take(call, sizeof *response);
    TraceEntry *entries = arena_array(call->arena, TRACE_SETTING_COUNT, sizeof *entries);
    TraceEntry **list = arena_array(call->arena, TRACE_SETTING_COUNT, sizeof *list);
    TraceValue *values = arena_array(call->arena, TRACE_SETTING_COUNT, sizeof *values);
    char **texts = arena_array(call->arena, TRACE_SETTING_COUNT, sizeof *texts);
    if (!response || !entries || !list || !values || !texts)
        return grpc_no_memory(call);
    inference__trace_setting_response__init(response);
    for (size_t i = 0; i < TRACE_SETTING_COUNT; i++) {
        char scratch[SETTING_TEXT_BYTES];
        const char *text = NULL;
        const char *key = trace_settings_at(settings, i, scratch, &text);
        inference__trace_setting_response__settings_entry__init(&entries[i]);
        inference__trace_setting_response__setting_value__init(&values[i]);
        entries[i].key = arena_copy(call->arena, view_of(key));
        texts[i] = arena_copy(call->arena, view_of(text));
        if (!entries[i].key || !texts[i])
            return grpc_no_memory(call);
        values[i].n_value = 1;
        values[i].value = &texts[i];
        entries[i].value = &values[i];
        list[i] = &entries[i];
    }
    response->n_settings = TRACE_SETTING_COUNT;
    response->settings = list;
    call->response = &response->base;
    return ST_OK;
}

static enum status change_trace(const Inference__TraceSettingRequest__SettingsEntry *entry,
                                struct trace_settings *settings,
                                const struct trace_settings *started, struct err *err) {
    struct view values[LEVELS_MAX];
    const size_t count = entry->value ? entry->value->n_value : 0;
    if (count > LEVELS_MAX)
        return err_set(err, ST_INVALID, "%.60s has more than %d values", entry->key, LEVELS_MAX);
    for (size_t i = 0; i < count; i++)
        values[i] = view_of(entry->value->value[i]);
    return trace_settings_change(settings, view_of(entry->key), values, count, started, err);
}

static enum status check_model(struct grpc_unary *call, const char *name, bool changes) {
    const struct served_model *served = NULL;
    if (name[0] == '\0')
        return ST_OK;
    const enum status status = grpc_find_model(call->grpc, view_of(name),
                                               (struct view){.data = "", .size = 0}, &served,
                                               call->err);
    if (status != ST_OK)
        return status;
    engine_release(served);
    if (changes)
        return err_set(call->err, ST_UNSUPPORTED, "a model has no trace settings of its own: leave "
                                                  "model_name empty");
    return ST_OK;
}

enum status grpc_trace_setting(struct grpc_unary *call) {
    const Inference__TraceSettingRequest *request = call->request;
    const struct server *server = call->grpc->server;
    struct tracer *tracer = engine_tracer(server->engine);
    struct trace_settings settings, started;
    trace_settings_read(tracer, &settings);
    trace_settings_started(tracer, server->config->engine.trace_sample, &started);
    enum status status = check_model(call, request->model_name, request->n_settings > 0);
    for (size_t i = 0; status == ST_OK && i < request->n_settings; i++)
        status = change_trace(request->settings[i], &settings, &started, call->err);
    if (status != ST_OK)
        return status;
    if (request->n_settings > 0)
        trace_settings_apply(tracer, &settings);
    return show_trace(call, &settings);
}

/* ---- log ---- */

typedef Inference__LogSettingsResponse__SettingsEntry LogEntry;
typedef Inference__LogSettingsResponse__SettingValue LogValue;

/* False: no memory. */
static bool show_value(struct grpc_unary *call, const struct setting_value *from, LogValue *to) {
    inference__log_settings_response__setting_value__init(to);
    switch (from->kind) {
    case SETTING_BOOL:
        to->parameter_choice_case =
            INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_BOOL_PARAM;
        to->bool_param = from->is_on;
        return true;
    case SETTING_UINT:
        to->parameter_choice_case =
            INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_UINT32_PARAM;
        to->uint32_param = from->number < UINT32_MAX ? (uint32_t)from->number : UINT32_MAX;
        return true;
    case SETTING_TEXT:
        to->parameter_choice_case =
            INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_STRING_PARAM;
        to->string_param = arena_copy(call->arena, from->text);
        return to->string_param != NULL;
    }
    return false;
}

static enum status show_log(struct grpc_unary *call, const struct log_settings *settings) {
    Inference__LogSettingsResponse *response = grpc_take(call, sizeof *response);
    LogEntry *entries = arena_array(call->arena, LOG_SETTING_COUNT, sizeof *entries);
    LogEntry **list = arena_array(call->arena, LOG_SETTING_COUNT, sizeof *list);
    LogValue *values = arena_array(call->arena, LOG_SETTING_COUNT, sizeof *values);
    if (!response || !entries || !list || !values)
        return grpc_no_memory(call);
    inference__log_settings_response__init(response);
    for (size_t i = 0; i < LOG_SETTING_COUNT; i++) {
        struct setting_value value;
        const char *key = log_settings_at(settings, i, &value);
        inference__log_settings_response__settings_entry__init(&entries[i]);
        entries[i].key = arena_copy(call->arena, view_of(key));
        if (!entries[i].key || !show_value(call, &value, &values[i]))
            return grpc_no_memory(call);
        entries[i].value = &values[i];
        list[i] = &entries[i];
    }
    response->n_settings = LOG_SETTING_COUNT;
    response->settings = list;
    call->response = &response->base;
    return ST_OK;
}

static enum status change_log(const Inference__LogSettingsRequest__SettingsEntry *entry,
                              struct log_settings *settings, struct err *err) {
    struct setting_value value = {.kind = SETTING_BOOL};
    switch (entry->value ? entry->value->parameter_choice_case : 0) {
    case INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_BOOL_PARAM:
        value.is_on = entry->value->bool_param;
        break;
    case INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_UINT32_PARAM:
        value.kind = SETTING_UINT;
        value.number = entry->value->uint32_param;
        break;
    case INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_STRING_PARAM:
        value.kind = SETTING_TEXT;
        value.text = view_of(entry->value->string_param);
        break;
    default:
        return err_set(err, ST_INVALID, "%.60s has no value", entry->key);
    }
    return log_settings_change(settings, view_of(entry->key), &value, err);
}

enum status grpc_log_settings(struct grpc_unary *call) {
    const Inference__LogSettingsRequest *request = call->request;
    struct log_settings settings;
    log_settings_read(&settings);
    for (size_t i = 0; i < request->n_settings; i++) {
        const enum status status = change_log(request->settings[i], &settings, call->err);
        if (status != ST_OK)
            return status;
    }
    if (request->n_settings > 0)
        log_settings_apply(&settings);
    return show_log(call, &settings);
}

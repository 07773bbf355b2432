/* Log and trace settings under Triton's names. Any thread.
 *
 * Invariant: nothing is applied before every key of a request was found to be good.
 * Read next: control_settings.c (over HTTP), base/log.h, measure/trace.h. */
#include "serve/settings.h"

#include "base/log.h"
#include "base/number.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *const LOG_KEYS[LOG_SETTING_COUNT] = {"log_file",    "log_info",
                                                        "log_warning", "log_error",
                                                        "log_verbose_level", "log_format"};

static enum status unknown(struct view key, const char *known, struct err *err) {
    return err_set(err, ST_INVALID, "there is no setting \"%.*s\": %s",
                   (int)(key.size < 60 ? key.size : 60), key.data, known);
}

void log_settings_read(struct log_settings *out) {
    *out = (struct log_settings){.has_error = log_is_on(LOG_ERROR),
                                 .has_warning = log_is_on(LOG_WARN),
                                 .has_info = log_is_on(LOG_INFO),
                                 .verbose_level = log_is_on(LOG_DEBUG)};
}

const char *log_settings_at(const struct log_settings *settings, size_t index,
                            struct setting_value *out) {
    static const struct view FILE_NAME = {.data = "", .size = 0};
    static const struct view FORMAT = {.data = "ISO8601", .size = 7};
    *out = (struct setting_value){.kind = SETTING_BOOL};
    switch (index) {
    case 1: out->is_on = settings->has_info; break;
    case 2: out->is_on = settings->has_warning; break;
    case 3: out->is_on = settings->has_error; break;
    case 4:
        out->kind = SETTING_UINT;
        out->number = settings->verbose_level;
        break;
    default:
        out->kind = SETTING_TEXT;
        out->text = index == 0 ? FILE_NAME : FORMAT;
    }
    return LOG_KEYS[index];
}

static enum status change_text(struct view key, const struct setting_value *value,
                               struct err *err) {
    if (value->kind != SETTING_TEXT)
        return err_set(err, ST_INVALID, "%.*s must be a string", VIEW_ARGS(key));
    if (view_is(key, "log_file") && value->text.size)
        return err_set(err, ST_UNSUPPORTED,
                       "log_file cannot be set: log lines go to standard error");
    if (view_is(key, "log_format") && !view_is(value->text, "default") &&
        !view_is(value->text, "ISO8601"))
        return err_set(err, ST_INVALID, "log_format must be \"default\" or \"ISO8601\" (both are "
                                        "the same here)");
    return ST_OK;
}

enum status log_settings_change(struct log_settings *settings, struct view key,
                                const struct setting_value *value, struct err *err) {
    bool *const flags[] = {&settings->has_info, &settings->has_warning, &settings->has_error};
    for (size_t i = 0; i < 3; i++) {
        if (!view_is(key, LOG_KEYS[i + 1]))
            continue;
        if (value->kind != SETTING_BOOL)
            return err_set(err, ST_INVALID, "%s must be true or false", LOG_KEYS[i + 1]);
        *flags[i] = value->is_on;
        return ST_OK;
    }
    if (view_is(key, "log_verbose_level")) {
        if (value->kind != SETTING_UINT)
            return err_set(err, ST_INVALID, "log_verbose_level must be a whole number from 0 on");
        settings->verbose_level = value->number;
        return ST_OK;
    }
    if (view_is(key, "log_file") || view_is(key, "log_format"))
        return change_text(key, value, err);
    return unknown(key, "log_file, log_info, log_warning, log_error, log_verbose_level and "
                        "log_format are", err);
}

void log_settings_apply(const struct log_settings *settings) {
    log_set(LOG_ERROR, settings->has_error);
    log_set(LOG_WARN, settings->has_warning);
    log_set(LOG_INFO, settings->has_info);
    log_set(LOG_DEBUG, settings->verbose_level > 0);
}

/* ---- trace ---- */

static const char *const TRACE_KEYS[TRACE_SETTING_COUNT] = {
    "trace_level", "trace_rate", "trace_count", "log_frequency", "trace_file"};

void trace_settings_read(struct tracer *tracer, struct trace_settings *out) {
    const struct trace_sampling sampling = tracer_sampling(tracer);
    const char *directory = tracer_directory(tracer);
    const double rate = sampling.uniform_share > 0 ? 1 / sampling.uniform_share : 0;
    *out = (struct trace_settings){.is_on = directory && sampling.is_on,
                                   .rate = (uint64_t)llround(rate < 1e15 ? rate : 1e15),
                                   .directory = directory};
}

const char *trace_settings_at(const struct trace_settings *settings, size_t index, char *scratch,
                              const char **out_value) {
    switch (index) {
    case 0: *out_value = settings->is_on ? "TIMESTAMPS" : "OFF"; break;
    case 1:
        (void)snprintf(scratch, SETTING_TEXT_BYTES, "%" PRIu64, settings->rate);
        *out_value = scratch;
        break;
    case 2: *out_value = "-1"; break;
    case 3: *out_value = "0"; break;
    default: *out_value = settings->directory ? settings->directory : "";
    }
    return TRACE_KEYS[index];
}

static enum status change_level(struct trace_settings *settings, const struct view *values,
                                size_t count, struct err *err) {
    bool is_on = false;
    for (size_t i = 0; i < count; i++) {
        const struct view level = values[i];
        if (view_is(level, "OFF") && count == 1)
            break;
        if (view_is(level, "TENSORS"))
            return err_set(err, ST_UNSUPPORTED, "trace_level TENSORS is not supported: TIMESTAMPS "
                                                "and OFF are");
        if (!view_is(level, "TIMESTAMPS") && !view_is(level, "MIN") && !view_is(level, "MAX"))
            return err_set(err, ST_INVALID, "trace_level \"%.*s\": TIMESTAMPS or OFF",
                           (int)(level.size < 40 ? level.size : 40), level.data);
        is_on = true;
    }
    if (is_on && !settings->directory)
        return err_set(err, ST_INVALID, "no trace is written: start the server with --trace DIR");
    settings->is_on = is_on;
    return ST_OK;
}

/* What cannot be changed may be said again. */
static enum status keep(const char *key, struct view value, const char *fixed, struct err *err) {
    if (view_is(value, fixed))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED, "%s is \"%s\" and cannot be changed while the server runs",
                   key, fixed);
}

static enum status change_rate(struct trace_settings *settings, struct view value,
                               struct err *err) {
    uint64_t rate = 0;
    struct err why = {.text = ""};
    if (number_uint(value, &rate, &why) != ST_OK || rate == 0)
        return err_set(err, ST_INVALID, "trace_rate \"%.*s\": a whole number from 1 on",
                       (int)(value.size < 40 ? value.size : 40), value.data);
    settings->rate = rate;
    return ST_OK;
}

void trace_settings_started(struct tracer *tracer, double sample, struct trace_settings *out) {
    const char *directory = tracer_directory(tracer);
    *out = (struct trace_settings){.is_on = directory != NULL, .directory = directory,
                                   .rate = sample > 0 ? (uint64_t)(1 / sample + 0.5) : 0};
}

enum status trace_settings_change(struct trace_settings *settings, struct view key,
                                  const struct view *values, size_t count,
                                  const struct trace_settings *started, struct err *err) {
    size_t index = 0;
    while (index < TRACE_SETTING_COUNT && !view_is(key, TRACE_KEYS[index]))
        index++;
    if (index == TRACE_SETTING_COUNT)
        return unknown(key, "trace_level, trace_rate, trace_count, log_frequency and trace_file are",
                       err);
    if (count == 0) {
        if (index == 0)
            settings->is_on = started->is_on;
        else if (index == 1)
            settings->rate = started->rate;
        return ST_OK;
    }
    if (index == 0)
        return change_level(settings, values, count, err);
    if (count != 1)
        return err_set(err, ST_INVALID, "%s takes one value", TRACE_KEYS[index]);
    if (index == 1)
        return change_rate(settings, values[0], err);
    char scratch[SETTING_TEXT_BYTES];
    const char *fixed = NULL;
    const char *name = trace_settings_at(settings, index, scratch, &fixed);
    return keep(name, values[0], fixed, err);
}

void trace_settings_apply(struct tracer *tracer, const struct trace_settings *settings) {
    tracer_set_sampling(tracer, (struct trace_sampling){
                                    .is_on = settings->is_on || !settings->directory,
                                    .uniform_share =
                                        settings->rate ? 1.0 / (double)settings->rate : 0});
}

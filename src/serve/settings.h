/* What an operator may change while the server runs: which log lines are written, what goes into the
 * trace. Names and values are Triton's, whatever protocol they come by. Any thread.
 *
 * To change something: read, change key by key (all are checked), apply. */
#ifndef TELLTALE_SERVE_SETTINGS_H
#define TELLTALE_SERVE_SETTINGS_H

#include "base/status.h"
#include "base/view.h"
#include "measure/trace.h"

enum setting_kind { SETTING_BOOL, SETTING_UINT, SETTING_TEXT };
struct setting_value {
    enum setting_kind kind;
    bool is_on;
    uint64_t number;
    struct view text;
};

struct log_settings {
    bool has_error, has_warning, has_info;
    uint64_t verbose_level; /* 0: none; else debug lines too */
};
enum { LOG_SETTING_COUNT = 6 };
/* The index-th setting as it is read; index < LOG_SETTING_COUNT. Static text. */
const char *log_settings_at(const struct log_settings *settings, size_t index,
                            struct setting_value *out);
void log_settings_read(struct log_settings *out);
/* log_file can only be what it is: the lines go to standard error. */
MUST_CHECK enum status log_settings_change(struct log_settings *settings, struct view key,
                                           const struct setting_value *value, struct err *err);
void log_settings_apply(const struct log_settings *settings);

struct trace_settings {
    bool is_on;           /* trace_level TIMESTAMPS, else OFF */
    uint64_t rate;        /* trace_rate: one of so many is in the uniform sample; 0: none */
    const char *directory; /* trace_file; NULL: no trace is written */
};
enum { TRACE_SETTING_COUNT = 5, SETTING_TEXT_BYTES = 24 };
/* The index-th setting as text; scratch: SETTING_TEXT_BYTES. *out_value points into it, or is as
 * static as the directory. trace_level is the one that is a list (of one). */
const char *trace_settings_at(const struct trace_settings *settings, size_t index, char *scratch,
                              const char **out_value);
void trace_settings_read(struct tracer *tracer, struct trace_settings *out);
/* What the server was started with: sample is --trace-sample. */
void trace_settings_started(struct tracer *tracer, double sample, struct trace_settings *out);
/* values: one, or the levels of trace_level; count 0: back to what the server was started with,
 * started. ST_UNSUPPORTED: trace_count, log_frequency and trace_file other than they are. */
MUST_CHECK enum status trace_settings_change(struct trace_settings *settings, struct view key,
                                             const struct view *values, size_t count,
                                             const struct trace_settings *started, struct err *err);
void trace_settings_apply(struct tracer *tracer, const struct trace_settings *settings);

#endif

/* The slow log: a request slower than --slow-ms says in one line where its time went. Loop
 * thread only.
 *
 * Invariant: the shares are of the record's own total, and sum to it.
 * Read next: measure/trace.h (the stages). */
#include "serve/slow_log.h"

#include "serve/server.h"
#include <inttypes.h>

void slow_log_format(struct buf *out, const struct trace_record *record, const char *model) {
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(record, durations);
    buf_printf(out, "slow request %s model %s status %u total ", record->id, model,
               (unsigned)record->status_http);
    buf_ms(out, total_ns);
    buf_text(out, " ms:");
    const char *separator = " ";
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        if (durations[stage] == 0)
            continue;
        buf_text(out, separator);
        buf_text(out, stage_name((enum stage)stage));
        buf_char(out, ' ');
        buf_ms(out, durations[stage]);
        buf_printf(out, " ms (%.1f %%)", 100.0 * (double)durations[stage] / (double)total_ns);
        separator = ", ";
    }
    if (record->batch_size)
        buf_printf(out, "; batch of %" PRIu32 " (%s)", record->batch_size,
                   reason_name((enum reason)record->reason));
    if (record->tokens)
        buf_printf(out, "; %" PRIu32 " tokens padded to %" PRIu32, record->tokens, record->padded);
    if (record->lock_wait_ns) {
        buf_text(out, "; lock wait ");
        buf_ms(out, record->lock_wait_ns);
        buf_printf(out, " ms (held by %s)", role_name((enum role)record->lock_holder));
    }
}

void slow_log_look(struct server *server, const struct trace_record *record, const char *model) {
    const uint64_t limit_ns = server->config->slow_ms * 1000000;
    const uint64_t end_ns = record->at[AT_SENT];
    if (limit_ns == 0 || end_ns - record->at[AT_START] <= limit_ns)
        return;
    uint64_t held_back = 0;
    if (!log_limit_pass(&server->slow_limit, end_ns, &held_back))
        return;
    struct buf line;
    buf_init(&line);
    slow_log_format(&line, record, model);
    if (held_back)
        buf_printf(&line, " (%" PRIu64 " like it held back)", held_back);
    if (!line.failed)
        log_line(LOG_WARN, "%.*s", (int)line.size, line.data);
    buf_done(&line);
}

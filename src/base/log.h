/* Log lines to standard error: "2026-01-31T12:00:00.123Z level text". Thread-safe, one
 * write() a line. Only serve/, load/, diag/ and main.c log; the folders below return errors. */
#ifndef TELLTALE_BASE_LOG_H
#define TELLTALE_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

void log_set_level(enum log_level level); /* that and what is more severe; LOG_INFO at start */
/* One level on or off, whatever the others are. Any thread. */
void log_set(enum log_level level, bool is_on);
bool log_is_on(enum log_level level);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At most per_second lines; what was held back is said in the next line that passes
 * ("(12 like it held back)"). One struct a call site or kind of event; single thread. */
struct log_limit {
    double per_second;
    double tokens;
    uint64_t last_ns;
    uint64_t held_back;
};
/* True when a line may be written now; out_held_back gets the number dropped since the last. */
bool log_limit_pass(struct log_limit *limit, uint64_t now_ns, uint64_t *out_held_back);

#endif

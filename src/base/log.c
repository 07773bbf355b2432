/* Log lines, one write() each, so that lines of different threads never mix. Any thread.
 * Invariant: a line has exactly one newline, its last byte: what comes from outside cannot
 * forge a second line. Who may log is in log.h. */
#include "base/log.h"

#include "base/clock.h"
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2048 };

/* The one variable of this folder: a process has one standard error. A bit a level; written at
 * start and when an operator asks for it; relaxed, since a line more or less at the moment of a
 * change does not matter. */
static unsigned levels_now = (1U << (LOG_INFO + 1)) - 1;

void log_set_level(enum log_level level) {
    __atomic_store_n(&levels_now, (1U << (level + 1)) - 1, __ATOMIC_RELAXED);
}

void log_set(enum log_level level, bool is_on) {
    if (is_on)
        __atomic_fetch_or(&levels_now, 1U << level, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&levels_now, ~(1U << level), __ATOMIC_RELAXED);
}

bool log_is_on(enum log_level level) {
    return (__atomic_load_n(&levels_now, __ATOMIC_RELAXED) & 1U << level) != 0;
}

static size_t write_head(char *line, enum log_level level) {
    static const char *const NAMES[LOG_LEVEL_COUNT] = {"error", "warn", "info", "debug"};
    const uint64_t now_ns = wall_ns();
    const time_t seconds = (time_t)(now_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    const size_t date = strftime(line, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    const int rest = snprintf(line + date, 32, ".%03uZ %s ",
                              (unsigned)(now_ns / 1000000u % 1000u), NAMES[level]);
    return date + (size_t)rest;
}

static void write_all(const char *bytes, size_t size) {
    const int saved = errno; /* a log line between a failure and its report keeps errno */
    while (size > 0) {
        const ssize_t written = write(STDERR_FILENO, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            break; /* nowhere to complain about it */
        }
        bytes += written;
        size -= (size_t)written;
    }
    errno = saved;
}

void log_line(enum log_level level, const char *format, ...) {
    if (!log_is_on(level)) {
        return;
    }
    char line[LINE_BYTES];
    const size_t head = write_head(line, level);
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line + head, sizeof(line) - head - 1, format, args);
    va_end(args);
    const size_t room = sizeof(line) - head - 2;
    size_t size = head;
    if (length > 0) {
        size += (size_t)length < room ? (size_t)length : room;
    }
    for (size_t i = head; i < size; i++) {
        const unsigned char c = (unsigned char)line[i];
        line[i] = c < 0x20 || c == 0x7F ? ' ' : line[i];
    }
    line[size] = '\n';
    write_all(line, size + 1);
}

bool log_limit_pass(struct log_limit *limit, uint64_t now_ns, uint64_t *out_held_back) {
    const double most = limit->per_second < 1.0 ? 1.0 : limit->per_second;
    if (limit->last_ns == 0) {
        limit->tokens = most;
    } else if (now_ns > limit->last_ns) {
        limit->tokens += (double)(now_ns - limit->last_ns) * 1e-9 * limit->per_second;
        limit->tokens = limit->tokens > most ? most : limit->tokens;
    }
    limit->last_ns = now_ns;
    if (limit->tokens < 1.0) {
        limit->held_back++;
        return false;
    }
    limit->tokens -= 1.0;
    *out_held_back = limit->held_back;
    limit->held_back = 0;
    return true;
}

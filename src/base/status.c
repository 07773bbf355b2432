/* The status table turned into look-ups, and errors put into words. Any thread: nothing here
 * is shared. Invariant: an err's text is always terminated, however long its parts were.
 * Read next: status.h, where the table is. */
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    const char *name;
    const char *sentence;
    int http;
    int grpc;
    bool is_retryable;
};

static const struct status_row ROWS[ST_COUNT] = {
#define X(name, sentence, http, grpc, retryable) \
    [ST_##name] = {#name, sentence, http, grpc, retryable},
    STATUS_TABLE(X)
#undef X
};

/* An unknown value is our bug, but a released program answers "internal error" all the same. */
static const struct status_row *row_of(enum status status) {
    const unsigned index = (unsigned)status;
    return &ROWS[index < ST_COUNT ? index : (unsigned)ST_INTERNAL];
}

const char *status_name(enum status status) { return row_of(status)->name; }
const char *status_sentence(enum status status) { return row_of(status)->sentence; }
int status_http(enum status status) { return row_of(status)->http; }
int status_grpc(enum status status) { return row_of(status)->grpc; }
bool status_is_retryable(enum status status) { return row_of(status)->is_retryable; }

enum status err_set(struct err *err, enum status status, const char *format, ...) {
    if (err == NULL) {
        return status;
    }
    /* Through a copy, because err->text may be among the arguments. */
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(err->text, text, sizeof(text));
    return status;
}

void err_prefix(struct err *err, const char *format, ...) {
    if (err == NULL) {
        return;
    }
    char prefix[sizeof(err->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof(prefix), format, args);
    va_end(args);
    char text[2 * sizeof(err->text) + 2];
    snprintf(text, sizeof(text), "%s: %s", prefix, err->text);
    /* What does not fit is cut from the end: the way there reads better than the detail. */
    memcpy(err->text, text, sizeof(err->text) - 1);
    err->text[sizeof(err->text) - 1] = '\0';
}

/* Every way an operation can end, in one table: name, sentence for a person, HTTP
 * status, gRPC code, whether a client may retry the same request unchanged. */
#ifndef TELLTALE_BASE_STATUS_H
#define TELLTALE_BASE_STATUS_H

#include <stdbool.h>

#define STATUS_TABLE(X)                                                                        \
    /* name              sentence                                     http grpc retryable */   \
    X(OK,               "ok",                                          200,  0, false)         \
    X(INVALID,          "the request is not valid",                    400,  3, false)         \
    X(NOT_FOUND,        "not found",                                   404,  5, false)         \
    X(METHOD,           "the method is not allowed here",              405, 12, false)         \
    X(REQUEST_TIMEOUT,  "the request was not received in time",        408,  4, true)          \
    X(TOO_LARGE,        "the body is larger than the limit",           413,  8, false)         \
    X(UNSUPPORTED_TYPE, "the content type or encoding is not supported", 415, 12, false)       \
    X(HEADER_TOO_LARGE, "the header is larger than the limit",         431,  8, false)         \
    X(CANCELLED,        "the client went away",                        499,  1, false)         \
    X(INTERNAL,         "internal error",                              500, 13, false)         \
    X(UNSUPPORTED,      "not supported",                               501, 12, false)         \
    X(OVERLOADED,       "the server is at its limit",                  503,  8, true)          \
    X(UNAVAILABLE,      "not ready",                                   503, 14, true)          \
    X(EXPIRED,          "the request's timeout expired in the queue",  503, 14, true)          \
    X(TIMEOUT,          "the request did not finish in time",          504,  4, true)          \
    X(NO_MEMORY,        "out of memory",                               503,  8, true)          \
    X(IO,               "input or output failed",                      500, 14, false)

enum status {
#define X(name, sentence, http, grpc, retryable) ST_##name,
    STATUS_TABLE(X)
#undef X
    ST_COUNT
};

/* A fallible function's result must be looked at. */
#define MUST_CHECK __attribute__((warn_unused_result))

const char *status_name(enum status status);     /* "INVALID"; static string */
const char *status_sentence(enum status status); /* static string */
int status_http(enum status status);
int status_grpc(enum status status);
bool status_is_retryable(enum status status);

/* Detail of an error, owned by the caller. text is "" while nothing failed; it says what
 * was being done, to what, with which numbers, and what to do. */
struct err {
    char text[480];
};

/* Formats into err (which may be NULL) and returns status, so that a failure is one line:
 *     return err_set(err, ST_INVALID, "input %s: ...", name);  */
enum status err_set(struct err *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text already in err, for context on the way up. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

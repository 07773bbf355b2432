/* One log line for a request that was slower than --slow-ms. */
#ifndef TELLTALE_SERVE_SLOW_LOG_H
#define TELLTALE_SERVE_SLOW_LOG_H

#include "base/buf.h"
#include "measure/trace.h"

struct server;

/* Looks at a finished record and logs it when it was slow; at most 5 lines a second. */
void slow_log_look(struct server *server, const struct trace_record *record, const char *model);
/* The line's text, for tests. */
void slow_log_format(struct buf *out, const struct trace_record *record, const char *model);

#endif

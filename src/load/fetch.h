/* One GET, waited for: metadata before the load, counters between its phases. Runs a loop of its
 * own on the calling thread. */
#ifndef TELLTALE_LOAD_FETCH_H
#define TELLTALE_LOAD_FETCH_H

#include "base/buf.h"
#include "load/target.h"

/* GET url's prefix + path. ST_OK when an answer came, whatever its status code; out_body gets its
 * bytes and 64 zero bytes after them that do not count in size (simdjson reads that far). */
MUST_CHECK enum status fetch_get(const struct http_url *url, const char *path,
                                 uint64_t timeout_ns, int *out_http, struct buf *out_body,
                                 struct err *err);

#endif

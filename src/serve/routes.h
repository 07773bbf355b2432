/* Which code answers which method and path. Loop thread only. */
#ifndef TELLTALE_SERVE_ROUTES_H
#define TELLTALE_SERVE_ROUTES_H

#include "proto/http1.h"
#include "serve/server.h"

/* Answers the message, now or later, by http_conn_answer or http_conn_fail. */
void routes_dispatch(struct http_conn *hc, const struct http_message *message);

enum { ROUTE_NAME_MAX = 256 };

/* "/v2/models/NAME[/versions/V]TAIL" taken apart; views into path. */
struct model_path {
    struct view name, version, tail; /* version empty: none given; tail "" or "/infer" ... */
};
/* False when path is not of that form. */
bool model_path_parse(struct view path, struct model_path *out);
/* %41 to A, into out; false on a broken escape, a NUL or a name of more than size - 1 bytes. */
bool path_decode(struct view text, char *out, size_t size);

#endif

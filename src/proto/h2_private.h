/* What h2.c (what comes in) and h2_send.c (what goes out) share. */
#ifndef TELLTALE_PROTO_H2_PRIVATE_H
#define TELLTALE_PROTO_H2_PRIVATE_H

#include "proto/h2.h"
#include <nghttp2/nghttp2.h>

/* So many a second, twice that at once. */
struct h2_bucket {
    uint64_t per_second;
    double tokens;
    uint64_t last_ns;
};

struct h2 {
    nghttp2_session *session;
    const struct h2_events *events;
    void *ctx;
    struct h2_limits limits;
    bool is_client;
    bool is_too_lively;
    struct h2_bucket resets, controls;
    uint64_t now_ns;           /* of the input being worked on */
    struct h2_stream *streams; /* open */
    uint32_t stream_count;
    struct h2_stream *free_streams;
    uint32_t free_count;
    /* During h2_output. */
    struct buf *out;
    size_t out_limit;
};

struct h2_stream *h2_stream_take(struct h2 *session, int32_t id);
/* Tells what was not sent, then puts it among the free ones. */
void h2_stream_release(struct h2_stream *stream);
struct h2_stream *h2_stream_of(struct h2 *session, int32_t id); /* NULL: none that is told of */

/* nghttp2's callbacks of h2_send.c */
ssize_t h2_on_send(nghttp2_session *session, const uint8_t *bytes, size_t size, int flags,
                   void *user);
int h2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t size, nghttp2_data_source *source, void *user);

#endif

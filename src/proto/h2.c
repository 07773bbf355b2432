/* The session and what comes in.
 *
 * Invariant: nghttp2 holds a pointer to every stream in session->streams and to no other; both
 * forget it in the same call (on_stream_close, h2_free).
 * Read next: h2_send.c. */
#include "proto/h2_private.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT_STREAMS = 64,     /* free ones, for reuse */
    HEADER_OVERHEAD = 32,  /* RFC 9113 section 6.5.2 */
    HEADER_PATIENCE = 8    /* lists of so many times the limit are not even counted to their end */
};

static bool bucket_take(struct h2_bucket *bucket, uint64_t now_ns) {
    const double most = 2.0 * (double)bucket->per_second;
    if (now_ns > bucket->last_ns) {
        bucket->tokens +=
            (double)(now_ns - bucket->last_ns) * (double)bucket->per_second / 1e9;
        bucket->last_ns = now_ns;
    }
    if (bucket->tokens > most)
        bucket->tokens = most;
    bucket->tokens -= 1;
    return bucket->tokens >= 0;
}

static void count(struct h2 *session, struct h2_bucket *bucket) {
    if (!bucket_take(bucket, session->now_ns))
        session->is_too_lively = true;
}

/* ---- streams ---- */

struct h2_stream *h2_stream_take(struct h2 *session, int32_t id) {
    struct h2_stream *stream = session->free_streams;
    if (stream) {
        session->free_streams = stream->next;
        session->free_count--;
    } else {
        stream = malloc(sizeof *stream);
        if (!stream)
            return NULL;
    }
    *stream = (struct h2_stream){.session = session, .id = id, .next = session->streams};
    stream->last = &stream->first;
    if (stream->next)
        stream->next->previous = stream;
    session->streams = stream;
    session->stream_count++;
    return stream;
}

void h2_stream_release(struct h2_stream *stream) {
    struct h2 *session = stream->session;
    while (stream->first) {
        struct h2_message *message = stream->first;
        stream->first = message->next;
        session->events->on_unsent(session->ctx, stream, message);
    }
    free(stream->trailers);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        session->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    session->stream_count--;
    if (session->free_count == KEPT_STREAMS) {
        free(stream);
        return;
    }
    stream->next = session->free_streams;
    session->free_streams = stream;
    session->free_count++;
}

struct h2_stream *h2_stream_of(struct h2 *session, int32_t id) {
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(session->session, id);
    return stream && !stream->is_reset ? stream : NULL;
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
    struct h2 *session = user;
    const int32_t id = frame->hd.stream_id;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        struct h2_stream *known = h2_stream_of(session, id);
        if (known)
            known->header_bytes = 0;
        return 0;
    }
    struct h2_stream *stream = h2_stream_take(session, id);
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!session->events->on_open(session->ctx, stream)) {
        h2_stream_release(stream);
        return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM)
                   ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    }
    return nghttp2_session_set_stream_user_data(ng, id, stream) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user) {
    (void)ng;
    (void)flags;
    struct h2 *session = user;
    struct h2_stream *stream = h2_stream_of(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    stream->header_bytes += (uint32_t)(name_size + value_size) + HEADER_OVERHEAD;
    if (stream->header_bytes > session->limits.header_bytes)
        return stream->header_bytes / HEADER_PATIENCE > session->limits.header_bytes
                   ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
    session->events->on_header(session->ctx, stream,
                               (struct view){(const char *)name, name_size},
                               (struct view){(const char *)value, value_size});
    return 0;
}

static void end_input(struct h2 *session, struct h2_stream *stream) {
    stream->has_ended_input = true;
    session->events->on_end(session->ctx, stream);
}

static void take_headers(struct h2 *session, const nghttp2_frame *frame) {
    struct h2_stream *stream = h2_stream_of(session, frame->hd.stream_id);
    if (!stream)
        return;
    session->events->on_headers(session->ctx, stream,
                                frame->headers.cat == NGHTTP2_HCAT_HEADERS,
                                stream->header_bytes > session->limits.header_bytes);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && !stream->is_reset)
        end_input(session, stream);
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
    (void)ng;
    struct h2 *session = user;
    struct h2_stream *stream = NULL;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        take_headers(session, frame);
        break;
    case NGHTTP2_DATA:
        stream = h2_stream_of(session, frame->hd.stream_id);
        if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
            end_input(session, stream);
        else if (frame->hd.length == 0)
            count(session, &session->controls);
        break;
    case NGHTTP2_RST_STREAM:
        count(session, &session->resets);
        break;
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            count(session, &session->controls);
        break;
    case NGHTTP2_PRIORITY:
        count(session, &session->controls);
        break;
    default:
        break;
    }
    return 0;
}

/* A peer that makes us reset its streams costs as much as one that resets them itself. */
static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error,
                            void *user) {
    (void)ng;
    (void)frame;
    (void)error;
    struct h2 *session = user;
    count(session, &session->resets);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t size, void *user) {
    (void)flags;
    struct h2 *session = user;
    if (nghttp2_session_consume_connection(ng, size) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    struct h2_stream *stream = h2_stream_of(session, id);
    if (stream)
        session->events->on_data(session->ctx, stream, (const char *)bytes, size);
    return 0;
}

/* What ends our side. */
static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
    struct h2 *session = user;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    struct h2_stream *stream = h2_stream_of(session, frame->hd.stream_id);
    if (!stream || !stream->ends_early || stream->has_ended_input)
        return 0;
    stream->is_reset = true;
    return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR) == 0
               ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error_code, void *user) {
    struct h2 *session = user;
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(ng, id);
    if (!stream)
        return 0;
    (void)nghttp2_session_set_stream_user_data(ng, id, NULL);
    stream->is_reset = true;
    session->events->on_close(session->ctx, stream, error_code);
    h2_stream_release(stream);
    return 0;
}

/* ---- life cycle ---- */

static nghttp2_session *create_session(struct h2 *session, nghttp2_session_callbacks *callbacks,
                                       nghttp2_option *option) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_callback(callbacks, h2_on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, h2_on_send_data);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    /* Ours comes first and says ENHANCE_YOUR_CALM; this one would say INTERNAL_ERROR. */
    nghttp2_option_set_stream_reset_rate_limit(option, 4 * (uint64_t)session->limits.resets_per_second,
                                               2 * (uint64_t)session->limits.resets_per_second);
    nghttp2_session *ng = NULL;
    const int failed = session->is_client
                           ? nghttp2_session_client_new2(&ng, callbacks, session, option)
                           : nghttp2_session_server_new2(&ng, callbacks, session, option);
    return failed ? NULL : ng;
}

static bool submit_settings(struct h2 *session) {
    const struct h2_limits *limits = &session->limits;
    nghttp2_settings_entry entries[6] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits->stream_window},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits->frame_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->header_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    const size_t entry_count = session->is_client ? 6 : 5; /* a server must not speak of push */
    return nghttp2_submit_settings(session->session, NGHTTP2_FLAG_NONE, entries, entry_count) == 0 &&
           nghttp2_session_set_local_window_size(session->session, NGHTTP2_FLAG_NONE, 0,
                                                 (int32_t)limits->connection_window) == 0;
}

struct h2 *h2_create(bool is_client, const struct h2_limits *limits, const struct h2_events *events,
                     void *ctx) {
    struct h2 *session = calloc(1, sizeof *session);
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    if (!session)
        return NULL;
    session->is_client = is_client;
    session->limits = *limits;
    session->events = events;
    session->ctx = ctx;
    session->resets = (struct h2_bucket){.per_second = limits->resets_per_second,
                                         .tokens = 2.0 * limits->resets_per_second};
    session->controls = (struct h2_bucket){.per_second = limits->controls_per_second,
                                           .tokens = 2.0 * limits->controls_per_second};
    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0)
        session->session = create_session(session, callbacks, option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (!session->session || !submit_settings(session)) {
        h2_free(session);
        return NULL;
    }
    return session;
}

void h2_free(struct h2 *session) {
    if (!session)
        return;
    while (session->streams) {
        struct h2_stream *stream = session->streams;
        stream->is_reset = true;
        if (session->session)
            (void)nghttp2_session_set_stream_user_data(session->session, stream->id, NULL);
        session->events->on_close(session->ctx, stream, H2_CANCEL);
        h2_stream_release(stream);
    }
    while (session->free_streams) {
        struct h2_stream *stream = session->free_streams;
        session->free_streams = stream->next;
        free(stream);
    }
    nghttp2_session_del(session->session);
    free(session);
}

/* ---- input ---- */

enum status h2_input(struct h2 *session, const char *bytes, size_t size, uint64_t now_ns,
                     struct err *err) {
    session->now_ns = now_ns;
    const ssize_t used =
        nghttp2_session_mem_recv(session->session, (const uint8_t *)bytes, size);
    if (used == NGHTTP2_ERR_NOMEM || used == NGHTTP2_ERR_CALLBACK_FAILURE)
        return err_set(err, ST_NO_MEMORY, "no memory for an HTTP/2 connection");
    if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        return err_set(err, ST_INVALID, "what was sent is not HTTP/2: no connection preface");
    if (used == NGHTTP2_ERR_FLOODED)
        session->is_too_lively = true;
    else if (used < 0)
        return err_set(err, ST_INVALID, "HTTP/2: %s", nghttp2_strerror((int)used));
    if (!session->is_too_lively)
        return ST_OK;
    (void)nghttp2_session_terminate_session(session->session, NGHTTP2_ENHANCE_YOUR_CALM);
    return err_set(err, ST_OVERLOADED,
                   "HTTP/2: more resets, pings or settings than a client has reason to send");
}

void h2_consume(struct h2_stream *stream, size_t size) {
    if (!stream->is_reset) /* fails for no stream and no memory: the peer then waits, and times out */
        (void)nghttp2_session_consume_stream(stream->session->session, stream->id, size);
}

bool h2_is_over(const struct h2 *session) {
    return !nghttp2_session_want_read(session->session) &&
           !nghttp2_session_want_write(session->session);
}

uint32_t h2_stream_count(const struct h2 *session) { return session->stream_count; }

void h2_shutdown_notice(struct h2 *session) {
    (void)nghttp2_submit_shutdown_notice(session->session);
}

void h2_goaway(struct h2 *session, uint32_t error_code) {
    (void)nghttp2_submit_goaway(session->session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(session->session),
                                error_code, NULL, 0);
}

void h2_ping(struct h2 *session) {
    (void)nghttp2_submit_ping(session->session, NGHTTP2_FLAG_NONE, NULL);
}

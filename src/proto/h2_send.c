/* What goes out: answers, messages, trailers, into a buffer that is asked for.
 *
 * Messages are copied once, from their pieces to the buffer: nghttp2 is told not to copy.
 *
 * Invariant: unsent_bytes is what is left of the messages queued on a stream.
 * Read next: h2.c. */
#include "proto/h2_private.h"

#include <stdlib.h>
#include <string.h>

enum { FRAME_HEAD_BYTES = 9, MOST_HEADERS = 32 };

/* ---- into the buffer ---- */

ssize_t h2_on_send(nghttp2_session *ng, const uint8_t *bytes, size_t size, int flags, void *user) {
    (void)ng;
    (void)flags;
    struct h2 *session = user;
    if (session->out->size >= session->out_limit)
        return NGHTTP2_ERR_WOULDBLOCK;
    buf_append(session->out, bytes, size);
    return session->out->failed ? NGHTTP2_ERR_CALLBACK_FAILURE : (ssize_t)size;
}

/* size bytes of the stream's messages; what has gone whole is told. */
static void copy_messages(struct h2 *session, struct h2_stream *stream, size_t size) {
    stream->unsent_bytes -= size;
    for (;;) {
        struct h2_message *message = stream->first;
        if (message && message->left == 0) {
            stream->first = message->next;
            if (!stream->first)
                stream->last = &stream->first;
            session->events->on_sent(session->ctx, stream, message);
            continue;
        }
        if (size == 0)
            return;
        const struct view piece = message->pieces[message->piece];
        const size_t rest = piece.size - message->offset;
        const size_t part = rest < size ? rest : size;
        if (part)
            buf_append(session->out, piece.data + message->offset, part);
        size -= part;
        message->left -= part;
        message->offset += part;
        if (message->offset == piece.size) {
            message->piece++;
            message->offset = 0;
        }
    }
}

int h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t size,
                    nghttp2_data_source *source, void *user) {
    (void)ng;
    (void)frame; /* never padded: there is no select_padding callback */
    struct h2 *session = user;
    if (session->out->size >= session->out_limit)
        return NGHTTP2_ERR_WOULDBLOCK;
    buf_reserve(session->out, FRAME_HEAD_BYTES + size);
    buf_append(session->out, head, FRAME_HEAD_BYTES);
    copy_messages(session, source->ptr, size);
    return session->out->failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static nghttp2_nv nv_of(const struct h2_header *header) {
    /* nghttp2 copies both; its structure has no const. */
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)header->name.data,
                        .namelen = header->name.size,
                        .value = (uint8_t *)(uintptr_t)header->value.data,
                        .valuelen = header->value.size,
                        .flags = NGHTTP2_NV_FLAG_NONE};
}

static int submit_trailers(struct h2_stream *stream) {
    nghttp2_nv list[MOST_HEADERS];
    for (uint32_t i = 0; i < stream->trailer_count; i++)
        list[i] = nv_of(&stream->trailers[i]);
    return nghttp2_submit_trailer(stream->session->session, stream->id, list,
                                  stream->trailer_count);
}

/* How much of the stream may go into the next frame; the copying comes after. */
static ssize_t read_source(nghttp2_session *ng, int32_t id, uint8_t *to, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *user) {
    (void)ng;
    (void)id;
    (void)to;
    (void)user;
    struct h2_stream *stream = source->ptr;
    if (stream->unsent_bytes == 0 && !stream->has_finished) {
        stream->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    const size_t part = stream->unsent_bytes < size ? stream->unsent_bytes : size;
    if (part > 0)
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (part < stream->unsent_bytes || !stream->has_finished)
        return (ssize_t)part;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailer_count) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit_trailers(stream) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return (ssize_t)part;
}

enum status h2_output(struct h2 *session, struct buf *out, size_t limit) {
    session->out = out;
    session->out_limit = limit;
    const int failed = nghttp2_session_send(session->session);
    session->out = NULL;
    return failed ? ST_NO_MEMORY : ST_OK;
}

bool h2_wants_output(const struct h2 *session) {
    return nghttp2_session_want_write(session->session) != 0;
}

/* ---- what callers give ---- */

enum status h2_respond(struct h2_stream *stream, const struct h2_header *headers, uint32_t count,
                       bool is_end) {
    if (stream->is_reset)
        return ST_CANCELLED;
    if (count > MOST_HEADERS)
        return ST_INTERNAL;
    nghttp2_nv list[MOST_HEADERS];
    for (uint32_t i = 0; i < count; i++)
        list[i] = nv_of(&headers[i]);
    const nghttp2_data_provider provider = {.source = {.ptr = stream}, .read_callback = read_source};
    stream->has_responded = true;
    stream->has_finished = is_end;
    if (nghttp2_submit_response(stream->session->session, stream->id, list, count,
                                is_end ? NULL : &provider) == 0)
        return ST_OK;
    h2_reset(stream, H2_INTERNAL_ERROR);
    return ST_NO_MEMORY;
}

static void resume(struct h2_stream *stream) {
    if (!stream->is_deferred)
        return;
    stream->is_deferred = false;
    if (nghttp2_session_resume_data(stream->session->session, stream->id) != 0)
        h2_reset(stream, H2_INTERNAL_ERROR);
}

void h2_send(struct h2_stream *stream, struct h2_message *message) {
    message->piece = 0;
    message->offset = 0;
    message->left = 0;
    message->next = NULL;
    for (uint32_t i = 0; i < message->count; i++)
        message->left += message->pieces[i].size;
    *stream->last = message;
    stream->last = &message->next;
    stream->unsent_bytes += message->left;
    resume(stream);
}

/* One block: the headers, then their bytes. */
static bool keep_trailers(struct h2_stream *stream, const struct h2_header *trailers,
                          uint32_t count) {
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += trailers[i].name.size + trailers[i].value.size;
    stream->trailers = malloc(count * sizeof *trailers + size);
    if (!stream->trailers)
        return false;
    char *to = (char *)(stream->trailers + count);
    for (uint32_t i = 0; i < count; i++) {
        struct h2_header *kept = &stream->trailers[i];
        memcpy(to, trailers[i].name.data, trailers[i].name.size);
        kept->name = (struct view){to, trailers[i].name.size};
        to += trailers[i].name.size;
        memcpy(to, trailers[i].value.data, trailers[i].value.size);
        kept->value = (struct view){to, trailers[i].value.size};
        to += trailers[i].value.size;
    }
    stream->trailer_count = count;
    return true;
}

bool h2_finish(struct h2_stream *stream, const struct h2_header *trailers, uint32_t count) {
    if (stream->is_reset || stream->has_finished)
        return true;
    if (count > MOST_HEADERS || (count && !keep_trailers(stream, trailers, count))) {
        h2_reset(stream, H2_INTERNAL_ERROR);
        return false;
    }
    stream->has_finished = true;
    resume(stream);
    return true;
}

void h2_reset(struct h2_stream *stream, uint32_t error_code) {
    if (stream->is_reset)
        return;
    stream->is_reset = true;
    (void)nghttp2_submit_rst_stream(stream->session->session, NGHTTP2_FLAG_NONE, stream->id,
                                    error_code);
}

void h2_end_early(struct h2_stream *stream) { stream->ends_early = true; }

struct h2_stream *h2_request(struct h2 *session, const struct h2_header *headers, uint32_t count,
                             bool is_end, void *stream_ctx) {
    if (count > MOST_HEADERS)
        return NULL;
    struct h2_stream *stream = h2_stream_take(session, 0);
    if (!stream)
        return NULL;
    nghttp2_nv list[MOST_HEADERS];
    for (uint32_t i = 0; i < count; i++)
        list[i] = nv_of(&headers[i]);
    const nghttp2_data_provider provider = {.source = {.ptr = stream}, .read_callback = read_source};
    const int32_t id = nghttp2_submit_request(session->session, NULL, list, count,
                                              is_end ? NULL : &provider, stream);
    if (id < 0) {
        h2_stream_release(stream);
        return NULL;
    }
    stream->id = id;
    stream->ctx = stream_ctx;
    stream->has_responded = true;
    stream->has_finished = is_end;
    return stream;
}

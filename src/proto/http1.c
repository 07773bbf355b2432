/* One direction of one HTTP/1.1 connection: collects the header block line by line, has it parsed
 * by http_head.c, then gathers the body. Any one thread at a time; no sockets, no clock.
 *
 * Invariant: the events and the message depend on the bytes alone, not on how they were cut into
 * feeds. And: after the first small message, further ones allocate nothing.
 *
 * Read next: http_head.c, chunked.c. */
#include "proto/http1.h"

#include "proto/chunked.h"
#include "proto/http_head.h"
#include <stdlib.h>

enum {
    BODY_PADDING = 64,           /* simdjson reads this far past the end */
    FIRST_HEAD_BYTES = 2048,
    MAX_BLANK_LINES = 8,         /* before a message */
    KEEP_HEAD_BYTES = 16384,     /* larger blocks are not kept between messages */
    FIRST_BODY_BYTES = 4096,
    KEEP_BODY_BYTES = 1024 * 1024
};

enum state { STATE_HEAD, STATE_BODY, STATE_CHUNKED, STATE_UNTIL_EOF, STATE_COMPLETE, STATE_FAILED };

struct http_parser {
    struct http_limits limits;
    bool is_response;
    enum state state;
    char *head; /* the header block so far */
    size_t head_size, head_capacity;
    size_t line_start; /* of the line that is not complete yet */
    uint32_t blank_lines; /* passed over before this message */
    char *memory;      /* HTTP_BODY_HEADROOM + body_capacity + BODY_PADDING bytes; NULL: none */
    char *body;        /* behind the headroom */
    size_t body_size, body_capacity;
    uint64_t body_expected; /* STATE_BODY */
    struct chunked chunked;
    enum status status;
    struct err err;
    struct http_message message;
};

static const char NO_BODY[BODY_PADDING];

struct http_parser *http_parser_create(bool is_response, struct http_limits limits) {
    struct http_parser *parser = malloc(sizeof *parser);
    if (!parser)
        return NULL;
    if (limits.max_header_bytes > 65536)
        limits.max_header_bytes = 65536;
    /* Not a struct assignment: that would clear the headers' table, 3 KiB, for nothing. */
    parser->limits = limits;
    parser->is_response = is_response;
    parser->state = STATE_HEAD;
    parser->head = NULL;
    parser->head_size = parser->head_capacity = parser->line_start = 0;
    parser->blank_lines = 0;
    parser->memory = parser->body = NULL;
    parser->body_size = parser->body_capacity = 0;
    parser->body_expected = 0;
    parser->chunked = (struct chunked){0};
    parser->status = ST_OK;
    parser->err.text[0] = '\0';
    parser->message.header_count = 0;
    parser->message.body = (struct view){.data = NO_BODY, .size = 0};
    return parser;
}

void http_parser_free(struct http_parser *parser) {
    if (!parser)
        return;
    free(parser->head);
    free(parser->memory);
    free(parser);
}

static enum http_event fail(struct http_parser *parser, enum status status) {
    parser->state = STATE_FAILED;
    parser->status = status;
    return HTTP_FAILED;
}

static enum http_event fail_no_memory(struct http_parser *parser, uint64_t size) {
    return fail(parser, err_set(&parser->err, ST_NO_MEMORY,
                                "no memory for %llu bytes of an HTTP message",
                                (unsigned long long)size));
}

static enum http_event fail_too_large(struct http_parser *parser) {
    return fail(parser, err_set(&parser->err, ST_TOO_LARGE,
                                "the body is larger than the limit of %llu bytes",
                                (unsigned long long)parser->limits.max_body_bytes));
}

static enum http_event complete(struct http_parser *parser) {
    parser->state = STATE_COMPLETE;
    parser->message.body = (struct view){.data = NO_BODY, .size = 0};
    if (parser->body_size > 0) {
        memset(parser->body + parser->body_size, 0, BODY_PADDING);
        parser->message.body = (struct view){.data = parser->body, .size = parser->body_size};
    }
    return HTTP_COMPLETE;
}

/* Room for size bytes in all; keeps what is there. */
static bool reserve_body(struct http_parser *parser, size_t size) {
    if (size <= parser->body_capacity)
        return true;
    size_t capacity = parser->body_size > 0 ? parser->body_capacity * 2 : FIRST_BODY_BYTES;
    if (capacity < size)
        capacity = size;
    if (parser->body_size == 0) { /* nothing to keep: spare realloc its copy */
        free(parser->memory);
        parser->memory = parser->body = NULL;
        parser->body_capacity = 0;
    }
    char *memory = realloc(parser->memory, HTTP_BODY_HEADROOM + capacity + BODY_PADDING);
    if (!memory)
        return false;
    parser->memory = memory;
    parser->body = memory + HTTP_BODY_HEADROOM;
    parser->body_capacity = capacity;
    return true;
}

static enum http_event begin_body(struct http_parser *parser, struct http_framing_info info) {
    switch (info.framing) {
    case HTTP_FRAMING_LENGTH:
        if (info.content_length > parser->limits.max_body_bytes)
            return fail_too_large(parser);
        if (!reserve_body(parser, info.content_length))
            return fail_no_memory(parser, info.content_length);
        parser->body_expected = info.content_length;
        parser->state = STATE_BODY;
        return HTTP_HEADERS;
    case HTTP_FRAMING_CHUNKED:
        parser->chunked = (struct chunked){0};
        parser->state = STATE_CHUNKED;
        return HTTP_HEADERS;
    case HTTP_FRAMING_UNTIL_EOF:
        parser->state = STATE_UNTIL_EOF;
        return HTTP_HEADERS;
    case HTTP_FRAMING_NONE:
        break;
    }
    return complete(parser);
}

static enum http_event end_head(struct http_parser *parser) {
    const struct view block = {.data = parser->head, .size = parser->head_size};
    struct http_framing_info info = {.framing = HTTP_FRAMING_NONE};
    const enum status status =
        http_head_parse(block, parser->is_response, &parser->message, &info, &parser->err);
    if (status != ST_OK)
        return fail(parser, status);
    const int code = parser->message.status;
    if (code / 100 == 1 && code != 101) { /* "100 Continue": the real answer follows */
        parser->head_size = parser->line_start = 0;
        return HTTP_NEED_MORE;
    }
    return begin_body(parser, info);
}

static bool append_head(struct http_parser *parser, const char *bytes, size_t size) {
    if (parser->head_size + size > parser->head_capacity) {
        size_t capacity = parser->head_capacity ? parser->head_capacity : FIRST_HEAD_BYTES;
        while (capacity < parser->head_size + size)
            capacity *= 2;
        char *head = realloc(parser->head, capacity);
        if (!head)
            return false;
        parser->head = head;
        parser->head_capacity = capacity;
    }
    memcpy(parser->head + parser->head_size, bytes, size);
    parser->head_size += size;
    return true;
}

/* A line is complete in head: check it; end the block when it is the blank one. */
static enum http_event take_line(struct http_parser *parser) {
    const struct view line = {.data = parser->head + parser->line_start,
                              .size = parser->head_size - parser->line_start};
    const bool is_first = parser->line_start == 0;
    const enum status status = http_head_check_line(line, is_first, &parser->err);
    if (status != ST_OK)
        return fail(parser, status);
    if (line.size > 2) {
        parser->line_start = parser->head_size;
        return HTTP_NEED_MORE;
    }
    if (is_first) { /* blank lines before a message are passed over (RFC 9112, 2.2) */
        if (++parser->blank_lines > MAX_BLANK_LINES)
            return fail(parser, err_set(&parser->err, ST_INVALID,
                                        "more than %d blank lines before a message",
                                        MAX_BLANK_LINES));
        parser->head_size = 0;
        return HTTP_NEED_MORE;
    }
    return end_head(parser);
}

static enum http_event feed_head(struct http_parser *parser, const char *bytes, size_t size,
                                 size_t *out_used) {
    size_t at = 0;
    enum http_event event = HTTP_NEED_MORE;
    while (at < size && event == HTTP_NEED_MORE && parser->state == STATE_HEAD) {
        const size_t room = parser->limits.max_header_bytes - parser->head_size;
        const size_t visible = size - at < room ? size - at : room;
        const char *lf = memchr(bytes + at, '\n', visible);
        const size_t n = lf ? (size_t)(lf - bytes) - at + 1 : visible;
        if (!append_head(parser, bytes + at, n)) {
            event = fail_no_memory(parser, parser->head_size + n);
            break;
        }
        at += n;
        if (lf)
            event = take_line(parser);
        if (event == HTTP_NEED_MORE && parser->head_size >= parser->limits.max_header_bytes)
            event = fail(parser, err_set(&parser->err, ST_HEADER_TOO_LARGE,
                                         "the header is larger than the limit of %u bytes",
                                         parser->limits.max_header_bytes));
    }
    *out_used = at;
    return event;
}

static enum http_event append_body(struct http_parser *parser, struct view data) {
    if (data.size > parser->limits.max_body_bytes - parser->body_size)
        return fail_too_large(parser);
    if (!reserve_body(parser, parser->body_size + data.size))
        return fail_no_memory(parser, (uint64_t)parser->body_size + data.size);
    memcpy(parser->body + parser->body_size, data.data, data.size);
    parser->body_size += data.size;
    return HTTP_NEED_MORE;
}

static enum http_event feed_chunks(struct http_parser *parser, const char *bytes, size_t size,
                                   size_t *out_used) {
    size_t at = 0;
    for (;;) {
        size_t used = 0;
        struct view data = {0};
        const enum chunked_event event =
            chunked_feed(&parser->chunked, bytes + at, size - at, &used, &data);
        at += used;
        *out_used = at;
        switch (event) {
        case CHUNKED_NEED_MORE:
            return HTTP_NEED_MORE;
        case CHUNKED_END:
            return complete(parser);
        case CHUNKED_BAD:
            return fail(parser, err_set(&parser->err, ST_INVALID, "the body does not parse: %s",
                                        parser->chunked.fault));
        case CHUNKED_DATA:
            if (append_body(parser, data) == HTTP_FAILED)
                return HTTP_FAILED;
            break;
        }
    }
}

/* A chunk that cannot fit is refused when its size is known: a client that announces more than
 * it ever sends would otherwise be waited for. */
static enum http_event feed_chunked(struct http_parser *parser, const char *bytes, size_t size,
                                    size_t *out_used) {
    const enum http_event event = feed_chunks(parser, bytes, size, out_used);
    if (event == HTTP_NEED_MORE && parser->chunked.digits == 0 && /* its size line has ended */
        parser->chunked.left > parser->limits.max_body_bytes - parser->body_size)
        return fail_too_large(parser);
    return event;
}

char *http_parser_body_room(struct http_parser *parser, size_t *out_room) {
    if (parser->state != STATE_BODY)
        return NULL;
    *out_room = (size_t)parser->body_expected - parser->body_size;
    return parser->body + parser->body_size;
}

enum http_event http_parser_body_filled(struct http_parser *parser, size_t size) {
    parser->body_size += size;
    return parser->body_size == parser->body_expected ? complete(parser) : HTTP_NEED_MORE;
}

enum http_event http_parser_feed(struct http_parser *parser, const char *bytes, size_t size,
                                 size_t *out_used) {
    *out_used = 0;
    switch (parser->state) {
    case STATE_HEAD:
        return feed_head(parser, bytes, size, out_used);
    case STATE_BODY: {
        size_t room = 0;
        char *to = http_parser_body_room(parser, &room);
        *out_used = size < room ? size : room;
        memcpy(to, bytes, *out_used);
        return http_parser_body_filled(parser, *out_used);
    }
    case STATE_CHUNKED:
        return feed_chunked(parser, bytes, size, out_used);
    case STATE_UNTIL_EOF:
        *out_used = size;
        return append_body(parser, (struct view){.data = bytes, .size = size});
    case STATE_COMPLETE:
        return HTTP_COMPLETE;
    case STATE_FAILED:
        break;
    }
    *out_used = size; /* what follows a fault means nothing */
    return HTTP_FAILED;
}

enum http_event http_parser_eof(struct http_parser *parser) {
    switch (parser->state) {
    case STATE_UNTIL_EOF:
        return complete(parser);
    case STATE_COMPLETE:
        return HTTP_COMPLETE;
    case STATE_FAILED:
        return HTTP_FAILED;
    case STATE_HEAD:
        return fail(parser, err_set(&parser->err, ST_INVALID, "the connection ended %s",
                                    http_parser_is_idle(parser) ? "before a message"
                                                                : "inside a header"));
    default:
        return fail(parser, err_set(&parser->err, ST_INVALID,
                                    "the connection ended inside a body, after %zu bytes",
                                    parser->body_size));
    }
}

const struct http_message *http_parser_message(const struct http_parser *parser) {
    return &parser->message;
}

enum status http_parser_status(const struct http_parser *parser, struct err *out_err) {
    if (out_err)
        *out_err = parser->err;
    return parser->status;
}

bool http_parser_is_idle(const struct http_parser *parser) {
    return parser->state == STATE_HEAD && parser->head_size == 0;
}

void http_parser_next(struct http_parser *parser) {
    if (parser->state == STATE_FAILED)
        return;
    parser->state = STATE_HEAD;
    parser->head_size = parser->line_start = 0;
    parser->blank_lines = 0;
    parser->body_size = 0;
    parser->body_expected = 0;
    parser->message.header_count = 0;
    parser->message.body = (struct view){.data = NO_BODY, .size = 0};
    if (parser->head_capacity > KEEP_HEAD_BYTES) {
        free(parser->head);
        parser->head = NULL;
        parser->head_capacity = 0;
    }
    if (parser->body_capacity > KEEP_BODY_BYTES) {
        free(parser->memory);
        parser->memory = parser->body = NULL;
        parser->body_capacity = 0;
    }
}

char *http_parser_take_body(struct http_parser *parser) {
    if (parser->state != STATE_COMPLETE || parser->body_size == 0)
        return NULL;
    char *memory = parser->memory;
    parser->memory = parser->body = NULL;
    parser->body_capacity = 0;
    parser->body_size = 0;
    return memory;
}

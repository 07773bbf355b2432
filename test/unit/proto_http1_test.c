/* HTTP/1.1 parsing. Every input is fed whole and cut at every byte; all ways must agree. */
#include "proto/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* after the above */
#include <cmocka.h>

static const struct http_limits LIMITS = {.max_header_bytes = 8192, .max_body_bytes = 100000};

struct outcome {
    enum http_event event;
    enum status status;
    char text[1600]; /* the message or the error, as one string */
};

static void describe(const struct http_parser *parser, struct outcome *out) {
    const struct http_message *m = http_parser_message(parser);
    struct err err;
    out->status = http_parser_status(parser, &err);
    if (out->event == HTTP_FAILED) {
        snprintf(out->text, sizeof out->text, "%s", err.text);
        return;
    }
    if (out->event == HTTP_NEED_MORE)
        return;
    int n = snprintf(out->text, sizeof out->text, "%d %d [%.*s] [%.*s] [%.*s] %s%s", (int)m->method,
                     m->status, VIEW_ARGS(m->target), VIEW_ARGS(m->path), VIEW_ARGS(m->query),
                     m->keep_alive ? "keep" : "close", m->expects_continue ? " expects" : "");
    for (uint32_t i = 0; i < m->header_count && n < 1200; i++)
        n += snprintf(out->text + n, sizeof out->text - (size_t)n, " %.*s=%.*s",
                      VIEW_ARGS(m->headers[i].name), VIEW_ARGS(m->headers[i].value));
    snprintf(out->text + n, sizeof out->text - (size_t)n, " {%.*s}",
             m->body.size < 200 ? (int)m->body.size : 200, m->body.data);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(m->body.data[m->body.size + i], 0);
}

/* Feeds one piece; the piece lies in memory of its own size, so that ASan sees overreads. */
static enum http_event feed_piece(struct http_parser *parser, const char *bytes, size_t size) {
    char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    size_t at = 0;
    enum http_event event = HTTP_NEED_MORE;
    while (at < size && event != HTTP_COMPLETE && event != HTTP_FAILED) {
        size_t used = 0;
        event = http_parser_feed(parser, copy + at, size - at, &used);
        at += used;
        if (event == HTTP_NEED_MORE)
            assert_int_equal(at, size);
    }
    free(copy);
    return event;
}

static struct outcome run(bool is_response, struct http_limits limits, const char *bytes,
                          size_t size, size_t cut) {
    struct outcome out = {.event = HTTP_NEED_MORE};
    struct http_parser *parser = http_parser_create(is_response, limits);
    out.event = feed_piece(parser, bytes, cut);
    if (out.event != HTTP_COMPLETE && out.event != HTTP_FAILED && cut < size)
        out.event = feed_piece(parser, bytes + cut, size - cut);
    describe(parser, &out);
    http_parser_free(parser);
    return out;
}

static struct outcome run_bytewise(bool is_response, struct http_limits limits, const char *bytes,
                                   size_t size) {
    struct outcome out = {.event = HTTP_NEED_MORE};
    struct http_parser *parser = http_parser_create(is_response, limits);
    for (size_t i = 0; i < size && out.event != HTTP_COMPLETE && out.event != HTTP_FAILED; i++)
        out.event = feed_piece(parser, bytes + i, 1);
    describe(parser, &out);
    http_parser_free(parser);
    return out;
}

static struct outcome parse_limited(bool is_response, struct http_limits limits, const char *bytes,
                                    size_t size) {
    const struct outcome whole = run(is_response, limits, bytes, size, size);
    for (size_t cut = 0; cut < size; cut++) {
        const struct outcome two = run(is_response, limits, bytes, size, cut);
        assert_int_equal(two.event, whole.event);
        assert_int_equal(two.status, whole.status);
        assert_string_equal(two.text, whole.text);
    }
    const struct outcome bytewise = run_bytewise(is_response, limits, bytes, size);
    assert_int_equal(bytewise.event, whole.event);
    assert_int_equal(bytewise.status, whole.status);
    assert_string_equal(bytewise.text, whole.text);
    return whole;
}

static struct outcome parse(const char *request) {
    return parse_limited(false, LIMITS, request, strlen(request));
}

static void expect_message(const char *request, const char *expected) {
    const struct outcome got = parse(request);
    if (got.event == HTTP_FAILED)
        print_message("%s\n", got.text);
    assert_int_equal(got.event, HTTP_COMPLETE);
    assert_string_equal(got.text, expected);
}

static void expect_fault_in(bool is_response, const char *bytes, size_t size, enum status status,
                            const char *part) {
    const struct outcome got = parse_limited(is_response, LIMITS, bytes, size);
    assert_int_equal(got.event, HTTP_FAILED);
    assert_int_equal(got.status, status);
    if (!strstr(got.text, part))
        fail_msg("\"%s\" does not say \"%s\"", got.text, part);
}
#define expect_fault(bytes, part)                                                              \
    expect_fault_in(false, bytes, sizeof(bytes) - 1, ST_INVALID, part)
#define expect_response_fault(bytes, part)                                                     \
    expect_fault_in(true, bytes, sizeof(bytes) - 1, ST_INVALID, part)

static void reads_a_get(void **state) {
    (void)state;
    expect_message("GET /v2/health/ready?a=1&b HTTP/1.1\r\nHost: x:8000\r\nAccept:  */* \t\r\n\r\n",
                   "0 0 [/v2/health/ready?a=1&b] [/v2/health/ready] [a=1&b] keep "
                   "Host=x:8000 Accept=*/* {}");
}

static void reads_a_post_with_length(void **state) {
    (void)state;
    expect_message("POST /i HTTP/1.1\r\nhost:x\r\ncontent-length: 5\r\n\r\nhello",
                   "2 0 [/i] [/i] [] keep host=x content-length=5 {hello}");
    expect_message("POST /i HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
                   "2 0 [/i] [/i] [] keep Host=x Content-Length=0 {}");
    expect_message("POST /i HTTP/1.1\r\nHost: x\r\n\r\n", "2 0 [/i] [/i] [] keep Host=x {}");
}

static void reads_a_chunked_body(void **state) {
    (void)state;
    expect_message("POST /i HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "5;ext=\"1\"\r\nhello\r\n00A\r\n, chunked \r\n0\r\nTrailer: x\r\n\r\n",
                   "2 0 [/i] [/i] [] keep Host=x Transfer-Encoding=chunked {hello, chunked }");
    expect_message("POST /i HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
                   "2 0 [/i] [/i] [] keep Host=x Transfer-Encoding=Chunked {}");
}

static void passes_over_blank_lines_before_a_request(void **state) {
    (void)state;
    expect_message("\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "1 0 [/] [/] [] keep Host=x {}");
}

static void notices_expect_continue(void **state) {
    (void)state;
    expect_message("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
                   "x",
                   "2 0 [/] [/] [] keep expects Host=x Expect=100-Continue Content-Length=1 {x}");
    expect_message("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
                   "2 0 [/] [/] [] close Expect=100-continue Content-Length=1 {x}");
}

static void tells_when_headers_are_complete(void **state) {
    (void)state;
    const char *request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyGET";
    struct http_parser *parser = http_parser_create(false, LIMITS);
    size_t used = 0;
    assert_int_equal(http_parser_feed(parser, request, strlen(request), &used), HTTP_HEADERS);
    assert_string_equal(request + used, "bodyGET");
    size_t room = 0;
    char *to = http_parser_body_room(parser, &room);
    assert_int_equal(room, 4);
    memcpy(to, "bo", 2);
    assert_int_equal(http_parser_body_filled(parser, 2), HTTP_NEED_MORE);
    assert_int_equal(http_parser_feed(parser, "dyGET", 5, &used), HTTP_COMPLETE);
    assert_int_equal(used, 2);
    assert_true(view_is(http_parser_message(parser)->body, "body"));
    assert_null(http_parser_body_room(parser, &room));
    http_parser_free(parser);
}

static void ends_connections_where_http_says_so(void **state) {
    (void)state;
    expect_message("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   "0 0 [/] [/] [] close Host=x Connection=close {}");
    expect_message("GET / HTTP/1.0\r\n\r\n", "0 0 [/] [/] [] close {}");
    expect_message("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                   "0 0 [/] [/] [] close Connection=keep-alive {}");
}

static void takes_odd_targets(void **state) {
    (void)state;
    expect_message("GET http://host:8000/a/b?q HTTP/1.1\r\nHost: x\r\n\r\n",
                   "0 0 [http://host:8000/a/b?q] [/a/b] [q] keep Host=x {}");
    expect_message("GET http://host HTTP/1.1\r\nHost: x\r\n\r\n",
                   "0 0 [http://host] [/] [] keep Host=x {}");
    expect_message("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "3 0 [*] [*] [] keep Host=x {}");
    expect_message("GET //a/../%zz?? HTTP/1.1\r\nHost: x\r\n\r\n",
                   "0 0 [//a/../%zz??] [//a/../%zz] [?] keep Host=x {}");
    expect_message("PUT /? HTTP/1.1\r\nHost: x\r\n\r\n", "4 0 [/?] [/] [] keep Host=x {}");
}

static void ignores_an_offered_upgrade(void **state) {
    (void)state;
    expect_message("POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                   "Upgrade: h2c\r\nContent-Length: 2\r\n\r\nab",
                   "2 0 [/] [/] [] keep Host=x Connection=Upgrade, HTTP2-Settings Upgrade=h2c "
                   "Content-Length=2 {ab}");
}

/* The strictness table of the survey of HTTP parsers: each of these was let through by some. */
static void rejects_two_body_lengths(void **state) {
    (void)state;
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
                 "\r\n0\r\n\r\n", "both Content-Length and Transfer-Encoding");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n"
                 "\r\n0\r\n\r\n", "both Content-Length and Transfer-Encoding");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
                 "more than one Content-Length");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
                 "more than one Content-Length");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "more than one Transfer-Encoding");
}

static void rejects_lengths_that_are_not_numbers(void **state) {
    (void)state;
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
                 "Content-Length \"+5\" is not a number");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc",
                 "Content-Length \"3, 3\" is not a number");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc", "not a number");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nabc", "not a number");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nabc", "is empty");
}

static void rejects_blanks_around_names(void **state) {
    (void)state;
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
                 "\"Content-Length \" has a blank before its colon");
    expect_fault("POST / HTTP/1.1\r\nHost: x\r\nContent-Length\t: 5\r\n\r\nhello", "blank before");
    expect_fault("GET / HTTP/1.1\r\n Host: x\r\n\r\n", "continuation line");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n Content-Length: 5\r\n\r\n",
                 "continuation line");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n", "continuation line");
    expect_fault(" GET / HTTP/1.1\r\nHost: x\r\n\r\n", "first line begins with a blank");
}

static void rejects_bare_line_ends_and_nul(void **state) {
    (void)state;
    expect_fault("GET / HTTP/1.1\nHost: x\n\n", "bare line feed");
    expect_fault("GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "bare line feed");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\n\n", "bare line feed");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n",
                 "bare carriage return");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\r\n\r\n", "bare carriage return");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", "NUL");
    expect_fault("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", "NUL");
}

static void wants_one_host(void **state) {
    (void)state;
    expect_fault("GET / HTTP/1.1\r\n\r\n", "no Host header");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", "more than one Host");
    expect_fault("GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", "more than one Host");
}

static void rejects_bad_first_lines(void **state) {
    (void)state;
    expect_fault("GET\r\nHost: x\r\n\r\n", "is not METHOD TARGET VERSION");
    expect_fault("GET /\r\n\r\n", "is not METHOD TARGET VERSION");
    expect_fault("GET  HTTP/1.1\r\nHost: x\r\n\r\n", "target \"\" is empty");
    expect_fault("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "holds a blank");
    expect_fault("GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", "above 126");
    expect_fault("GET /#f HTTP/1.1\r\nHost: x\r\n\r\n", "holds a '#'");
    expect_fault("G(T / HTTP/1.1\r\nHost: x\r\n\r\n", "method \"G(T\"");
    expect_fault("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "does not parse");
    expect_fault("GET / HTTP/1.2\r\nHost: x\r\n\r\n", "version \"HTTP/1.2\"");
    expect_fault("GET / HTTP/11\r\nHost: x\r\n\r\n", "version \"HTTP/11\"");
    expect_fault("GET / http/1.1\r\nHost: x\r\n\r\n", "version \"http/1.1\"");
    expect_fault("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2");
    expect_fault("\x16\x03\x01\x02\r\n\r\n", "TLS");
}

static void rejects_bad_header_lines(void **state) {
    (void)state;
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n", "\"nocolon\" has no colon");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\n: v\r\n\r\n", "name \"\" is empty");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA B: v\r\n\r\n", "name \"A B\"");
    expect_fault("GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n", "does not parse");
    const char *gzip = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    expect_fault_in(false, gzip, strlen(gzip), ST_UNSUPPORTED,
                    "\"gzip, chunked\" is not supported");
    expect_fault("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0");
}

static void knows_which_bytes_names_may_have(void **state) {
    (void)state;
    static const char ALLOWED[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int c = 1; c < 256; c++) {
        char request[] = "GET / HTTP/1.1\r\nHost: x\r\nA?B: c\r\n\r\n";
        *strchr(request, '?') = (char)c;
        if (c == ':')
            continue;
        const struct outcome got = run(false, LIMITS, request, strlen(request), 5);
        assert_int_equal(got.event, strchr(ALLOWED, c) ? HTTP_COMPLETE : HTTP_FAILED);
    }
}

static void rejects_bad_chunks(void **state) {
    (void)state;
#define CHUNKED "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    expect_fault(CHUNKED "\r\n", "hexadecimal size");
    expect_fault(CHUNKED "-1\r\n", "hexadecimal size");
    expect_fault(CHUNKED "5 \r\nhello\r\n0\r\n\r\n", "neither CR nor ';'");
    expect_fault(CHUNKED "5\nhello\r\n0\r\n\r\n", "neither CR nor ';'");
    expect_fault(CHUNKED "5\r\nhello!\r\n0\r\n\r\n", "longer than its size");
    expect_fault(CHUNKED "5;a\nb\r\nhello\r\n", "bare line feed");
    expect_fault(CHUNKED "5\rX", "bare carriage return");
    expect_fault(CHUNKED "0\r\nA: b\n\r\n", "bare line feed");
    expect_fault(CHUNKED "0\r\n b\r\n\r\n", "continuation line");
    expect_fault(CHUNKED "00000000000000001\r\n", "16 digits");
}

static void limits_the_body(void **state) {
    (void)state;
    const struct http_limits small = {.max_header_bytes = 1024, .max_body_bytes = 4};
    const char *length = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
    struct outcome got = parse_limited(false, small, length, strlen(length));
    assert_int_equal(got.event, HTTP_FAILED); /* before any byte of the body */
    assert_int_equal(got.status, ST_TOO_LARGE);
    const char *chunks = CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    got = parse_limited(false, small, chunks, strlen(chunks));
    assert_int_equal(got.status, ST_TOO_LARGE);
    /* A chunk is refused at its announcement, whether or not its bytes ever come. */
    const char *announced = CHUNKED "3\r\nabc\r\n2\r\n";
    got = parse_limited(false, small, announced, strlen(announced));
    assert_int_equal(got.event, HTTP_FAILED);
    assert_int_equal(got.status, ST_TOO_LARGE);
    const char *endless = CHUNKED "ffffffffffffffff\r\nabc";
    got = parse_limited(false, small, endless, strlen(endless));
    assert_int_equal(got.status, ST_TOO_LARGE);
    const char *exact = CHUNKED "3\r\nabc\r\n1\r\n";
    assert_int_equal(parse_limited(false, small, exact, strlen(exact)).event, HTTP_NEED_MORE);
    const char *huge = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n";
    got = parse_limited(false, small, huge, strlen(huge));
    assert_int_equal(got.status, ST_TOO_LARGE);
    const char *fits = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd";
    assert_int_equal(parse_limited(false, small, fits, strlen(fits)).event, HTTP_COMPLETE);
}

/* So that an allocation that cannot be gives NULL under the sanitizers too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static void says_when_memory_is_out(void **state) {
    (void)state;
    const struct http_limits none = {.max_header_bytes = 1024, .max_body_bytes = UINT64_MAX};
    const char *request = "POST / HTTP/1.1\r\nHost: x\r\n"
                          "Content-Length: 4611686018427387904\r\n\r\n";
    const struct outcome got = run(false, none, request, strlen(request), strlen(request));
    assert_int_equal(got.event, HTTP_FAILED);
    assert_int_equal(got.status, ST_NO_MEMORY);
    assert_string_equal(got.text, "no memory for 4611686018427387904 bytes of an HTTP message");
}

static void limits_the_header(void **state) {
    (void)state;
    const char *request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct http_limits limits = {.max_header_bytes = (uint32_t)strlen(request)};
    assert_int_equal(parse_limited(false, limits, request, strlen(request)).event, HTTP_COMPLETE);
    limits.max_header_bytes--;
    const struct outcome got = parse_limited(false, limits, request, strlen(request));
    assert_int_equal(got.status, ST_HEADER_TOO_LARGE);
    struct buf many;
    buf_init(&many);
    buf_text(&many, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 1; i < HTTP_MAX_HEADERS; i++)
        buf_text(&many, "A: b\r\n");
    const size_t allowed = many.size;
    buf_text(&many, "\r\n");
    assert_int_equal(run(false, LIMITS, many.data, many.size, many.size).event, HTTP_COMPLETE);
    many.size = allowed;
    buf_text(&many, "A: b\r\n\r\n");
    assert_int_equal(run(false, LIMITS, many.data, many.size, many.size).status,
                     ST_HEADER_TOO_LARGE);
    buf_done(&many);
}

static void limits_chunk_extensions(void **state) {
    (void)state;
    struct buf request;
    buf_init(&request);
    buf_text(&request, CHUNKED);
    for (int i = 0; i < 300; i++)
        buf_text(&request, "1;0123456789012345678901234567890123456789012345678901234567\r\na\r\n");
    buf_text(&request, "0\r\n\r\n");
    const struct outcome got = run(false, LIMITS, request.data, request.size, request.size);
    assert_int_equal(got.event, HTTP_FAILED);
    assert_non_null(strstr(got.text, "larger than 16384"));
    buf_done(&request);
}

static void leaves_pipelined_bytes_to_the_caller(void **state) {
    (void)state;
    const char *two = "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n";
    struct http_parser *parser = http_parser_create(false, LIMITS);
    size_t used = 0, again = 0;
    assert_true(http_parser_is_idle(parser));
    assert_int_equal(http_parser_feed(parser, two, strlen(two), &used), HTTP_COMPLETE);
    assert_true(view_is(http_parser_message(parser)->path, "/a"));
    assert_int_equal(http_parser_feed(parser, two + used, strlen(two) - used, &again),
                     HTTP_COMPLETE);
    assert_int_equal(again, 0);
    http_parser_next(parser);
    assert_true(http_parser_is_idle(parser));
    assert_int_equal(http_parser_feed(parser, two + used, 3, &again), HTTP_NEED_MORE);
    assert_false(http_parser_is_idle(parser));
    assert_int_equal(http_parser_feed(parser, two + used + 3, strlen(two) - used - 3, &again),
                     HTTP_COMPLETE);
    assert_true(view_is(http_parser_message(parser)->path, "/b"));
    http_parser_free(parser);
}

static void keeps_its_memory_between_small_messages(void **state) {
    (void)state;
    struct http_parser *parser = http_parser_create(false, LIMITS);
    const char *request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(feed_piece(parser, request, strlen(request)), HTTP_COMPLETE);
        const char *body = http_parser_message(parser)->body.data;
        if (!first)
            first = body;
        assert_ptr_equal(body, first);
        http_parser_next(parser);
    }
    http_parser_free(parser);
}

static void gives_the_body_away(void **state) {
    (void)state;
    struct http_parser *parser = http_parser_create(false, LIMITS);
    const char *request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
    assert_int_equal(feed_piece(parser, request, strlen(request)), HTTP_COMPLETE);
    const struct view body = http_parser_message(parser)->body;
    char *taken = http_parser_take_body(parser);
    assert_ptr_equal(taken + HTTP_BODY_HEADROOM, body.data);
    memset(taken, 'x', HTTP_BODY_HEADROOM); /* the taker's, too */
    assert_null(http_parser_take_body(parser));
    http_parser_next(parser);
    assert_int_equal(feed_piece(parser, request, strlen(request)), HTTP_COMPLETE);
    assert_true(view_is(body, "body"));
    http_parser_free(parser);
    free(taken);
}

static void expect_response(const char *response, const char *expected) {
    const struct outcome got = parse_limited(true, LIMITS, response, strlen(response));
    if (got.event == HTTP_FAILED)
        print_message("%s\n", got.text);
    assert_int_equal(got.event, HTTP_COMPLETE);
    assert_string_equal(got.text, expected);
}

static void reads_responses(void **state) {
    (void)state;
    expect_response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                    "3 200 [] [] [] keep Content-Length=2 {hi}");
    expect_response("HTTP/1.1 503\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
                    "3 503 [] [] [] keep Transfer-Encoding=chunked {hi}");
    expect_response("HTTP/1.1 204 No Content\r\n\r\n", "3 204 [] [] [] keep {}");
    expect_response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                    "3 200 [] [] [] keep Content-Length=2 {hi}");
    expect_response("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                    "3 200 [] [] [] close Content-Length=2 {hi}");
    expect_response_fault("HTTP/1.1 abc\r\n\r\n", "does not parse");
    expect_response_fault("HTTP/2.0 200 OK\r\n\r\n", "HTTP");
}

static void ends_a_response_without_length_at_end_of_input(void **state) {
    (void)state;
    struct http_parser *parser = http_parser_create(true, LIMITS);
    const char *response = "HTTP/1.1 200 OK\r\n\r\nuntil the end";
    assert_int_equal(feed_piece(parser, response, strlen(response)), HTTP_NEED_MORE);
    assert_int_equal(http_parser_eof(parser), HTTP_COMPLETE);
    assert_true(view_is(http_parser_message(parser)->body, "until the end"));
    assert_false(http_parser_message(parser)->keep_alive);
    http_parser_free(parser);
}

static void says_where_the_input_ended_too_early(void **state) {
    (void)state;
    const char *const inputs[] = {"", "GET / HT",
                                  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbod"};
    const char *const sentences[] = {"before a message", "inside a header",
                                     "inside a body, after 3 bytes"};
    for (int i = 0; i < 3; i++) {
        struct http_parser *parser = http_parser_create(false, LIMITS);
        struct err err;
        feed_piece(parser, inputs[i], strlen(inputs[i]));
        assert_int_equal(http_parser_eof(parser), HTTP_FAILED);
        assert_int_equal(http_parser_status(parser, &err), ST_INVALID);
        assert_non_null(strstr(err.text, sentences[i]));
        http_parser_free(parser);
    }
}

static void finds_headers_whatever_their_case(void **state) {
    (void)state;
    const char *request = "GET / HTTP/1.1\r\nHost: x\r\nX-ID:\r\n\r\n";
    struct http_parser *parser = http_parser_create(false, LIMITS);
    assert_int_equal(feed_piece(parser, request, strlen(request)), HTTP_COMPLETE);
    const struct http_message *message = http_parser_message(parser);
    assert_true(view_is(http_header(message, "hOST"), "x"));
    assert_non_null(http_header(message, "x-id").data);
    assert_int_equal(http_header(message, "x-id").size, 0);
    assert_null(http_header(message, "x-i").data);
    http_parser_free(parser);
}

static void writes_what_it_reads(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    http_write_request(&out, "POST", "/p?q", "h:1", "A: b\r\n", 2);
    buf_text(&out, "hi");
    struct outcome got = parse_limited(false, LIMITS, out.data, out.size);
    assert_string_equal(got.text, "2 0 [/p?q] [/p] [q] keep Host=h:1 Content-Length=2 A=b {hi}");
    buf_clear(&out);
    http_write_response(&out, 503, "application/json", 2, false, view_of("Retry-After: 1\r\n"));
    buf_text(&out, "{}");
    got = parse_limited(true, LIMITS, out.data, out.size);
    assert_string_equal(got.text, "3 503 [] [] [] close Content-Length=2 "
                                  "Content-Type=application/json Connection=close "
                                  "Retry-After=1 {{}}");
    buf_clear(&out);
    http_write_response(&out, 200, NULL, 0, true, (struct view){0});
    got = parse_limited(true, LIMITS, out.data, out.size);
    assert_string_equal(got.text, "3 200 [] [] [] keep Content-Length=0 {}");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_get),
        cmocka_unit_test(reads_a_post_with_length),
        cmocka_unit_test(reads_a_chunked_body),
        cmocka_unit_test(passes_over_blank_lines_before_a_request),
        cmocka_unit_test(notices_expect_continue),
        cmocka_unit_test(tells_when_headers_are_complete),
        cmocka_unit_test(ends_connections_where_http_says_so),
        cmocka_unit_test(takes_odd_targets),
        cmocka_unit_test(ignores_an_offered_upgrade),
        cmocka_unit_test(rejects_two_body_lengths),
        cmocka_unit_test(rejects_lengths_that_are_not_numbers),
        cmocka_unit_test(rejects_blanks_around_names),
        cmocka_unit_test(rejects_bare_line_ends_and_nul),
        cmocka_unit_test(wants_one_host),
        cmocka_unit_test(rejects_bad_first_lines),
        cmocka_unit_test(rejects_bad_header_lines),
        cmocka_unit_test(knows_which_bytes_names_may_have),
        cmocka_unit_test(rejects_bad_chunks),
        cmocka_unit_test(limits_the_body),
        cmocka_unit_test(says_when_memory_is_out),
        cmocka_unit_test(limits_the_header),
        cmocka_unit_test(limits_chunk_extensions),
        cmocka_unit_test(leaves_pipelined_bytes_to_the_caller),
        cmocka_unit_test(keeps_its_memory_between_small_messages),
        cmocka_unit_test(gives_the_body_away),
        cmocka_unit_test(reads_responses),
        cmocka_unit_test(ends_a_response_without_length_at_end_of_input),
        cmocka_unit_test(says_where_the_input_ended_too_early),
        cmocka_unit_test(finds_headers_whatever_their_case),
        cmocka_unit_test(writes_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

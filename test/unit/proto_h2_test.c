/* HTTP/2 sessions: a client's and a server's, wired to each other in memory, and frames by hand. */
#include "proto/h2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct h2_limits LIMITS = {.streams = 100,
                                        .header_bytes = 2000,
                                        .stream_window = 100000,
                                        .connection_window = 1000000,
                                        .frame_bytes = 16384,
                                        .resets_per_second = 50,
                                        .controls_per_second = 50};

/* What one end saw. */
struct end {
    struct h2 *session;
    struct h2_stream *last;
    char path[64], status[16], grpc_status[16];
    struct buf data;
    unsigned opened, headers, trailers, ended, closed, sent, unsent, too_large;
    uint32_t last_error;
    bool holds;          /* does not consume */
    bool echoes;         /* answers each whole request with its bytes */
    struct view piece;
    struct h2_message message;
};

static bool on_open(void *ctx, struct h2_stream *stream) {
    struct end *end = ctx;
    end->opened++;
    end->last = stream;
    stream->ctx = end;
    return true;
}

static void keep(char *to, size_t size, struct view value) {
    const size_t part = value.size < size - 1 ? value.size : size - 1;
    memcpy(to, value.data, part);
    to[part] = '\0';
}

static void on_header(void *ctx, struct h2_stream *stream, struct view name, struct view value) {
    struct end *end = ctx;
    (void)stream;
    if (view_is(name, ":path"))
        keep(end->path, sizeof end->path, value);
    else if (view_is(name, ":status"))
        keep(end->status, sizeof end->status, value);
    else if (view_is(name, "grpc-status"))
        keep(end->grpc_status, sizeof end->grpc_status, value);
}

static void on_headers(void *ctx, struct h2_stream *stream, bool is_trailer, bool is_too_large) {
    struct end *end = ctx;
    (void)stream;
    end->headers += !is_trailer;
    end->trailers += is_trailer;
    end->too_large += is_too_large;
}

static void on_data(void *ctx, struct h2_stream *stream, const char *bytes, size_t size) {
    struct end *end = ctx;
    buf_append(&end->data, bytes, size);
    if (!end->holds)
        h2_consume(stream, size);
}

static void answer(struct end *end, struct h2_stream *stream) {
    const struct h2_header headers[] = {{view_of(":status"), view_of("200")}};
    const struct h2_header trailers[] = {{view_of("grpc-status"), view_of("7")}};
    assert_int_equal(h2_respond(stream, headers, 1, false), ST_OK);
    end->piece = buf_view(&end->data);
    end->message = (struct h2_message){.pieces = &end->piece, .count = 1};
    h2_send(stream, &end->message);
    assert_true(h2_finish(stream, trailers, 1));
}

static void on_end(void *ctx, struct h2_stream *stream) {
    struct end *end = ctx;
    end->ended++;
    if (end->echoes)
        answer(end, stream);
}

static void on_sent(void *ctx, struct h2_stream *stream, struct h2_message *message) {
    (void)stream;
    (void)message;
    ((struct end *)ctx)->sent++;
}

static void on_unsent(void *ctx, struct h2_stream *stream, struct h2_message *message) {
    (void)stream;
    (void)message;
    ((struct end *)ctx)->unsent++;
}

static void on_close(void *ctx, struct h2_stream *stream, uint32_t error_code) {
    struct end *end = ctx;
    (void)stream;
    end->closed++;
    end->last_error = error_code;
}

static const struct h2_events EVENTS = {.on_open = on_open,
                                        .on_header = on_header,
                                        .on_headers = on_headers,
                                        .on_data = on_data,
                                        .on_end = on_end,
                                        .on_sent = on_sent,
                                        .on_unsent = on_unsent,
                                        .on_close = on_close};

struct pair {
    struct end client, server;
    uint64_t now_ns;
};

static void pair_init(struct pair *pair) {
    *pair = (struct pair){.now_ns = 1000000000};
    pair->client.session = h2_create(true, &LIMITS, &EVENTS, &pair->client);
    pair->server.session = h2_create(false, &LIMITS, &EVENTS, &pair->server);
    assert_non_null(pair->client.session);
    assert_non_null(pair->server.session);
}

static void pair_done(struct pair *pair) {
    h2_free(pair->client.session);
    h2_free(pair->server.session);
    buf_done(&pair->client.data);
    buf_done(&pair->server.data);
}

/* One end's output to the other; the number of bytes. */
static size_t carry(struct end *from, struct end *to, uint64_t now_ns) {
    struct buf out;
    struct err err;
    buf_init(&out);
    assert_int_equal(h2_output(from->session, &out, 1 << 20), ST_OK);
    const size_t size = out.size;
    if (size)
        assert_int_equal(h2_input(to->session, out.data, size, now_ns, &err), ST_OK);
    buf_done(&out);
    return size;
}

static void settle(struct pair *pair) {
    while (carry(&pair->client, &pair->server, pair->now_ns) +
           carry(&pair->server, &pair->client, pair->now_ns) > 0)
        pair->now_ns += 1000000;
}

static struct h2_stream *request(struct pair *pair, bool is_end) {
    const struct h2_header headers[] = {{view_of(":method"), view_of("POST")},
                                        {view_of(":scheme"), view_of("http")},
                                        {view_of(":path"), view_of("/a/b")},
                                        {view_of(":authority"), view_of("x")}};
    struct h2_stream *stream =
        h2_request(pair->client.session, headers, 4, is_end, &pair->client);
    assert_non_null(stream);
    return stream;
}

static void a_request_is_echoed_with_trailers(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair.server.echoes = true;
    struct h2_stream *stream = request(&pair, false);
    const struct view pieces[] = {{"hello ", 6}, {"", 0}, {"world", 5}};
    struct h2_message message = {.pieces = pieces, .count = 3};
    h2_send(stream, &message);
    assert_true(h2_finish(stream, NULL, 0));
    settle(&pair);
    assert_string_equal(pair.server.path, "/a/b");
    assert_string_equal(pair.client.status, "200");
    assert_string_equal(pair.client.grpc_status, "7");
    assert_true(view_is(buf_view(&pair.client.data), "hello world"));
    assert_int_equal(pair.client.sent, 1);
    assert_int_equal(pair.server.closed, 1);
    assert_int_equal(pair.client.closed, 1);
    assert_int_equal(pair.client.trailers, 1);
    assert_int_equal(h2_stream_count(pair.server.session), 0);
    pair_done(&pair);
}

static void a_large_body_passes_both_windows(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair.server.echoes = true;
    const size_t size = 3000000;
    char *body = malloc(size);
    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i * 7 >> 3);
    struct h2_stream *stream = request(&pair, false);
    const struct view piece = {body, size};
    struct h2_message message = {.pieces = &piece, .count = 1};
    h2_send(stream, &message);
    assert_true(h2_finish(stream, NULL, 0));
    settle(&pair);
    assert_int_equal(pair.client.data.size, size);
    assert_memory_equal(pair.client.data.data, body, size);
    free(body);
    pair_done(&pair);
}

static void what_is_not_consumed_stops_the_sender(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    settle(&pair); /* the client knows the window */
    pair.server.holds = true;
    char *body = calloc(1, 1000000);
    assert_non_null(body);
    struct h2_stream *stream = request(&pair, false);
    const struct view piece = {body, 1000000};
    struct h2_message message = {.pieces = &piece, .count = 1};
    h2_send(stream, &message);
    settle(&pair);
    assert_int_equal(pair.server.data.size, LIMITS.stream_window);
    assert_int_equal(pair.client.sent, 0);
    h2_consume(pair.server.last, LIMITS.stream_window);
    settle(&pair);
    assert_int_equal(pair.server.data.size, 2 * LIMITS.stream_window);
    /* Another stream of the same connection is not held up. */
    pair.server.holds = false;
    const struct view other = {"other", 5};
    struct h2_message second = {.pieces = &other, .count = 1};
    stream = request(&pair, false);
    h2_send(stream, &second);
    settle(&pair);
    assert_int_equal(pair.server.data.size, 2 * LIMITS.stream_window + 5);
    pair_done(&pair);
    free(body);
}

static void output_stops_near_its_limit_and_goes_on(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    settle(&pair);
    char body[60000] = {0};
    struct h2_stream *stream = request(&pair, false);
    const struct view piece = {body, sizeof body};
    struct h2_message message = {.pieces = &piece, .count = 1};
    h2_send(stream, &message);
    struct buf out;
    buf_init(&out);
    size_t total = 0;
    for (int i = 0; i < 20 && h2_wants_output(pair.client.session); i++) {
        buf_clear(&out);
        assert_int_equal(h2_output(pair.client.session, &out, 20000), ST_OK);
        assert_true(out.size < 20000 + 16384 + 9);
        total += out.size;
    }
    assert_true(total > sizeof body && total < sizeof body + 500);
    assert_int_equal(pair.client.sent, 1);
    buf_done(&out);
    pair_done(&pair);
}

static void a_reset_tells_what_was_not_sent(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    struct h2_stream *stream = request(&pair, true);
    settle(&pair);
    (void)stream;
    pair.server.holds = true;
    const struct h2_header headers[] = {{view_of(":status"), view_of("200")}};
    struct h2_stream *served = pair.server.last;
    assert_int_equal(h2_respond(served, headers, 1, false), ST_OK);
    char body[200000] = {0}; /* more than the client's window */
    const struct view piece = {body, sizeof body};
    struct h2_message message = {.pieces = &piece, .count = 1};
    pair.client.holds = true;
    h2_send(served, &message);
    settle(&pair);
    assert_int_equal(pair.server.sent, 0);
    h2_reset(served, H2_CANCEL);
    settle(&pair);
    assert_int_equal(pair.server.unsent, 1);
    assert_int_equal(pair.client.last_error, H2_CANCEL);
    assert_int_equal(pair.server.closed, 1);
    pair_done(&pair);
}

static void an_answer_that_ends_early_arrives_before_the_reset(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    (void)request(&pair, false); /* and the client has more to say */
    settle(&pair);
    const struct h2_header headers[] = {{view_of(":status"), view_of("200")},
                                        {view_of("grpc-status"), view_of("8")}};
    h2_end_early(pair.server.last);
    assert_int_equal(h2_respond(pair.server.last, headers, 2, true), ST_OK);
    settle(&pair);
    assert_string_equal(pair.client.grpc_status, "8");
    assert_int_equal(pair.client.ended, 1);
    assert_int_equal(pair.client.closed, 1);
    assert_int_equal(pair.client.last_error, H2_NO_ERROR);
    assert_int_equal(pair.server.closed, 1);
    pair_done(&pair);
}

static void an_end_that_is_freed_tells_of_every_open_stream(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    for (int i = 0; i < 5; i++)
        (void)request(&pair, false);
    settle(&pair);
    assert_int_equal(pair.server.opened, 5);
    h2_free(pair.server.session);
    pair.server.session = NULL;
    assert_int_equal(pair.server.closed, 5);
    pair_done(&pair);
}

static void a_header_list_beyond_the_limit_is_told(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    char value[1500];
    memset(value, 'v', sizeof value);
    const struct h2_header headers[] = {{view_of(":method"), view_of("POST")},
                                        {view_of(":scheme"), view_of("http")},
                                        {view_of(":path"), view_of("/a/b")},
                                        {view_of(":authority"), view_of("x")},
                                        {view_of("x"), {value, sizeof value}},
                                        {view_of("y"), {value, sizeof value}}};
    assert_non_null(h2_request(pair.client.session, headers, 6, true, &pair.client));
    settle(&pair);
    assert_int_equal(pair.server.too_large, 1);
    assert_int_equal(pair.server.ended, 1);
    pair_done(&pair);
}

/* ---- floods ---- */

static enum status feed(struct pair *pair, const void *bytes, size_t size) {
    struct err err;
    return h2_input(pair->server.session, bytes, size, pair->now_ns, &err);
}

static void begin_by_hand(struct pair *pair) {
    static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    pair_init(pair);
    assert_int_equal(feed(pair, PREFACE, sizeof PREFACE), ST_OK); /* and the 0 after it */
}

/* GOAWAY with ENHANCE_YOUR_CALM is in what the server says. */
static void expect_your_calm(struct pair *pair) {
    struct buf out;
    buf_init(&out);
    assert_int_equal(h2_output(pair->server.session, &out, 1 << 20), ST_OK);
    bool is_found = false;
    for (size_t i = 0; i + 17 <= out.size; i++)
        is_found |= memcmp(out.data + i, "\0\0\10\7\0\0\0\0\0", 9) == 0 && out.data[i + 16] == 11;
    assert_true(is_found);
    assert_true(h2_is_over(pair->server.session));
    buf_done(&out);
}

static void pings_without_end_are_met_with_your_calm(void **state) {
    (void)state;
    struct pair pair;
    begin_by_hand(&pair);
    static const char PING[17] = "\0\0\10\6\0\0\0\0\0abcdefgh";
    int count = 0;
    while (count < 1000 && feed(&pair, PING, sizeof PING) == ST_OK)
        count++;
    assert_in_range(count, 90, 110);
    expect_your_calm(&pair);
    pair_done(&pair);
}

static void pings_at_a_bearable_rate_are_answered(void **state) {
    (void)state;
    struct pair pair;
    begin_by_hand(&pair);
    static const char PING[17] = "\0\0\10\6\0\0\0\0\0abcdefgh";
    struct buf out;
    buf_init(&out);
    for (int i = 0; i < 1000; i++) {
        pair.now_ns += 25000000;
        assert_int_equal(feed(&pair, PING, sizeof PING), ST_OK);
        assert_int_equal(h2_output(pair.server.session, &out, 1 << 20), ST_OK);
    }
    assert_true(out.size >= 1000 * sizeof PING);
    buf_done(&out);
    pair_done(&pair);
}

static void settings_without_end_are_met_with_your_calm(void **state) {
    (void)state;
    struct pair pair;
    begin_by_hand(&pair);
    int count = 0;
    while (count < 1000 && feed(&pair, "\0\0\0\4\0\0\0\0\0", 9) == ST_OK)
        count++;
    assert_in_range(count, 90, 110);
    expect_your_calm(&pair);
    pair_done(&pair);
}

static void streams_reset_as_fast_as_opened_are_met_with_your_calm(void **state) {
    (void)state;
    struct pair pair;
    begin_by_hand(&pair);
    int count = 0;
    for (uint32_t id = 1; count < 1000; id += 2, count++) {
        /* HEADERS: POST http / x, from the static table but for the last; RST_STREAM, CANCEL */
        char frames[] = "\0\0\6\1\5\0\0\0\0\x83\x86\x84\1\1x"
                        "\0\0\4\3\0\0\0\0\0\0\0\0\10";
        frames[7] = frames[22] = (char)(id >> 8);
        frames[8] = frames[23] = (char)id;
        if (feed(&pair, frames, sizeof frames - 1) != ST_OK)
            break;
    }
    assert_in_range(count, 90, 110);
    assert_int_equal(pair.server.opened, pair.server.closed);
    expect_your_calm(&pair);
    pair_done(&pair);
}

static void headers_continued_without_end_end_the_connection(void **state) {
    (void)state;
    struct pair pair;
    begin_by_hand(&pair);
    enum status status = feed(&pair, "\0\0\1\1\0\0\0\0\1\x83", 10);
    int count = 0;
    for (; status == ST_OK && count < 1000; count++)
        status = feed(&pair, "\0\0\1\t\0\0\0\0\1\x86", 10);
    assert_true(count < 20);
    assert_int_not_equal(status, ST_OK);
    pair_done(&pair);
}

static void another_protocol_is_no_http2(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    struct err err;
    static const char GET[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_int_equal(h2_input(pair.server.session, GET, sizeof GET - 1, 1, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "preface"));
    pair_done(&pair);
}

static void a_drained_session_is_over_after_its_last_stream(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair);
    struct h2_stream *stream = request(&pair, false);
    settle(&pair);
    h2_shutdown_notice(pair.server.session);
    settle(&pair);
    assert_false(h2_is_over(pair.server.session));
    h2_goaway(pair.server.session, H2_NO_ERROR);
    settle(&pair);
    assert_false(h2_is_over(pair.server.session));
    pair.server.echoes = true;
    assert_true(h2_finish(stream, NULL, 0));
    settle(&pair);
    assert_string_equal(pair.client.grpc_status, "7");
    assert_true(h2_is_over(pair.server.session));
    pair_done(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_echoed_with_trailers),
        cmocka_unit_test(a_large_body_passes_both_windows),
        cmocka_unit_test(what_is_not_consumed_stops_the_sender),
        cmocka_unit_test(output_stops_near_its_limit_and_goes_on),
        cmocka_unit_test(a_reset_tells_what_was_not_sent),
        cmocka_unit_test(an_answer_that_ends_early_arrives_before_the_reset),
        cmocka_unit_test(an_end_that_is_freed_tells_of_every_open_stream),
        cmocka_unit_test(a_header_list_beyond_the_limit_is_told),
        cmocka_unit_test(pings_without_end_are_met_with_your_calm),
        cmocka_unit_test(pings_at_a_bearable_rate_are_answered),
        cmocka_unit_test(settings_without_end_are_met_with_your_calm),
        cmocka_unit_test(streams_reset_as_fast_as_opened_are_met_with_your_calm),
        cmocka_unit_test(headers_continued_without_end_end_the_connection),
        cmocka_unit_test(another_protocol_is_no_http2),
        cmocka_unit_test(a_drained_session_is_over_after_its_last_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

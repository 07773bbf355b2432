/* Connections over loopback: client and server on one loop, so that every run is alike. */
#include "base/buf.h"
#include "base/clock.h"
#include "net/conn.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

struct peer { /* one end of a connection, on the heap until on_closed */
    struct world *world;
    struct conn *conn;
    struct buf received;
    int ends, drains;
    bool is_echo;
    size_t expected; /* closes when so many bytes are there; 0: never */
};

struct world {
    struct loop *loop;
    struct listener *listener;
    struct peer *last_accepted;
    int accepted, closed, open_peers, ends, drains;
    int clients_left;
    void (*when_connected)(struct peer *peer);
    void (*when_accepted)(struct peer *peer);
    enum status connect_status;
    char detail[400];
    struct loop_timer *timer;
};

static struct peer *peer_new(struct world *world, struct conn *conn) {
    struct peer *peer = calloc(1, sizeof *peer);
    peer->world = world;
    peer->conn = conn;
    buf_init(&peer->received);
    world->open_peers++;
    return peer;
}

static void on_closed(void *ctx) {
    struct peer *peer = ctx;
    struct world *world = peer->world;
    buf_done(&peer->received);
    free(peer);
    world->closed++;
    if (--world->open_peers == 0 && world->clients_left == 0) {
        listener_close(world->listener); /* the loop runs out of things to do */
        world->listener = NULL;
    }
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct peer *peer = ctx;
    if (peer->is_echo) {
        (void)conn_write(conn, (struct view){.data = bytes, .size = size / 2},
                         (struct view){.data = bytes + size / 2, .size = size - size / 2});
        return;
    }
    buf_append(&peer->received, bytes, size);
    if (peer->expected > 0 && peer->received.size >= peer->expected)
        conn_close(conn);
}

static void on_end(struct conn *conn, void *ctx) {
    struct peer *peer = ctx;
    peer->ends++;
    peer->world->ends++;
    conn_close(conn);
}

static void on_drained(struct conn *conn, void *ctx, uint64_t at_ns) {
    struct peer *peer = ctx;
    assert_true(at_ns > 0 && at_ns <= mono_ns());
    assert_true(conn_is_drained(conn));
    assert_int_equal(conn_unsent_bytes(conn), 0);
    peer->drains++;
    peer->world->drains++;
}

static const struct conn_events EVENTS = {
    .on_data = on_data, .on_end = on_end, .on_drained = on_drained, .on_closed = on_closed};

static void on_accept(void *ctx, struct conn *conn) {
    struct world *world = ctx;
    world->accepted++;
    world->last_accepted = peer_new(world, conn);
    world->last_accepted->is_echo = true;
    conn_start(conn, &EVENTS, world->last_accepted);
    if (world->when_accepted)
        world->when_accepted(world->last_accepted);
}

static void on_connected(struct conn *conn, void *ctx, enum status status, const char *detail) {
    struct world *world = ctx;
    world->connect_status = status;
    strncpy(world->detail, detail, sizeof world->detail - 1);
    world->clients_left--;
    if (status != ST_OK) {
        conn_close(conn);
        if (world->listener)
            listener_close(world->listener);
        world->listener = NULL;
        return;
    }
    struct peer *peer = peer_new(world, conn);
    conn_start(conn, &EVENTS, peer);
    world->when_connected(peer);
}

static void world_open(struct world *world, const char *host) {
    struct err err = {0};
    assert_int_equal(loop_create(&world->loop, &err), ST_OK);
    if (listener_create(world->loop, host, 0, on_accept, world, &world->listener, &err) != ST_OK)
        fail_msg("%s", err.text);
    assert_true(listener_port(world->listener) > 0);
}

static void world_connect(struct world *world, const char *host) {
    struct conn *conn = NULL;
    struct err err;
    world->clients_left++;
    assert_int_equal(conn_connect(world->loop, host, listener_port(world->listener), on_connected,
                                  world, &conn, &err), ST_OK);
}

static char pattern(size_t i) { return (char)(i * 31 + i / 251); }

/* ENORMOUS is more than the kernel buffers for a connection. */
enum { LARGE = 5 * 1024 * 1024, ENORMOUS = 32 * 1024 * 1024 };

static void send_large(struct peer *peer) {
    char *bytes = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = pattern(i);
    peer->expected = LARGE;
    assert_false(conn_write(peer->conn, (struct view){.data = bytes, .size = 1000},
                            (struct view){.data = bytes + 1000, .size = LARGE - 1000}));
    assert_true(conn_unsent_bytes(peer->conn) > 0);
    memset(bytes, 0, LARGE); /* what was not sent yet has been copied */
    free(bytes);
}

static void check_large(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct peer *peer = ctx;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern(peer->received.size + i))
            fail_msg("byte %zu differs", peer->received.size + i);
    on_data(conn, ctx, bytes, size);
}
static const struct conn_events CHECKING = {
    .on_data = check_large, .on_end = on_end, .on_drained = on_drained, .on_closed = on_closed};

static void on_connected_checking(struct conn *conn, void *ctx, enum status status,
                                  const char *detail) {
    struct world *world = ctx;
    (void)detail;
    assert_int_equal(status, ST_OK);
    world->clients_left--;
    struct peer *peer = peer_new(world, conn);
    conn_start(conn, &CHECKING, peer);
    send_large(peer);
}

static void echoes_large_bodies_both_ways(void **state) {
    (void)state;
    struct world world = {.clients_left = 1};
    struct conn *conn = NULL;
    struct err err;
    world_open(&world, "127.0.0.1");
    assert_int_equal(conn_connect(world.loop, "127.0.0.1", listener_port(world.listener),
                                  on_connected_checking, &world, &conn, &err), ST_OK);
    loop_run(world.loop);
    assert_int_equal(world.closed, 2);
    assert_int_equal(world.ends, 1); /* the server heard of it, the closing client did not */
    assert_true(world.drains >= 1);
    loop_free(world.loop);
}

static void accepts_what_waits_before_it_closes(void **state) {
    (void)state;
    enum { COUNT = 5 };
    struct world world = {0};
    world_open(&world, "127.0.0.1");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(listener_port(world.listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int clients[COUNT];
    for (int i = 0; i < COUNT; i++) { /* the kernel completes these without us */
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(clients[i], (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(send(clients[i], "request", 7, 0), 7);
    }
    listener_accept_waiting(world.listener);
    assert_int_equal(world.accepted, COUNT);
    listener_close(world.listener);
    world.listener = NULL;
    world.clients_left = 1; /* the listener is not to be closed again */
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(shutdown(clients[i], SHUT_WR), 0);
    loop_run(world.loop);
    for (int i = 0; i < COUNT; i++) {
        char echo[8];
        assert_int_equal(recv(clients[i], echo, sizeof echo, MSG_WAITALL), 7);
        (void)close(clients[i]);
    }
    loop_free(world.loop);
}

static void send_small(struct peer *peer) {
    peer->expected = 6;
    assert_true(conn_write(peer->conn, view_of("head"), view_of("")));
    assert_true(conn_write(peer->conn, view_of(""), view_of("er")));
    assert_true(conn_write(peer->conn, view_of(""), view_of("")));
    assert_true(conn_is_drained(peer->conn));
}

static void serves_many_connections(void **state) {
    (void)state;
    enum { COUNT = 300 };
    struct world world = {.when_connected = send_small};
    world_open(&world, "localhost");
    for (int i = 0; i < COUNT; i++)
        world_connect(&world, "localhost"); /* ::1 is refused first where the name has it */
    loop_run(world.loop);
    assert_int_equal(world.accepted, COUNT);
    assert_int_equal(world.closed, 2 * COUNT);
    loop_free(world.loop);
}

static void serves_ipv6(void **state) {
    (void)state;
    struct world world = {.when_connected = send_small};
    const int probe = socket(AF_INET6, SOCK_STREAM, 0);
    const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
                                          .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const bool has_ipv6 = probe >= 0 && bind(probe, (const struct sockaddr *)&loopback,
                                             sizeof loopback) == 0;
    close(probe);
    if (!has_ipv6)
        skip();
    world_open(&world, "::1");
    world_connect(&world, "::1");
    loop_run(world.loop);
    assert_int_equal(world.closed, 2);
    loop_free(world.loop);
}

static void start_reading_again(void *ctx) {
    struct peer *peer = ctx;
    assert_true(conn_unsent_bytes(peer->world->last_accepted->conn) > 0);
    conn_resume_reading(peer->conn);
    loop_timer_close(peer->world->timer);
}
static void stop_reading(struct peer *peer) {
    peer->expected = ENORMOUS;
    conn_pause_reading(peer->conn);
    peer->world->timer = loop_timer_create(peer->world->loop, start_reading_again, peer);
    loop_timer_set(peer->world->timer, mono_ns() + 20000000);
}
static void push_enormous(struct peer *peer) {
    char *bytes = calloc(1, ENORMOUS);
    assert_false(conn_write(peer->conn, (struct view){.data = bytes, .size = ENORMOUS},
                            view_of("")));
    free(bytes);
}

static void queues_for_a_slow_reader(void **state) {
    (void)state;
    struct world world = {.when_connected = stop_reading, .when_accepted = push_enormous};
    world_open(&world, "127.0.0.1");
    world_connect(&world, "127.0.0.1");
    loop_run(world.loop);
    assert_int_equal(world.drains, 1);
    assert_int_equal(world.closed, 2);
    loop_free(world.loop);
}

/* A plain socket as the peer, for what no well-behaved client does. */
static int raw_client(const struct world *world) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(listener_port(world->listener)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}
static void reset(int fd) {
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void on_end_still_answers(struct conn *conn, void *ctx) {
    struct peer *peer = ctx;
    peer->world->ends++;
    assert_true(conn_can_write(conn));
    assert_true(conn_write(conn, view_of("answer"), view_of("")));
    conn_close(conn);
}
static const struct conn_events ANSWERING = {
    .on_data = on_data, .on_end = on_end_still_answers, .on_closed = on_closed};
static void on_accept_answering(void *ctx, struct conn *conn) {
    conn_start(conn, &ANSWERING, peer_new(ctx, conn));
}

static void answers_after_a_half_close(void **state) {
    (void)state;
    struct world world = {0};
    struct err err;
    char answer[16] = "";
    assert_int_equal(loop_create(&world.loop, &err), ST_OK);
    assert_int_equal(listener_create(world.loop, "127.0.0.1", 0, on_accept_answering, &world,
                                     &world.listener, &err), ST_OK);
    const int fd = raw_client(&world);
    assert_int_equal(write(fd, "question", 8), 8);
    shutdown(fd, SHUT_WR);
    loop_run(world.loop);
    assert_int_equal(world.ends, 1);
    assert_int_equal(recv(fd, answer, 6, MSG_WAITALL), 6);
    assert_string_equal(answer, "answer");
    close(fd);
    loop_free(world.loop);
}

static int raw_fd;
static void reset_it(void *ctx) {
    struct world *world = ctx;
    reset(raw_fd);
    loop_timer_close(world->timer);
}
static void push_and_pause(struct peer *peer) {
    push_enormous(peer);
    conn_pause_reading(peer->conn); /* the failed write alone must tell */
    peer->world->timer = loop_timer_create(peer->world->loop, reset_it, peer->world);
    loop_timer_set(peer->world->timer, mono_ns() + 5000000);
}

static void a_reset_in_the_middle_of_a_write_is_told_once(void **state) {
    (void)state;
    struct world world = {.when_accepted = push_and_pause};
    world_open(&world, "127.0.0.1");
    raw_fd = raw_client(&world);
    loop_run(world.loop);
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.drains, 0);
    assert_int_equal(world.closed, 1);
    loop_free(world.loop);
}

static void write_into_reset(void *ctx) {
    struct peer *peer = ctx;
    loop_timer_close(peer->world->timer);
    for (int i = 0; i < 3; i++)
        assert_true(conn_write(peer->conn, view_of("x"), view_of("y")));
    assert_int_equal(peer->ends, 0); /* told later, not from within conn_write */
}
static void reset_then_write(struct peer *peer) {
    conn_pause_reading(peer->conn);
    reset(raw_fd);
    peer->world->timer = loop_timer_create(peer->world->loop, write_into_reset, peer);
    loop_timer_set(peer->world->timer, mono_ns() + 5000000);
}

static void writing_to_a_peer_that_is_gone_does_not_kill(void **state) {
    (void)state;
    struct world world = {.when_accepted = reset_then_write};
    world_open(&world, "127.0.0.1");
    raw_fd = raw_client(&world);
    loop_run(world.loop);
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.closed, 1);
    loop_free(world.loop);
}

static void answer_and_finish(struct peer *peer) {
    char *bytes = malloc(LARGE);
    memset(bytes, 'a', LARGE);
    (void)conn_write(peer->conn, (struct view){.data = bytes, .size = LARGE}, view_of(""));
    free(bytes);
    conn_finish(peer->conn, 5000000000u);
    assert_false(conn_can_write(peer->conn));
}
static void collect_all(struct peer *peer) { /* sends what the server will never read as data */
    char *bytes = calloc(1, LARGE);
    (void)conn_write(peer->conn, (struct view){.data = bytes, .size = LARGE}, view_of(""));
    free(bytes);
}
static size_t collected;
static void on_end_collect(struct conn *conn, void *ctx) {
    struct peer *peer = ctx;
    collected = peer->received.size;
    conn_close(conn);
}
static const struct conn_events COLLECTING = {
    .on_data = on_data, .on_end = on_end_collect, .on_closed = on_closed};
static void on_connected_collecting(struct conn *conn, void *ctx, enum status status,
                                    const char *detail) {
    struct world *world = ctx;
    (void)detail;
    assert_int_equal(status, ST_OK);
    world->clients_left--;
    struct peer *peer = peer_new(world, conn);
    conn_start(conn, &COLLECTING, peer);
    collect_all(peer);
}

static void finishing_delivers_all_although_input_is_unread(void **state) {
    (void)state;
    struct world world = {.clients_left = 1, .when_accepted = answer_and_finish};
    struct conn *conn = NULL;
    struct err err;
    collected = 0;
    world_open(&world, "127.0.0.1");
    assert_int_equal(conn_connect(world.loop, "127.0.0.1", listener_port(world.listener),
                                  on_connected_collecting, &world, &conn, &err), ST_OK);
    loop_run(world.loop);
    assert_int_equal(collected, LARGE);
    assert_int_equal(world.ends, 0); /* the finishing side hears nothing but on_closed */
    assert_int_equal(world.closed, 2);
    loop_free(world.loop);
}

static void finish_soon(struct peer *peer) { conn_finish(peer->conn, 1000000); }

static void finishing_ends_although_the_peer_does_not(void **state) {
    (void)state;
    struct world world = {.when_accepted = finish_soon};
    world_open(&world, "127.0.0.1");
    const int fd = raw_client(&world);
    loop_run(world.loop);
    assert_int_equal(world.closed, 1);
    close(fd);
    loop_free(world.loop);
}

static char room_bytes[8];
static size_t room_calls;
static char *small_room(struct conn *conn, void *ctx, size_t *out_room) {
    (void)conn;
    (void)ctx;
    *out_room = sizeof room_bytes;
    return ++room_calls % 2 ? room_bytes : NULL; /* every other time the loop's own */
}
static void on_data_in_room(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    if (room_calls % 2) {
        assert_ptr_equal(bytes, room_bytes);
        assert_true(size <= sizeof room_bytes);
    }
    on_data(conn, ctx, bytes, size);
}
static const struct conn_events ROOMY = {.on_data = on_data_in_room, .on_end = on_end_collect,
                                         .read_room = small_room, .on_closed = on_closed};
static void on_accept_roomy(void *ctx, struct conn *conn) {
    conn_start(conn, &ROOMY, peer_new(ctx, conn));
}

static void reads_into_the_owners_memory(void **state) {
    (void)state;
    struct world world = {0};
    struct err err;
    collected = room_calls = 0;
    assert_int_equal(loop_create(&world.loop, &err), ST_OK);
    assert_int_equal(listener_create(world.loop, "127.0.0.1", 0, on_accept_roomy, &world,
                                     &world.listener, &err), ST_OK);
    const int fd = raw_client(&world);
    assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
    close(fd);
    loop_run(world.loop);
    assert_int_equal(collected, 16);
    loop_free(world.loop);
}

static void says_why_it_cannot_connect(void **state) {
    (void)state;
    struct world world = {0};
    world_open(&world, "127.0.0.1");
    const uint16_t port = listener_port(world.listener);
    listener_close(world.listener);
    world.listener = NULL;
    loop_run(world.loop);
    struct conn *conn = NULL;
    struct err err;
    assert_int_equal(conn_connect(world.loop, "localhost", port, on_connected, &world, &conn, &err),
                     ST_OK);
    loop_run(world.loop);
    assert_int_equal(world.connect_status, ST_IO);
    assert_non_null(strstr(world.detail, "connection refused"));
    assert_int_equal(conn_connect(world.loop, "no such host", 1, on_connected, &world, &conn, &err),
                     ST_IO);
    assert_non_null(strstr(err.text, "cannot resolve host no such host"));
    loop_free(world.loop);
}

static void a_connection_may_be_closed_before_it_is_there(void **state) {
    (void)state;
    struct world world = {.connect_status = ST_COUNT};
    struct conn *conn = NULL;
    struct err err;
    world_open(&world, "127.0.0.1");
    assert_int_equal(conn_connect(world.loop, "127.0.0.1", listener_port(world.listener),
                                  on_connected, &world, &conn, &err), ST_OK);
    conn_close(conn);
    listener_close(world.listener);
    loop_run(world.loop);
    assert_int_equal(world.connect_status, ST_COUNT); /* on_connected was not called */
    loop_free(world.loop);
}

static void names_the_remedy_for_a_port_in_use(void **state) {
    (void)state;
    struct world world = {0};
    struct listener *second = NULL;
    struct err err;
    world_open(&world, "127.0.0.1");
    assert_int_equal(listener_create(world.loop, "127.0.0.1", listener_port(world.listener),
                                     on_accept, &world, &second, &err), ST_IO);
    assert_non_null(strstr(err.text, "address already in use"));
    assert_non_null(strstr(err.text, "choose another port"));
    listener_close(world.listener);
    loop_run(world.loop);
    loop_free(world.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_large_bodies_both_ways),
        cmocka_unit_test(serves_many_connections),
        cmocka_unit_test(serves_ipv6),
        cmocka_unit_test(queues_for_a_slow_reader),
        cmocka_unit_test(answers_after_a_half_close),
        cmocka_unit_test(a_reset_in_the_middle_of_a_write_is_told_once),
        cmocka_unit_test(writing_to_a_peer_that_is_gone_does_not_kill),
        cmocka_unit_test(finishing_delivers_all_although_input_is_unread),
        cmocka_unit_test(finishing_ends_although_the_peer_does_not),
        cmocka_unit_test(reads_into_the_owners_memory),
        cmocka_unit_test(says_why_it_cannot_connect),
        cmocka_unit_test(a_connection_may_be_closed_before_it_is_there),
        cmocka_unit_test(names_the_remedy_for_a_port_in_use),
        cmocka_unit_test(accepts_what_waits_before_it_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

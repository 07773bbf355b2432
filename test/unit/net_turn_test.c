/* Turns of the loop: how much happens in one, in which order, and what is told of it. Clients are
 * plain sockets that have written before the loop runs, so that all are ready at once. */
#include "base/clock.h"
#include "net/conn.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

enum { CLIENTS = 40, ROUNDS = 3, READ_BYTES = 8192, READ_NS = 200000 };

struct served {
    struct world *world;
    struct conn *conn;
    char room[READ_BYTES];
    unsigned reads;
};

struct world {
    struct loop *loop;
    struct listener *listener;
    int sockets[CLIENTS];
    struct served served[CLIENTS];
    unsigned accepted, closed;
    unsigned accepted_in_turn, most_accepted; /* within one turn */
    uint64_t accept_turn_ns;
    unsigned reads_in_turn, most_reads;
    uint64_t read_turn_ns, first_read_turn_ns;
    unsigned reads, rounds_broken, readable_later;
    unsigned turns;
    uint64_t longest_ns, summed_ns, cpu_ns;
    bool is_reading; /* else they are closed as they come */
    bool stops;      /* the loop, when one was accepted */
};

static void spin(uint64_t ns) {
    const uint64_t until_ns = mono_ns() + ns;
    while (mono_ns() < until_ns) {
    }
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct served *served = ctx;
    struct world *world = served->world;
    const uint64_t turn_ns = loop_turn_ns(world->loop);
    (void)bytes;
    if (world->reads == 0) world->first_read_turn_ns = turn_ns;
    if (turn_ns != world->read_turn_ns) world->reads_in_turn = 0;
    world->read_turn_ns = turn_ns;
    if (++world->reads_in_turn > world->most_reads) world->most_reads = world->reads_in_turn;
    assert_int_equal(size, READ_BYTES);
    /* All stay readable: nobody may be ahead of another by more than one read. */
    for (unsigned i = 0; i < world->accepted; i++)
        if (world->served[i].reads < served->reads) world->rounds_broken++;
    if (served->reads == 0 && conn_readable_ns(conn) != world->first_read_turn_ns)
        world->readable_later++;
    world->reads++;
    spin(READ_NS);
    if (++served->reads == ROUNDS) conn_close(conn);
}

static char *read_room(struct conn *conn, void *ctx, size_t *out_room) {
    (void)conn;
    struct served *served = ctx;
    *out_room = READ_BYTES;
    return served->room;
}

static void on_closed(void *ctx) {
    struct served *served = ctx;
    struct world *world = served->world;
    if (++world->closed == CLIENTS) listener_close(world->listener);
}

static void on_accept(void *ctx, struct conn *conn) {
    static const struct conn_events EVENTS = {
        .on_data = on_data, .read_room = read_room, .on_closed = on_closed};
    struct world *world = ctx;
    if (loop_turn_ns(world->loop) != world->accept_turn_ns) world->accepted_in_turn = 0;
    world->accept_turn_ns = loop_turn_ns(world->loop);
    if (++world->accepted_in_turn > world->most_accepted)
        world->most_accepted = world->accepted_in_turn;
    if (world->stops) loop_stop(world->loop);
    struct served *served = &world->served[world->accepted++];
    *served = (struct served){.world = world, .conn = conn};
    conn_start(conn, &EVENTS, served);
    conn_pause_reading(conn);
    if (!world->is_reading) conn_close(conn);
    if (world->is_reading && world->accepted == CLIENTS)
        for (unsigned i = 0; i < CLIENTS; i++) conn_resume_reading(world->served[i].conn);
}

static void on_turn_over(void *ctx, uint64_t busy_ns, uint64_t cpu_ns) {
    struct world *world = ctx;
    world->cpu_ns += cpu_ns;
    world->turns++;
    world->summed_ns += busy_ns;
    if (busy_ns > world->longest_ns) world->longest_ns = busy_ns;
}

static struct world *world_with_clients(size_t bytes) {
    struct world *world = calloc(1, sizeof *world);
    struct err err = {.text = ""};
    assert_non_null(world);
    assert_int_equal(loop_create(&world->loop, &err), ST_OK);
    assert_int_equal(listener_create(world->loop, "127.0.0.1", 0, on_accept, world,
                                     &world->listener, &err), ST_OK);
    loop_on_turn_over(world->loop, on_turn_over, world);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(listener_port(world->listener)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char *data = calloc(1, bytes + 1);
    assert_non_null(data);
    for (unsigned i = 0; i < CLIENTS; i++) {
        world->sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(world->sockets[i], (const struct sockaddr *)&to, sizeof to), 0);
        if (bytes > 0) assert_int_equal(write(world->sockets[i], data, bytes), (ssize_t)bytes);
    }
    free(data);
    return world;
}

static void world_close(struct world *world) {
    for (unsigned i = 0; i < CLIENTS; i++) close(world->sockets[i]);
    loop_free(world->loop);
    free(world);
}

static void a_turn_accepts_no_more_than_its_share_and_the_next_goes_on(void **state) {
    (void)state;
    struct world *world = world_with_clients(0);
    loop_run(world->loop);
    assert_int_equal(world->accepted, CLIENTS);
    assert_int_equal(world->most_accepted, LOOP_ACCEPTS);
    world_close(world);
}

static void connections_left_for_the_next_turn_are_accepted_before_a_listener_closes(void **state) {
    (void)state;
    struct world *world = world_with_clients(0);
    world->stops = true; /* after one turn: the rest is left */
    loop_run(world->loop);
    world->stops = false;
    assert_in_range(world->accepted, 1, LOOP_ACCEPTS);
    listener_accept_waiting(world->listener);
    assert_int_equal(world->accepted, CLIENTS);
    loop_run(world->loop);
    assert_int_equal(world->closed, CLIENTS);
    world_close(world);
}

static void a_listener_may_close_with_connections_left(void **state) {
    (void)state;
    struct world *world = world_with_clients(0);
    world->stops = true;
    loop_run(world->loop);
    world->stops = false;
    const unsigned accepted = world->accepted;
    assert_in_range(accepted, 1, LOOP_ACCEPTS);
    listener_close(world->listener);
    loop_run(world->loop);
    assert_int_equal(world->accepted, accepted);
    assert_int_equal(world->closed, accepted);
    world_close(world);
}

/* 200 us a read and 500 us a turn: the third read of a turn is the last. */
static void reading_ends_with_the_share_and_everybody_is_read_before_anybody_again(void **state) {
    (void)state;
    struct world *world = world_with_clients((size_t)READ_BYTES * ROUNDS);
    world->is_reading = true;
    loop_run(world->loop);
    assert_int_equal(world->reads, CLIENTS * ROUNDS);
    assert_in_range(world->most_reads, 1, LOOP_SHARE_NS / READ_NS + 1);
    assert_int_equal(world->rounds_broken, 0);
    world_close(world);
}

static void bytes_that_were_put_off_were_readable_since_the_first_turn(void **state) {
    (void)state;
    struct world *world = world_with_clients((size_t)READ_BYTES * ROUNDS);
    world->is_reading = true;
    loop_run(world->loop);
    assert_true(world->read_turn_ns > world->first_read_turn_ns);
    assert_int_equal(world->readable_later, 0);
    world_close(world);
}

static void a_turn_s_time_is_told_without_the_waiting(void **state) {
    (void)state;
    struct world *world = world_with_clients((size_t)READ_BYTES * ROUNDS);
    world->is_reading = true;
    const uint64_t begin_ns = mono_ns();
    loop_run(world->loop);
    const uint64_t took_ns = mono_ns() - begin_ns;
    assert_true(world->turns >= CLIENTS * ROUNDS * READ_NS / (LOOP_SHARE_NS + READ_NS));
    assert_true(world->longest_ns >= READ_NS);
    assert_true(world->summed_ns >= (uint64_t)CLIENTS * ROUNDS * READ_NS);
    assert_true(world->summed_ns <= took_ns);
    assert_true(world->cpu_ns > 0 && world->cpu_ns <= took_ns);
    world_close(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_accepts_no_more_than_its_share_and_the_next_goes_on),
        cmocka_unit_test(connections_left_for_the_next_turn_are_accepted_before_a_listener_closes),
        cmocka_unit_test(a_listener_may_close_with_connections_left),
        cmocka_unit_test(reading_ends_with_the_share_and_everybody_is_read_before_anybody_again),
        cmocka_unit_test(bytes_that_were_put_off_were_readable_since_the_first_turn),
        cmocka_unit_test(a_turn_s_time_is_told_without_the_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

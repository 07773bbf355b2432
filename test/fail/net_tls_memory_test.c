/* Memory runs out somewhere in the life of a TLS connection, ours or OpenSSL's: both ends end, with
 * a sentence where there is somebody to tell, and nothing is left behind.
 *
 * A handshake makes thousands of allocations, so not each of them has its turn: STEP is a prime,
 * and the first ones, which are those of the contexts, all have theirs. */
#include "memory.h"

#include "../unit/net_certificates.h"

#include "base/clock.h"
#include "net/conn.h"
#include "net/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <uv.h>
/* after the above */
#include <cmocka.h>

enum { STEP = 23, HANDSHAKE_NS = 200000000 };

/* libuv ends the process when some of its own tables cannot grow: it always gets its memory. */
static void *uv_memory(void *old, size_t count, size_t size, bool is_zeroed) {
    const bool is_counted = memory_is_counted;
    memory_is_counted = false;
    void *memory = is_zeroed ? calloc(count, size) : realloc(old, size);
    memory_is_counted = is_counted;
    return memory;
}
static void *uv_malloc(size_t size) { return uv_memory(NULL, 1, size, false); }
static void *uv_realloc(void *old, size_t size) { return uv_memory(old, 1, size, false); }
static void *uv_calloc(size_t count, size_t size) { return uv_memory(NULL, count, size, true); }

static struct certificates all;
static const char *certificate, *key;

struct world {
    struct loop *loop;
    struct listener *listener;
    struct tls *server_tls, *client_tls;
    struct conn *client, *server;
    struct loop_timer *give_up;
    char received[16];
    size_t size;
    enum status connected;
    bool is_silent; /* failed without a sentence */
    bool was_given_up;
};

static void stop_when_both_are_gone(struct world *world) {
    if (!world->client && !world->server)
        loop_stop(world->loop);
}

static void on_client_closed(void *ctx) {
    struct world *world = ctx;
    world->client = NULL;
    stop_when_both_are_gone(world);
}
static void on_server_closed(void *ctx) {
    struct world *world = ctx;
    world->server = NULL;
    stop_when_both_are_gone(world);
}
static void on_end(struct conn *conn, void *ctx) {
    (void)ctx;
    conn_close(conn);
}
static void on_echo(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    (void)ctx;
    (void)conn_write(conn, (struct view){.data = bytes, .size = size}, (struct view){0});
}
static void on_answer(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct world *world = ctx;
    if (size <= sizeof world->received - world->size) {
        memcpy(world->received + world->size, bytes, size);
        world->size += size;
    }
    if (world->size >= 5)
        conn_close(conn);
}
static const struct conn_events SERVER = {
    .on_data = on_echo, .on_end = on_end, .on_closed = on_server_closed};
static const struct conn_events CLIENT = {
    .on_data = on_answer, .on_end = on_end, .on_closed = on_client_closed};

static void on_accept(void *ctx, struct conn *conn) {
    struct world *world = ctx;
    world->server = conn;
    conn_start(conn, &SERVER, world);
}

static void on_connected(struct conn *conn, void *ctx, enum status status, const char *detail) {
    struct world *world = ctx;
    world->connected = status;
    if (status != ST_OK) {
        world->is_silent |= detail[0] == '\0';
        world->client = NULL;
        conn_close(conn);
        if (!world->server)
            loop_stop(world->loop);
        return;
    }
    conn_start(conn, &CLIENT, world);
    (void)conn_write(conn, view_of("hel"), view_of("lo"));
}

static void on_give_up(void *ctx) {
    struct world *world = ctx;
    world->was_given_up = true;
    loop_stop(world->loop);
}

/* No assert: something is short. */
static enum status live(struct world *world, struct err *err) {
    const struct tls_server_config server = {.certificate = certificate, .key = key,
                                             .handshake_timeout_ns = HANDSHAKE_NS};
    const struct tls_client_config client = {.ca = certificate,
                                             .handshake_timeout_ns = HANDSHAKE_NS};
    enum status status = tls_server_create(&server, &world->server_tls, err);
    if (status == ST_OK)
        status = tls_client_create(&client, &world->client_tls, err);
    if (status != ST_OK)
        return status;
    listener_use_tls(world->listener, world->server_tls);
    status = conn_connect_tls(world->loop, world->client_tls, "127.0.0.1",
                              listener_port(world->listener), on_connected, world,
                              &world->client, err);
    if (status != ST_OK)
        return status;
    loop_timer_set(world->give_up, mono_ns() + 5000000000u);
    loop_run(world->loop);
    return ST_OK;
}

static void run(struct shortage *shortage) {
    struct world world = {.connected = ST_COUNT};
    struct err err = {.text = ""};
    assert_int_equal(loop_create(&world.loop, NULL), ST_OK);
    assert_int_equal(listener_create(world.loop, "127.0.0.1", 0, on_accept, &world,
                                     &world.listener, NULL), ST_OK);
    world.give_up = loop_timer_create(world.loop, on_give_up, &world);
    memory_runs_out(shortage);
    const enum status status = live(&world, &err);
    memory_is_back(shortage);
    assert_false(world.is_silent);
    if (world.was_given_up)
        print_error("after %ld allocations (%d): connected %d, client %p, server %p, got %zu\n",
                    shortage->after, shortage->stays, (int)world.connected, (void *)world.client,
                    (void *)world.server, world.size);
    assert_false(world.was_given_up);
    assert_true(status == ST_OK || err.text[0] != '\0');
    if (shortage->refused == 0) {
        assert_int_equal(world.connected, ST_OK);
        assert_memory_equal(world.received, "hello", 5);
    }
    loop_timer_close(world.give_up);
    listener_close(world.listener);
    if (world.client)
        conn_close(world.client);
    if (world.server)
        conn_close(world.server);
    loop_free(world.loop);
    tls_free(world.server_tls);
    tls_free(world.client_tls);
}

static void a_connection_survives_allocations_that_fail(void **state) {
    (void)state;
    struct shortage shortage = {.after = 1000000000};
    run(&shortage); /* OpenSSL's own start, which does without what it does not get */
    for (int stays = 0; stays <= 1; stays++) {
        long runs = 0;
        shortage = (struct shortage){.stays = stays == 1};
        do {
            run(&shortage);
            runs++;
            shortage.after += shortage.after < 40 ? 1 : STEP;
        } while (shortage.refused > 0);
        print_message("%ld runs, %ld allocations in all\n", runs, shortage.after);
        assert_true(runs > 50);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_survives_allocations_that_fail),
    };
    if (uv_replace_allocator(uv_malloc, uv_realloc, uv_calloc, free) != 0)
        return 1;
    certificates_open(&all);
    struct issuer made = certificate_make("server", "IP:127.0.0.1", NULL, -86400, 86400);
    certificate = certificate_write(&all, "certificate", &made);
    key = key_write(&all, "key", &made, NULL);
    certificate_free(&made);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    certificates_close(&all);
    return failed;
}

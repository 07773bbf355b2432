/* Descriptors, memory and sockets that cannot be had: every creator gives an error with a
 * sentence and leaves nothing behind; a listener that cannot accept goes on listening. */
#include "memory.h"

#include "base/clock.h"
#include "net/conn.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>
/* after the above */
#include <cmocka.h>

/* ---- what can fail ---- */

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

/* Lets `more` descriptors be opened from now on; -1: as many as before. */
static void limit_descriptors(int more) {
    static struct rlimit usual;
    if (usual.rlim_cur == 0) {
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    }
    struct rlimit limit = usual;
    for (int fd = 0; more >= 0 && more-- >= 0; fd++) {
        while (fcntl(fd, F_GETFD) >= 0) {
            fd++; /* the limit is of numbers: those in use do not count */
        }
        limit.rlim_cur = (rlim_t)fd;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int bind_error; /* 0: bind succeeds */

int bind(int fd, const struct sockaddr *address, socklen_t size) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "bind");
    }
    if (bind_error != 0) {
        errno = bind_error;
        return -1;
    }
    return real(fd, address, size);
}

static int accept_error; /* 0: accept4 succeeds */
static int accept_calls;

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    static int (*real)(int, struct sockaddr *, socklen_t *, int);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "accept4");
    }
    accept_calls++;
    if (accept_error != 0) {
        errno = accept_error;
        return -1;
    }
    return real(fd, address, size, flags);
}

/* ---- creating ---- */

static void do_nothing(void *ctx) { (void)ctx; }
static void do_nothing_signal(void *ctx, int signum) {
    (void)ctx;
    (void)signum;
}

struct things {
    struct loop *loop;
    struct loop_wake *wake;
    struct loop_timer *timer;
    struct loop_signal *signal;
    struct listener *listener;
    struct conn *client, *accepted;
    struct err err;
    bool is_connected, is_connect_failed;
};

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    (void)conn;
    (void)ctx;
    (void)bytes;
    (void)size;
}
static void on_end(struct conn *conn, void *ctx) {
    (void)ctx;
    conn_close(conn);
}
static void on_closed(void *ctx) {
    if (ctx != NULL) {
        *(struct conn **)ctx = NULL;
    }
}
static const struct conn_events EVENTS = {
    .on_data = on_data, .on_end = on_end, .on_closed = on_closed};

static void on_accept(void *ctx, struct conn *conn) {
    struct things *things = ctx;
    things->accepted = conn;
    conn_start(conn, &EVENTS, &things->accepted);
}

static void on_connected(struct conn *conn, void *ctx, enum status status, const char *detail) {
    struct things *things = ctx;
    (void)detail;
    if (status == ST_OK) {
        things->is_connected = true;
        conn_start(conn, &EVENTS, &things->client);
    } else {
        things->is_connect_failed = true;
        things->client = NULL;
        conn_close(conn);
    }
}

/* All creators in a row; ST_OK when all gave something. No assert: something is short. */
static enum status create(struct things *t) {
    *t = (struct things){.loop = NULL};
    enum status status = loop_create(&t->loop, &t->err);
    if (status != ST_OK) {
        return status;
    }
    t->wake = loop_wake_create(t->loop, do_nothing, NULL);
    t->timer = loop_timer_create(t->loop, do_nothing, NULL);
    t->signal = loop_signal_create(t->loop, SIGUSR1, do_nothing_signal, NULL);
    if (t->wake == NULL || t->timer == NULL || t->signal == NULL) {
        return err_set(&t->err, ST_NO_MEMORY, "a handle");
    }
    status = listener_create(t->loop, "127.0.0.1", 0, on_accept, t, &t->listener, &t->err);
    if (status != ST_OK) {
        return status;
    }
    return conn_connect(t->loop, "127.0.0.1", listener_port(t->listener), on_connected, t,
                        &t->client, &t->err);
}

static void destroy(struct things *t) {
    if (t->loop == NULL) {
        return;
    }
    loop_wake_close(t->wake);
    loop_timer_close(t->timer);
    if (t->signal != NULL) {
        loop_signal_close(t->signal);
    }
    listener_close(t->listener);
    if (t->client != NULL) {
        conn_close(t->client);
    }
    if (t->accepted != NULL) {
        conn_close(t->accepted);
    }
    loop_free(t->loop); /* asserts that nothing is left open */
}

static void creating_survives_every_allocation_that_fails(void **state) {
    (void)state;
    struct shortage shortage = {0};
    while (shortage_next(&shortage)) {
        struct things things;
        memory_runs_out(&shortage);
        const enum status status = create(&things);
        memory_is_back(&shortage);
        if (status != ST_OK) {
            assert_true(things.err.text[0] != '\0');
            assert_true(shortage.refused > 0);
            assert_null(things.client);
        }
        destroy(&things);
    }
    assert_true(shortage.runs >= 8);
}

static void creating_survives_every_descriptor_that_is_missing(void **state) {
    (void)state;
    int more = 0;
    for (bool is_whole = false; !is_whole; more++) {
        struct things things;
        limit_descriptors(more);
        const enum status status = create(&things);
        /* A client's socket is opened in conn_connect, its failure is told on the loop. */
        for (int turn = 0; status == ST_OK && turn < 1000 && !things.is_connected &&
                           !things.is_connect_failed; turn++) {
            loop_timer_set(things.timer, mono_ns() + 1000000);
            loop_on_turn_end(things.loop, (void (*)(void *))loop_stop, things.loop);
            loop_run(things.loop);
        }
        limit_descriptors(-1);
        if (status != ST_OK) {
            assert_true(things.err.text[0] != '\0');
        } else {
            assert_true(things.is_connected || things.is_connect_failed);
            is_whole = things.is_connected && things.accepted != NULL;
        }
        destroy(&things);
        assert_true(more < 40);
    }
    assert_true(more >= 6); /* epoll, timer, wake, listener, client, accepted at the least */
}

static void a_failing_bind_is_named_with_its_remedy(void **state) {
    (void)state;
    static const struct {
        int error;
        const char *says;
    } CASES[] = {{EADDRINUSE, "another program listens there"},
                 {EACCES, "choose a higher one"},
                 {EADDRNOTAVAIL, "no such address"},
                 {ENOBUFS, "cannot listen on 127.0.0.1:0"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct things things;
        bind_error = CASES[i].error;
        const enum status status = create(&things);
        bind_error = 0;
        assert_int_equal(status, ST_IO);
        if (strstr(things.err.text, CASES[i].says) == NULL) {
            fail_msg("%s", things.err.text);
        }
        assert_null(things.listener);
        destroy(&things);
    }
}

/* ---- accepting ---- */

enum { CLIENTS = 5 };

static bool has_ended(int fd) {
    char byte;
    const ssize_t size = recv(fd, &byte, 1, MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

struct server {
    struct loop *loop;
    struct listener *listener;
    struct loop_timer *timer;
    int sockets[CLIENTS];
    struct conn *conns[CLIENTS];
    int accepted;
    bool (*is_over)(struct server *server);
    uint64_t give_up_ns;
};

static void server_accept(void *ctx, struct conn *conn) {
    struct server *server = ctx;
    server->conns[server->accepted] = conn;
    conn_start(conn, &EVENTS, &server->conns[server->accepted]);
    server->accepted++;
}

static void look(void *ctx) {
    struct server *server = ctx;
    if (server->is_over(server) || mono_ns() > server->give_up_ns) {
        loop_stop(server->loop);
    } else {
        loop_timer_set(server->timer, mono_ns() + 1000000);
    }
}

static bool all_refused(struct server *server) {
    int ended = 0;
    for (int i = 0; i < CLIENTS; i++) {
        ended += has_ended(server->sockets[i]);
    }
    return ended == CLIENTS;
}

static bool one_accepted(struct server *server) { return server->accepted == 1; }

static void run_until(struct server *server, bool (*is_over)(struct server *server)) {
    server->is_over = is_over;
    server->give_up_ns = mono_ns() + 20000000000u;
    loop_timer_set(server->timer, mono_ns());
    loop_run(server->loop);
    assert_true(is_over(server));
}

static void server_connect(struct server *server, int i) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(listener_port(server->listener)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(
        connect(server->sockets[i], (const struct sockaddr *)&address, sizeof address), 0);
}

static void refuse_then_accept(bool is_memory_short) {
    struct server server = {.accepted = 0};
    assert_int_equal(loop_create(&server.loop, NULL), ST_OK);
    assert_int_equal(listener_create(server.loop, "127.0.0.1", 0, server_accept, &server,
                                     &server.listener, NULL), ST_OK);
    server.timer = loop_timer_create(server.loop, look, &server);
    for (int i = 0; i < CLIENTS; i++) {
        server.sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(server.sockets[i] >= 0);
        server_connect(&server, i);
    }
    struct shortage none_left = {.stays = true};
    if (is_memory_short) {
        memory_runs_out(&none_left);
    } else {
        limit_descriptors(0);
    }
    run_until(&server, all_refused);
    if (is_memory_short) {
        memory_is_back(&none_left);
        assert_true(none_left.refused >= CLIENTS);
    } else {
        limit_descriptors(-1);
    }
    assert_int_equal(server.accepted, 0);
    assert_int_equal(loop_shed(server.loop), CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        close(server.sockets[i]);
    }
    server.sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    server_connect(&server, 0);
    run_until(&server, one_accepted);
    close(server.sockets[0]);
    conn_close(server.conns[0]);
    loop_timer_close(server.timer);
    listener_close(server.listener);
    loop_free(server.loop);
}

static void a_listener_without_descriptors_sheds_and_recovers(void **state) {
    (void)state;
    refuse_then_accept(false);
}

static void a_listener_without_memory_sheds_and_recovers(void **state) {
    (void)state;
    refuse_then_accept(true);
}

static bool some_accepted(struct server *server) { return server->accepted > 0; }

static uint64_t until_ns;
static bool is_late(struct server *server) {
    (void)server;
    return mono_ns() >= until_ns;
}

/* The errors of accept() that are not the client's: none of them makes the loop spin, and none of
 * them loses who waits. */
static void a_listener_rests_when_accepting_fails_and_goes_on(void **state) {
    (void)state;
    static const int ERRORS[] = {ENOBUFS, ENOMEM, ENFILE, EMFILE};
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
        struct server server = {.accepted = 0};
        assert_int_equal(loop_create(&server.loop, NULL), ST_OK);
        assert_int_equal(listener_create(server.loop, "127.0.0.1", 0, server_accept, &server,
                                         &server.listener, NULL), ST_OK);
        server.timer = loop_timer_create(server.loop, look, &server);
        server.sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
        server_connect(&server, 0);
        accept_error = ERRORS[i];
        accept_calls = 0;
        until_ns = mono_ns() + 350000000;
        run_until(&server, is_late);
        assert_in_range(accept_calls, 2, 10); /* ten times a second, two calls each at the most */
        accept_error = 0;
        assert_int_equal(server.accepted, 0);
        assert_int_equal(loop_shed(server.loop), 0);
        run_until(&server, one_accepted);
        assert_false(has_ended(server.sockets[0]));
        close(server.sockets[0]);
        conn_close(server.conns[0]);
        loop_timer_close(server.timer);
        listener_close(server.listener);
        loop_free(server.loop);
    }
}

/* A client that resets before it is accepted, or whose network is gone, is an error of its own. */
static void a_client_that_is_gone_before_it_is_accepted_changes_nothing(void **state) {
    (void)state;
    struct server server = {.accepted = 0};
    assert_int_equal(loop_create(&server.loop, NULL), ST_OK);
    assert_int_equal(listener_create(server.loop, "127.0.0.1", 0, server_accept, &server,
                                     &server.listener, NULL), ST_OK);
    server.timer = loop_timer_create(server.loop, look, &server);
    for (int i = 0; i < 2; i++) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        server.sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        server_connect(&server, i);
        if (i == 0) { /* a reset */
            setsockopt(server.sockets[0], SOL_SOCKET, SO_LINGER, &now, sizeof now);
            close(server.sockets[0]);
        }
    }
    accept_error = ECONNABORTED;
    accept_calls = 0;
    until_ns = mono_ns() + 5000000;
    run_until(&server, is_late);
    accept_error = 0;
    run_until(&server, some_accepted); /* Linux hands over the one that has been reset too */
    close(server.sockets[1]);
    for (int i = 0; i < server.accepted; i++) {
        if (server.conns[i] != NULL) {
            conn_close(server.conns[i]);
        }
    }
    loop_timer_close(server.timer);
    listener_close(server.listener);
    loop_free(server.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_survives_every_allocation_that_fails),
        cmocka_unit_test(creating_survives_every_descriptor_that_is_missing),
        cmocka_unit_test(a_failing_bind_is_named_with_its_remedy),
        cmocka_unit_test(a_listener_without_descriptors_sheds_and_recovers),
        cmocka_unit_test(a_listener_without_memory_sheds_and_recovers),
        cmocka_unit_test(a_listener_rests_when_accepting_fails_and_goes_on),
        cmocka_unit_test(a_client_that_is_gone_before_it_is_accepted_changes_nothing),
    };
    if (uv_replace_allocator(uv_malloc, uv_realloc, uv_calloc, free) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

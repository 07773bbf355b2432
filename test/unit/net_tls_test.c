/* TLS over loopback: client and server on one loop. What holds of plain connections holds of these;
 * who is not trusted, or speaks something else, is told and left. */
#include "net_certificates.h"

#include "base/buf.h"
#include "base/clock.h"
#include "net/conn.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
/* after the above */
#include <cmocka.h>

enum { DAY = 86400, LARGE = 5 * 1024 * 1024, SMALL_ROOM = 1000 };

/* ---- certificates, once ---- */

static struct {
    struct certificates all;
    const char *ca, *other_ca, *certificate, *key, *client, *client_key, *stranger, *stranger_key;
    const char *expired, *expired_key, *early, *early_key, *encrypted_key, *no_pem, *empty;
} files;

static int make_files(void **state) {
    (void)state;
    certificates_open(&files.all);
    struct issuer ca = certificate_make("telltale test CA", NULL, NULL, -DAY, DAY);
    struct issuer other = certificate_make("another CA", NULL, NULL, -DAY, DAY);
    struct issuer server =
        certificate_make("server", "DNS:localhost,IP:127.0.0.1", &ca, -DAY, DAY);
    struct issuer client = certificate_make("client", "", &ca, -DAY, DAY);
    struct issuer stranger = certificate_make("stranger", "", &other, -DAY, DAY);
    struct issuer expired = certificate_make("old", "DNS:localhost", &ca, -2 * DAY, -DAY);
    struct issuer early = certificate_make("new", "DNS:localhost", &ca, DAY, 2 * DAY);
    files.ca = certificate_write(&files.all, "ca", &ca);
    files.other_ca = certificate_write(&files.all, "other_ca", &other);
    files.certificate = certificate_write(&files.all, "certificate", &server);
    files.key = key_write(&files.all, "key", &server, NULL);
    files.encrypted_key = key_write(&files.all, "encrypted_key", &server, "secret");
    files.client = certificate_write(&files.all, "client", &client);
    files.client_key = key_write(&files.all, "client_key", &client, NULL);
    files.stranger = certificate_write(&files.all, "stranger", &stranger);
    files.stranger_key = key_write(&files.all, "stranger_key", &stranger, NULL);
    files.expired = certificate_write(&files.all, "expired", &expired);
    files.expired_key = key_write(&files.all, "expired_key", &expired, NULL);
    files.early = certificate_write(&files.all, "early", &early);
    files.early_key = key_write(&files.all, "early_key", &early, NULL);
    files.no_pem = certificates_text(&files.all, "no_pem", "no PEM here\n");
    files.empty = certificates_text(&files.all, "empty", "");
    certificate_free(&ca);
    certificate_free(&other);
    certificate_free(&server);
    certificate_free(&client);
    certificate_free(&stranger);
    certificate_free(&expired);
    certificate_free(&early);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    certificates_close(&files.all);
    return 0;
}

/* ---- two ends ---- */

struct end { /* of a connection */
    struct world *world;
    struct conn *conn;
    struct buf received;
    int ends, drains, closed;
    bool is_open;
    char fault[300];
    char alpn[32];
};

struct world {
    struct loop *loop;
    struct listener *listener;
    struct tls *server_tls, *client_tls;
    struct end server, client; /* one connection at a time */
    enum status connect_status;
    char detail[500];
    char failure[300]; /* what the server was told */
    int failures;
    size_t expected;   /* the client closes when so much has come */
    bool is_echo;
    void (*when_accepted)(struct end *server);
    void (*when_connected)(struct end *client);
    struct loop_timer *give_up;
};

static void stop(struct world *world) {
    listener_close(world->listener);
    world->listener = NULL;
    loop_timer_set(world->give_up, 0);
}

static void on_closed(void *ctx) {
    struct end *end = ctx;
    end->is_open = false;
    end->closed++;
    if (!end->world->server.is_open && !end->world->client.is_open && end->world->listener)
        stop(end->world);
}

static void on_data(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    struct end *end = ctx;
    struct world *world = end->world;
    const struct view alpn = conn_alpn(conn);
    snprintf(end->alpn, sizeof end->alpn, "%.*s", VIEW_ARGS(alpn));
    if (end == &world->server && world->is_echo) {
        (void)conn_write(conn, (struct view){.data = bytes, .size = size / 2},
                         (struct view){.data = bytes + size / 2, .size = size - size / 2});
        return;
    }
    buf_append(&end->received, bytes, size);
    if (end == &world->client && world->expected && end->received.size >= world->expected)
        conn_close(conn);
}

static void on_end(struct conn *conn, void *ctx) {
    struct end *end = ctx;
    end->ends++;
    snprintf(end->fault, sizeof end->fault, "%s", conn_fault(conn));
    conn_close(conn);
}

static void on_drained(struct conn *conn, void *ctx, uint64_t at_ns) {
    struct end *end = ctx;
    assert_true(at_ns > 0 && at_ns <= mono_ns());
    assert_true(conn_is_drained(conn));
    assert_int_equal(conn_unsent_bytes(conn), 0);
    end->drains++;
}

static const struct conn_events EVENTS = {
    .on_data = on_data, .on_end = on_end, .on_drained = on_drained, .on_closed = on_closed};

static void start(struct end *end, struct conn *conn, const struct conn_events *events) {
    end->conn = conn;
    end->is_open = true;
    conn_start(conn, events, end);
}

static void on_accept(void *ctx, struct conn *conn) {
    struct world *world = ctx;
    start(&world->server, conn, &EVENTS);
    if (world->when_accepted)
        world->when_accepted(&world->server);
}

static void on_connected(struct conn *conn, void *ctx, enum status status, const char *detail) {
    struct world *world = ctx;
    world->connect_status = status;
    snprintf(world->detail, sizeof world->detail, "%s", detail);
    if (status != ST_OK) {
        conn_close(conn);
        if (!world->server.is_open && world->listener)
            stop(world);
        return;
    }
    assert_true(conn_is_tls(conn));
    start(&world->client, conn, &EVENTS);
    if (world->when_connected)
        world->when_connected(&world->client);
}

static void note_failure(void *ctx, const char *sentence) {
    struct world *world = ctx;
    world->failures++;
    snprintf(world->failure, sizeof world->failure, "%s", sentence);
}

static void on_give_up(void *ctx) {
    (void)ctx;
    fail_msg("nothing happened for 30 s");
}

static struct tls_server_config usual_server(void) {
    return (struct tls_server_config){.certificate = files.certificate,
                                      .key = files.key,
                                      .handshake_timeout_ns = 20000000000u};
}
static struct tls_client_config usual_client(void) {
    return (struct tls_client_config){.ca = files.ca, .remedy = "give --tls-ca"};
}

static void world_open(struct world *world, struct tls_server_config server,
                       struct tls_client_config client) {
    struct err err = {.text = ""};
    world->server.world = world->client.world = world;
    world->connect_status = ST_COUNT;
    if (loop_create(&world->loop, &err) != ST_OK ||
        tls_server_create(&server, &world->server_tls, &err) != ST_OK ||
        tls_client_create(&client, &world->client_tls, &err) != ST_OK ||
        listener_create(world->loop, "127.0.0.1", 0, on_accept, world, &world->listener, &err) !=
            ST_OK)
        fail_msg("%s", err.text);
    listener_use_tls(world->listener, world->server_tls);
    tls_on_failure(world->server_tls, note_failure, world);
    world->give_up = loop_timer_create(world->loop, on_give_up, world);
    loop_timer_set(world->give_up, mono_ns() + 30000000000u);
}

static void world_connect(struct world *world, const char *host) {
    struct conn *conn = NULL;
    struct err err = {.text = ""};
    if (conn_connect_tls(world->loop, world->client_tls, host, listener_port(world->listener),
                         on_connected, world, &conn, &err) != ST_OK)
        fail_msg("%s", err.text);
}

static void world_close(struct world *world) {
    loop_timer_close(world->give_up);
    loop_free(world->loop);
    tls_free(world->server_tls);
    tls_free(world->client_tls);
    buf_done(&world->server.received);
    buf_done(&world->client.received);
}

static void run(struct world *world) { loop_run(world->loop); }

/* ---- what plain connections do too ---- */

static char pattern(size_t i) { return (char)(i * 31 + i / 251); }

static char *patterned(size_t size) {
    char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(i);
    return bytes;
}

static void check_pattern(const struct buf *received, size_t size) {
    assert_int_equal(received->size, size);
    for (size_t i = 0; i < size; i++)
        if (received->data[i] != pattern(i))
            fail_msg("byte %zu differs", i);
}

static void send_large(struct end *end) {
    char *bytes = patterned(LARGE);
    assert_false(conn_write(end->conn, (struct view){.data = bytes, .size = 1000},
                            (struct view){.data = bytes + 1000, .size = LARGE - 1000}));
    assert_true(conn_unsent_bytes(end->conn) > 0);
    assert_false(conn_is_drained(end->conn));
    memset(bytes, 0, LARGE); /* what was not sent yet has been copied */
    free(bytes);
}

static void echoes_large_bodies_both_ways(void **state) {
    (void)state;
    struct world world = {.is_echo = true, .expected = LARGE, .when_connected = send_large};
    world_open(&world, usual_server(), usual_client());
    world_connect(&world, "localhost");
    run(&world);
    assert_int_equal(world.connect_status, ST_OK);
    check_pattern(&world.client.received, LARGE);
    assert_int_equal(world.client.drains, 1);
    assert_int_equal(world.server.ends, 1);
    assert_string_equal(world.server.fault, "");
    assert_int_equal(tls_counts(world.server_tls)->handshakes, 1);
    world_close(&world);
}

static void send_small(struct end *end) {
    assert_true(conn_write(end->conn, view_of("head"), view_of("")));
    assert_true(conn_write(end->conn, view_of(""), view_of("er")));
    assert_true(conn_write(end->conn, view_of("he"), view_of("re")));
    assert_true(conn_write(end->conn, view_of(""), view_of("")));
    assert_true(conn_is_drained(end->conn));
}

static void small_messages_are_sent_at_once(void **state) {
    (void)state;
    struct world world = {.is_echo = true, .expected = 10, .when_connected = send_small};
    world_open(&world, usual_server(), usual_client());
    world_connect(&world, "127.0.0.1"); /* an address in the certificate */
    run(&world);
    assert_true(view_is(buf_view(&world.client.received), "headerhere"));
    assert_int_equal(world.client.drains, 0);
    world_close(&world);
}

static void greet(struct end *server) {
    assert_false(conn_write(server->conn, view_of("wel"), view_of("come")));
    assert_int_equal(conn_unsent_bytes(server->conn), 7);
    conn_finish(server->conn, 5000000000u);
}

static void what_is_written_before_the_handshake_waits_for_it(void **state) {
    (void)state;
    struct world world = {.when_accepted = greet};
    world_open(&world, usual_server(), usual_client());
    world_connect(&world, "localhost");
    run(&world);
    assert_true(view_is(buf_view(&world.client.received), "welcome"));
    assert_int_equal(world.client.ends, 1);
    assert_string_equal(world.client.fault, "");
    world_close(&world);
}

static void send_and_finish(struct end *end) {
    send_large(end);
    conn_finish(end->conn, 20000000000u);
    assert_false(conn_can_write(end->conn));
}

static void finishing_delivers_all_and_says_so(void **state) {
    (void)state;
    struct world world = {.when_accepted = send_and_finish};
    world_open(&world, usual_server(), usual_client());
    world_connect(&world, "localhost");
    run(&world);
    check_pattern(&world.client.received, LARGE);
    assert_int_equal(world.client.ends, 1);
    assert_int_equal(world.server.ends, 0); /* the finishing side hears only on_closed */
    assert_int_equal(world.server.closed, 1);
    world_close(&world);
}

static char room_bytes[SMALL_ROOM];
static int room_calls;
static char *small_room(struct conn *conn, void *ctx, size_t *out_room) {
    (void)conn;
    (void)ctx;
    *out_room = sizeof room_bytes;
    return ++room_calls % 2 ? room_bytes : NULL;
}
static void on_data_in_room(struct conn *conn, void *ctx, const char *bytes, size_t size) {
    if (room_calls % 2) {
        assert_ptr_equal(bytes, room_bytes);
        assert_true(size <= sizeof room_bytes);
    }
    on_data(conn, ctx, bytes, size);
}
static const struct conn_events ROOMY = {.on_data = on_data_in_room, .on_end = on_end,
                                         .read_room = small_room, .on_closed = on_closed};
static void on_accept_roomy(void *ctx, struct conn *conn) {
    struct world *world = ctx;
    start(&world->server, conn, &ROOMY);
}
static void send_half_and_finish(struct end *end) {
    char *bytes = patterned(LARGE);
    (void)conn_write(end->conn, (struct view){.data = bytes, .size = 100000}, view_of(""));
    free(bytes);
    conn_finish(end->conn, 5000000000u);
}

static void reads_into_the_owners_memory(void **state) {
    (void)state;
    struct world world = {.when_connected = send_half_and_finish};
    struct err err;
    world_open(&world, usual_server(), usual_client());
    listener_close(world.listener);
    assert_int_equal(listener_create(world.loop, "127.0.0.1", 0, on_accept_roomy, &world,
                                     &world.listener, &err), ST_OK);
    listener_use_tls(world.listener, world.server_tls);
    world_connect(&world, "localhost");
    run(&world);
    check_pattern(&world.server.received, 100000);
    assert_int_equal(world.server.ends, 1);
    world_close(&world);
}

static void resume_reading(void *ctx) {
    struct end *client = ctx;
    assert_true(conn_unsent_bytes(client->world->server.conn) > 0);
    conn_resume_reading(client->conn);
}
static struct loop_timer *resume_timer;
static void pause_a_while(struct end *client) {
    conn_pause_reading(client->conn);
    resume_timer = loop_timer_create(client->world->loop, resume_reading, client);
    loop_timer_set(resume_timer, mono_ns() + 50000000);
}
static void push_enormous(struct end *server) {
    char *bytes = patterned(32 * 1024 * 1024);
    (void)conn_write(server->conn, (struct view){.data = bytes, .size = 32 * 1024 * 1024},
                     view_of(""));
    free(bytes);
}

static void queues_for_a_slow_reader(void **state) {
    (void)state;
    struct world world = {.when_accepted = push_enormous, .when_connected = pause_a_while,
                          .expected = 32 * 1024 * 1024};
    world_open(&world, usual_server(), usual_client());
    world_connect(&world, "localhost");
    run(&world);
    check_pattern(&world.client.received, 32 * 1024 * 1024);
    assert_int_equal(world.server.drains, 1);
    loop_timer_close(resume_timer);
    world_close(&world);
}

/* ---- agreement and trust ---- */

static const char *const H2_FIRST[] = {"h2", "http/1.1", NULL};
static const char *const ONLY_11[] = {"http/1.1", NULL};
static const char *const ONLY_H2[] = {"h2", NULL};

static void agrees_on_a_protocol(void **state) {
    (void)state;
    static const struct {
        const char *const *server, *const *client;
        const char *agreed; /* NULL: none, and no connection */
    } CASES[] = {{H2_FIRST, ONLY_11, "http/1.1"}, {H2_FIRST, H2_FIRST, "h2"},
                 {ONLY_11, H2_FIRST, "http/1.1"}, {ONLY_H2, ONLY_11, NULL},
                 {ONLY_H2, NULL, ""},             {NULL, ONLY_H2, ""}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct world world = {.is_echo = true, .expected = 10, .when_connected = send_small};
        struct tls_server_config server = usual_server();
        struct tls_client_config client = usual_client();
        server.alpn = CASES[i].server;
        client.alpn = CASES[i].client;
        world_open(&world, server, client);
        world_connect(&world, "localhost");
        run(&world);
        if (CASES[i].agreed) {
            assert_int_equal(world.connect_status, ST_OK);
            assert_string_equal(world.server.alpn, CASES[i].agreed);
            assert_string_equal(world.client.alpn, CASES[i].agreed);
        } else {
            assert_int_equal(world.connect_status, ST_IO);
            assert_int_equal(tls_counts(world.server_tls)->failed, 1);
        }
        world_close(&world);
    }
}

/* What the client says of a server that it does not trust; "": it connects. */
static void expect_trust(struct tls_server_config server, struct tls_client_config client,
                         const char *host, const char *says) {
    struct world world = {.is_echo = true, .expected = 10, .when_connected = send_small};
    world_open(&world, server, client);
    world_connect(&world, host);
    run(&world);
    if (says[0]) {
        assert_int_equal(world.connect_status, ST_IO);
        if (!strstr(world.detail, says))
            fail_msg("\"%s\" does not say \"%s\"", world.detail, says);
        assert_int_equal(world.failures, 1);
        assert_int_equal(tls_counts(world.server_tls)->failed, 1);
        assert_int_equal(world.server.ends, 1);
        assert_string_equal(world.server.fault, world.failure);
    } else {
        assert_string_equal(world.detail, "");
        assert_int_equal(world.connect_status, ST_OK);
        assert_int_equal(world.client.received.size, 10);
    }
    world_close(&world);
}

static void a_client_checks_the_server(void **state) {
    (void)state;
    struct tls_client_config other = usual_client(), insecure = {.is_insecure = true},
                             by_system = usual_client();
    other.ca = files.other_ca;
    by_system.ca = NULL;
    struct tls_server_config old = usual_server();
    old.certificate = files.expired;
    old.key = files.expired_key;
    expect_trust(usual_server(), usual_client(), "localhost", "");
    expect_trust(usual_server(), other, "localhost", "its certificate is not trusted: ");
    expect_trust(usual_server(), other, "localhost", "; give --tls-ca");
    expect_trust(usual_server(), by_system, "localhost", "not trusted");
    expect_trust(usual_server(), insecure, "localhost", "");
    expect_trust(old, usual_client(), "localhost", "certificate has expired");
    expect_trust(old, insecure, "localhost", "");
    expect_trust(old, usual_client(), "127.0.0.1", "not trusted"); /* not in its names either */
}

static void a_name_that_the_certificate_does_not_have_is_refused(void **state) {
    (void)state;
    struct issuer elsewhere = certificate_make("x", "DNS:elsewhere.example", NULL, -DAY, DAY);
    struct tls_server_config server = usual_server();
    struct tls_client_config client = usual_client();
    server.certificate = client.ca = certificate_write(&files.all, "elsewhere", &elsewhere);
    server.key = key_write(&files.all, "elsewhere_key", &elsewhere, NULL);
    certificate_free(&elsewhere);
    expect_trust(server, client, "localhost", "hostname mismatch");
    expect_trust(server, client, "127.0.0.1", "IP address mismatch");
}

static void a_server_may_want_a_clients_certificate(void **state) {
    (void)state;
    struct tls_server_config server = usual_server();
    struct tls_client_config client = usual_client();
    server.client_ca = files.ca;
    client.certificate = files.client;
    client.key = files.client_key;
    expect_trust(server, client, "localhost", "");
    static const char *const SAYS[] = {"did not return a certificate", "is not trusted"};
    for (int i = 0; i < 2; i++) {
        /* With TLS 1.3 a client learns of it after its own handshake is over. */
        struct world world = {.is_echo = true};
        client.certificate = i == 0 ? NULL : files.stranger;
        client.key = i == 0 ? NULL : files.stranger_key;
        world_open(&world, server, client);
        world_connect(&world, "localhost");
        run(&world);
        if (!strstr(world.failure, SAYS[i]))
            fail_msg("\"%s\" does not say \"%s\"", world.failure, SAYS[i]);
        assert_int_equal(world.client.ends, 1);
        assert_non_null(strstr(world.client.fault, "alert"));
        assert_int_equal(tls_counts(world.server_tls)->failed, 1);
        assert_int_equal(world.server.received.size, 0);
        world_close(&world);
    }
}

/* ---- peers that misbehave ---- */

static int raw_client(const struct world *world) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(listener_port(world->listener)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void a_client_that_does_not_speak_tls_is_left(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x80\x2e\x01", "x"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        struct world world = {.is_echo = true};
        char byte;
        world_open(&world, usual_server(), usual_client());
        const int fd = raw_client(&world);
        assert_true(write(fd, TEXTS[i], strlen(TEXTS[i])) > 0);
        run(&world);
        assert_int_equal(recv(fd, &byte, 1, 0), 0);
        assert_non_null(strstr(world.failure, "does not speak TLS"));
        assert_int_equal(tls_counts(world.server_tls)->plain, 1);
        assert_int_equal(tls_counts(world.server_tls)->failed, 0);
        assert_int_equal(world.server.ends, 1);
        assert_int_equal(world.server.received.size, 0);
        close(fd);
        world_close(&world);
    }
}

static void a_handshake_that_does_not_end_is_given_up(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct world world = {.is_echo = true};
        struct tls_server_config server = usual_server();
        server.handshake_timeout_ns = 20000000;
        world_open(&world, server, usual_client());
        const int fd = raw_client(&world);
        if (i == 1) /* the beginning of a client's first message */
            assert_int_equal(write(fd, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9), 9);
        run(&world);
        assert_int_equal(tls_counts(world.server_tls)->timeouts, 1);
        assert_string_equal(world.failure, "the TLS handshake took too long");
        assert_int_equal(world.server.ends, 1);
        close(fd);
        world_close(&world);
    }
}

static void a_handshake_that_is_cut_or_garbled_is_told(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } CASES[] = {{"", 0, "ended within the TLS handshake"},
                 {"\x16\x03\x01", 3, "ended within the TLS handshake"},
                 {"\x16\x03\x01\x00\x05hello", 10, "TLS failed: "},
                 {"\x16\x03\x01\xff\xff", 5, "TLS failed: "},
                 {"\x16\x09\x09\x00\x05hello", 10, "TLS failed: "}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct world world = {.is_echo = true};
        world_open(&world, usual_server(), usual_client());
        const int fd = raw_client(&world);
        assert_int_equal(write(fd, CASES[i].bytes, CASES[i].size), CASES[i].size);
        shutdown(fd, SHUT_WR);
        run(&world);
        if (!strstr(world.failure, CASES[i].says))
            fail_msg("\"%s\" does not say \"%s\"", world.failure, CASES[i].says);
        assert_int_equal(tls_counts(world.server_tls)->failed, 1);
        assert_int_equal(world.server.ends, 1);
        close(fd);
        world_close(&world);
    }
}

/* OpenSSL's own client on a blocking socket, for what ours never does; it runs in a child. */
static pid_t raw_tls_client(const struct world *world, void (*act)(SSL *ssl, int fd)) {
    const pid_t child = fork();
    if (child != 0)
        return child;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    const int fd = raw_client(world);
    SSL_set_fd(ssl, fd);
    act(ssl, fd);
    _exit(0);
}

static void send_and_cut(SSL *ssl, int fd) {
    (void)SSL_connect(ssl);
    (void)SSL_write(ssl, "half a messa", 12);
    close(fd); /* no close_notify */
}
static bool could_write_at_end;
static void note_end(struct conn *conn, void *ctx) {
    could_write_at_end = conn_can_write(conn);
    on_end(conn, ctx);
}
static const struct conn_events NOTING = {.on_data = on_data, .on_end = note_end,
                                          .on_closed = on_closed};
static void on_accept_noting(void *ctx, struct conn *conn) {
    struct world *world = ctx;
    start(&world->server, conn, &NOTING);
}

static void a_connection_that_is_cut_is_a_failed_one(void **state) {
    (void)state;
    struct world world = {0};
    struct err err;
    world_open(&world, usual_server(), usual_client());
    listener_close(world.listener);
    assert_int_equal(listener_create(world.loop, "127.0.0.1", 0, on_accept_noting, &world,
                                     &world.listener, &err), ST_OK);
    listener_use_tls(world.listener, world.server_tls);
    could_write_at_end = true;
    (void)raw_tls_client(&world, send_and_cut);
    run(&world);
    assert_true(view_is(buf_view(&world.server.received), "half a messa"));
    assert_int_equal(world.server.ends, 1);
    assert_false(could_write_at_end); /* it is not known that the message was whole */
    world_close(&world);
}

static void use_old_version(SSL *ssl, int fd) {
    SSL_set_min_proto_version(ssl, TLS1_VERSION);
    SSL_set_max_proto_version(ssl, TLS1_1_VERSION);
    SSL_set_cipher_list(ssl, "ALL:@SECLEVEL=0");
    (void)SSL_connect(ssl);
    close(fd);
}
static void use_old_cipher(SSL *ssl, int fd) {
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    SSL_set_cipher_list(ssl, "AES128-SHA:ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0");
    (void)SSL_connect(ssl);
    close(fd);
}

static void old_versions_and_ciphers_are_refused(void **state) {
    (void)state;
    void (*const acts[])(SSL *, int) = {use_old_version, use_old_cipher};
    static const char *const SAYS[] = {"unsupported protocol", "no shared cipher"};
    for (int i = 0; i < 2; i++) {
        struct world world = {0};
        world_open(&world, usual_server(), usual_client());
        (void)raw_tls_client(&world, acts[i]);
        run(&world);
        if (!strstr(world.failure, SAYS[i]))
            fail_msg("\"%s\" does not say \"%s\"", world.failure, SAYS[i]);
        world_close(&world);
    }
}

static void speak_1_2_and_renegotiate(SSL *ssl, int fd) {
    char byte;
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, "a", 1) == 1 && SSL_read(ssl, &byte, 1) == 1) {
        (void)SSL_renegotiate(ssl);
        (void)SSL_do_handshake(ssl);
        (void)SSL_read(ssl, &byte, 1);
    }
    close(fd);
}

static void tls_1_2_works_and_does_not_renegotiate(void **state) {
    (void)state;
    struct world world = {.is_echo = true};
    world_open(&world, usual_server(), usual_client());
    (void)raw_tls_client(&world, speak_1_2_and_renegotiate);
    run(&world);
    assert_int_equal(tls_counts(world.server_tls)->handshakes, 1);
    assert_string_equal(world.server.alpn, "");
    assert_int_equal(world.server.ends, 1);
    world_close(&world);
}

static void update_keys_often(SSL *ssl, int fd) {
    char byte;
    if (SSL_connect(ssl) == 1)
        for (int i = 0; i < 200; i++) {
            (void)SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
            if (SSL_write(ssl, "k", 1) != 1 || SSL_read(ssl, &byte, 1) != 1)
                _exit(1);
        }
    SSL_shutdown(ssl);
    close(fd);
}

static void keys_may_be_updated(void **state) {
    (void)state;
    struct world world = {.is_echo = true};
    world_open(&world, usual_server(), usual_client());
    (void)raw_tls_client(&world, update_keys_often);
    run(&world);
    assert_int_equal(world.failures, 0);
    assert_int_equal(world.server.ends, 1);
    assert_string_equal(world.server.fault, "");
    world_close(&world);
}

static void closing_before_the_handshake_is_over_is_quiet(void **state) {
    (void)state;
    struct world world = {0};
    struct conn *conn = NULL;
    struct err err;
    world_open(&world, usual_server(), usual_client());
    assert_int_equal(conn_connect_tls(world.loop, world.client_tls, "localhost",
                                      listener_port(world.listener), on_connected, &world, &conn,
                                      &err), ST_OK);
    conn_close(conn);
    stop(&world);
    run(&world);
    assert_int_equal(world.connect_status, ST_COUNT);
    world_close(&world);
}

/* ---- files ---- */

static void expect_file_fault(struct tls_server_config config, const char *path,
                              const char *says) {
    struct tls *tls = NULL;
    struct err err = {.text = ""};
    assert_int_not_equal(tls_server_create(&config, &tls, &err), ST_OK);
    assert_null(tls);
    if (!strstr(err.text, path) || !strstr(err.text, says))
        fail_msg("\"%s\" does not name %s and say \"%s\"", err.text, path, says);
}

static void a_file_that_cannot_be_used_is_named(void **state) {
    (void)state;
    const struct tls_server_config usual = usual_server();
    struct tls_server_config config = usual;
    config.certificate = "/nowhere/certificate";
    expect_file_fault(config, "/nowhere/certificate", "No such file");
    config.certificate = files.no_pem;
    expect_file_fault(config, files.no_pem, "holds no certificate in PEM");
    config.certificate = files.empty;
    expect_file_fault(config, files.empty, "it is empty");
    config.certificate = files.key;
    expect_file_fault(config, files.key, "holds no certificate");
    config.certificate = "/tmp";
    expect_file_fault(config, "/tmp", "cannot read the certificate");
    config = usual;
    config.key = "/nowhere/key";
    expect_file_fault(config, "/nowhere/key", "No such file");
    config.key = files.no_pem;
    expect_file_fault(config, files.no_pem, "holds no private key");
    config.key = files.certificate;
    expect_file_fault(config, files.certificate, "holds no private key");
    config.key = files.client_key;
    expect_file_fault(config, files.client_key, "does not match the certificate");
    config.key = files.encrypted_key;
    expect_file_fault(config, files.encrypted_key, "is encrypted");
    config = usual;
    config.client_ca = "/nowhere/ca";
    expect_file_fault(config, "/nowhere/ca", "No such file");
    config.client_ca = files.no_pem;
    expect_file_fault(config, files.no_pem, "holds no CA certificate");
}

static void dates_are_warned_of(void **state) {
    (void)state;
    struct tls *tls = NULL;
    struct tls_server_config config = usual_server();
    assert_int_equal(tls_server_create(&config, &tls, NULL), ST_OK);
    assert_string_equal(tls_warning(tls), "");
    tls_free(tls);
    config.certificate = files.expired;
    config.key = files.expired_key;
    assert_int_equal(tls_server_create(&config, &tls, NULL), ST_OK);
    assert_non_null(strstr(tls_warning(tls), files.expired));
    assert_non_null(strstr(tls_warning(tls), "expired on 20"));
    tls_free(tls);
    config.certificate = files.early;
    config.key = files.early_key;
    assert_int_equal(tls_server_create(&config, &tls, NULL), ST_OK);
    assert_non_null(strstr(tls_warning(tls), "not valid before 20"));
    tls_free(tls);
}

static void copy_file(const char *from, const char *to) {
    char bytes[8192];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(in);
    fclose(out);
}

static void certificates_are_read_again_and_kept_when_that_fails(void **state) {
    (void)state;
    struct world world = {.is_echo = true, .expected = 10, .when_connected = send_small};
    struct tls_server_config config = usual_server();
    struct tls_client_config client = usual_client();
    struct err err = {.text = ""};
    config.certificate = certificates_path(&files.all, "renewed");
    config.key = certificates_path(&files.all, "renewed_key");
    copy_file(files.expired, config.certificate);
    copy_file(files.expired_key, config.key);
    world_open(&world, config, client);
    assert_string_not_equal(tls_warning(world.server_tls), "");
    copy_file(files.certificate, config.certificate); /* without its key: no good */
    assert_int_equal(tls_reload(world.server_tls, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "does not match"));
    assert_string_not_equal(tls_warning(world.server_tls), "");
    copy_file(files.key, config.key);
    assert_int_equal(tls_reload(world.server_tls, &err), ST_OK);
    assert_string_equal(tls_warning(world.server_tls), "");
    world_connect(&world, "localhost");
    run(&world);
    assert_int_equal(world.connect_status, ST_OK);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_large_bodies_both_ways),
        cmocka_unit_test(small_messages_are_sent_at_once),
        cmocka_unit_test(what_is_written_before_the_handshake_waits_for_it),
        cmocka_unit_test(finishing_delivers_all_and_says_so),
        cmocka_unit_test(reads_into_the_owners_memory),
        cmocka_unit_test(queues_for_a_slow_reader),
        cmocka_unit_test(agrees_on_a_protocol),
        cmocka_unit_test(a_client_checks_the_server),
        cmocka_unit_test(a_name_that_the_certificate_does_not_have_is_refused),
        cmocka_unit_test(a_server_may_want_a_clients_certificate),
        cmocka_unit_test(a_client_that_does_not_speak_tls_is_left),
        cmocka_unit_test(a_handshake_that_does_not_end_is_given_up),
        cmocka_unit_test(a_handshake_that_is_cut_or_garbled_is_told),
        cmocka_unit_test(a_connection_that_is_cut_is_a_failed_one),
        cmocka_unit_test(old_versions_and_ciphers_are_refused),
        cmocka_unit_test(tls_1_2_works_and_does_not_renegotiate),
        cmocka_unit_test(keys_may_be_updated),
        cmocka_unit_test(closing_before_the_handshake_is_over_is_quiet),
        cmocka_unit_test(a_file_that_cannot_be_used_is_named),
        cmocka_unit_test(dates_are_warned_of),
        cmocka_unit_test(certificates_are_read_again_and_kept_when_that_fails),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}

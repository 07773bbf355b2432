/* What the service manager is told. */
#include "serve/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void without_a_socket_nothing_is_told(void **state) {
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    assert_true(notify_service_manager("READY=1"));
    setenv("NOTIFY_SOCKET", "", 1);
    assert_true(notify_service_manager("READY=1"));
}

static void what_is_no_socket_is_an_error(void **state) {
    (void)state;
    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_false(notify_service_manager("READY=1"));
    assert_int_equal(errno, EINVAL);
    char longest[300];
    memset(longest, '/', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    assert_false(notify_service_manager("READY=1"));
    setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    assert_false(notify_service_manager("READY=1"));
    assert_int_equal(errno, ENOENT);
}

/* An abstract name needs no file. */
static void the_state_arrives_as_one_datagram(void **state) {
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                              "telltale-notify-%d", (int)getpid());
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    char name[sizeof address.sun_path + 1];
    snprintf(name, sizeof name, "@%s", address.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    assert_true(notify_service_manager("READY=1"));
    char got[32];
    assert_int_equal(recv(fd, got, sizeof got, MSG_DONTWAIT), 7);
    assert_memory_equal(got, "READY=1", 7);
    close(fd);
    assert_false(notify_service_manager("STOPPING=1"));
    unsetenv("NOTIFY_SOCKET");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_socket_nothing_is_told),
        cmocka_unit_test(what_is_no_socket_is_an_error),
        cmocka_unit_test(the_state_arrives_as_one_datagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

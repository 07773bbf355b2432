/* See notify.h. Any thread; blocks no longer than a datagram takes. Twenty lines instead of
 * libsystemd, which nothing else here needs. */
#include "serve/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool notify_service_manager(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || !path[0])
        return true;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || size >= sizeof address.sun_path) {
        errno = EINVAL;
        return false;
    }
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') /* an abstract name */
        address.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    const ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                                (const struct sockaddr *)&address, length);
    const int reason = errno;
    (void)close(fd);
    errno = reason;
    return sent >= 0;
}

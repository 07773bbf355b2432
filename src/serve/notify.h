/* What systemd wants to know of a service of Type=notify, as sd_notify(3) describes: a datagram to
 * the socket in $NOTIFY_SOCKET. Without that variable nothing happens. */
#ifndef TELLTALE_SERVE_NOTIFY_H
#define TELLTALE_SERVE_NOTIFY_H

#include <stdbool.h>

/* state: lines like "READY=1\nSTATUS=serving". False where there is a socket and it did not take
 * it, with errno set. */
bool notify_service_manager(const char *state);

#endif

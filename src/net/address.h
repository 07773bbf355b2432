/* Names and ports to socket addresses; for listener.c and connect.c. */
#ifndef TELLTALE_NET_ADDRESS_H
#define TELLTALE_NET_ADDRESS_H

#include "base/status.h"
#include <netdb.h>
#include <stdint.h>

/* *out_list: freed by the caller with freeaddrinfo. May block on a name server. */
MUST_CHECK enum status address_resolve(const char *host, uint16_t port, struct addrinfo **out_list,
                                       struct err *err);

#endif

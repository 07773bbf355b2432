/* getaddrinfo with a sentence for its failures. Any thread. */
#include "net/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum status address_resolve(const char *host, uint16_t port, struct addrinfo **out_list,
                            struct err *err) {
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    const int failed = getaddrinfo(host, service, &hints, out_list);
    if (failed == 0)
        return ST_OK;
    return err_set(err, failed == EAI_MEMORY ? ST_NO_MEMORY : ST_IO, "cannot resolve host %s: %s",
                   host, failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
}

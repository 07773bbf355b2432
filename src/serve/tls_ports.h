/* TLS of the server's ports: one certificate for all, what a port agrees to speak is its own.
 * Loop thread only. */
#ifndef TELLTALE_SERVE_TLS_PORTS_H
#define TELLTALE_SERVE_TLS_PORTS_H

#include "base/buf.h"
#include "base/log.h"
#include "net/tls.h"

struct tls_options {
    const char *certificate; /* NULL: no TLS */
    const char *key;
    const char *client_ca;   /* NULL: clients need none */
    bool has_metrics;        /* the metrics port too */
};

struct tls_ports {
    struct tls *http, *grpc, *metrics; /* for listener_use_tls; NULL: that port is plain */
    struct log_limit limit;            /* of lines about handshakes */
};

/* What the table of options cannot check; the sentence is for standard error. */
MUST_CHECK enum status tls_options_check(const struct tls_options *options, struct err *err);
/* Reads the files; logs what clients will not like about them. read_timeout_ns: a handshake may
 * take that long, and 10 s at most. tls_ports_done is to be called in either case, after the
 * connections have ended. */
MUST_CHECK enum status tls_ports_init(struct tls_ports *ports, const struct tls_options *options,
                                      uint64_t read_timeout_ns, struct err *err);
void tls_ports_done(struct tls_ports *ports);
/* SIGHUP: reads the files again, for connections from now on; logs how that went. ctx: the
 * struct tls_ports. */
void tls_ports_on_signal(void *ctx, int signum);
/* Appends the families telltale_tls_*; nothing without TLS. */
void tls_ports_metrics(const struct tls_ports *ports, struct buf *out);

#endif

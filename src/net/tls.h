/* TLS for listeners and connections: certificates, keys, trust. TLS 1.2 and 1.3, no renegotiation,
 * forward secrecy only. The loop's thread only, after creation.
 *
 * A struct tls must outlive the connections that use it. What is done with it: listener_use_tls
 * and conn_connect_tls (conn.h); connections then behave like plain ones. */
#ifndef TELLTALE_NET_TLS_H
#define TELLTALE_NET_TLS_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

struct tls;

/* Strings and lists must outlive the struct tls; files are PEM. */
struct tls_server_config {
    const char *certificate; /* the server's, followed by the chain up to the root */
    const char *key;         /* not encrypted: nobody could be asked for the passphrase */
    const char *client_ca;   /* clients must show a certificate of one of these; NULL: none asked */
    const char *const *alpn; /* protocols, most wanted first, NULL at the end; NULL: not offered.
                                A client that offers none is taken, one that offers others is not */
    uint64_t handshake_timeout_ns;
};
struct tls_client_config {
    const char *ca;          /* trusted; NULL: what the system trusts */
    const char *certificate; /* of the client, with key; NULL: it has none */
    const char *key;
    bool is_insecure;        /* takes any certificate for any host */
    const char *const *alpn;
    uint64_t handshake_timeout_ns;
    const char *remedy;      /* ends the sentence about a server that is not trusted; may be NULL */
};

/* The error names the file and what is wrong with it. An expired certificate is no error, see
 * tls_warning. */
MUST_CHECK enum status tls_server_create(const struct tls_server_config *config, struct tls **out,
                                         struct err *err);
MUST_CHECK enum status tls_client_create(const struct tls_client_config *config, struct tls **out,
                                         struct err *err);
void tls_free(struct tls *tls); /* NULL allowed */

/* Reads the files again: for handshakes from now on. On failure all stays as it was. */
MUST_CHECK enum status tls_reload(struct tls *tls, struct err *err);
/* "certificate FILE expired on ..." or ""; of the files as read last. */
const char *tls_warning(const struct tls *tls);

struct tls_counts {
    uint64_t handshakes; /* completed */
    uint64_t resumed;    /* of them, by a ticket */
    uint64_t failed;     /* for any reason but the two below */
    uint64_t plain;      /* the client did not speak TLS */
    uint64_t timeouts;
};
const struct tls_counts *tls_counts(const struct tls *tls);
/* fn is told why a server's handshake failed or an established connection broke; for a log. It
 * must not touch the connection. */
void tls_on_failure(struct tls *tls, void (*fn)(void *ctx, const char *sentence), void *ctx);

#endif

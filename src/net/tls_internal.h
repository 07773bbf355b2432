/* One connection's TLS, bytes to bytes: tls_session.c over what tls.c has read. Knows no socket.
 * For conn_tls.c and the tests. The loop's thread.
 *
 * What is to be sent to the peer is appended to the session's wire, which its owner sends and
 * clears after every call. */
#ifndef TELLTALE_NET_TLS_INTERNAL_H
#define TELLTALE_NET_TLS_INTERNAL_H

#include "base/buf.h"
#include "net/tls.h"

#include <openssl/ssl.h>

struct tls {
    SSL_CTX *context; /* replaced as a whole by tls_reload */
    BIO_METHOD *wire_method;
    bool is_server;
    struct tls_server_config server;
    struct tls_client_config client;
    unsigned char alpn[256]; /* as the wire has it: a length before each name */
    unsigned alpn_size;
    char warning[300];
    struct tls_counts counts;
    void (*on_failure)(void *ctx, const char *sentence);
    void *failure_ctx;
};

struct tls_session;
enum tls_result {
    TLS_DONE,
    TLS_WANTS_INPUT, /* all that was fed is used */
    TLS_ENDED,       /* the peer said that nothing follows */
    TLS_FAILED       /* tls_session_fault says why */
};

/* host: what the server's certificate must be for (client); NULL: a server's session. wire must
 * outlive the session. NULL: no memory. */
struct tls_session *tls_session_create(struct tls *tls, const char *host, struct buf *wire);
void tls_session_free(struct tls_session *session); /* NULL allowed */
/* Bytes from the peer, valid until the next call that gives TLS_WANTS_INPUT. Only when everything
 * fed before is used. */
void tls_session_feed(struct tls_session *session, struct view bytes);
MUST_CHECK enum tls_result tls_session_handshake(struct tls_session *session);
/* At most one record, 16 KiB. */
MUST_CHECK enum tls_result tls_session_read(struct tls_session *session, char *to, size_t room,
                                            size_t *out_size);
/* All of it, or TLS_FAILED. After the handshake. */
MUST_CHECK enum tls_result tls_session_write(struct tls_session *session, struct view bytes);
/* Says that nothing follows. After the handshake. */
void tls_session_end(struct tls_session *session);
bool tls_session_was_resumed(const struct tls_session *session);
struct view tls_session_alpn(const struct tls_session *session); /* empty: none agreed */
bool tls_session_is_plain(const struct tls_session *session); /* the client speaks no TLS */
const char *tls_session_fault(const struct tls_session *session);

/* tls.c, for both: makes method's reads and writes those of sessions. */
BIO_METHOD *tls_wire_method_create(void);

#endif

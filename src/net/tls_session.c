/* One connection's TLS over OpenSSL: no sockets, bytes go in by tls_session_feed and come out on
 * the wire buffer. The loop's thread.
 *
 * Why a BIO of our own: OpenSSL's memory BIO copies what is fed, and keeps its memory for as long
 * as the connection lasts.
 *
 * Invariant: when OpenSSL wants more, `input` is used up: what it could not finish is inside it.
 *
 * Read next: conn_tls.c. */
#include "net/tls_internal.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

struct tls_session {
    struct tls *tls;
    SSL *ssl;
    struct view input;
    struct buf *wire;
    bool has_input;  /* something was fed once */
    bool is_not_tls; /* and it was no TLS */
    char fault[200];
};

/* ---- the BIO ---- */

static int wire_write(BIO *bio, const char *bytes, size_t size, size_t *out_size) {
    struct tls_session *session = BIO_get_data(bio);
    buf_append(session->wire, bytes, size);
    *out_size = session->wire->failed ? 0 : size;
    return session->wire->failed ? 0 : 1;
}

static int wire_read(BIO *bio, char *to, size_t room, size_t *out_size) {
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    const size_t size = room < session->input.size ? room : session->input.size;
    *out_size = size;
    if (size == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(to, session->input.data, size);
    session->input.data += size;
    session->input.size -= size;
    return 1;
}

static long wire_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0; /* everything is on the wire at once */
}

BIO_METHOD *tls_wire_method_create(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "wire");
    if (method && (BIO_meth_set_write_ex(method, wire_write) != 1 ||
                   BIO_meth_set_read_ex(method, wire_read) != 1 ||
                   BIO_meth_set_ctrl(method, wire_control) != 1)) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

/* ---- the session ---- */

static bool is_address(const char *host) {
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    ASN1_OCTET_STRING_free(address);
    return address != NULL;
}

static bool set_host(SSL *ssl, const char *host, bool is_checked) {
    if (is_address(host)) /* no name to send: RFC 6066, 3 */
        return !is_checked || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    if (SSL_set_tlsext_host_name(ssl, host) != 1)
        return false;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return !is_checked || SSL_set1_host(ssl, host) == 1;
}

struct tls_session *tls_session_create(struct tls *tls, const char *host, struct buf *wire) {
    struct tls_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    ERR_clear_error();
    session->tls = tls;
    session->wire = wire;
    session->ssl = SSL_new(tls->context);
    BIO *bio = session->ssl ? BIO_new(tls->wire_method) : NULL;
    if (!bio) {
        tls_session_free(session);
        return NULL;
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio); /* the SSL's now */
    if (tls->is_server) {
        SSL_set_accept_state(session->ssl);
        return session;
    }
    SSL_set_connect_state(session->ssl);
    if (!set_host(session->ssl, host, !tls->client.is_insecure)) {
        tls_session_free(session);
        return NULL;
    }
    return session;
}

void tls_session_free(struct tls_session *session) {
    if (!session)
        return;
    SSL_free(session->ssl);
    ERR_clear_error();
    free(session);
}

/* The first byte of a client that speaks TLS is that of a handshake record. */
void tls_session_feed(struct tls_session *session, struct view bytes) {
    enum { HANDSHAKE_RECORD = 0x16 };
    if (!session->has_input && session->tls->is_server && bytes.size > 0)
        session->is_not_tls = bytes.data[0] != HANDSHAKE_RECORD;
    session->has_input |= bytes.size > 0;
    session->input = bytes;
}

static enum tls_result fail(struct tls_session *session) {
    const unsigned long error = ERR_peek_error(); /* the first: what others were led to by it */
    const char *text = error ? ERR_reason_error_string(error) : NULL;
    const long verified = SSL_get_verify_result(session->ssl);
    const char *remedy = session->tls->client.remedy;
    if (session->wire->failed)
        text = "no memory";
    if (session->fault[0]) {
        /* it has a sentence already */
    } else if (!session->tls->is_server && !session->tls->client.is_insecure &&
               verified != X509_V_OK) {
        snprintf(session->fault, sizeof session->fault, "its certificate is not trusted: %s%s%s",
                 X509_verify_cert_error_string(verified), remedy ? "; " : "",
                 remedy ? remedy : "");
    } else if (session->tls->is_server && verified != X509_V_OK) {
        snprintf(session->fault, sizeof session->fault,
                 "the client's certificate is not trusted: %s",
                 X509_verify_cert_error_string(verified));
    } else {
        snprintf(session->fault, sizeof session->fault, "TLS failed: %s",
                 text ? text : "no reason given");
    }
    ERR_clear_error();
    return TLS_FAILED;
}

static enum tls_result result_of(struct tls_session *session, int returned) {
    switch (SSL_get_error(session->ssl, returned)) {
    case SSL_ERROR_NONE: return TLS_DONE;
    case SSL_ERROR_WANT_READ: return TLS_WANTS_INPUT;
    case SSL_ERROR_ZERO_RETURN: return TLS_ENDED;
    default: return fail(session);
    }
}

enum tls_result tls_session_handshake(struct tls_session *session) {
    if (session->is_not_tls) {
        snprintf(session->fault, sizeof session->fault,
                 "the client does not speak TLS, which this port does: use https://");
        return TLS_FAILED;
    }
    ERR_clear_error();
    const enum tls_result result = result_of(session, SSL_do_handshake(session->ssl));
    return result == TLS_ENDED ? fail(session) : result;
}

enum tls_result tls_session_read(struct tls_session *session, char *to, size_t room,
                                 size_t *out_size) {
    ERR_clear_error();
    const int returned = SSL_read_ex(session->ssl, to, room, out_size);
    return returned == 1 ? TLS_DONE : result_of(session, returned);
}

enum tls_result tls_session_write(struct tls_session *session, struct view bytes) {
    size_t written = 0;
    if (bytes.size == 0)
        return TLS_DONE;
    ERR_clear_error();
    if (SSL_write_ex(session->ssl, bytes.data, bytes.size, &written) == 1 &&
        written == bytes.size)
        return TLS_DONE;
    return fail(session);
}

void tls_session_end(struct tls_session *session) {
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl); /* 0: the peer's own end has not come yet, nor need it */
    ERR_clear_error();
}

bool tls_session_was_resumed(const struct tls_session *session) {
    return SSL_session_reused(session->ssl) == 1;
}

struct view tls_session_alpn(const struct tls_session *session) {
    const unsigned char *name = NULL;
    unsigned size = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &size);
    return (struct view){.data = (const char *)name, .size = size};
}

bool tls_session_is_plain(const struct tls_session *session) { return session->is_not_tls; }

const char *tls_session_fault(const struct tls_session *session) { return session->fault; }

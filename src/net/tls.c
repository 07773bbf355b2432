/* What TLS connections share: certificates, keys, what is trusted, what is offered. The loop's
 * thread, and at start whoever creates it.
 *
 * Invariant: `context` is complete, or the struct tls does not exist: tls_reload builds a second
 * one and swaps. Connections hold a reference to theirs.
 *
 * Read next: tls_session.c. */
#include "net/tls_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Key exchanges with forward secrecy and authenticated encryption; of TLS 1.3 all are so. */
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* The first error is the cause: those behind it say what that made impossible. */
static const char *reason(void) {
    const unsigned long error = ERR_peek_error();
    const char *text = error ? ERR_reason_error_string(error) : NULL;
    return text ? text : "no reason given";
}

static bool error_is(int library, int wanted) {
    const unsigned long error = ERR_peek_error();
    return ERR_GET_LIB(error) == library && ERR_GET_REASON(error) == wanted;
}

MUST_CHECK static enum status check_readable(const char *path, const char *what,
                                             struct err *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, ST_IO, "cannot read the %s %s: %s", what, path, strerror(errno));
    char byte;
    const bool is_readable = fread(&byte, 1, 1, file) == 1;
    const int error = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (is_readable)
        return ST_OK;
    return err_set(err, ST_IO, "cannot read the %s %s: %s", what, path,
                   error ? strerror(error) : "it is empty");
}

MUST_CHECK static enum status use_certificate(SSL_CTX *context, const char *path,
                                              struct err *err) {
    enum status status = check_readable(path, "certificate", err);
    ERR_clear_error();
    if (status != ST_OK || SSL_CTX_use_certificate_chain_file(context, path) == 1)
        return status;
    if (error_is(ERR_LIB_PEM, PEM_R_NO_START_LINE))
        return err_set(err, ST_INVALID, "%s holds no certificate in PEM (a block that begins with "
                       "-----BEGIN CERTIFICATE-----)", path);
    return err_set(err, ST_INVALID, "cannot use the certificate in %s: %s", path, reason());
}

/* Called for an encrypted key. */
static int refuse_passphrase(char *buffer, int size, int is_writing, void *was_asked) {
    (void)buffer;
    (void)size;
    (void)is_writing;
    *(bool *)was_asked = true;
    return -1;
}

MUST_CHECK static enum status use_key(SSL_CTX *context, const char *path, const char *certificate,
                                      struct err *err) {
    bool was_asked = false;
    enum status status = check_readable(path, "private key", err);
    if (status != ST_OK)
        return status;
    SSL_CTX_set_default_passwd_cb(context, refuse_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, &was_asked);
    ERR_clear_error();
    const bool is_used = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (is_used && SSL_CTX_check_private_key(context) == 1)
        return ST_OK;
    if (is_used || error_is(ERR_LIB_X509, X509_R_KEY_VALUES_MISMATCH) ||
        error_is(ERR_LIB_X509, X509_R_KEY_TYPE_MISMATCH))
        return err_set(err, ST_INVALID, "the private key %s does not match the certificate %s: "
                       "give the key that the certificate was made for", path, certificate);
    if (was_asked)
        return err_set(err, ST_INVALID, "the private key %s is encrypted, and a server cannot ask "
                       "for the passphrase: decrypt it (openssl pkey -in %s -out FILE)", path,
                       path);
    return err_set(err, ST_INVALID, "%s holds no private key in PEM that can be used (a block "
                   "that begins with -----BEGIN PRIVATE KEY-----): %s", path, reason());
}

static void note_dates(const SSL_CTX *context, const char *path, char *warning, size_t size) {
    const X509 *certificate = SSL_CTX_get0_certificate(context);
    const ASN1_TIME *end = X509_get0_notAfter(certificate);
    const ASN1_TIME *begin = X509_get0_notBefore(certificate);
    const bool is_over = X509_cmp_current_time(end) < 0;
    struct tm when = {0};
    char day[32] = "";
    if ((!is_over && X509_cmp_current_time(begin) < 0) ||
        ASN1_TIME_to_tm(is_over ? end : begin, &when) != 1)
        return;
    (void)strftime(day, sizeof day, "%Y-%m-%d %H:%M UTC", &when);
    snprintf(warning, size, is_over ? "the certificate %s expired on %s: clients will refuse it"
                                    : "the certificate %s is not valid before %s: clients will "
                                      "refuse it", path, day);
}

MUST_CHECK static enum status use_pair(SSL_CTX *context, const char *certificate, const char *key,
                                       struct tls *tls, struct err *err) {
    enum status status = use_certificate(context, certificate, err);
    if (status == ST_OK)
        status = use_key(context, key, certificate, err);
    if (status == ST_OK)
        note_dates(context, certificate, tls->warning, sizeof tls->warning);
    return status;
}

MUST_CHECK static enum status trust(SSL_CTX *context, const char *path, struct err *err) {
    enum status status = check_readable(path, "CA certificates", err);
    if (status == ST_OK && SSL_CTX_load_verify_file(context, path) != 1)
        status = err_set(err, ST_INVALID, "%s holds no CA certificate in PEM that can be used: %s",
                         path, reason());
    return status;
}

/* A client that offers only protocols that are not spoken here is told so and left. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                       const unsigned char *offered, unsigned size, void *ctx) {
    (void)ssl;
    const struct tls *tls = ctx;
    unsigned char *chosen = NULL; /* OpenSSL has no const here, and does not write */
    if (SSL_select_next_proto(&chosen, out_size, tls->alpn, tls->alpn_size, offered, size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

MUST_CHECK static enum status set_up_server(SSL_CTX *context, struct tls *tls, struct err *err) {
    const struct tls_server_config *config = &tls->server;
    enum status status = use_pair(context, config->certificate, config->key, tls, err);
    if (status == ST_OK && config->client_ca) {
        status = trust(context, config->client_ca, err);
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(config->client_ca));
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    if (tls->alpn_size > 0)
        SSL_CTX_set_alpn_select_cb(context, choose_alpn, tls);
    /* Tickets and no cache: resuming costs no memory here. One a handshake: clients use one. */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(context, 1);
    static const unsigned char NAME[] = "telltale";
    (void)SSL_CTX_set_session_id_context(context, NAME, sizeof NAME - 1);
    return status;
}

MUST_CHECK static enum status set_up_client(SSL_CTX *context, struct tls *tls, struct err *err) {
    const struct tls_client_config *config = &tls->client;
    enum status status = ST_OK;
    if (config->certificate)
        status = use_pair(context, config->certificate, config->key, tls, err);
    if (status == ST_OK && config->ca)
        status = trust(context, config->ca, err);
    if (!config->ca && !config->is_insecure)
        (void)SSL_CTX_set_default_verify_paths(context);
    SSL_CTX_set_verify(context, config->is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (status == ST_OK && tls->alpn_size > 0 &&
        SSL_CTX_set_alpn_protos(context, tls->alpn, tls->alpn_size) != 0)
        status = err_set(err, ST_NO_MEMORY, "no memory for TLS");
    return status;
}

/* A new context into *out. */
MUST_CHECK static enum status make_context(struct tls *tls, SSL_CTX **out, struct err *err) {
    ERR_clear_error();
    tls->warning[0] = '\0';
    SSL_CTX *context = SSL_CTX_new(tls->is_server ? TLS_server_method() : TLS_client_method());
    if (!context)
        return err_set(err, ST_NO_MEMORY, "cannot set up TLS: %s", reason());
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* Idle connections give their record buffers back, some 34 KiB each. */
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    enum status status = ST_OK;
    if (SSL_CTX_set_cipher_list(context, CIPHERS_1_2) != 1)
        status = err_set(err, ST_UNSUPPORTED, "this OpenSSL has none of the ciphers %s: %s",
                         CIPHERS_1_2, reason());
    if (status == ST_OK)
        status = tls->is_server ? set_up_server(context, tls, err)
                                : set_up_client(context, tls, err);
    ERR_clear_error();
    if (status == ST_OK)
        *out = context;
    else
        SSL_CTX_free(context);
    return status;
}

MUST_CHECK static enum status set_alpn(struct tls *tls, const char *const *names,
                                       struct err *err) {
    for (; names && *names; names++) {
        const size_t size = strlen(*names);
        if (size == 0 || size > 255 || tls->alpn_size + size + 1 > sizeof tls->alpn)
            return err_set(err, ST_INVALID, "the protocol name \"%s\" does not fit ALPN", *names);
        tls->alpn[tls->alpn_size++] = (unsigned char)size;
        memcpy(tls->alpn + tls->alpn_size, *names, size);
        tls->alpn_size += (unsigned)size;
    }
    return ST_OK;
}

MUST_CHECK static enum status create(struct tls *tls, const char *const *alpn, struct tls **out,
                                     struct err *err) {
    if (!tls)
        return err_set(err, ST_NO_MEMORY, "no memory for TLS");
    enum status status = set_alpn(tls, alpn, err);
    if (status == ST_OK)
        tls->wire_method = tls_wire_method_create();
    if (status == ST_OK && !tls->wire_method)
        status = err_set(err, ST_NO_MEMORY, "no memory for TLS");
    if (status == ST_OK)
        status = make_context(tls, &tls->context, err);
    if (status == ST_OK)
        *out = tls;
    else
        tls_free(tls);
    return status;
}

enum status tls_server_create(const struct tls_server_config *config, struct tls **out,
                              struct err *err) {
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls) {
        tls->is_server = true;
        tls->server = *config;
    }
    return create(tls, config->alpn, out, err);
}

enum status tls_client_create(const struct tls_client_config *config, struct tls **out,
                              struct err *err) {
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls)
        tls->client = *config;
    return create(tls, config->alpn, out, err);
}

enum status tls_reload(struct tls *tls, struct err *err) {
    SSL_CTX *fresh = NULL;
    char warning[sizeof tls->warning];
    memcpy(warning, tls->warning, sizeof warning);
    const enum status status = make_context(tls, &fresh, err);
    if (status != ST_OK) {
        memcpy(tls->warning, warning, sizeof warning);
        return status;
    }
    SSL_CTX_free(tls->context);
    tls->context = fresh;
    return ST_OK;
}

void tls_free(struct tls *tls) {
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->wire_method);
    free(tls);
}

const char *tls_warning(const struct tls *tls) { return tls->warning; }

const struct tls_counts *tls_counts(const struct tls *tls) { return &tls->counts; }

void tls_on_failure(struct tls *tls, void (*fn)(void *ctx, const char *sentence), void *ctx) {
    tls->on_failure = fn;
    tls->failure_ctx = ctx;
}

/* Certificates and keys for tests, made when they run: files in a directory that goes with them. */
#ifndef TELLTALE_TEST_UNIT_NET_CERTIFICATES_H
#define TELLTALE_TEST_UNIT_NET_CERTIFICATES_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct certificates {
    char directory[64];
    char *paths[40];
    int count;
};

struct issuer { /* of certificates */
    X509 *certificate;
    EVP_PKEY *key;
};

static inline void certificates_open(struct certificates *all) {
    all->count = 0;
    strcpy(all->directory, "/tmp/telltale-certificates-XXXXXX");
    if (!mkdtemp(all->directory))
        abort();
}

static inline const char *certificates_path(struct certificates *all, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", all->directory, name) < 0)
        abort();
    all->paths[all->count++] = path;
    return path;
}

static inline void certificates_close(struct certificates *all) {
    for (int i = 0; i < all->count; i++) {
        (void)unlink(all->paths[i]);
        free(all->paths[i]);
    }
    (void)rmdir(all->directory);
}

static inline const char *certificates_text(struct certificates *all, const char *name,
                                     const char *text) {
    const char *path = certificates_path(all, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    return path;
}

static inline void add_extension(X509 *certificate, X509V3_CTX *ctx, int nid, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, ctx, nid, value);
    if (!extension)
        abort();
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

/* names: "DNS:localhost,IP:127.0.0.1", or NULL for a CA. by: NULL: signs itself. begin_s, end_s:
 * from now. */
static inline struct issuer certificate_make(const char *common_name, const char *names,
                                      const struct issuer *by, long begin_s, long end_s) {
    struct issuer made = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
    static long serial = 1;
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), begin_s);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), end_s);
    X509_NAME *name = X509_get_subject_name(made.certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1,
                               -1, 0);
    X509_set_pubkey(made.certificate, made.key);
    X509 *issuer = by ? by->certificate : made.certificate;
    X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer));
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, made.certificate, NULL, NULL, 0);
    add_extension(made.certificate, &ctx, NID_basic_constraints,
                  names ? "CA:FALSE" : "critical,CA:TRUE");
    if (names && names[0])
        add_extension(made.certificate, &ctx, NID_subject_alt_name, names);
    if (!X509_sign(made.certificate, by ? by->key : made.key, EVP_sha256()))
        abort();
    return made;
}

static inline void certificate_free(struct issuer *made) {
    X509_free(made->certificate);
    EVP_PKEY_free(made->key);
}

static inline const char *certificate_write(struct certificates *all, const char *name,
                                     const struct issuer *made) {
    const char *path = certificates_path(all, name);
    FILE *file = fopen(path, "w");
    PEM_write_X509(file, made->certificate);
    fclose(file);
    return path;
}

/* passphrase: NULL: not encrypted */
static inline const char *key_write(struct certificates *all, const char *name,
                             const struct issuer *made, const char *passphrase) {
    const char *path = certificates_path(all, name);
    FILE *file = fopen(path, "w");
    PEM_write_PrivateKey(file, made->key, passphrase ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
                         (void *)(uintptr_t)passphrase);
    fclose(file);
    return path;
}

#endif

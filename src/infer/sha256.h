/* SHA-256 (FIPS 180-4), so that a result names the exact model file. */
#ifndef TELLTALE_INFER_SHA256_H
#define TELLTALE_INFER_SHA256_H

#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { SHA256_HEX_SIZE = 65 }; /* 64 digits and the end */

struct sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    unsigned char block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t size);
void sha256_hex(struct sha256 *hash, char out[SHA256_HEX_SIZE]); /* ends it */

/* ST_IO when the file cannot be read. */
MUST_CHECK enum status sha256_file(const char *path, char out[SHA256_HEX_SIZE], struct err *err);

#endif

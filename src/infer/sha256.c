/* SHA-256 after FIPS 180-4. Our own, since a dependency for one checksum at start-up is not
 * worth its weight.
 *
 * Any thread. Invariant: size % 64 bytes of block are filled. Read next: model.c. */
#include "infer/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned by) { return x >> by | x << (32 - by); }

static void block_add(uint32_t state[8], const unsigned char *block) {
    uint32_t w[64];
    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8]; /* a to h */
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const uint32_t t1 = v[7] + s1 + choice + K[i] + w[i];
        const uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(&v[1], &v[0], 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (unsigned i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void sha256_init(struct sha256 *hash) {
    *hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    while (size > 0) {
        const size_t used = hash->size % sizeof hash->block;
        if (used == 0 && size >= sizeof hash->block) {
            block_add(hash->state, at);
            hash->size += sizeof hash->block;
            at += sizeof hash->block;
            size -= sizeof hash->block;
            continue;
        }
        const size_t room = sizeof hash->block - used;
        const size_t take = size < room ? size : room;
        memcpy(hash->block + used, at, take);
        hash->size += take;
        at += take;
        size -= take;
        if (hash->size % sizeof hash->block == 0) {
            block_add(hash->state, hash->block);
        }
    }
}

void sha256_hex(struct sha256 *hash, char out[SHA256_HEX_SIZE]) {
    static const unsigned char PADDING[64] = {0x80};
    const uint64_t bits = hash->size * 8;
    const size_t used = hash->size % 64;
    unsigned char length[8];
    for (unsigned i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    }
    sha256_add(hash, PADDING, used < 56 ? 56 - used : 120 - used);
    sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(out + (size_t)8 * i, 9, "%08x", hash->state[i]);
    }
}

enum status sha256_file(const char *path, char out[SHA256_HEX_SIZE], struct err *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(err, ST_IO, "%s: %s", path, strerror(errno));
    }
    struct sha256 hash;
    sha256_init(&hash);
    unsigned char bytes[16384];
    ssize_t size;
    while ((size = read(fd, bytes, sizeof bytes)) != 0) {
        if (size < 0 && errno != EINTR) {
            break;
        }
        sha256_add(&hash, bytes, size > 0 ? (size_t)size : 0);
    }
    const enum status status =
        size < 0 ? err_set(err, ST_IO, "%s: %s", path, strerror(errno)) : ST_OK;
    close(fd);
    if (status == ST_OK) {
        sha256_hex(&hash, out);
    }
    return status;
}

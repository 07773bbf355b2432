/* One writer, one reader, fixed records. Threads: spsc.h. Invariant: written - read is between
 * 0 and capacity; records [read, written) belong to the reader, the others to the writer.
 *
 * The two sides' fields lie on cache lines of their own, so that neither side's stores take the
 * line from the other; each keeps a copy of the other's index and looks again only when the
 * copy says full or empty. */
#include "sync/spsc.h"

#include <stdatomic.h>
#include <stdlib.h>

struct spsc {
    size_t mask; /* capacity - 1; constant */
    size_t stride;
    _Alignas(64) _Atomic uint64_t written; /* written by the writer */
    _Atomic uint64_t dropped;              /* written by the writer */
    uint64_t read_copy;                    /* the writer's own */
    _Alignas(64) _Atomic uint64_t read;    /* written by the reader */
    uint64_t written_copy;                 /* the reader's own */
    _Alignas(64) unsigned char records[];
};

struct spsc *spsc_create(size_t capacity, size_t record_size) {
    size_t rounded = 1;
    while (rounded < capacity) {
        if (__builtin_mul_overflow(rounded, 2, &rounded)) {
            return NULL;
        }
    }
    size_t stride;
    size_t bytes;
    if (__builtin_add_overflow(record_size == 0 ? 1 : record_size, 15, &stride)) {
        return NULL;
    }
    stride &= ~(size_t)15; /* any record may begin with the widest plain type */
    if (__builtin_mul_overflow(rounded, stride, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct spsc) + 63, &bytes)) {
        return NULL;
    }
    struct spsc *ring = aligned_alloc(64, bytes & ~(size_t)63);
    if (ring == NULL) {
        return NULL;
    }
    *ring = (struct spsc){.mask = rounded - 1, .stride = stride};
    return ring;
}

void spsc_free(struct spsc *ring) { free(ring); }

void *spsc_reserve(struct spsc *ring) {
    /* Relaxed: our own index. */
    const uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    if (written - ring->read_copy > ring->mask) {
        /* A1: the reader is done with what it released; pairs with R2 in spsc_release. */
        ring->read_copy = atomic_load_explicit(&ring->read, memory_order_acquire);
        if (written - ring->read_copy > ring->mask) {
            /* Relaxed: a statistic with one writer, so load and store need not be one step. */
            const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
            atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
            return NULL;
        }
    }
    return ring->records + (written & ring->mask) * ring->stride;
}

void spsc_commit(struct spsc *ring) {
    /* Relaxed: our own index. */
    const uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    /* R1: publishes the record; pairs with A2 in spsc_peek. */
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
}

const void *spsc_peek(struct spsc *ring) {
    /* Relaxed: our own index. */
    const uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    if (read == ring->written_copy) {
        /* A2: sees the record; pairs with R1 in spsc_commit. */
        ring->written_copy = atomic_load_explicit(&ring->written, memory_order_acquire);
        if (read == ring->written_copy) {
            return NULL;
        }
    }
    return ring->records + (read & ring->mask) * ring->stride;
}

void spsc_release(struct spsc *ring) {
    /* Relaxed: our own index. */
    const uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    /* R2: gives the slot back after the last look at it; pairs with A1 in spsc_reserve. */
    atomic_store_explicit(&ring->read, read + 1, memory_order_release);
}

uint64_t spsc_dropped(const struct spsc *ring) {
    /* Relaxed: a statistic. */
    return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

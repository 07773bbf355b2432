/* Arena: a list of blocks; small allocations come from the first, large ones have their own.
 * Owned by one thread at a time. Invariant: each block's data begins on a 64-byte line, so an
 * offset that is a multiple of the alignment is an address that is one too.
 *
 * Under AddressSanitizer what has not been handed out is poisoned, so that a read past the end
 * of an allocation or after arena_clear is found as it would be with malloc. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

enum {
    FIRST_BLOCK_BYTES = 4096 - 64, /* a small request needs one block, a page with its header */
    LARGEST_STEP_BYTES = 1 << 20,  /* blocks double up to here */
    KEPT_BYTES = 256 << 10         /* one large request must not hold its memory for ever */
};

struct arena_block {
    _Alignas(64) struct arena_block *older;
    size_t capacity;
    size_t used;
    _Alignas(64) unsigned char data[];
};

void arena_init(struct arena *arena) { *arena = (struct arena){.first = NULL}; }

static void free_blocks(struct arena_block *block) {
    while (block != NULL) {
        struct arena_block *older = block->older;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->capacity);
        free(block);
        block = older;
    }
}

void arena_done(struct arena *arena) {
    free_blocks(arena->first);
    arena_init(arena);
}

void arena_clear(struct arena *arena) {
    struct arena_block *kept = NULL;
    for (struct arena_block **link = &arena->first; *link != NULL; link = &(*link)->older) {
        if ((*link)->capacity <= KEPT_BYTES) {
            kept = *link; /* the newest that is not too large is the largest such */
            *link = kept->older;
            break;
        }
    }
    free_blocks(arena->first);
    arena_init(arena);
    if (kept != NULL) {
        kept->older = NULL;
        kept->used = 0;
        ASAN_POISON_MEMORY_REGION(kept->data, kept->capacity);
        arena->first = kept;
    }
}

/* A new block that holds at least size: in front, or behind the newest when size is out of
 * the ordinary, so that one large tensor does not end the use of a block hardly begun. */
static struct arena_block *add_block(struct arena *arena, size_t size) {
    size_t capacity = FIRST_BLOCK_BYTES;
    if (arena->first != NULL) {
        capacity = arena->first->capacity * 2 + 64;
        capacity = capacity > LARGEST_STEP_BYTES ? LARGEST_STEP_BYTES : capacity;
    }
    const bool is_large = size > capacity;
    capacity = is_large ? size : capacity;
    if (capacity > SIZE_MAX - sizeof(struct arena_block) - 64) {
        return NULL;
    }
    const size_t bytes = (sizeof(struct arena_block) + capacity + 63) / 64 * 64;
    struct arena_block *block = aligned_alloc(64, bytes);
    if (block == NULL) {
        return NULL;
    }
    block->capacity = bytes - sizeof(struct arena_block);
    block->used = 0;
    ASAN_POISON_MEMORY_REGION(block->data, block->capacity);
    struct arena_block **link =
        is_large && arena->first != NULL ? &arena->first->older : &arena->first;
    block->older = *link;
    *link = block;
    return block;
}

static void *alloc_aligned(struct arena *arena, size_t size, size_t alignment) {
    size = size == 0 ? 1 : size;
    struct arena_block *block = arena->first;
    size_t start = block == NULL ? 0 : (block->used + alignment - 1) / alignment * alignment;
    if (block == NULL || start > block->capacity || size > block->capacity - start) {
        block = add_block(arena, size);
        if (block == NULL) {
            return NULL;
        }
        start = 0;
    }
    block->used = start + size;
    arena->used_bytes += size;
    ASAN_UNPOISON_MEMORY_REGION(block->data + start, size);
    return block->data + start;
}

void *arena_alloc(struct arena *arena, size_t size) { return alloc_aligned(arena, size, 16); }

void *arena_alloc_aligned64(struct arena *arena, size_t size) {
    return alloc_aligned(arena, size, 64);
}

void *arena_zalloc(struct arena *arena, size_t size) {
    void *memory = arena_alloc(arena, size);
    return memory == NULL ? NULL : memset(memory, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return arena_zalloc(arena, bytes);
}

char *arena_copy(struct arena *arena, struct view text) {
    if (text.size == SIZE_MAX) {
        return NULL;
    }
    char *copy = arena_alloc(arena, text.size + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (text.size > 0) {
        memcpy(copy, text.data, text.size);
    }
    copy[text.size] = '\0';
    return copy;
}

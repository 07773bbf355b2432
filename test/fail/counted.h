/* Allocations that are counted and refused on demand, of the sources that are included between this
 * header and counted_end.h: for code beside simdjson, whose own allocations must not fail (memory.h
 * makes all of a program's fail).
 *
 *     #include "counted.h"
 *     #include "../../src/prep/trie.c"
 *     #include "counted_end.h"
 *
 * allocations_left: how many succeed before all fail; negative: without limit. */
#ifndef TELLTALE_TEST_FAIL_COUNTED_H
#define TELLTALE_TEST_FAIL_COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static long allocations_left = -1;

static bool may_allocate(void) {
    if (allocations_left < 0) {
        return true;
    }
    if (allocations_left == 0) {
        return false;
    }
    allocations_left--;
    return true;
}

static void *counted_malloc(size_t size) { return may_allocate() ? malloc(size) : NULL; }
static void *counted_calloc(size_t count, size_t size) {
    return may_allocate() ? calloc(count, size) : NULL;
}
static void *counted_realloc(void *old, size_t size) {
    return may_allocate() ? realloc(old, size) : NULL;
}
static void *counted_aligned_alloc(size_t alignment, size_t size) {
    return may_allocate() ? aligned_alloc(alignment, size) : NULL;
}

#define malloc counted_malloc
#define calloc counted_calloc
#define realloc counted_realloc
#define aligned_alloc counted_aligned_alloc

#endif

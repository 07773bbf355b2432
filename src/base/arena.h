/* Memory that is freed all at once: one arena a request. Not thread-safe; a request's
 * arena is used by whichever one thread owns the request at the time. */
#ifndef TELLTALE_BASE_ARENA_H
#define TELLTALE_BASE_ARENA_H

#include "base/view.h"
#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *first; /* the block that small allocations come from */
    size_t used_bytes;         /* handed out since the last clear */
};

void arena_init(struct arena *arena);
void arena_done(struct arena *arena);  /* frees everything; arena_init'ed or zeroed arena allowed */
void arena_clear(struct arena *arena); /* forgets everything, keeps one block for reuse */

/* size bytes aligned to 16 (64 for arena_alloc_aligned64); NULL when memory is out. Size 0
 * gives a valid, unique pointer. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);
void *arena_alloc_aligned64(struct arena *arena, size_t size);
/* count * size with overflow check; NULL on overflow or no memory. Zeroed. */
void *arena_array(struct arena *arena, size_t count, size_t size);
/* Terminated copy; NULL when memory is out. */
char *arena_copy(struct arena *arena, struct view text);

#endif

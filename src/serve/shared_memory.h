/* Regions of POSIX shared memory that clients have registered: Triton's system shared memory
 * extension. Tensors of requests are read from them and written into them.
 *
 * Any thread: a mutex is held while a region is looked up, not while it is copied. A region that is
 * unregistered while it is copied stays open until the copy is done. Nothing is mapped: an object
 * that its owner makes smaller is a short read and not the end of the process. */
#ifndef TELLTALE_SERVE_SHARED_MEMORY_H
#define TELLTALE_SERVE_SHARED_MEMORY_H

#include "base/arena.h"
#include "base/status.h"
#include "proto/infer_json.h"

enum { SHARED_NAME_MAX = 255 }; /* bytes, of a region's name and of an object's */

struct shared_memory;

/* max_regions 0: none can be registered. NULL when memory is out. */
struct shared_memory *shared_memory_create(uint64_t max_regions);
void shared_memory_free(struct shared_memory *shared); /* NULL allowed */
bool shared_memory_is_on(const struct shared_memory *shared);

/* A part of the object that shm_open knows by key. One object may be registered under several names;
 * a name in use is ST_INVALID. The object must exist and be large enough. */
MUST_CHECK enum status shared_memory_register(struct shared_memory *shared, struct view name,
                                              struct view key, uint64_t offset, uint64_t byte_size,
                                              struct err *err);
/* Forgets name, which need not be there. name empty: forgets all. */
void shared_memory_unregister(struct shared_memory *shared, struct view name);

struct shared_region {
    struct view name, key;
    uint64_t offset, byte_size;
};
/* What is registered, by name, copied into arena. name empty: all; else ST_NOT_FOUND where it is not
 * there. */
MUST_CHECK enum status shared_memory_list(struct shared_memory *shared, struct view name,
                                          struct arena *arena, struct shared_region **out,
                                          size_t *out_count, struct err *err);

/* Whether the place lies in a region; before memory is taken for what is there. */
MUST_CHECK enum status shared_memory_check(struct shared_memory *shared,
                                           const struct shared_place *place, struct err *err);
/* Copies place->size bytes out of the region. Errors name the region: "region \"a\": ...". */
MUST_CHECK enum status shared_memory_read(struct shared_memory *shared,
                                          const struct shared_place *place, void *out,
                                          struct err *err);
/* Copies size bytes, at most place->size, into the region. */
MUST_CHECK enum status shared_memory_write(struct shared_memory *shared,
                                           const struct shared_place *place, const void *bytes,
                                           size_t size, struct err *err);

#endif

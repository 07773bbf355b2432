/* protobuf-c's allocator over an arena. Any thread, the arena's owner. Invariant: what it gives is
 * freed with the arena alone, so a parse that fails half-way has nothing to undo. */
#include "schema/allocator.h"

static void *alloc_from_arena(void *arena, size_t size) { return arena_alloc(arena, size); }

static void leave_to_arena(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

ProtobufCAllocator schema_allocator(struct arena *arena) {
    return (ProtobufCAllocator){
        .alloc = alloc_from_arena, .free = leave_to_arena, .allocator_data = arena};
}

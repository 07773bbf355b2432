/* protobuf-c's allocator over an arena: messages unpacked or parsed with it live and die with the
 * arena, and are never freed one by one. Used by the thread that owns the arena. */
#ifndef TELLTALE_SCHEMA_ALLOCATOR_H
#define TELLTALE_SCHEMA_ALLOCATOR_H

#include "base/arena.h"
#include <protobuf-c/protobuf-c.h>

/* arena must outlive the allocator and what was allocated with it. Freeing with it does nothing. */
ProtobufCAllocator schema_allocator(struct arena *arena);

#endif

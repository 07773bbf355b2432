/* See request.h. */
#include "engine/request.h"

void request_init(struct request *request) {
    *request = (struct request){0};
    arena_init(&request->arena);
}

void request_clear(struct request *request) {
    struct arena arena = request->arena;
    arena_clear(&arena);
    *request = (struct request){.arena = arena};
}

void request_done(struct request *request) { arena_done(&request->arena); }

/* See request.h. */
#include "engine/request.h"

#include "engine/engine.h"

void request_init(struct request *request) {
    *request = (struct request){0};
    arena_init(&request->arena);
}

void request_clear(struct request *request) {
    engine_release(request->model);
    struct arena arena = request->arena;
    arena_clear(&arena);
    *request = (struct request){.arena = arena};
}

void request_done(struct request *request) {
    engine_release(request->model);
    request->model = NULL;
    arena_done(&request->arena);
}

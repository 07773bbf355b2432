/* Shared memory over HTTP: status, register, unregister. Loop thread only.
 *
 * Invariant: what is answered comes from the one table that gRPC uses too.
 * Read next: shared_memory.h. */
#include "serve/control.h"

static struct view name_of(const struct control_call *call) {
    return view_of(call->names[0]);
}

enum status control_shared_status(struct control_call *call, struct err *err) {
    struct buf *out = &call->server->body;
    struct arena arena;
    struct shared_region *regions = NULL;
    size_t count = 0;
    arena_init(&arena);
    const enum status status = shared_memory_list(call->server->shared_memory, name_of(call), &arena,
                                                  &regions, &count, err);
    if (status == ST_OK)
        buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(out, regions[i].name);
        buf_text(out, ",\"key\":");
        buf_json_string(out, regions[i].key);
        buf_text(out, ",\"offset\":");
        buf_u64(out, regions[i].offset);
        buf_text(out, ",\"byte_size\":");
        buf_u64(out, regions[i].byte_size);
        buf_char(out, '}');
    }
    if (status == ST_OK)
        buf_char(out, ']');
    arena_done(&arena);
    return status;
}

enum status control_shared_register(struct control_call *call, struct err *err) {
    json_t *body = NULL;
    struct view key = {.data = NULL};
    uint64_t offset = 0;
    uint64_t byte_size = 0;
    enum status status = control_body(call, CONTROL_BODY_BYTES, &body, err);
    if (status == ST_OK)
        status = control_text(body, "key", &key, err);
    if (status == ST_OK && json_object_get(body, "offset"))
        status = control_uint(body, "offset", &offset, err);
    if (status == ST_OK)
        status = control_uint(body, "byte_size", &byte_size, err);
    if (status == ST_OK)
        status = shared_memory_register(call->server->shared_memory, name_of(call), key, offset,
                                        byte_size, err);
    json_decref(body);
    return status;
}

enum status control_shared_unregister(struct control_call *call, struct err *err) {
    (void)err;
    shared_memory_unregister(call->server->shared_memory, name_of(call));
    return ST_OK;
}

/* A client asks this of every server before it uses memory of any kind: there is none. */
enum status control_cuda_status(struct control_call *call, struct err *err) {
    if (call->names[0][0])
        return err_set(err, ST_NOT_FOUND, "no CUDA shared memory region \"%s\" is registered",
                       call->names[0]);
    buf_text(&call->server->body, "[]");
    return ST_OK;
}

enum status control_cuda_register(struct control_call *call, struct err *err) {
    (void)call;
    return err_set(err, ST_UNSUPPORTED, "CUDA shared memory is not supported: models run on the "
                                        "processor, use system shared memory");
}

enum status control_cuda_unregister(struct control_call *call, struct err *err) {
    (void)call;
    (void)err;
    return ST_OK;
}

/* Converts messages for schema_oracle.py. Reads questions from standard input, each
 * (char what, char type, uint32 length, bytes), and answers (char is_ok, uint32 length, bytes):
 * what: t text format to wire, j JSON to wire, w wire to JSON; type: a letter of TYPES.
 * A refusal's bytes are its sentence. */
#include "schema/grpc_service.pb-c.h"
#include "schema/json_format.h"
#include "schema/text_format.h"
#include "files.h"
#include "schema/allocator.h"

static const struct {
    char letter;
    const ProtobufCMessageDescriptor *descriptor;
} TYPES[] = {
    {'c', &inference__model_config__descriptor},
    {'i', &inference__model_infer_request__descriptor},
    {'s', &inference__model_statistics_response__descriptor},
    {'l', &inference__repository_model_load_request__descriptor},
    {'r', &inference__system_shared_memory_status_response__descriptor},
};

static const ProtobufCMessageDescriptor *type_of(char letter) {
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (TYPES[i].letter == letter) {
            return TYPES[i].descriptor;
        }
    }
    fprintf(stderr, "no message type '%c'\n", letter);
    exit(2);
}

static void answer(bool is_ok, const void *bytes, size_t size) {
    put_bytes(stdout, &(char){is_ok ? '1' : '0'}, 1);
    put_u32(stdout, (int64_t)size);
    put_bytes(stdout, bytes, size);
    (void)fflush(stdout);
}

static void answer_wire(enum status status, const ProtobufCMessage *message,
                        const struct err *err) {
    if (status != ST_OK) {
        answer(false, err->text, strlen(err->text));
        return;
    }
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *wire = malloc(size + 1);
    if (wire == NULL) {
        exit(2);
    }
    answer(true, wire, protobuf_c_message_pack(message, wire));
    free(wire);
}

static void convert(char what, const ProtobufCMessageDescriptor *type, struct view bytes) {
    struct arena arena;
    arena_init(&arena);
    struct err err = {.text = ""};
    ProtobufCMessage *message = NULL;
    if (what == 't') {
        const enum status status =
            text_format_parse(bytes, type, NULL, NULL, &arena, &message, &err);
        answer_wire(status, message, &err);
    } else if (what == 'j') {
        const enum status status = json_format_parse(bytes, type, &arena, &message, &err);
        answer_wire(status, message, &err);
    } else {
        ProtobufCAllocator allocator = schema_allocator(&arena);
        message = protobuf_c_message_unpack(type, &allocator, bytes.size,
                                            (const uint8_t *)bytes.data);
        struct buf out;
        buf_init(&out);
        if (message != NULL) {
            json_format_write(message, &out);
        }
        answer(message != NULL && !out.failed, out.data, out.size);
        buf_done(&out);
    }
    arena_done(&arena);
}

int main(void) {
    char head[6];
    while (fread(head, sizeof head, 1, stdin) == 1) {
        uint32_t size;
        memcpy(&size, head + 2, sizeof size);
        char *bytes = malloc(size + (size_t)1); /* exactly: reading behind it is found */
        if (bytes == NULL || (size > 0 && fread(bytes, size, 1, stdin) != 1)) {
            return 2;
        }
        convert(head[0], type_of(head[1]), (struct view){bytes, size});
        free(bytes);
    }
    return 0;
}

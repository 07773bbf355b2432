/* A client of an engine with a small model and a pipeline, for tests: requests of one BYTES input
 * or one tensor, waited for; pictures as PNG files made here. Skips the test, with a message,
 * where ONNX Runtime is not installed. */
#ifndef TELLTALE_TEST_ENGINE_CLIENT_H
#define TELLTALE_TEST_ENGINE_CLIENT_H

#include "engine/engine.h"
#include "sync/parker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

#define CLIENT_LIBRARY TEST_SOURCE_DIR "/.deps/onnxruntime/lib/libonnxruntime.so.1"

/* ---- an engine ---- */

struct client {
    struct engine_config config;
    char directory[32], model[512], pipeline[64];
    struct engine *engine;
    struct mpsc answers;
    struct parker parker;
    int64_t taken;
};

static inline void client_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* One worker and one instance, so that what is batched with what is known. yaml NULL: none. */
static inline void client_init(struct client *client, const char *model, const char *yaml) {
    *client = (struct client){.directory = "/tmp/telltale-XXXXXX"};
    assert_non_null(mkdtemp(client->directory));
    snprintf(client->model, sizeof client->model, "%s/test/data/%s", TEST_SOURCE_DIR, model);
    snprintf(client->pipeline, sizeof client->pipeline, "%s/pipeline.yaml", client->directory);
    if (yaml != NULL) client_write(client->pipeline, yaml);
    client->config = (struct engine_config){
        .model = client->model, .pipeline = yaml != NULL ? client->pipeline : NULL,
        .onnxruntime = access(CLIENT_LIBRARY, R_OK) == 0 ? CLIENT_LIBRARY : NULL,
        .policy = POLICY_ADAPTIVE, .max_batch = 8, .intra_op_threads = 1, .instances = 1,
        .workers = 1, .queue_limit = 1000};
    mpsc_init(&client->answers);
    parker_init(&client->parker);
}

static inline void client_done(struct client *client) {
    engine_free(client->engine);
    char path[96];
    for (const char *const *name = (const char *const[]){"pipeline.yaml", "tokenizer.json",
                                                         "labels.txt", NULL}; *name != NULL; name++) {
        snprintf(path, sizeof path, "%s/%s", client->directory, *name);
        (void)unlink(path);
    }
    (void)rmdir(client->directory);
}

/* ST_OK, or what is wrong in err. */
static inline enum status client_open(struct client *client, struct err *err) {
    *err = (struct err){.text = ""};
    const enum status status = engine_create(&client->config, &client->engine, err);
    if (strstr(err->text, "library not found") == NULL) return status;
    print_message("skipped: %s\n", err->text);
    client_done(client);
    skip();
    return status;
}

static inline void client_start(struct client *client, const char *model, const char *yaml) {
    struct err err;
    client_init(client, model, yaml);
    if (client_open(client, &err) != ST_OK) fail_msg("%s", err.text);
}

/* ---- requests ---- */

struct asked {
    struct request request;
    struct tensor inputs[2];
    unsigned char body[4096];
    size_t size;
};

static inline void client_on_done(struct request *request) {
    struct client *client = request->owner;
    mpsc_push(&client->answers, &request->done_node);
    parker_wake(&client->parker, 1);
}

static inline void client_begin(struct client *client, struct asked *asked) {
    request_init(&asked->request);
    asked->size = 0;
    asked->request.model = engine_only(client->engine);
    asked->request.on_done = client_on_done;
    asked->request.owner = client;
    asked->request.inputs = asked->inputs;
}

/* One more element of a BYTES input. */
static inline void client_element(struct asked *asked, const void *bytes, size_t size) {
    const uint32_t length = (uint32_t)size;
    assert_true(asked->size + 4 + size <= sizeof asked->body);
    memcpy(asked->body + asked->size, &length, 4);
    memcpy(asked->body + asked->size + 4, bytes, size);
    asked->size += 4 + size;
}

static inline void client_input(struct asked *asked, const char *name, int64_t rows) {
    asked->inputs[0] = (struct tensor){.name = view_of(name), .dtype = DTYPE_BYTES, .rank = 1,
                                       .shape = {rows}, .data = asked->body, .size = asked->size};
    asked->request.input_count = 1;
}

static inline void client_wait(struct client *client, int64_t count) {
    const int64_t until = client->taken + count;
    while (client->taken < until) {
        const uint32_t key = parker_prepare(&client->parker);
        struct mpsc_node *node = mpsc_take_all(&client->answers);
        if (node == NULL) parker_wait(&client->parker, key, UINT64_MAX);
        else parker_cancel(&client->parker);
        for (; node != NULL; node = node->next) client->taken++;
    }
}

/* Submits and waits; the request's status, whichever way it came. */
static inline enum status client_ask(struct client *client, struct asked *asked) {
    const enum status status = engine_submit(client->engine, &asked->request);
    if (status != ST_OK) return status;
    engine_flush(client->engine);
    client_wait(client, 1);
    return asked->request.status;
}

static inline const struct tensor *client_output(const struct asked *asked, const char *name) {
    for (uint32_t i = 0; i < asked->request.output_count; i++)
        if (view_is(asked->request.outputs[i].name, name)) return &asked->request.outputs[i];
    fail_msg("no output %s", name);
    return NULL;
}

static inline struct batcher_stats client_stats(struct client *client) {
    struct batcher_stats stats;
    const struct served_model *served = engine_only(client->engine);
    engine_stats(served, &stats);
    engine_release(served);
    return stats;
}

/* ---- pictures ---- */

static inline unsigned char *png_u32(unsigned char *to, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) *to++ = (unsigned char)(value >> shift);
    return to;
}

/* A chunk around size bytes that lie at to + 8 already. */
static inline unsigned char *png_chunk(unsigned char *to, const char *type, uint32_t size) {
    png_u32(to, size);
    memcpy(to + 4, type, 4);
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 4; i < size + 8; i++) {
        crc ^= to[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return png_u32(to + 8 + size, ~crc);
}

/* An RGB picture of (height, width, 3) samples as a PNG file, stored and not compressed; its size. */
static inline size_t png_make(const unsigned char *samples, uint32_t width, uint32_t height,
                              unsigned char out[2048]) {
    static const unsigned char SIGNATURE[8] = {137, 'P', 'N', 'G', 13, 10, 26, 10};
    const uint32_t line = width * 3 + 1, size = line * height;
    assert_true(size <= 1800);
    memcpy(out, SIGNATURE, sizeof SIGNATURE);
    unsigned char *to = out + sizeof SIGNATURE, *data = to + 8;
    data = png_u32(png_u32(data, width), height);
    memcpy(data, (unsigned char[]){8, 2, 0, 0, 0}, 5);
    to = png_chunk(to, "IHDR", 13);
    data = to + 8;
    memcpy(data, (unsigned char[]){0x78, 1, 1, (unsigned char)size, (unsigned char)(size >> 8),
                                   (unsigned char)~size, (unsigned char)(~size >> 8)}, 7);
    uint32_t low = 1, high = 0;
    for (uint32_t i = 0; i < size; i++) {
        const unsigned char byte = i % line == 0 ? 0 : samples[i / line * (line - 1) + i % line - 1];
        data[7 + i] = byte;
        low = (low + byte) % 65521;
        high = (high + low) % 65521;
    }
    png_u32(data + 7 + size, high << 16 | low);
    to = png_chunk(to, "IDAT", 7 + size + 4);
    return (size_t)(png_chunk(to, "IEND", 0) - out);
}

#endif

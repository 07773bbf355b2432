/* Any bytes as an HTTP request and as a response: fed whole, and cut at points that the first
 * bytes choose, they must give the same events and messages. Byte 0: seed of the cuts, its lowest
 * bit set for a response; the rest is the input. */
#include "proto/http1.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void digest_bytes(uint64_t *digest, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        *digest = (*digest ^ (unsigned char)bytes[i]) * 1099511628211u;
    }
    *digest = (*digest ^ size) * 1099511628211u;
}

static void digest_message(uint64_t *digest, const struct http_message *message) {
    digest_bytes(digest, message->target.data, message->target.size);
    digest_bytes(digest, message->path.data, message->path.size);
    digest_bytes(digest, message->query.data, message->query.size);
    digest_bytes(digest, message->body.data, message->body.size + 64); /* the padding too */
    for (uint32_t i = 0; i < message->header_count; i++) {
        digest_bytes(digest, message->headers[i].name.data, message->headers[i].name.size);
        digest_bytes(digest, message->headers[i].value.data, message->headers[i].value.size);
    }
    *digest = *digest * 31 + (uint64_t)message->method + (uint64_t)message->status * 8 +
              (message->keep_alive ? 4 : 0) + (message->expects_continue ? 2 : 0);
}

/* Feeds one piece from memory of its own size. False at a fault. */
static bool feed_piece(struct http_parser *parser, const uint8_t *piece, size_t size,
                       uint64_t *digest) {
    char *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, piece, size);
    bool is_good = true;
    size_t at = 0;
    while (is_good && at < size) {
        size_t used = 0;
        const enum http_event event = http_parser_feed(parser, copy + at, size - at, &used);
        at += used;
        if (event == HTTP_COMPLETE) {
            digest_message(digest, http_parser_message(parser));
            http_parser_next(parser);
        }
        if (event == HTTP_FAILED) {
            struct err err;
            const enum status status = http_parser_status(parser, &err);
            digest_bytes(digest, err.text, strlen(err.text));
            is_good = false;
            if (status == ST_OK || err.text[0] == '\0') {
                abort(); /* every fault has a status and a sentence */
            }
        }
        if (event == HTTP_NEED_MORE && at < size && used == 0) {
            abort(); /* no progress */
        }
    }
    free(copy);
    return is_good;
}

static uint64_t run(const uint8_t *data, size_t size, bool is_response, uint32_t seed) {
    const struct http_limits limits = {.max_header_bytes = 512, .max_body_bytes = 300};
    struct http_parser *parser = http_parser_create(is_response, limits);
    uint64_t digest = 14695981039346656037u;
    if (parser == NULL) {
        abort();
    }
    size_t at = 0;
    bool is_good = true;
    while (is_good && at < size) {
        seed = seed * 1664525u + 1013904223u;
        size_t n = 1 + (seed >> 24) % 40;
        if (n > size - at) {
            n = size - at;
        }
        is_good = feed_piece(parser, data + at, n, &digest);
        at += n;
    }
    if (is_good && http_parser_eof(parser) == HTTP_COMPLETE) {
        digest_message(&digest, http_parser_message(parser));
    }
    http_parser_free(parser);
    return digest;
}

static uint64_t run_whole(const uint8_t *data, size_t size, bool is_response) {
    const struct http_limits limits = {.max_header_bytes = 512, .max_body_bytes = 300};
    struct http_parser *parser = http_parser_create(is_response, limits);
    uint64_t digest = 14695981039346656037u;
    if (parser == NULL) {
        abort();
    }
    if (feed_piece(parser, data, size, &digest) && http_parser_eof(parser) == HTTP_COMPLETE) {
        digest_message(&digest, http_parser_message(parser));
    }
    http_parser_free(parser);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    const bool is_response = (data[0] & 1) != 0;
    if (run_whole(data + 1, size - 1, is_response) !=
        run(data + 1, size - 1, is_response, data[0])) {
        abort();
    }
    return 0;
}

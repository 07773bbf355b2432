/* Any bytes as a compressed body. What is read can be written and read again, is never over the
 * cap, and every fault has a status and a sentence. Byte 0: bit 0 the coding, bit 1 a small cap,
 * bit 2 a limit of density; the rest is the body. */
#include "proto/compress.h"

#include "proto/http1.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_so) {
    if (!is_so)
        abort();
}

static void write_and_read_again(enum coding coding, struct view body) {
    struct buf coded;
    struct view again = {.data = NULL};
    char *memory = NULL;
    buf_init(&coded);
    check(deflate_body(coding, COMPRESS_FASTEST, body, &coded, NULL) == ST_OK);
    const struct inflate_limits limits = {.max_size = body.size};
    check(inflate_body(coding, buf_view(&coded), limits, &memory, &again, NULL) == ST_OK);
    check(view_eq(again, body));
    free(memory);
    buf_done(&coded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const enum coding coding = data[0] & 1 ? CODING_GZIP : CODING_DEFLATE;
    const struct inflate_limits limits = {.max_size = data[0] & 2 ? 100 : 1 << 21,
                                          .max_ratio = data[0] & 4 ? 20 : 0};
    const struct view body = {.data = (const char *)data + 1, .size = size - 1};
    (void)coding_of(body);
    (void)coding_choose(body);
    char *memory = NULL;
    struct view out = {.data = NULL};
    struct err err = {.text = ""};
    const enum status status = inflate_body(coding, body, limits, &memory, &out, &err);
    if (status != ST_OK) {
        check(memory == NULL && err.text[0] != '\0');
        check(status == ST_INVALID || status == ST_TOO_LARGE);
        return 0;
    }
    check(out.size <= limits.max_size && out.data == memory + HTTP_BODY_HEADROOM);
    for (size_t i = 0; i < 64; i++)
        check(out.data[out.size + i] == 0);
    write_and_read_again(coding, out);
    free(memory);
    return 0;
}

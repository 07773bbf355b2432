/* What image_oracle.py drives: requests on standard input, answers on standard output, both
 * little-endian.
 *   request: op, size, 14 numbers (uint32 each), then size bytes
 *   answer:  status, how many numbers, characters, bytes (uint32 each), then those
 * The comment before each operation names its numbers. */
#include "prep/fit.h"
#include "prep/image.h"
#include "prep/pixels.h"
#include "prep/resize.h"
#include <stdio.h>
#include <stdlib.h>

enum op { OP_DECODE, OP_RESIZE, OP_PLACE, OP_PIXELS, OP_UNWRAP };
enum { NUMBERS = 14, MOST_ANSWERS = 16 };

struct request {
    uint32_t op, size, numbers[NUMBERS];
};

struct answer {
    enum status status;
    uint32_t count, numbers[MOST_ANSWERS];
    struct err err;
    const void *bytes;
    size_t size;
};

static void say_image(struct answer *answer, const struct image *image) {
    answer->numbers[answer->count++] = image->width;
    answer->numbers[answer->count++] = image->height;
    answer->numbers[answer->count++] = image->channels;
    answer->bytes = image->pixels;
    answer->size = (size_t)image->width * image->height * image->channels;
}

/* grey, ignores orientation, scales, least width, least height, most pixels */
static void run_decode(const struct request *r, struct view data, struct scratch *scratch,
                       struct answer *out) {
    const struct image_options options = {
        .is_grey = r->numbers[0], .ignores_orientation = r->numbers[1],
        .scales_jpeg = r->numbers[2], .least_width = r->numbers[3],
        .least_height = r->numbers[4], .max_pixels = r->numbers[5]};
    struct image image;
    struct image_info info;
    out->status = image_decode(data, &options, scratch, &image, &info, &out->err);
    if (out->status == ST_OK) {
        say_image(out, &image);
        out->numbers[out->count++] = info.width;
        out->numbers[out->count++] = info.height;
    }
}

static struct image given(const struct request *r, struct view data) {
    return (struct image){.pixels = (unsigned char *)(uintptr_t)data.data, .width = r->numbers[0],
                          .height = r->numbers[1], .channels = r->numbers[2]};
}

/* width, height, channels, kind, new width, new height */
static void run_resize(const struct request *r, struct view data, struct scratch *scratch,
                       struct answer *out) {
    const struct image in = given(r, data);
    struct image image;
    out->status = image_resize(&in, (enum resize_kind)r->numbers[3], r->numbers[4], r->numbers[5],
                               scratch, &image, &out->err);
    if (out->status == ST_OK) {
        say_image(out, &image);
    }
}

/* width, height, channels, resize kind, fit kind, canvas width, height, shorter, most width, most
 * side, multiple, pad; without bytes: the placement alone */
static void run_place(const struct request *r, struct view data, struct scratch *scratch,
                      struct answer *out) {
    const struct fit fit = {.kind = (enum fit_kind)r->numbers[4], .width = r->numbers[5],
                            .height = r->numbers[6], .shorter = r->numbers[7],
                            .max_width = r->numbers[8], .max_side = r->numbers[9],
                            .multiple = r->numbers[10]};
    const uint8_t pad[3] = {(uint8_t)r->numbers[11], (uint8_t)(r->numbers[11] >> 8),
                            (uint8_t)(r->numbers[11] >> 16)};
    struct placement placed;
    out->status = fit_place(&fit, r->numbers[0], r->numbers[1], &placed, &out->err);
    if (out->status != ST_OK) {
        return;
    }
    const uint32_t shown[] = {placed.scaled_width, placed.scaled_height, (uint32_t)placed.left,
                              (uint32_t)placed.top, placed.width, placed.height};
    memcpy(out->numbers, shown, sizeof shown);
    out->count = 6;
    if (data.size > 0) {
        const struct image in = given(r, data);
        struct image image;
        out->status = image_place(&in, &placed, (enum resize_kind)r->numbers[3], pad, scratch,
                                  &image, &out->err);
        if (out->status == ST_OK) {
            say_image(out, &image);
        }
    }
}

/* width, height, channels, color, layout, dtype, blank from; bytes: 7 doubles, pixels */
static void run_pixels(const struct request *r, struct view data, struct scratch *scratch,
                       struct answer *out) {
    struct pixel_format format = {.color = (enum color_kind)r->numbers[3],
                                  .layout = (enum layout_kind)r->numbers[4],
                                  .dtype = (enum dtype)r->numbers[5]};
    double doubles[7];
    memcpy(doubles, data.data, sizeof doubles);
    format.scale = doubles[0];
    memcpy(format.mean, doubles + 1, sizeof format.mean);
    memcpy(format.std, doubles + 4, sizeof format.std);
    static struct pixel_table table;
    out->status = pixels_init(&table, &format, &out->err);
    if (out->status != ST_OK) {
        return;
    }
    data.data += sizeof doubles;
    const struct image in = given(r, data);
    out->size = pixels_size(&table, in.width, in.height);
    void *bytes = scratch_get(scratch, SCRATCH_ANSWER, out->size);
    if (bytes == NULL) {
        exit(3);
    }
    memset(bytes, 0xa5, out->size); /* so that what was not written is seen */
    pixels_write(&table, &in, r->numbers[6], bytes);
    out->bytes = bytes;
}

static void run_unwrap(struct view data, struct scratch *scratch, struct answer *out) {
    struct view file;
    bool was_base64;
    out->status = image_unwrap(data, scratch, &file, &was_base64, &out->err);
    if (out->status == ST_OK) {
        out->numbers[out->count++] = was_base64;
        out->bytes = file.data;
        out->size = file.size;
    }
}

static void write_all(const void *data, size_t size) {
    if (fwrite(data, 1, size, stdout) != size) {
        exit(3);
    }
}

static void send(const struct answer *answer) {
    const uint32_t text = (uint32_t)strlen(answer->err.text);
    const uint32_t head[4] = {(uint32_t)answer->status, answer->count, text,
                              (uint32_t)answer->size};
    write_all(head, sizeof head);
    write_all(answer->numbers, answer->count * sizeof *answer->numbers);
    write_all(answer->err.text, text);
    write_all(answer->bytes == NULL ? "" : answer->bytes, answer->size);
    fflush(stdout);
}

int main(void) {
    static struct scratch scratch;
    struct request request;
    while (fread(&request, sizeof request, 1, stdin) == 1) {
        /* as large as the data and no larger: a sanitizer sees a read past it */
        char *bytes = malloc(request.size > 0 ? request.size : 1);
        if (bytes == NULL || fread(bytes, 1, request.size, stdin) != request.size) {
            return 3;
        }
        const struct view data = {bytes, request.size};
        struct answer answer = {.status = ST_OK};
        switch ((enum op)request.op) {
        case OP_DECODE: run_decode(&request, data, &scratch, &answer); break;
        case OP_RESIZE: run_resize(&request, data, &scratch, &answer); break;
        case OP_PLACE: run_place(&request, data, &scratch, &answer); break;
        case OP_PIXELS: run_pixels(&request, data, &scratch, &answer); break;
        default: run_unwrap(data, &scratch, &answer); break;
        }
        send(&answer);
        free(bytes);
    }
    scratch_done(&scratch);
    return 0;
}

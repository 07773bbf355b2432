/* Resizing by name (resize.h), and what is the same everywhere: nothing to do, nearest. Pure but
 * for scratch. The arithmetic that has to be the same to the last bit is in resize_pillow.c and
 * resize_opencv.c; test/oracle/image_oracle.py holds both against the originals. */
#include "prep/resize.h"
#include "prep/resize_window.h"
#include <string.h>

static void copy_rows(const struct image *in, const struct resize_window *window) {
    const size_t channels = in->channels;
    const unsigned char *from =
        in->pixels + ((size_t)window->top * in->width + window->left) * channels;
    for (uint32_t y = 0; y < window->height; y++) {
        memcpy(window->out + y * window->stride, from, window->width * channels);
        from += in->width * channels;
    }
}

/* Pillow walks by adding the step up, so the sum's rounding decides which neighbour is nearest:
 * the same sum is made here, from the first column on. */
static double walk_to(double at, double step, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        at += step;
    }
    return at;
}

static bool resize_nearest(const struct image *in, const struct resize_window *window,
                           struct scratch *scratch) {
    const uint32_t channels = in->channels;
    uint32_t *columns = scratch_get(scratch, SCRATCH_WEIGHTS, window->width * sizeof *columns);
    if (columns == NULL) {
        return false;
    }
    const double step_x = (double)in->width / window->scaled_width;
    const double step_y = (double)in->height / window->scaled_height;
    double x = walk_to(step_x * 0.5, step_x, window->left);
    for (uint32_t i = 0; i < window->width; i++, x += step_x) {
        const uint32_t column = (uint32_t)x;
        columns[i] = (column < in->width ? column : in->width - 1) * channels;
    }
    double y = walk_to(step_y * 0.5, step_y, window->top);
    for (uint32_t j = 0; j < window->height; j++, y += step_y) {
        const uint32_t row = (uint32_t)y < in->height ? (uint32_t)y : in->height - 1;
        const unsigned char *from = in->pixels + (size_t)row * in->width * channels;
        unsigned char *to = window->out + j * window->stride;
        if (channels == 1) {
            for (uint32_t i = 0; i < window->width; i++) {
                to[i] = from[columns[i]];
            }
            continue;
        }
        for (uint32_t i = 0; i < window->width; i++, to += 3) {
            memcpy(to, from + columns[i], 3);
        }
    }
    return true;
}

static bool run(const struct image *in, enum resize_kind kind, const struct resize_window *window,
                struct scratch *scratch) {
    switch (kind) {
    case RESIZE_PILLOW_BILINEAR:
    case RESIZE_PILLOW_BICUBIC:
        return resize_pillow(in, kind == RESIZE_PILLOW_BICUBIC, window, scratch);
    case RESIZE_OPENCV_LINEAR:
        return resize_opencv_linear(in, window, scratch);
    case RESIZE_OPENCV_CUBIC:
        return resize_opencv_cubic(in, window, scratch);
    default:
        return resize_nearest(in, window, scratch);
    }
}

enum status image_resize_window(const struct image *in, enum resize_kind kind,
                                const struct resize_window *window, struct scratch *scratch,
                                struct err *err) {
    if (window->scaled_width == in->width && window->scaled_height == in->height) {
        copy_rows(in, window);
        return ST_OK;
    }
    if (!run(in, kind, window, scratch)) {
        return err_set(err, ST_NO_MEMORY, "no memory to resize a picture of %ux%u to %ux%u",
                       in->width, in->height, window->scaled_width, window->scaled_height);
    }
    return ST_OK;
}

enum status image_resize(const struct image *in, enum resize_kind kind, uint32_t width,
                         uint32_t height, struct scratch *scratch, struct image *out,
                         struct err *err) {
    if (in->width == width && in->height == height) {
        *out = *in;
        return ST_OK;
    }
    const size_t stride = (size_t)width * in->channels;
    unsigned char *pixels = scratch_get(scratch, SCRATCH_RESIZED, stride * height);
    if (pixels == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a picture of %ux%u", width, height);
    }
    const struct resize_window all = {.scaled_width = width, .scaled_height = height,
                                      .width = width, .height = height,
                                      .out = pixels, .stride = stride};
    const enum status status = image_resize_window(in, kind, &all, scratch, err);
    if (status == ST_OK) {
        *out = (struct image){.pixels = pixels, .width = width, .height = height,
                              .channels = in->channels};
    }
    return status;
}

/* Resizing: values that can be checked by hand, windows against the whole, and nothing read or
 * written beside the pixels. That the rest is Pillow's and OpenCV's: image_oracle.py. */
#include "prep/resize.h"
#include "prep/resize_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct image make(uint32_t width, uint32_t height, uint32_t channels) {
    const size_t size = (size_t)width * height * channels;
    struct image image = {.pixels = malloc(size), .width = width, .height = height,
                          .channels = channels};
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        image.pixels[i] = (unsigned char)(state >> 24);
    }
    return image;
}

static void a_constant_stays_what_it_is(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    static const uint32_t SIDES[] = {1, 2, 3, 16, 17, 100};
    for (int kind = 0; kind < RESIZE_KIND_COUNT; kind++) {
        for (size_t i = 0; i < 36; i++) {
            struct image in = make(SIDES[i % 6], SIDES[i / 6], 3), out;
            memset(in.pixels, 201, (size_t)in.width * in.height * 3);
            assert_int_equal(image_resize(&in, kind, 13, 7, &scratch, &out, NULL), ST_OK);
            assert_int_equal(out.width, 13);
            assert_int_equal(out.height, 7);
            for (size_t s = 0; s < 13 * 7 * 3; s++) {
                assert_int_equal(out.pixels[s], 201);
            }
            free(in.pixels);
        }
    }
    scratch_done(&scratch);
}

static void the_same_size_is_the_same_picture(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    struct image in = make(5, 4, 1), out;
    assert_int_equal(image_resize(&in, RESIZE_OPENCV_LINEAR, 5, 4, &scratch, &out, NULL), ST_OK);
    assert_ptr_equal(in.pixels, out.pixels);
    assert_null(scratch.buffers[SCRATCH_RESIZED].data);
    free(in.pixels);
}

static void halving_shows_how_the_kinds_differ(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    unsigned char row[6] = {0, 0, 0, 240, 0, 0};
    struct image in = {.pixels = row, .width = 6, .height = 1, .channels = 1}, out;
    /* Pillow's triangle reaches 3 samples to each side of a third's centre: 1/3 and 2/3 of a
     * weight, of 8/3 inside the picture, ... */
    assert_int_equal(image_resize(&in, RESIZE_PILLOW_BILINEAR, 2, 1, &scratch, &out, NULL), ST_OK);
    assert_int_equal(out.pixels[0], 30);
    assert_int_equal(out.pixels[1], 60);
    /* ... OpenCV's looks at one sample here: columns 1 and 4 */
    assert_int_equal(image_resize(&in, RESIZE_OPENCV_LINEAR, 2, 1, &scratch, &out, NULL), ST_OK);
    assert_int_equal(out.pixels[0], 0);
    assert_int_equal(out.pixels[1], 0);
    assert_int_equal(image_resize(&in, RESIZE_NEAREST, 2, 1, &scratch, &out, NULL), ST_OK);
    assert_int_equal(out.pixels[1], 0);
    /* halved both ways exactly, OpenCV averages */
    unsigned char square[16] = {0, 100, 9, 9, 101, 1, 9, 9};
    in = (struct image){.pixels = square, .width = 4, .height = 4, .channels = 1};
    assert_int_equal(image_resize(&in, RESIZE_OPENCV_LINEAR, 2, 2, &scratch, &out, NULL), ST_OK);
    assert_int_equal(out.pixels[0], 51); /* 202 / 4 = 50.5 */
    assert_int_equal(out.pixels[1], 9);
    scratch_done(&scratch);
}

static void a_window_is_the_part_of_the_whole(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    static const uint32_t SIZES[][4] = {{37, 29, 61, 50}, {64, 50, 19, 23}, {21, 40, 21, 13},
                                        {40, 40, 20, 20}, {3, 300, 30, 40}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES * RESIZE_KIND_COUNT * 2; i++) {
        const uint32_t *size = SIZES[i / 2 / RESIZE_KIND_COUNT], channels = i % 2 ? 3 : 1;
        const enum resize_kind kind = (enum resize_kind)(i / 2 % RESIZE_KIND_COUNT);
        struct image in = make(size[0], size[1], channels), whole;
        assert_int_equal(image_resize(&in, kind, size[2], size[3], &scratch, &whole, NULL), ST_OK);
        struct resize_window window = {.scaled_width = size[2], .scaled_height = size[3],
                                       .left = 3, .top = 5, .width = size[2] - 4,
                                       .height = size[3] - 7};
        window.stride = (size_t)window.width * channels + 2;
        unsigned char *part = malloc(window.stride * window.height - 2);
        memset(part, 77, window.stride * window.height - 2);
        window.out = part;
        assert_int_equal(image_resize_window(&in, kind, &window, &scratch, NULL), ST_OK);
        for (uint32_t y = 0; y < window.height; y++) {
            assert_memory_equal(part + y * window.stride,
                                whole.pixels + ((y + 5) * size[2] + 3) * channels,
                                window.width * channels);
            if (y + 1 < window.height) { /* between the rows nothing was touched */
                assert_int_equal(part[y * window.stride + window.width * channels], 77);
            }
        }
        free(part);
        free(in.pixels);
    }
    scratch_done(&scratch);
}

static void a_tall_thin_picture_needs_little_memory(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    struct image in = make(1, 32768, 3), out;
    for (int kind = 0; kind < RESIZE_KIND_COUNT; kind++) {
        assert_int_equal(image_resize(&in, kind, 640, 640, &scratch, &out, NULL), ST_OK);
        assert_true(scratch.buffers[SCRATCH_PASS].capacity < 1 << 20);
        assert_true(scratch.buffers[SCRATCH_WEIGHTS].capacity < 1 << 20);
    }
    free(in.pixels);
    scratch_done(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_stays_what_it_is),
        cmocka_unit_test(the_same_size_is_the_same_picture),
        cmocka_unit_test(halving_shows_how_the_kinds_differ),
        cmocka_unit_test(a_window_is_the_part_of_the_whole),
        cmocka_unit_test(a_tall_thin_picture_needs_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

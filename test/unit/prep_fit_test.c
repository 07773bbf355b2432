/* Where pictures come to lie: the roundings of docs/images.md by example, the way back, and the
 * pixels around. */
#include "prep/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct placing {
    struct fit fit;
    uint32_t source_width, source_height;
    struct placement expected; /* without the source's size */
};

static void check(const struct placing *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct placement got, want = cases[i].expected;
        want.source_width = cases[i].source_width;
        want.source_height = cases[i].source_height;
        assert_int_equal(fit_place(&cases[i].fit, want.source_width, want.source_height, &got,
                                   NULL), ST_OK);
        if (memcmp(&got, &want, sizeof got) != 0) {
            fail_msg("case %zu: %ux%u at %d,%d on %ux%u", i, got.scaled_width, got.scaled_height,
                     got.left, got.top, got.width, got.height);
        }
    }
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))
#define PLACED(w, h, x, y, cw, ch)                                                                \
    {.scaled_width = w, .scaled_height = h, .left = x, .top = y, .width = cw, .height = ch}

static void letterbox_keeps_the_ratio_and_puts_the_odd_line_last(void **state) {
    (void)state;
    static const struct placing CASES[] = {
        {{.kind = FIT_LETTERBOX, .width = 640, .height = 640}, 1280, 720,
         PLACED(640, 360, 0, 140, 640, 640)},
        {{.kind = FIT_LETTERBOX, .width = 640, .height = 640}, 100, 50, /* enlarged too */
         PLACED(640, 320, 0, 160, 640, 640)},
        {{.kind = FIT_LETTERBOX, .width = 10, .height = 10}, 100, 70, PLACED(10, 7, 0, 1, 10, 10)},
        {{.kind = FIT_LETTERBOX, .width = 64, .height = 64}, 10000, 1, PLACED(64, 1, 0, 31, 64, 64)},
    };
    CHECK(CASES);
}

static void crop_is_torchvisions(void **state) {
    (void)state;
    static const struct placing CASES[] = {
        {{.kind = FIT_CROP, .width = 224, .height = 224, .shorter = 256}, 640, 480,
         PLACED(341, 256, -58, -16, 224, 224)}, /* 341.33 cut off; (341 - 224) / 2 = 58.5 to 58 */
        {{.kind = FIT_CROP, .width = 224, .height = 224, .shorter = 256}, 480, 643,
         PLACED(256, 342, -16, -59, 224, 224)},
        {{.kind = FIT_CROP, .width = 10, .height = 7, .shorter = 4}, 4, 4, /* padded */
         PLACED(4, 4, 3, 1, 10, 7)},
        {{.kind = FIT_CROP, .width = 100, .height = 50}, 30, 30, PLACED(100, 100, 0, -25, 100, 50)},
    };
    CHECK(CASES);
}

static void height_and_limit_are_paddles(void **state) {
    (void)state;
    static const struct placing CASES[] = {
        {{.kind = FIT_HEIGHT, .width = 320, .height = 48}, 100, 30, PLACED(160, 48, 0, 0, 320, 48)},
        {{.kind = FIT_HEIGHT, .width = 320, .height = 48}, 701, 100, PLACED(337, 48, 0, 0, 337, 48)},
        {{.kind = FIT_HEIGHT, .width = 320, .height = 48, .multiple = 8}, 701, 100,
         PLACED(337, 48, 0, 0, 344, 48)},
        {{.kind = FIT_HEIGHT, .width = 32, .height = 48, .max_width = 200}, 3000, 100,
         PLACED(200, 48, 0, 0, 200, 48)},
        {{.kind = FIT_LIMIT, .max_side = 960, .multiple = 32}, 1920, 1080,
         PLACED(960, 544, 0, 0, 960, 544)}, /* 540 / 32 = 16.875 */
        {{.kind = FIT_LIMIT, .max_side = 960, .multiple = 32}, 80, 48, /* 2.5 and 1.5 to even */
         PLACED(64, 64, 0, 0, 64, 64)},
        {{.kind = FIT_LIMIT, .max_side = 960, .multiple = 32}, 3, 900, PLACED(32, 896, 0, 0, 32, 896)},
        {{.kind = FIT_LIMIT, .max_side = 100}, 3000, 7, PLACED(100, 1, 0, 0, 100, 1)},
        {{.kind = FIT_STRETCH, .width = 320, .height = 240}, 7, 900, PLACED(320, 240, 0, 0, 320, 240)},
        {{.kind = FIT_NONE}, 7, 900, PLACED(7, 900, 0, 0, 7, 900)},
    };
    CHECK(CASES);
}

static void what_cannot_be_fitted_is_refused(void **state) {
    (void)state;
    static const struct {
        struct fit fit;
        uint32_t width, height;
        const char *told;
    } CASES[] = {
        {{.kind = FIT_STRETCH, .width = 0, .height = 3}, 5, 5, "0x3"},
        {{.kind = FIT_LETTERBOX}, 5, 5, "0x0"},
        {{.kind = FIT_NONE}, 0, 5, "0x5"},
        {{.kind = FIT_HEIGHT, .height = 4096}, 32768, 1, "32768x1"},
        {{.kind = FIT_CROP, .width = 32768, .height = 1000, .shorter = 32768}, 1, 32768, "1x32768"},
        {{.kind = FIT_CROP, .width = 1, .height = 1, .shorter = UINT32_MAX}, UINT32_MAX, 1, "thin"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct placement out;
        struct err err = {.text = ""};
        assert_int_equal(fit_place(&CASES[i].fit, CASES[i].width, CASES[i].height, &out, &err),
                         ST_INVALID);
        if (strstr(err.text, CASES[i].told) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
}

static void the_way_back_is_clamped_to_the_picture(void **state) {
    (void)state;
    const struct placement placed = {1280, 720, 640, 360, 0, 140, 640, 640};
    static const float CASES[][4] = {{320, 320, 640, 360}, {0, 140, 0, 0}, {-5, 0, 0, 0},
                                     {640, 500, 1280, 720}, {9000, 9000, 1280, 720},
                                     {NAN, INFINITY, 0, 720}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        float x = CASES[i][0], y = CASES[i][1];
        fit_back(&placed, &x, &y);
        assert_float_equal(x, CASES[i][2], 0);
        assert_float_equal(y, CASES[i][3], 0);
    }
}

static void the_canvas_is_filled_around_the_picture(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    unsigned char pixels[4 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const struct image in = {pixels, 2, 2, 3};
    const struct placement placed = {2, 2, 2, 2, 1, 1, 4, 5};
    const uint8_t pad[3] = {100, 101, 102};
    struct image out;
    assert_int_equal(image_place(&in, &placed, RESIZE_NEAREST, pad, &scratch, &out, NULL), ST_OK);
    for (uint32_t y = 0; y < 5; y++) {
        for (uint32_t x = 0; x < 4; x++) {
            const bool is_inside = x >= 1 && x < 3 && y >= 1 && y < 3;
            const unsigned char *want = is_inside ? pixels + ((y - 1) * 2 + x - 1) * 3 : pad;
            assert_memory_equal(out.pixels + (y * 4 + x) * 3, want, 3);
        }
    }
    scratch_done(&scratch);
}

static void a_placement_that_changes_nothing_is_the_picture_itself(void **state) {
    (void)state;
    struct scratch scratch = {.buffers = {{NULL, 0}}};
    unsigned char pixels[6] = {0};
    const struct image in = {pixels, 3, 2, 1};
    const struct fit fit = {.kind = FIT_LETTERBOX, .width = 3, .height = 2};
    struct placement placed;
    assert_int_equal(fit_place(&fit, 3, 2, &placed, NULL), ST_OK);
    const uint8_t pad[3] = {0};
    struct image out;
    assert_int_equal(image_place(&in, &placed, RESIZE_PILLOW_BICUBIC, pad, &scratch, &out, NULL),
                     ST_OK);
    assert_ptr_equal(out.pixels, pixels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letterbox_keeps_the_ratio_and_puts_the_odd_line_last),
        cmocka_unit_test(crop_is_torchvisions),
        cmocka_unit_test(height_and_limit_are_paddles),
        cmocka_unit_test(what_cannot_be_fitted_is_refused),
        cmocka_unit_test(the_way_back_is_clamped_to_the_picture),
        cmocka_unit_test(the_canvas_is_filled_around_the_picture),
        cmocka_unit_test(a_placement_that_changes_nothing_is_the_picture_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Samples to numbers: the arithmetic, the orders of channels and of memory, halves, and the edges
 * of what is written. */
#include "prep/pixels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static unsigned char samples[2 * 2 * 3] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
static const struct image PICTURE = {samples, 2, 2, 3};

static struct pixel_format plain(enum color_kind color, enum layout_kind layout,
                                 enum dtype dtype) {
    return (struct pixel_format){.color = color, .layout = layout, .dtype = dtype, .scale = 1,
                                 .std = {1, 1, 1}};
}

static struct pixel_table table_of(struct pixel_format format) {
    struct pixel_table table;
    assert_int_equal(pixels_init(&table, &format, NULL), ST_OK);
    return table;
}

static void channels_and_memory_come_in_the_models_order(void **state) {
    (void)state;
    static const struct {
        enum color_kind color;
        enum layout_kind layout;
        uint8_t want[12];
    } CASES[] = {
        {COLOR_RGB, LAYOUT_NHWC, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}},
        {COLOR_BGR, LAYOUT_NHWC, {2, 1, 0, 5, 4, 3, 8, 7, 6, 255, 10, 9}},
        {COLOR_RGB, LAYOUT_NCHW, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 255}},
        {COLOR_BGR, LAYOUT_NCHW, {2, 5, 8, 255, 1, 4, 7, 10, 0, 3, 6, 9}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct pixel_table table = table_of(plain(CASES[i].color, CASES[i].layout, DTYPE_UINT8));
        uint8_t out[12];
        assert_int_equal(pixels_size(&table, 2, 2), 12);
        pixels_write(&table, &PICTURE, 2, out);
        assert_memory_equal(out, CASES[i].want, 12);
        table = table_of(plain(CASES[i].color, CASES[i].layout, DTYPE_FP32));
        float singles[12];
        pixels_write(&table, &PICTURE, 2, singles);
        for (size_t s = 0; s < 12; s++) {
            assert_float_equal(singles[s], CASES[i].want[s], 0);
        }
    }
}

static void numbers_are_computed_in_double_and_rounded_once(void **state) {
    (void)state;
    struct pixel_format format = plain(COLOR_BGR, LAYOUT_NHWC, DTYPE_FP32);
    format.scale = 1 / 255.0;
    memcpy(format.mean, (double[]){0.406, 0.456, 0.485}, sizeof format.mean);
    memcpy(format.std, (double[]){0.225, 0.224, 0.229}, sizeof format.std);
    struct pixel_table table = table_of(format);
    float out[12];
    pixels_write(&table, &PICTURE, 2, out);
    assert_true(out[0] == (float)((2 * (1 / 255.0) - 0.406) / 0.225)); /* blue comes first */
    assert_true(out[11] == (float)((9 * (1 / 255.0) - 0.485) / 0.229));
}

static void halves_are_rounded_to_the_nearest_even(void **state) {
    (void)state;
    static const struct {
        double value;
        uint16_t bits;
    } CASES[] = {
        {0, 0}, {-0.0, 0x8000}, {1, 0x3c00}, {-2, 0xc000}, {65504, 0x7bff}, {65519.99, 0x7bff},
        {65520, 0x7c00}, {-1e300, 0xfc00}, {1 + 1 / 2048.0, 0x3c00}, {1 + 3 / 2048.0, 0x3c02},
        {1 + 1 / 2048.0 + 1e-12, 0x3c01}, /* by way of float it would round down */
        {0x1p-14, 0x0400}, {0x1p-24, 0x0001}, {0x1p-25, 0x0000}, {0x1.8p-24, 0x0002},
        {0x1.ff8p-15, 0x03ff}, {0x1.fffp-15, 0x0400}, {2047.5, 0x6800}, {0.1, 0x2e66},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct pixel_format format = plain(COLOR_GREY, LAYOUT_NCHW, DTYPE_FP16);
        format.mean[0] = -CASES[i].value; /* the number of sample 0 */
        if (signbit(CASES[i].value)) {
            format.mean[0] = fabs(CASES[i].value);
            format.scale = -0.0;
        }
        struct pixel_table table = table_of(format);
        unsigned char zero = 0;
        const struct image image = {&zero, 1, 1, 1};
        uint16_t out = 1;
        pixels_write(&table, &image, 1, &out);
        if (out != CASES[i].bits) {
            fail_msg("%a: %04x, expected %04x", CASES[i].value, out, CASES[i].bits);
        }
    }
}

static void blank_columns_are_zero_whatever_the_mean(void **state) {
    (void)state;
    static const enum dtype DTYPES[] = {DTYPE_FP32, DTYPE_FP16};
    for (size_t i = 0; i < 8; i++) {
        struct pixel_format format = plain(COLOR_RGB, i % 2 ? LAYOUT_NCHW : LAYOUT_NHWC,
                                           DTYPES[i / 2 % 2]);
        format.mean[0] = format.mean[1] = format.mean[2] = -7;
        struct pixel_table table = table_of(format);
        const size_t size = pixels_size(&table, 2, 2), element = size / 12;
        unsigned char *out = malloc(size);
        memset(out, 0xa5, size);
        pixels_write(&table, &PICTURE, 1, out);
        for (size_t s = 0; s < 12; s++) {
            const size_t x = i % 2 ? s % 2 : s / 3 % 2;
            uint32_t bits = 0;
            memcpy(&bits, out + s * element, element);
            assert_int_equal(bits == 0, x == 1);
        }
        free(out);
    }
}

static void nothing_is_written_beside_the_buffer(void **state) {
    (void)state;
    static const enum dtype DTYPES[] = {DTYPE_FP32, DTYPE_FP16, DTYPE_UINT8};
    for (uint32_t width = 1; width < 40; width++) {
        for (size_t i = 0; i < 12; i++) {
            const bool is_grey = i / 6 % 2;
            struct pixel_table table = table_of(plain(is_grey ? COLOR_GREY : COLOR_BGR,
                                                      i % 2 ? LAYOUT_NCHW : LAYOUT_NHWC,
                                                      DTYPES[i / 2 % 3]));
            const size_t count = (size_t)width * 3 * (is_grey ? 1 : 3);
            struct image image = {malloc(count), width, 3, is_grey ? 1 : 3};
            memset(image.pixels, 9, count);
            void *out = malloc(pixels_size(&table, width, 3)); /* the sanitizer looks */
            pixels_write(&table, &image, width, out);
            free(out);
            free(image.pixels);
        }
    }
}

static void formats_that_make_no_sense_are_refused(void **state) {
    (void)state;
    struct pixel_format formats[6];
    for (size_t i = 0; i < 6; i++) {
        formats[i] = plain(COLOR_RGB, LAYOUT_NCHW, DTYPE_FP32);
    }
    formats[0].std[2] = 0;
    formats[1].mean[1] = INFINITY;
    formats[2].layout = LAYOUT_AUTO;
    formats[3].dtype = DTYPE_INT64;
    formats[4].dtype = DTYPE_UINT8;
    formats[4].scale = 0.5;
    formats[5].std[0] = NAN;
    for (size_t i = 0; i < 6; i++) {
        struct pixel_table table;
        struct err err = {.text = ""};
        assert_int_equal(pixels_init(&table, &formats[i], &err), ST_INVALID);
        assert_true(err.text[0] != '\0');
    }
    struct pixel_format grey = {.color = COLOR_GREY, .layout = LAYOUT_NCHW, .dtype = DTYPE_FP32,
                                .scale = 1, .std = {1, 0, 0}}; /* two of which are not used */
    struct pixel_table table;
    assert_int_equal(pixels_init(&table, &grey, NULL), ST_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_and_memory_come_in_the_models_order),
        cmocka_unit_test(numbers_are_computed_in_double_and_rounded_once),
        cmocka_unit_test(halves_are_rounded_to_the_nearest_even),
        cmocka_unit_test(blank_columns_are_zero_whatever_the_mean),
        cmocka_unit_test(nothing_is_written_beside_the_buffer),
        cmocka_unit_test(formats_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

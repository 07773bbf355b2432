/* Memory runs out at the first allocation of a picture's way, then at the second, and so on, in
 * our code and in the decoders' libraries: the picture is refused, nothing leaks, and the same
 * scratch serves the next picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h wants the above first */
#include <cmocka.h>

#include "memory.h"
#include "prep/fit.h"
#include "prep/image.h"

/* tjInitDecompress itself leaves a block behind when its second one is refused. That every handle
 * is destroyed shows in unit.prep_image. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libturbojpeg.so"; }

static struct view read_file(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/fuzz/corpus/prep_image_fuzz/%s", TEST_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *data = malloc(4096);
    const size_t size = fread(data, 1, 4096, file);
    fclose(file);
    return (struct view){data, size};
}

static enum status run(struct view sent, struct scratch *scratch, struct image *out,
                       struct err *err) {
    const struct image_options options = {.max_pixels = 10000};
    const struct fit fit = {.kind = FIT_LETTERBOX, .width = 64, .height = 48};
    const uint8_t pad[3] = {0};
    struct view file;
    struct image image;
    struct placement placed;
    enum status status = image_unwrap(sent, scratch, &file, NULL, err);
    if (status == ST_OK) {
        status = image_decode(file, &options, scratch, &image, NULL, err);
    }
    if (status == ST_OK) {
        status = fit_place(&fit, image.width, image.height, &placed, err);
    }
    return status != ST_OK ? status
        : image_place(&image, &placed, RESIZE_PILLOW_BILINEAR, pad, scratch, out, err);
}

static void a_picture_without_memory_is_refused_and_leaks_nothing(void **state) {
    (void)state;
    static const char *const NAMES[] = {
        "baseline.jpg", "progressive.jpg", "cmyk.jpg", "rgb.png", "palette.png",
        "interlaced.png", "lossy.webp", "animated.webp"};
    /* Not a lossless WebP: libwebp 1.2.4 itself crashes (image_webp.c looks before it leaps). */
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const struct view sent = read_file(NAMES[i]);
        struct shortage s = {.after = 0};
        while (shortage_next(&s)) {
            struct scratch scratch = {.buffers = {{NULL, 0}}}, other = {.buffers = {{NULL, 0}}};
            struct err err = {.text = ""};
            struct image first, second;
            memory_runs_out(&s);
            const enum status status = run(sent, &scratch, &first, &err);
            memory_is_back(&s);
            assert_int_equal(run(sent, &other, &second, NULL), ST_OK);
            if (status == ST_OK) { /* libjpeg asks again, for less: then it must have been enough */
                assert_true(s.refused == 0 || !s.stays);
                assert_memory_equal(first.pixels, second.pixels, 64 * 48 * 3);
            } else if (!s.stays && strstr(err.text, "damaged") != NULL) {
                /* zlib and libwebp do not say why: only memory that stays out is seen */
                assert_true(strstr(NAMES[i], "png") || strstr(NAMES[i], "webp"));
            } else if (status != ST_NO_MEMORY || err.text[0] == '\0') {
                fail_msg("%s without allocation %ld: %d %s", NAMES[i], s.after, status, err.text);
            }
            assert_int_equal(run(sent, &scratch, &second, NULL), ST_OK);
            scratch_done(&scratch);
            scratch_done(&other);
        }
        assert_true(s.runs >= 6);
        free((void *)(uintptr_t)sent.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_without_memory_is_refused_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Decoding pictures: limits before memory, files that are cut or lie, names in errors, turning,
 * scaling, base64. That the pixels are Pillow's is image_oracle.py's business. */
#include "prep/base64.h"
#include "prep/image.h"

#include <setjmp.h>
#include <spng.h>
#include <stdarg.h>
#include <stdlib.h>
#include <turbojpeg.h>
#include <webp/encode.h>
#include <cmocka.h>

enum { WIDTH = 40, HEIGHT = 24 };

struct fixture {
    unsigned char pixels[WIDTH * HEIGHT * 3];
    struct view jpeg, png, webp; /* of those pixels; each alone in its allocation */
    struct scratch scratch;
};

static struct view copied(const void *data, size_t size) {
    char *copy = malloc(size);
    memcpy(copy, data, size);
    return (struct view){copy, size};
}

static struct view as_jpeg(const unsigned char *pixels, int width, int height) {
    unsigned char *data = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, pixels, width, 0, height, TJPF_RGB, &data, &size,
                                 TJSAMP_420, 90, 0), 0);
    tjDestroy(handle);
    struct view file = copied(data, size);
    tjFree(data);
    return file;
}

static struct view as_png(const unsigned char *pixels, unsigned width, unsigned height) {
    spng_ctx *context = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr header = {.width = width, .height = height, .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    assert_int_equal(spng_set_ihdr(context, &header), 0);
    assert_int_equal(spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1), 0);
    assert_int_equal(spng_encode_image(context, pixels, (size_t)width * height * 3, SPNG_FMT_PNG,
                                       SPNG_ENCODE_FINALIZE), 0);
    size_t size;
    int error;
    void *data = spng_get_png_buffer(context, &size, &error);
    struct view file = copied(data, size);
    free(data);
    spng_ctx_free(context);
    return file;
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    for (size_t i = 0; i < sizeof f->pixels; i++) {
        f->pixels[i] = (unsigned char)(i / 3 % WIDTH * 5 + i % 3 * 20 + i / 3 / WIDTH);
    }
    f->jpeg = as_jpeg(f->pixels, WIDTH, HEIGHT);
    f->png = as_png(f->pixels, WIDTH, HEIGHT);
    uint8_t *data;
    const size_t size = WebPEncodeLosslessRGB(f->pixels, WIDTH, HEIGHT, WIDTH * 3, &data);
    f->webp = copied(data, size);
    WebPFree(data);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    scratch_done(&f->scratch);
    free((void *)(uintptr_t)f->jpeg.data);
    free((void *)(uintptr_t)f->png.data);
    free((void *)(uintptr_t)f->webp.data);
    free(f);
    return 0;
}

static enum status decode(struct fixture *f, struct view file, struct image *out,
                          struct err *err) {
    const struct image_options plain = {.max_pixels = 0};
    return image_decode(file, &plain, &f->scratch, out, NULL, err);
}

static void lossless_formats_give_the_pixels_back(void **state) {
    struct fixture *f = *state;
    const struct view files[] = {f->png, f->webp};
    for (size_t i = 0; i < 2; i++) {
        struct image image;
        struct err err = {.text = ""};
        assert_true(image_is_known(files[i]));
        assert_int_equal(decode(f, files[i], &image, &err), ST_OK);
        assert_int_equal(image.width, WIDTH);
        assert_int_equal(image.height, HEIGHT);
        assert_int_equal(image.channels, 3);
        assert_memory_equal(image.pixels, f->pixels, sizeof f->pixels);
    }
}

static void grey_is_pillows_mixture(void **state) {
    struct fixture *f = *state;
    const struct image_options options = {.is_grey = true};
    struct image image;
    assert_int_equal(image_decode(f->png, &options, &f->scratch, &image, NULL, NULL), ST_OK);
    assert_int_equal(image.channels, 1);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        const unsigned char *p = f->pixels + 3 * i;
        assert_int_equal(image.pixels[i],
                         (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
    }
}

static void every_cut_of_every_format_is_refused(void **state) {
    struct fixture *f = *state;
    const struct view files[] = {f->jpeg, f->png, f->webp};
    /* what may be missing at the end while all the pixels are there: PNG's IEND and its
     * checksum, WebP's byte of padding */
    const size_t spare[] = {0, 16, 1};
    for (size_t i = 0; i < 3; i++) {
        for (size_t size = 0; size < files[i].size - spare[i]; size++) {
            struct view cut = copied(files[i].data, size);
            struct image image;
            struct err err = {.text = ""};
            const enum status status = decode(f, cut, &image, &err);
            free((void *)(uintptr_t)cut.data);
            assert_int_equal(status, ST_INVALID);
            assert_true(err.text[0] != '\0');
        }
    }
}

static void what_follows_the_end_is_ignored(void **state) {
    struct fixture *f = *state;
    const struct view files[] = {f->jpeg, f->png, f->webp};
    for (size_t i = 0; i < 3; i++) {
        char *longer = malloc(files[i].size + 100);
        memcpy(longer, files[i].data, files[i].size);
        memset(longer + files[i].size, 0xff, 100);
        struct image image;
        assert_int_equal(decode(f, (struct view){longer, files[i].size + 100}, &image, NULL), ST_OK);
        free(longer);
    }
}

static void claims_are_refused_before_memory_is_taken(void **state) {
    struct fixture *f = *state;
    const struct view files[] = {f->jpeg, f->png, f->webp};
    for (size_t i = 0; i < 3; i++) {
        struct image_options options = {.max_pixels = WIDTH * HEIGHT - 1};
        struct image image;
        struct err err = {.text = ""};
        assert_int_equal(image_decode(files[i], &options, &f->scratch, &image, NULL, &err),
                         ST_TOO_LARGE);
        assert_non_null(strstr(err.text, "40x24"));
        assert_non_null(strstr(err.text, "959"));
        for (size_t use = 0; use < SCRATCH_COUNT; use++) {
            assert_null(f->scratch.buffers[use].data);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        struct image_options options = {.max_pixels = WIDTH * HEIGHT};
        struct image image;
        assert_int_equal(image_decode(files[i], &options, &f->scratch, &image, NULL, NULL), ST_OK);
    }
}

static size_t find(struct view data, const char *bytes, size_t size) {
    for (size_t at = 0; at + size <= data.size; at++) {
        if (memcmp(data.data + at, bytes, size) == 0) {
            return at;
        }
    }
    fail();
    return 0;
}

static void a_side_beyond_the_limit_is_refused(void **state) {
    struct fixture *f = *state;
    char *bytes = (char *)(uintptr_t)f->jpeg.data;
    const size_t frame = find(f->jpeg, "\xff\xc0", 2);
    memcpy(bytes + frame + 5, "\x00\x01\xff\xff", 4); /* 65535x1 */
    struct image image;
    struct err err = {.text = ""};
    assert_int_equal(decode(f, f->jpeg, &image, &err), ST_TOO_LARGE);
    assert_non_null(strstr(err.text, "65535x1"));
}

static void a_jpeg_with_too_many_scans_is_refused(void **state) {
    struct fixture *f = *state;
    const size_t scan = find(f->jpeg, "\xff\xda", 2), tail = f->jpeg.size - 2 - scan;
    for (size_t scans = 99; scans <= 101; scans++) {
        char *many = malloc(f->jpeg.size + scans * tail);
        memcpy(many, f->jpeg.data, scan);
        size_t size = scan;
        for (size_t i = 0; i < scans; i++, size += tail) {
            memcpy(many + size, f->jpeg.data + scan, tail);
        }
        memcpy(many + size, "\xff\xd9", 2);
        struct image image;
        struct err err = {.text = ""};
        const enum status status = decode(f, (struct view){many, size + 2}, &image, &err);
        free(many);
        if (scans > 100) {
            assert_int_equal(status, ST_TOO_LARGE);
            assert_non_null(strstr(err.text, "101 scans"));
        } else {
            assert_int_not_equal(status, ST_TOO_LARGE);
        }
    }
}

static void fewer_scans_are_allowed_the_larger_the_picture(void **state) {
    struct fixture *f = *state;
    const size_t scan = find(f->jpeg, "\xff\xda", 2), tail = f->jpeg.size - 2 - scan;
    char *many = malloc(f->jpeg.size + 16 * tail);
    memcpy(many, f->jpeg.data, f->jpeg.size - 2);
    for (size_t i = 0; i < 16; i++) {
        memcpy(many + f->jpeg.size - 2 + i * tail, f->jpeg.data + scan, tail);
    }
    memcpy(many + f->jpeg.size - 2 + 16 * tail, "\xff\xd9", 2);
    const struct view file = {many, f->jpeg.size + 16 * tail};
    struct image_options options = {.max_pixels = WIDTH * HEIGHT};
    struct image image;
    struct err err = {.text = ""};
    assert_int_equal(image_decode(file, &options, &f->scratch, &image, NULL, &err), ST_TOO_LARGE);
    assert_non_null(strstr(err.text, "17 scans; the limit for its size is 16"));
    options.max_pixels = WIDTH * HEIGHT * 2;
    assert_int_not_equal(image_decode(file, &options, &f->scratch, &image, NULL, NULL),
                         ST_TOO_LARGE);
    free(many);
}

static void kinds_of_jpeg_that_are_not_read_are_named(void **state) {
    struct fixture *f = *state;
    char *bytes = (char *)(uintptr_t)f->jpeg.data;
    const size_t frame = find(f->jpeg, "\xff\xc0", 2);
    static const struct {
        size_t offset;
        unsigned char value, before;
        const char *named;
    } KINDS[] = {{1, 0xc3, 0xc0, "SOF3"}, {4, 12, 8, "12 bits"}, {9, 2, 3, "2 components"}};
    for (size_t i = 0; i < 3; i++) {
        bytes[frame + KINDS[i].offset] = (char)KINDS[i].value;
        struct image image;
        struct err err = {.text = ""};
        assert_int_equal(decode(f, f->jpeg, &image, &err), ST_UNSUPPORTED);
        assert_non_null(strstr(err.text, KINDS[i].named));
        bytes[frame + KINDS[i].offset] = (char)KINDS[i].before;
    }
}

static void other_kinds_of_files_are_named(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *bytes, *named;
    } FILES[] = {{"GIF89a........", "a GIF"}, {"%PDF-1.4", "a PDF"}, {"<svg", "SVG"},
                 {"....ftypavif....", "an AVIF"}, {"", "empty"}, {"abcd", "61 62 63 64"}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        struct image image;
        struct err err = {.text = ""};
        assert_int_equal(decode(f, view_of(FILES[i].bytes), &image, &err), ST_INVALID);
        assert_non_null(strstr(err.text, FILES[i].named));
        assert_false(image_is_known(view_of(FILES[i].bytes)));
    }
}

/* jpeg with an EXIF segment of one entry. */
static struct view turned(struct view jpeg, unsigned char orientation) {
    const unsigned char segment[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, '*',
                                     0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1,
                                     0, orientation, 0, 0, 0, 0, 0, 0};
    char *data = malloc(jpeg.size + sizeof segment);
    memcpy(data, jpeg.data, 2);
    memcpy(data + 2, segment, sizeof segment);
    memcpy(data + 2 + sizeof segment, jpeg.data + 2, jpeg.size - 2);
    return (struct view){data, jpeg.size + sizeof segment};
}

static void orientation_turns_the_picture_unless_ignored(void **state) {
    struct fixture *f = *state;
    struct scratch other = {.buffers = {{NULL, 0}}};
    struct image plain, image;
    struct image_info info;
    assert_int_equal(decode(f, f->jpeg, &plain, NULL), ST_OK);
    struct view file = turned(f->jpeg, 6); /* stored lying on its left side */
    struct image_options options = {.ignores_orientation = false};
    assert_int_equal(image_decode(file, &options, &other, &image, &info, NULL), ST_OK);
    assert_int_equal(image.width, HEIGHT);
    assert_int_equal(image.height, WIDTH);
    assert_int_equal(info.width, HEIGHT);
    assert_int_equal(info.height, WIDTH);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        for (uint32_t x = 0; x < WIDTH; x++) {
            assert_memory_equal(image.pixels + (x * HEIGHT + HEIGHT - 1 - y) * 3,
                                plain.pixels + (y * WIDTH + x) * 3, 3);
        }
    }
    options.ignores_orientation = true;
    assert_int_equal(image_decode(file, &options, &other, &image, &info, NULL), ST_OK);
    assert_int_equal(info.width, WIDTH);
    assert_memory_equal(image.pixels, plain.pixels, sizeof f->pixels);
    scratch_done(&other);
    free((void *)(uintptr_t)file.data);
}

static void scaled_decoding_stays_large_enough_and_tells_the_whole_size(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint32_t least_width, least_height, width, height;
        unsigned char orientation;
    } CASES[] = {{40, 24, 40, 24, 1}, {21, 1, 40, 24, 1}, {20, 12, 20, 12, 1},
                 {1, 7, 20, 12, 1}, {10, 6, 10, 6, 1}, {0, 0, 5, 3, 1}, {12, 20, 12, 20, 6}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct image_options options = {.scales_jpeg = true,
                                              .least_width = CASES[i].least_width,
                                              .least_height = CASES[i].least_height};
        struct view file = turned(f->jpeg, CASES[i].orientation);
        struct image image;
        struct image_info info;
        assert_int_equal(image_decode(file, &options, &f->scratch, &image, &info, NULL), ST_OK);
        assert_int_equal(image.width, CASES[i].width);
        assert_int_equal(image.height, CASES[i].height);
        assert_int_equal(info.width, CASES[i].orientation == 6 ? HEIGHT : WIDTH);
        assert_string_equal(info.format, "JPEG");
        free((void *)(uintptr_t)file.data);
    }
}

static void a_second_picture_takes_no_memory_and_trimming_gives_it_back(void **state) {
    struct fixture *f = *state;
    struct image first, second;
    assert_int_equal(decode(f, f->png, &first, NULL), ST_OK);
    assert_int_equal(decode(f, f->jpeg, &second, NULL), ST_OK);
    assert_ptr_equal(first.pixels, second.pixels);
    scratch_trim(&f->scratch, 1 << 20);
    assert_non_null(f->scratch.buffers[SCRATCH_PIXELS].data);
    scratch_trim(&f->scratch, 1);
    assert_null(f->scratch.buffers[SCRATCH_PIXELS].data);
}

static enum status unwrap(struct fixture *f, const char *sent, struct view *out, bool *was_base64,
                          struct err *err) {
    return image_unwrap(view_of(sent), &f->scratch, out, was_base64, err);
}

static void bytes_of_a_picture_are_taken_as_they_are(void **state) {
    struct fixture *f = *state;
    struct view file;
    bool was_base64 = true;
    assert_int_equal(image_unwrap(f->webp, &f->scratch, &file, &was_base64, NULL), ST_OK);
    assert_ptr_equal(file.data, f->webp.data);
    assert_false(was_base64);
}

static void base64_is_read_in_all_its_spellings(void **state) {
    struct fixture *f = *state;
    static const char *const SENT[] = {
        "+/+/AAEC+w==", "-_-_AAEC-w==", "-_-_AAEC-w", "+/+/\r\nAAEC\n+w\n==\n",
        "data:image/png;base64,+/+/AAEC+w==", "DATA:;BASE64,+/+/AAEC+w"};
    for (size_t i = 0; i < sizeof SENT / sizeof *SENT; i++) {
        struct view file;
        bool was_base64 = false;
        assert_int_equal(unwrap(f, SENT[i], &file, &was_base64, NULL), ST_OK);
        assert_true(was_base64);
        assert_int_equal(file.size, 7);
        assert_memory_equal(file.data, "\xfb\xff\xbf\x00\x01\x02\xfb", 7);
    }
}

static void mistakes_in_base64_are_told_with_their_place(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *sent, *told;
    } CASES[] = {
        {"AAAA AAAA", "character 5 of 9 is 0x20"},
        {"data:image/png;base64,AAAAA*AA", "character 28 of 30 is 0x2a"},
        {"AAAAA", "cut short"}, {"AAA=A", "character 5"}, {"AA=", "cut short"},
        {"AA===", "character 5"}, {"A===", "character 2"}, {"=", "character 1"},
        {"data:image/png,AAAA", ";base64"}, {"data:image/png;base64", "no comma"},
        {"GIF89a\x01\x02\x03", "a GIF"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct view file;
        struct err err = {.text = ""};
        assert_int_equal(unwrap(f, CASES[i].sent, &file, NULL, &err), ST_INVALID);
        if (strstr(err.text, CASES[i].told) == NULL) {
            fail_msg("%s: %s", CASES[i].sent, err.text);
        }
    }
}

static void base64_never_writes_beyond_its_room(void **state) {
    (void)state;
    static char text[64];
    for (size_t size = 0; size <= sizeof text; size++) {
        memset(text, 'A', sizeof text);
        unsigned char *out = malloc(base64_room(size)); /* the sanitizer looks at its end */
        size_t written, bad;
        if (base64_decode((struct view){text, size}, out, &written, &bad)) {
            assert_int_equal(written, size * 3 / 4);
        } else {
            assert_int_equal(size % 4, 1);
        }
        free(out);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(lossless_formats_give_the_pixels_back),
        TEST(grey_is_pillows_mixture),
        TEST(every_cut_of_every_format_is_refused),
        TEST(what_follows_the_end_is_ignored),
        TEST(claims_are_refused_before_memory_is_taken),
        TEST(a_side_beyond_the_limit_is_refused),
        TEST(a_jpeg_with_too_many_scans_is_refused),
        TEST(fewer_scans_are_allowed_the_larger_the_picture),
        TEST(kinds_of_jpeg_that_are_not_read_are_named),
        TEST(other_kinds_of_files_are_named),
        TEST(orientation_turns_the_picture_unless_ignored),
        TEST(scaled_decoding_stays_large_enough_and_tells_the_whole_size),
        TEST(a_second_picture_takes_no_memory_and_trimming_gives_it_back),
        TEST(bytes_of_a_picture_are_taken_as_they_are),
        TEST(base64_is_read_in_all_its_spellings),
        TEST(mistakes_in_base64_are_told_with_their_place),
        TEST(base64_never_writes_beyond_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

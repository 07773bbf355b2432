/* perf/image: what each step of a picture costs, and libturbojpeg alone as the limit of decoding.
 *
 *     perf_image FILE.jpg LARGE.rgb    LARGE: 1920x1080 RGB, without a header
 *
 * Prints "NAME NANOSECONDS" a step, the median of its rounds; steps are interleaved. The script
 * beside this times Pillow and OpenCV on the same pictures between runs of it. */
#include "base/clock.h"
#include "prep/base64.h"
#include "prep/image.h"
#include "prep/pixels.h"
#include "prep/resize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum { ROUNDS = 15, LARGE_WIDTH = 1920, LARGE_HEIGHT = 1080, SIDE = 224 };

enum step { DECODE, TURBOJPEG, PILLOW, PILLOW_CUBIC, OPENCV, OPENCV_CUBIC, NUMBERS, BASE64, STEP_COUNT };
static const char *const NAMES[STEP_COUNT] = {
    "decode", "turbojpeg", "pillow-bilinear", "pillow-bicubic", "opencv-linear", "opencv-cubic",
    "numbers", "base64"};

struct setting {
    struct scratch scratch;
    struct view file, text;
    struct image large, small;
    struct pixel_table table;
    tjhandle handle;
    unsigned char *pixels; /* turbojpeg's */
    float *numbers;
    unsigned char *bytes;
};

static void fail(const char *what) {
    fprintf(stderr, "perf_image: %s\n", what);
    exit(1);
}

static struct view read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path);
    const long size = ftell(file);
    char *data = malloc((size_t)size);
    rewind(file);
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) fail(path);
    fclose(file);
    return (struct view){data, (size_t)size};
}

static void resize(struct setting *s, enum resize_kind kind) {
    struct image out;
    if (image_resize(&s->large, kind, SIDE, SIDE, &s->scratch, &out, NULL) != ST_OK) fail("resize");
}

static void run(struct setting *s, enum step step) {
    const struct image_options options = {.max_pixels = 0};
    size_t size, bad;
    switch (step) {
    case DECODE:
        if (image_decode(s->file, &options, &s->scratch, &s->small, NULL, NULL) != ST_OK) fail("decode");
        break;
    case TURBOJPEG:
        if (tjDecompress2(s->handle, (const unsigned char *)s->file.data, s->file.size, s->pixels, 0, 0, 0,
                          TJPF_RGB, 0) != 0) fail("turbojpeg");
        break;
    case PILLOW: resize(s, RESIZE_PILLOW_BILINEAR); break;
    case PILLOW_CUBIC: resize(s, RESIZE_PILLOW_BICUBIC); break;
    case OPENCV: resize(s, RESIZE_OPENCV_LINEAR); break;
    case OPENCV_CUBIC: resize(s, RESIZE_OPENCV_CUBIC); break;
    case NUMBERS: pixels_write(&s->table, &s->small, s->small.width, s->numbers); break;
    default:
        if (!base64_decode(s->text, s->bytes, &size, &bad)) fail("base64");
        break;
    }
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void prepare(struct setting *s, char **paths) {
    s->file = read_file(paths[1]);
    const struct view large = read_file(paths[2]);
    s->large = (struct image){(unsigned char *)large.data, LARGE_WIDTH, LARGE_HEIGHT, 3};
    run(s, DECODE);
    const size_t pixels = (size_t)s->small.width * s->small.height;
    s->handle = tjInitDecompress();
    s->pixels = malloc(pixels * 3);
    s->numbers = malloc(pixels * 3 * sizeof *s->numbers);
    /* a megabyte of base64 */
    char *text = malloc(1 << 20);
    s->bytes = malloc(base64_room(1 << 20));
    if (s->handle == NULL || !s->pixels || !s->numbers || !text || !s->bytes) fail("no memory");
    for (size_t i = 0; i < 1 << 20; i++) text[i] = "ABCDEFGHijklmnop01234567+/xyzXYZ"[(i * 7 + i / 31) % 32];
    s->text = (struct view){text, 1 << 20};
    const struct pixel_format format = {.layout = LAYOUT_NCHW, .dtype = DTYPE_FP32, .scale = 1 / 255.0,
                                        .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
    if (pixels_init(&s->table, &format, NULL) != ST_OK) fail("pixels_init");
}

int main(int argc, char **argv) {
    static struct setting setting;
    static uint64_t took[STEP_COUNT][ROUNDS];
    if (argc != 3) fail("FILE.jpg LARGE.rgb");
    prepare(&setting, argv);
    for (int round = -2; round < ROUNDS; round++) { /* two to warm up */
        for (enum step step = 0; step < STEP_COUNT; step++) {
            const uint64_t before = thread_cpu_ns();
            run(&setting, step);
            if (round >= 0) took[step][round] = thread_cpu_ns() - before;
        }
    }
    for (enum step step = 0; step < STEP_COUNT; step++) {
        qsort(took[step], ROUNDS, sizeof *took[step], compare);
        printf("%s %llu\n", NAMES[step], (unsigned long long)took[step][ROUNDS / 2]);
    }
    scratch_done(&setting.scratch);
    return 0;
}

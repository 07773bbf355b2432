/* Samples to numbers (pixels.h): every sample has 256 values, so each channel's numbers are
 * computed once, in double, rounded once, and looked up from then on. Pure. Invariant: writes
 * pixels_size bytes, every one of them, and nothing else. */
#include "prep/pixels.h"
#include <math.h>
#include <string.h>

/* The nearest binary16, ties to even; computed from the double, not by way of float, which would
 * round twice. */
static uint16_t half_of(double value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    if (!(size < 65520)) { /* half a step above the largest, 65504 */
        return (uint16_t)(sign | (isnan(value) ? 0x7e00 : 0x7c00));
    }
    int exponent;
    (void)frexp(size, &exponent); /* size = m * 2^exponent, 0.5 <= m < 1 */
    const int least = -14;        /* of the normal numbers: 2^-14 */
    const int power = size == 0 || exponent - 1 < least ? least : exponent - 1;
    const double steps = rint(ldexp(size, 10 - power)); /* of 2^(power - 10) */
    /* A carry out of the 10 bits goes on into the exponent, as it should. */
    return (uint16_t)(sign | (uint16_t)((unsigned)(power - least) * 1024 + (unsigned)steps));
}

static size_t channels_of(const struct pixel_format *format) {
    return format->color == COLOR_GREY ? 1 : 3;
}

static bool is_plain(const struct pixel_format *format) {
    for (size_t c = 0; c < channels_of(format); c++) {
        if (format->mean[c] != 0 || format->std[c] != 1) {
            return false;
        }
    }
    return format->scale == 1;
}

enum status pixels_init(struct pixel_table *out, const struct pixel_format *format,
                        struct err *err) {
    if (format->layout == LAYOUT_AUTO) {
        return err_set(err, ST_INVALID, "the layout is still auto: it must be nchw or nhwc");
    }
    if (format->dtype == DTYPE_UINT8 && !is_plain(format)) {
        return err_set(err, ST_INVALID,
                       "pixels of UINT8 are as they are: scale 1, mean 0 and std 1 only");
    }
    if (format->dtype != DTYPE_UINT8 && format->dtype != DTYPE_FP32 && format->dtype != DTYPE_FP16) {
        return err_set(err, ST_INVALID, "pixels become FP32, FP16 or UINT8, not %s",
                       dtype_name(format->dtype));
    }
    for (size_t c = 0; c < channels_of(format); c++) {
        if (!(format->std[c] != 0) || !isfinite(format->std[c]) || !isfinite(format->mean[c])
            || !isfinite(format->scale)) {
            return err_set(err, ST_INVALID, "scale, mean and std must be finite and std not 0");
        }
    }
    out->format = *format;
    for (size_t c = 0; c < channels_of(format); c++) {
        for (size_t sample = 0; sample < 256; sample++) {
            const double value = ((double)sample * format->scale - format->mean[c])
                / format->std[c];
            out->values[c][sample] = (float)value;
            out->halves[c][sample] = half_of(value);
        }
    }
    return ST_OK;
}

size_t pixels_size(const struct pixel_table *table, uint32_t width, uint32_t height) {
    return (size_t)width * height * channels_of(&table->format) * dtype_size(table->format.dtype);
}

/* Where a row's elements go: red, green and blue (grey: the first alone) start at offset, counted
 * in elements from the row's first, and are step apart. */
struct target {
    size_t channels, step, offset[3];
};

static void write_singles(const float *const tables[3], const unsigned char *in, size_t count,
                          const struct target *target, float *restrict out) {
    const size_t step = target->step;
    if (target->channels == 1) {
        for (size_t x = 0; x < count; x++) {
            out[x] = tables[0][in[x]];
        }
        return;
    }
    float *restrict red = out + target->offset[0];
    float *restrict green = out + target->offset[1];
    float *restrict blue = out + target->offset[2];
    size_t x = 0;
    if (step == 1) { /* four at a time: stores are the bottleneck, and these can be merged */
        for (; x + 4 <= count; x += 4, in += 12) {
            const float reds[4] = {tables[0][in[0]], tables[0][in[3]], tables[0][in[6]],
                                   tables[0][in[9]]};
            const float greens[4] = {tables[1][in[1]], tables[1][in[4]], tables[1][in[7]],
                                     tables[1][in[10]]};
            const float blues[4] = {tables[2][in[2]], tables[2][in[5]], tables[2][in[8]],
                                    tables[2][in[11]]};
            memcpy(red + x, reds, sizeof reds);
            memcpy(green + x, greens, sizeof greens);
            memcpy(blue + x, blues, sizeof blues);
        }
    }
    for (; x < count; x++, in += 3) {
        red[x * step] = tables[0][in[0]];
        green[x * step] = tables[1][in[1]];
        blue[x * step] = tables[2][in[2]];
    }
}

static void write_halves(const uint16_t *const tables[3], const unsigned char *in, size_t count,
                         const struct target *target, uint16_t *out) {
    for (size_t c = 0; c < target->channels; c++) {
        uint16_t *to = out + target->offset[c];
        for (size_t x = 0; x < count; x++) {
            to[x * target->step] = tables[c][in[x * target->channels + c]];
        }
    }
}

static void write_bytes(const unsigned char *in, size_t count, const struct target *target,
                        uint8_t *out) {
    for (size_t c = 0; c < target->channels; c++) {
        uint8_t *to = out + target->offset[c];
        for (size_t x = 0; x < count; x++) {
            to[x * target->step] = in[x * target->channels + c];
        }
    }
}

/* count of width columns were written at out: the others become 0. */
static void write_blank(const struct target *target, size_t count, size_t width, size_t element,
                        unsigned char *out) {
    const bool is_mixed = target->step == target->channels;
    for (size_t c = 0; c < (is_mixed ? 1 : target->channels); c++) {
        const size_t first = (is_mixed ? 0 : target->offset[c]) + count * target->step;
        memset(out + first * element, 0, (width - count) * target->step * element);
    }
}

void pixels_write(const struct pixel_table *table, const struct image *image, uint32_t blank_from,
                  void *out) {
    const size_t width = image->width, channels = channels_of(&table->format);
    const size_t count = blank_from < width ? blank_from : width;
    const size_t element = dtype_size(table->format.dtype);
    const bool is_mixed = table->format.layout == LAYOUT_NHWC || channels == 1;
    struct target target = {.channels = channels, .step = is_mixed ? channels : 1};
    const float *singles[3];
    const uint16_t *halves[3];
    for (size_t c = 0; c < 3; c++) { /* c: in the picture; at: in the model's order */
        const size_t at = table->format.color == COLOR_BGR ? 2 - c : c;
        target.offset[c] = at * (is_mixed ? 1 : width * image->height);
        singles[c] = table->values[at];
        halves[c] = table->halves[at];
    }
    for (size_t y = 0; y < image->height; y++) {
        const unsigned char *in = image->pixels + y * width * channels;
        unsigned char *row = (unsigned char *)out + y * width * target.step * element;
        switch (table->format.dtype) {
        case DTYPE_FP32: write_singles(singles, in, count, &target, (float *)row); break;
        case DTYPE_FP16: write_halves(halves, in, count, &target, (uint16_t *)row); break;
        default: write_bytes(in, count, &target, row); break;
        }
        if (count < width) {
            write_blank(&target, count, width, element, row);
        }
    }
}

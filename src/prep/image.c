/* Pictures (image.h): which format, whether its claims are within the limits, then the format's
 * own file, grey, and the right way up. Any worker's thread; pure but for scratch.
 *
 * Invariant: no memory is taken for pixels before check_limits has passed the header. Next:
 * image_jpeg.c, image_png.c, image_webp.c. */
#include "prep/image.h"
#include "prep/image_formats.h"
#include <stdlib.h>

enum {
    /* Ten scans are usual, and each of them goes over all of the picture. A megabyte can ask for
     * 100 of 64 million pixels, 14 s; so many are for pictures of a sixth of the limit. */
    MAX_SCANS = 100, SCANS_AT_LIMIT = 16,
    TILE = 32        /* turning by blocks keeps both pictures' lines in the cache */
};

static const struct image_format *format_of(struct view file) {
    static const struct image_format *const FORMATS[] = {&IMAGE_JPEG, &IMAGE_PNG, &IMAGE_WEBP};
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (FORMATS[i]->is_it(file)) {
            return FORMATS[i];
        }
    }
    return NULL;
}

bool image_is_known(struct view file) { return format_of(file) != NULL; }

const char *image_other_name(struct view file) {
    static const struct {
        size_t at;
        const char *bytes, *name;
    } OTHERS[] = {
        {0, "GIF8", "a GIF"}, {0, "BM", "a BMP"}, {0, "II*", "a TIFF"}, {0, "MM\0*", "a TIFF"},
        {4, "ftypavif", "an AVIF"}, {4, "ftyphei", "a HEIC"}, {4, "ftypmif1", "a HEIF"},
        {0, "\xff\x0a", "a JPEG XL"}, {4, "JXL ", "a JPEG XL"}, {4, "jP  ", "a JPEG 2000"},
        {0, "%PDF", "a PDF"}, {0, "<", "text, perhaps SVG or HTML"}, {0, "{", "JSON"},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        const size_t size = OTHERS[i].bytes[0] == 'M' ? 4 : strlen(OTHERS[i].bytes);
        if (file.size >= OTHERS[i].at + size
            && memcmp(file.data + OTHERS[i].at, OTHERS[i].bytes, size) == 0) {
            return OTHERS[i].name;
        }
    }
    return NULL;
}

static enum status refuse_unknown(struct view file, struct err *err) {
    if (file.size == 0) {
        return err_set(err, ST_INVALID, "the picture is empty: send a JPEG, PNG or WebP");
    }
    const char *name = image_other_name(file);
    if (name != NULL) {
        return err_set(err, ST_INVALID, "the picture looks like %s: send a JPEG, PNG or WebP", name);
    }
    const unsigned char *bytes = (const unsigned char *)file.data;
    return err_set(err, ST_INVALID, "the picture is no JPEG, PNG or WebP: its %zu bytes begin with "
                   "%02x %02x %02x %02x", file.size, bytes[0], file.size > 1 ? bytes[1] : 0u,
                   file.size > 2 ? bytes[2] : 0u, file.size > 3 ? bytes[3] : 0u);
}

static enum status check_limits(const struct image_format *format,
                                const struct image_header *header, uint64_t max_pixels,
                                struct err *err) {
    if (header->width == 0 || header->height == 0) {
        return err_set(err, ST_INVALID, "the %s is damaged: it claims %ux%u pixels", format->name,
                       header->width, header->height);
    }
    if (header->width > IMAGE_MAX_SIDE || header->height > IMAGE_MAX_SIDE) {
        return err_set(err, ST_TOO_LARGE, "the %s claims %ux%u pixels; a side may have %d",
                       format->name, header->width, header->height, IMAGE_MAX_SIDE);
    }
    const uint64_t pixels = (uint64_t)header->width * header->height;
    if (pixels > max_pixels) {
        return err_set(err, ST_TOO_LARGE, "the %s claims %ux%u = %llu pixels; the limit is %llu",
                       format->name, header->width, header->height, (unsigned long long)pixels,
                       (unsigned long long)max_pixels);
    }
    const uint64_t most = max_pixels * SCANS_AT_LIMIT / pixels;
    if (header->scans > (most < MAX_SCANS ? most : MAX_SCANS)) {
        return err_set(err, ST_TOO_LARGE, "the %s has %u scans; the limit for its size is %llu",
                       format->name, header->scans,
                       (unsigned long long)(most < MAX_SCANS ? most : MAX_SCANS));
    }
    return ST_OK;
}

enum status image_take(struct scratch *scratch, uint32_t width, uint32_t height, uint32_t channels,
                       struct image *out, struct err *err) {
    unsigned char *pixels = scratch_get(scratch, SCRATCH_PIXELS, (size_t)width * height * channels);
    if (pixels == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a picture of %ux%u", width, height);
    }
    *out = (struct image){.pixels = pixels, .width = width, .height = height,
                          .channels = channels};
    return ST_OK;
}

bool image_has_memory(size_t size) {
    void *volatile memory = malloc(size); /* volatile, or the compiler knows better */
    free(memory);
    return memory != NULL;
}

/* In place, with Pillow's weights (ITU-R 601-2 in 16 bits). */
static void make_grey(struct image *image) {
    const size_t count = (size_t)image->width * image->height;
    const unsigned char *from = image->pixels;
    for (size_t i = 0; i < count; i++, from += 3) {
        image->pixels[i] = (unsigned char)(
            (from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    }
    image->channels = 1;
}

/* Where the stored pixel (x, y) goes: first + x * across + y * down. */
struct turn {
    ptrdiff_t first, across, down;
    bool swaps_sides;
};

static struct turn turn_of(unsigned orientation, ptrdiff_t width, ptrdiff_t height) {
    const ptrdiff_t last = width * height - 1;
    switch (orientation) {
    case 2: return (struct turn){width - 1, -1, width, false};
    case 3: return (struct turn){last, -1, -width, false};
    case 4: return (struct turn){last - width + 1, 1, -width, false};
    case 5: return (struct turn){0, height, 1, true};
    case 6: return (struct turn){height - 1, height, -1, true};
    case 7: return (struct turn){last, -height, -1, true};
    default: return (struct turn){last - height + 1, -height, 1, true}; /* 8 */
    }
}

static void turn_tile(const struct image *in, const struct turn *turn, uint32_t left, uint32_t top,
                      unsigned char *out) {
    const uint32_t right = left + TILE < in->width ? left + TILE : in->width;
    const uint32_t bottom = top + TILE < in->height ? top + TILE : in->height;
    const size_t channels = in->channels;
    for (uint32_t y = top; y < bottom; y++) {
        const unsigned char *from = in->pixels + ((size_t)y * in->width + left) * channels;
        for (uint32_t x = left; x < right; x++, from += channels) {
            const ptrdiff_t at = turn->first + (ptrdiff_t)x * turn->across
                + (ptrdiff_t)y * turn->down;
            unsigned char *to = out + (size_t)at * channels;
            to[0] = from[0];
            if (channels == 3) {
                to[1] = from[1];
                to[2] = from[2];
            }
        }
    }
}

static enum status turn_upright(struct image *image, unsigned orientation, struct scratch *scratch,
                                struct err *err) {
    const size_t size = (size_t)image->width * image->height * image->channels;
    unsigned char *out = scratch_get(scratch, SCRATCH_TURNED, size);
    if (out == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory to turn a picture of %ux%u", image->width,
                       image->height);
    }
    const struct turn turn = turn_of(orientation, image->width, image->height);
    for (uint32_t top = 0; top < image->height; top += TILE) {
        for (uint32_t left = 0; left < image->width; left += TILE) {
            turn_tile(image, &turn, left, top, out);
        }
    }
    const uint32_t width = image->width;
    image->width = turn.swaps_sides ? image->height : width;
    image->height = turn.swaps_sides ? width : image->height;
    image->pixels = out;
    return ST_OK;
}

enum status image_decode(struct view file, const struct image_options *options,
                         struct scratch *scratch, struct image *out, struct image_info *out_info,
                         struct err *err) {
    const struct image_format *format = format_of(file);
    if (format == NULL) {
        return refuse_unknown(file, err);
    }
    struct image_header header = {.orientation = 1};
    enum status status = format->read_header(file, &header, err);
    if (status == ST_OK) {
        const uint64_t limit = options->max_pixels > 0 ? options->max_pixels : IMAGE_MAX_PIXELS;
        status = check_limits(format, &header, limit, err);
    }
    struct image image;
    if (status == ST_OK) {
        status = format->decode(file, &header, options, scratch, &image, err);
    }
    if (status != ST_OK) {
        return status;
    }
    if (options->is_grey && image.channels == 3) {
        make_grey(&image);
    }
    const bool is_turned = header.orientation > 1 && !options->ignores_orientation;
    if (is_turned) {
        status = turn_upright(&image, header.orientation, scratch, err);
        if (status != ST_OK) {
            return status;
        }
    }
    *out = image;
    if (out_info != NULL) {
        const bool swaps = is_turned && header.orientation > 4;
        *out_info = (struct image_info){.width = swaps ? header.height : header.width,
                                        .height = swaps ? header.width : header.height,
                                        .format = format->name,
                                        .is_scalable = !options->scales_jpeg
                                            && format->can_scale != NULL
                                            && format->can_scale(&header, options)};
    }
    return ST_OK;
}

/* JPEG by libturbojpeg. Any worker's thread; pure but for scratch.
 *
 * Invariant: the markers are walked here before the library sees the file, so that its size,
 * how often it makes the decoder go over the picture, and whether it is all there are known before
 * memory is taken for it. What the library then finds must be the same size. Walk: walk_markers;
 * pixels: decompress. */
#include "prep/image_formats.h"
#include <turbojpeg.h>

enum {
    MARKER_SOI = 0xd8, MARKER_EOI = 0xd9, MARKER_SOS = 0xda, MARKER_APP1 = 0xe1,
    MARKER_DHT = 0xc4, MARKER_JPG = 0xc8, MARKER_DAC = 0xcc, MARKER_TEM = 0x01
};

struct walk {
    const unsigned char *data;
    size_t size, at;
    bool has_frame, is_whole; /* whole: the end marker was found, behind a scan */
    bool has_orientation;
    unsigned frame_kind, precision;
};

static unsigned short_at(const struct walk *walk, size_t at) {
    return (unsigned)walk->data[at] << 8 | walk->data[at + 1];
}

/* The next marker, fill bytes and coded data passed over; 0: the file ends first. */
static unsigned next_marker(struct walk *walk) {
    while (walk->at < walk->size) {
        const unsigned char *found = memchr(walk->data + walk->at, 0xff, walk->size - walk->at);
        if (found == NULL) {
            break;
        }
        walk->at = (size_t)(found - walk->data) + 1;
        while (walk->at < walk->size && walk->data[walk->at] == 0xff) {
            walk->at++;
        }
        if (walk->at < walk->size && walk->data[walk->at] != 0) {
            return walk->data[walk->at++];
        }
    }
    walk->at = walk->size;
    return 0;
}

static bool has_segment(unsigned marker) {
    return marker != MARKER_SOI && marker != MARKER_TEM && !(marker >= 0xd0 && marker <= 0xd7);
}

static bool is_frame(unsigned marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != MARKER_DHT && marker != MARKER_JPG
        && marker != MARKER_DAC;
}

static enum status read_frame(struct walk *walk, unsigned marker, size_t length,
                              struct image_header *out, struct err *err) {
    if (walk->has_frame) {
        return err_set(err, ST_INVALID, "the JPEG is damaged: it has two frame headers");
    }
    if (length < 8) {
        return err_set(err, ST_INVALID, "the JPEG is damaged: its frame header is too short");
    }
    walk->has_frame = true;
    walk->frame_kind = marker;
    walk->precision = walk->data[walk->at + 2];
    out->height = short_at(walk, walk->at + 3);
    out->width = short_at(walk, walk->at + 5);
    out->samples = walk->data[walk->at + 7];
    return ST_OK;
}

static void read_exif(struct walk *walk, size_t length, struct image_header *out) {
    const struct view data = {(const char *)walk->data + walk->at + 2, length - 2};
    if (!walk->has_orientation && data.size >= 6 && memcmp(data.data, "Exif\0", 5) == 0) {
        walk->has_orientation = true;
        out->orientation = exif_orientation(data);
    }
}

static enum status walk_markers(struct walk *walk, struct image_header *out, struct err *err) {
    for (unsigned marker; (marker = next_marker(walk)) != 0;) {
        if (marker == MARKER_EOI) {
            walk->is_whole = out->scans > 0;
            return ST_OK;
        }
        if (!has_segment(marker)) {
            continue;
        }
        const size_t length = walk->size - walk->at < 2 ? 0 : short_at(walk, walk->at);
        if (length < 2 || length > walk->size - walk->at) {
            return ST_OK; /* cut short */
        }
        if (is_frame(marker)) {
            const enum status status = read_frame(walk, marker, length, out, err);
            if (status != ST_OK) {
                return status;
            }
        } else if (marker == MARKER_APP1) {
            read_exif(walk, length, out);
        }
        out->scans += marker == MARKER_SOS;
        walk->at += length;
    }
    return ST_OK;
}

static bool is_readable_frame(unsigned marker) { /* SOF0 to 2, 9 and 10 */
    return marker <= 0xc2 || marker == 0xc9 || marker == 0xca;
}

static enum status check_walk(const struct walk *walk, const struct image_header *header,
                              struct err *err) {
    if (!walk->has_frame) {
        return err_set(err, ST_INVALID, "the JPEG is cut short: it has no frame header");
    }
    if (!is_readable_frame(walk->frame_kind)) {
        return err_set(err, ST_UNSUPPORTED,
                       "a JPEG of kind SOF%u (lossless or hierarchical) is not read: send it as "
                       "a baseline or progressive JPEG", walk->frame_kind - 0xc0);
    }
    if (walk->precision != 8) {
        return err_set(err, ST_UNSUPPORTED, "a JPEG of %u bits a sample is not read: send 8",
                       walk->precision);
    }
    if (header->samples != 1 && header->samples != 3 && header->samples != 4) {
        return err_set(err, ST_UNSUPPORTED, "a JPEG of %u components is not read: send 1, 3 or 4",
                       header->samples);
    }
    if (!walk->is_whole) {
        return err_set(err, ST_INVALID, "the JPEG is cut short: its %zu bytes have no end marker",
                       walk->size);
    }
    return ST_OK;
}

static enum status read_header(struct view file, struct image_header *out, struct err *err) {
    struct walk walk = {.data = (const unsigned char *)file.data, .size = file.size};
    const enum status status = walk_markers(&walk, out, err);
    return status == ST_OK ? check_walk(&walk, out, err) : status;
}

static bool is_it(struct view file) {
    return file.size >= 3 && memcmp(file.data, "\xff\xd8\xff", 3) == 0;
}

/* 1, 2, 4 or 8: the size may be divided by it. */
static uint32_t largest_divisor(const struct image_header *header, const struct image_options *options) {
    const bool is_turned = header->orientation > 4 && !options->ignores_orientation;
    const uint32_t least_width = is_turned ? options->least_height : options->least_width;
    const uint32_t least_height = is_turned ? options->least_width : options->least_height;
    uint32_t divisor = 8;
    while (divisor > 1 && ((header->width + divisor - 1) / divisor < least_width
                           || (header->height + divisor - 1) / divisor < least_height)) {
        divisor /= 2;
    }
    return divisor;
}

static uint32_t divisor_of(const struct image_header *header, const struct image_options *options) {
    return options->scales_jpeg ? largest_divisor(header, options) : 1;
}

static bool can_scale(const struct image_header *header, const struct image_options *options) {
    return largest_divisor(header, options) > 1;
}

/* Inverted inks, as Pillow takes every JPEG of 4 components, to red, green and blue; in place.
 * The division by 255 is Pillow's. */
static void cmyk_to_rgb(unsigned char *pixels, size_t count) {
    const unsigned char *from = pixels;
    for (size_t i = 0; i < count; i++, from += 4, pixels += 3) {
        const int32_t light = from[3];
        for (size_t c = 0; c < 3; c++) {
            const int32_t product = (255 - from[c]) * light + 128;
            const int32_t value = light - (((product >> 8) + product) >> 8);
            pixels[c] = (unsigned char)(value < 0 ? 0 : value);
        }
    }
}

/* Warnings after which a picture is taken as it is, as Pillow takes it: stray bytes between
 * segments, a bad code in the middle. Not among them: that it is cut short. */
static bool is_tolerated(const char *warning) {
    static const char *const TOLERATED[] = {
        "Corrupt JPEG data: bad", "Corrupt JPEG data: found marker", "Inconsistent progression",
        "Invalid SOS parameters for sequential JPEG", "Unknown Adobe color transform",
        "Warning: unknown JFIF"};
    for (size_t i = 0; i < sizeof TOLERATED / sizeof *TOLERATED; i++) {
        if (strncmp(warning, TOLERATED[i], strlen(TOLERATED[i])) == 0) {
            return true;
        }
    }
    return strstr(warning, "extraneous bytes before marker") != NULL;
}

/* Why the library gave up, in its words. */
static enum status refuse(const char *text, struct err *err) {
    if (strncmp(text, "Insufficient memory", 19) == 0 || strstr(text, "llocation failure") != NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory to decode a JPEG");
    }
    return err_set(err, ST_INVALID, "the JPEG is %s: %s",
                   strstr(text, "remature end") != NULL ? "cut short" : "damaged", text);
}

/* The library's own distinction between warnings and errors does not hold: a warning followed by
 * an error, which leaves pixels unwritten, is called a warning. The text is the error's then. */
static enum status check_result(tjhandle handle, int result, struct err *err) {
    const char *text = tjGetErrorStr2(handle);
    return result == 0 || is_tolerated(text) ? ST_OK : refuse(text, err);
}

static enum status check_size(tjhandle handle, struct view file, const struct image_header *header,
                              struct err *err) {
    int width = 0, height = 0, subsampling = 0, colorspace = 0;
    /* Fails on rare subsamplings that are decoded all the same: the size is what counts. */
    (void)tjDecompressHeader3(handle, (const unsigned char *)file.data, (unsigned long)file.size,
                              &width, &height, &subsampling, &colorspace);
    const bool is_same = (uint32_t)width == header->width && (uint32_t)height == header->height;
    return is_same ? ST_OK : refuse(tjGetErrorStr2(handle), err);
}

static enum status decompress(tjhandle handle, struct view file, const struct image_header *header,
                              const struct image_options *options, struct scratch *scratch,
                              struct image *out, struct err *err) {
    enum status status = check_size(handle, file, header, err);
    if (status != ST_OK) {
        return status;
    }
    const uint32_t divisor = divisor_of(header, options);
    const bool is_cmyk = header->samples == 4;
    const bool is_grey = header->samples == 1 && options->is_grey;
    const uint32_t channels = is_cmyk ? 4 : is_grey ? 1 : 3;
    struct image image;
    status = image_take(scratch, (header->width + divisor - 1) / divisor,
                        (header->height + divisor - 1) / divisor, channels, &image, err);
    if (status != ST_OK) {
        return status;
    }
    const int format = is_cmyk ? TJPF_CMYK : is_grey ? TJPF_GRAY : TJPF_RGB;
    const int result = tjDecompress2(handle, (const unsigned char *)file.data,
                                     (unsigned long)file.size, image.pixels, (int)image.width,
                                     (int)(image.width * channels), (int)image.height, format,
                                     TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS);
    status = check_result(handle, result, err);
    if (status == ST_OK) {
        if (is_cmyk) {
            cmyk_to_rgb(image.pixels, (size_t)image.width * image.height);
            image.channels = 3;
        }
        *out = image;
    }
    return status;
}

static enum status decode(struct view file, const struct image_header *header,
                          const struct image_options *options, struct scratch *scratch,
                          struct image *out, struct err *err) {
    const tjhandle handle = tjInitDecompress();
    if (handle == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory to decode a JPEG");
    }
    const enum status status = decompress(handle, file, header, options, scratch, out, err);
    (void)tjDestroy(handle);
    return status;
}

const struct image_format IMAGE_JPEG = {
    .name = "JPEG", .is_it = is_it, .read_header = read_header, .decode = decode,
    .can_scale = can_scale};

/* WebP by libwebp: lossy, lossless, with alpha (dropped), and of an animation the first frame. Any
 * worker's thread; pure but for scratch. Invariant: what lies outside a first frame is 0. */
#include "prep/image_formats.h"
#include <webp/decode.h>

enum { HEAD_BYTES = 12, CHUNK_HEAD = 8, FRAME_HEAD = 16, SPARE_BYTES = 1 << 20 };

static bool is_it(struct view file) {
    return file.size >= HEAD_BYTES && memcmp(file.data, "RIFF", 4) == 0
        && memcmp(file.data + 8, "WEBP", 4) == 0;
}

static uint32_t little_at(struct view data, size_t at, unsigned bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint32_t)(unsigned char)data.data[at + i] << (8 * i);
    }
    return value;
}

/* The first chunk of that name; false: none. Its data may be shorter than it claims. */
static bool find_chunk(struct view file, const char *name, struct view *out) {
    size_t at = HEAD_BYTES;
    while (file.size - at >= CHUNK_HEAD) {
        const size_t claimed = little_at(file, at + 4, 4);
        const size_t left = file.size - at - CHUNK_HEAD;
        if (memcmp(file.data + at, name, 4) == 0) {
            *out = (struct view){file.data + at + CHUNK_HEAD, claimed < left ? claimed : left};
            return true;
        }
        const size_t padded = claimed + (claimed & 1);
        if (padded > left) {
            return false;
        }
        at += CHUNK_HEAD + padded;
    }
    return false;
}

static enum status status_of(VP8StatusCode code, struct err *err) {
    switch (code) {
    case VP8_STATUS_OK:
        return ST_OK;
    case VP8_STATUS_OUT_OF_MEMORY:
        return err_set(err, ST_NO_MEMORY, "no memory to decode a WebP");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return err_set(err, ST_INVALID, "the WebP is cut short");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return err_set(err, ST_UNSUPPORTED, "the WebP has a feature that is not read");
    default:
        return image_has_memory(SPARE_BYTES)
            ? err_set(err, ST_INVALID, "the WebP is damaged")
            : err_set(err, ST_NO_MEMORY, "no memory to decode a WebP");
    }
}

static enum status read_header(struct view file, struct image_header *out, struct err *err) {
    WebPBitstreamFeatures features;
    const enum status status =
        status_of(WebPGetFeatures((const uint8_t *)file.data, file.size, &features), err);
    if (status != ST_OK) {
        return status;
    }
    struct view exif;
    if (find_chunk(file, "EXIF", &exif)) {
        out->orientation = exif_orientation(exif);
    }
    out->width = (uint32_t)features.width;
    out->height = (uint32_t)features.height;
    return ST_OK;
}

/* data to a part of the picture that begins at (x, y) and is as large as data says. */
static enum status decode_at(struct view data, uint32_t x, uint32_t y, const struct image *image,
                             struct err *err) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) {
        return err_set(err, ST_INTERNAL, "libwebp is not the one that this was built with");
    }
    const uint8_t *bytes = (const uint8_t *)data.data;
    const enum status status = status_of(WebPGetFeatures(bytes, data.size, &config.input), err);
    if (status != ST_OK) {
        return status;
    }
    if ((uint32_t)config.input.width > image->width - x
        || (uint32_t)config.input.height > image->height - y) {
        return err_set(err, ST_INVALID, "the WebP is damaged: a frame is larger than the picture");
    }
    /* libwebp 1.2.4 frees what it never took when the memory for a lossless picture's codes is
     * refused, and crashes. */
    const size_t pixels = (size_t)config.input.width * (size_t)config.input.height;
    if (!image_has_memory(pixels * 4 + SPARE_BYTES)) {
        return err_set(err, ST_NO_MEMORY, "no memory to decode a WebP");
    }
    const size_t stride = (size_t)image->width * 3, offset = y * stride + (size_t)x * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixels + offset;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * image->height - offset;
    return status_of(WebPDecode(bytes, data.size, &config), err);
}

static enum status decode_frame(struct view frame, const struct image *image, struct err *err) {
    if (frame.size < FRAME_HEAD) {
        return err_set(err, ST_INVALID, "the WebP is cut short");
    }
    const uint32_t x = little_at(frame, 0, 3) * 2, y = little_at(frame, 3, 3) * 2;
    if (x >= image->width || y >= image->height) {
        return err_set(err, ST_INVALID, "the WebP is damaged: a frame lies outside the picture");
    }
    memset(image->pixels, 0, (size_t)image->width * image->height * 3);
    const struct view data = {frame.data + FRAME_HEAD, frame.size - FRAME_HEAD};
    return decode_at(data, x, y, image, err);
}

static enum status decode(struct view file, const struct image_header *header,
                          const struct image_options *options, struct scratch *scratch,
                          struct image *out, struct err *err) {
    (void)options;
    struct image image;
    enum status status = image_take(scratch, header->width, header->height, 3, &image, err);
    if (status != ST_OK) {
        return status;
    }
    struct view frame;
    status = find_chunk(file, "ANMF", &frame) ? decode_frame(frame, &image, err)
                                              : decode_at(file, 0, 0, &image, err);
    if (status == ST_OK) {
        *out = image;
    }
    return status;
}

const struct image_format IMAGE_WEBP = {
    .name = "WebP", .is_it = is_it, .read_header = read_header, .decode = decode};

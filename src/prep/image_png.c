/* PNG by libspng. Any worker's thread; pure but for scratch.
 *
 * Invariant: the library sees the chunks that make the pixels and no others (feed skips them), so
 * that compressed texts and profiles cost nothing and cannot spoil a picture; the orientation is
 * found in the walk that read_header makes. Samples come as the file has them and are converted
 * here, as Pillow does it: of 16 bits the upper 8, palette entries that are missing are grey. */
#include "prep/image_formats.h"
#include <spng.h>

enum {
    SIGNATURE_BYTES = 8, CHUNK_HEAD = 8, CHUNK_FRAME = 12, /* length, type, checksum */
    HEADER_BYTES = 13, WINDOW_BYTES = 1 << 16
};

static bool is_it(struct view file) {
    return file.size >= SIGNATURE_BYTES && memcmp(file.data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static uint32_t big_at(struct view file, size_t at) {
    const unsigned char *p = (const unsigned char *)file.data + at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct chunk {
    const char *type;
    struct view data; /* may be shorter than claimed, where the file ends */
    size_t next;      /* where the next chunk begins; past the end: there is none */
};

static bool chunk_at(struct view file, size_t at, struct chunk *out) {
    if (at > file.size || file.size - at < CHUNK_HEAD) {
        return false;
    }
    const size_t claimed = big_at(file, at), left = file.size - at - CHUNK_HEAD;
    out->type = file.data + at + 4;
    out->data = (struct view){file.data + at + CHUNK_HEAD, claimed < left ? claimed : left};
    out->next = at + CHUNK_FRAME + claimed;
    return true;
}

static bool is_type(const struct chunk *chunk, const char *type) {
    return memcmp(chunk->type, type, 4) == 0;
}

static enum status read_header(struct view file, struct image_header *out, struct err *err) {
    struct chunk chunk;
    if (!chunk_at(file, SIGNATURE_BYTES, &chunk) || chunk.data.size < HEADER_BYTES
        || !is_type(&chunk, "IHDR")) {
        return err_set(err, ST_INVALID, "the PNG is cut short: it has no header");
    }
    out->width = big_at(chunk.data, 0);
    out->height = big_at(chunk.data, 4);
    while (chunk_at(file, chunk.next, &chunk) && !is_type(&chunk, "IEND")) {
        if (is_type(&chunk, "eXIf")) {
            out->orientation = exif_orientation(chunk.data);
            break;
        }
    }
    return ST_OK;
}

/* The file as the library gets it: the signature and the chunks that it needs. */
struct feed {
    struct view file;
    size_t at, until; /* what may be handed out now; at until a chunk begins */
};

static bool is_needed(const struct chunk *chunk) {
    return (chunk->type[0] & 0x20) == 0; /* a capital: critical */
}

static int feed_read(spng_ctx *context, void *user, void *to, size_t size) {
    (void)context;
    struct feed *feed = user;
    unsigned char *out = to;
    while (size > 0) {
        struct chunk chunk;
        while (feed->at == feed->until) {
            if (!chunk_at(feed->file, feed->at, &chunk)) {
                return SPNG_IO_EOF;
            }
            const size_t end = chunk.next < feed->file.size ? chunk.next : feed->file.size;
            feed->until = end;
            if (!is_needed(&chunk)) {
                feed->at = end;
            }
        }
        const size_t left = feed->until - feed->at, part = left < size ? left : size;
        memcpy(out, feed->file.data + feed->at, part);
        feed->at += part;
        out += part;
        size -= part;
    }
    return SPNG_OK;
}

/* How rows become pixels. */
struct rows {
    const struct spng_ihdr *header;
    size_t row_bytes;
    uint32_t channels;           /* of the result */
    unsigned char colors[256][3]; /* of a palette, or of grey samples below 8 bits */
};

static void set_colors(struct rows *rows, const struct spng_plte *palette) {
    const unsigned most = (1u << (rows->header->bit_depth < 8 ? rows->header->bit_depth : 8)) - 1;
    for (unsigned i = 0; i < 256; i++) {
        const bool is_listed = palette != NULL && i < palette->n_entries;
        const unsigned char grey = (unsigned char)(palette != NULL ? i : i * 255 / most);
        rows->colors[i][0] = is_listed ? palette->entries[i].red : grey;
        rows->colors[i][1] = is_listed ? palette->entries[i].green : grey;
        rows->colors[i][2] = is_listed ? palette->entries[i].blue : grey;
    }
}

/* Samples of 1, 2, 4 or 8 bits that stand for a colour each. */
static void convert_indices(const struct rows *rows, const unsigned char *in, unsigned char *out) {
    const unsigned bits = rows->header->bit_depth, mask = (1u << bits) - 1;
    for (uint32_t x = 0; x < rows->header->width; x++) {
        const size_t bit = (size_t)x * bits;
        const unsigned index = (unsigned)in[bit / 8] >> (8 - bits - bit % 8) & mask;
        memcpy(out, rows->colors[index], rows->channels);
        out += rows->channels;
    }
}

/* Samples of 8 or 16 bits; the latter in this machine's order. */
static void convert_samples(const struct rows *rows, const unsigned char *in, unsigned char *out) {
    const struct spng_ihdr *header = rows->header;
    const bool is_grey = header->color_type == SPNG_COLOR_TYPE_GRAYSCALE
        || header->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    const bool has_alpha = header->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA
        || header->color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    const size_t bytes = header->bit_depth / 8;
    const size_t step = ((is_grey ? 1u : 3u) + (has_alpha ? 1u : 0u)) * bytes;
    const uint16_t probe = 1;
    unsigned char low_first;
    memcpy(&low_first, &probe, 1);
    in += bytes == 2 && low_first == 1 ? 1 : 0;
    for (uint32_t x = 0; x < header->width; x++, in += step, out += rows->channels) {
        for (uint32_t c = 0; c < rows->channels; c++) {
            out[c] = in[is_grey ? 0 : c * bytes];
        }
    }
}

static void convert_row(const struct rows *rows, const unsigned char *in, unsigned char *out) {
    if (rows->header->color_type == SPNG_COLOR_TYPE_INDEXED
        || (rows->header->color_type == SPNG_COLOR_TYPE_GRAYSCALE && rows->header->bit_depth < 8)) {
        convert_indices(rows, in, out);
    } else {
        convert_samples(rows, in, out);
    }
}

static enum status status_of(int error, struct err *err) {
    /* zlib takes its window when it first needs it: no memory for it looks like a bad stream. */
    switch (error == SPNG_EIDAT_STREAM && !image_has_memory(WINDOW_BYTES) ? SPNG_EMEM : error) {
    case SPNG_OK:
        return ST_OK;
    case SPNG_EMEM:
    case SPNG_EZLIB_INIT: /* fails for memory alone */
        return err_set(err, ST_NO_MEMORY, "no memory to decode a PNG");
    case SPNG_IO_EOF:
    case SPNG_EIDAT_TOO_SHORT:
        return err_set(err, ST_INVALID, "the PNG is cut short");
    case SPNG_ECHUNK_UNKNOWN_CRITICAL:
        return err_set(err, ST_UNSUPPORTED, "the PNG needs an extension that is not read");
    default:
        return err_set(err, ST_INVALID, "the PNG is damaged: %s", spng_strerror(error));
    }
}

/* Row by row, so that a picture of 16 bits a sample is never held whole. */
static int decode_rows(spng_ctx *context, const struct rows *rows, unsigned char *raw,
                       const struct image *image) {
    int error = spng_decode_image(context, NULL, 0, SPNG_FMT_PNG, SPNG_DECODE_PROGRESSIVE);
    const size_t stride = (size_t)image->width * image->channels;
    for (uint32_t y = 0; error == 0 && y < image->height; y++) {
        error = spng_decode_row(context, raw, rows->row_bytes);
        if (error == SPNG_EOI && y + 1 == image->height) {
            error = 0;
        }
        if (error == 0) {
            convert_row(rows, raw, image->pixels + y * stride);
        }
    }
    return error;
}

static int decode_interlaced(spng_ctx *context, const struct rows *rows, unsigned char *raw,
                             const struct image *image) {
    const size_t stride = (size_t)image->width * image->channels;
    const int error = spng_decode_image(context, raw, rows->row_bytes * image->height,
                                        SPNG_FMT_PNG, 0);
    for (uint32_t y = 0; error == 0 && y < image->height; y++) {
        convert_row(rows, raw + y * rows->row_bytes, image->pixels + y * stride);
    }
    return error;
}

static enum status decode_into(spng_ctx *context, const struct image *image, struct rows *rows,
                               struct scratch *scratch, struct err *err) {
    struct spng_plte palette;
    const bool is_indexed = rows->header->color_type == SPNG_COLOR_TYPE_INDEXED;
    int error = is_indexed ? spng_get_plte(context, &palette) : SPNG_OK;
    size_t size = 0;
    if (error == 0) {
        set_colors(rows, is_indexed ? &palette : NULL);
        error = spng_decoded_image_size(context, SPNG_FMT_PNG, &size);
    }
    if (error != 0) {
        return status_of(error, err);
    }
    const bool is_interlaced = rows->header->interlace_method != 0;
    rows->row_bytes = size / rows->header->height;
    unsigned char *raw = scratch_get(scratch, SCRATCH_TURNED,
                                     is_interlaced ? size : rows->row_bytes);
    if (raw == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory to decode a PNG");
    }
    error = is_interlaced ? decode_interlaced(context, rows, raw, image)
                          : decode_rows(context, rows, raw, image);
    return status_of(error, err);
}

static enum status decode_with(spng_ctx *context, const struct image_header *header,
                               const struct image_options *options, struct scratch *scratch,
                               struct image *out, struct err *err) {
    struct spng_ihdr found;
    enum status status = status_of(spng_get_ihdr(context, &found), err);
    if (status != ST_OK) {
        return status;
    }
    if (found.width != header->width || found.height != header->height) {
        return err_set(err, ST_INVALID, "the PNG is damaged: it has two headers");
    }
    /* What has to be inflated counts, not what is kept: 16 bits and alpha are twice a pixel. */
    static const uint64_t SAMPLES[8] = {1, 1, 3, 1, 2, 2, 4, 4};
    const uint64_t bits = SAMPLES[found.color_type & 7] * found.bit_depth;
    const uint64_t pixels = (uint64_t)found.width * found.height;
    const uint64_t most = options->max_pixels != 0 ? options->max_pixels : IMAGE_MAX_PIXELS;
    if (bits > 32 && pixels * bits / 32 > most) {
        return err_set(err, ST_TOO_LARGE,
                       "the PNG claims %ux%u pixels of %llu bits; the limit for those is %llu pixels",
                       found.width, found.height, (unsigned long long)bits,
                       (unsigned long long)(most * 32 / bits));
    }
    const bool is_grey = (found.color_type & 3) == 0; /* neither palette nor colour */
    struct rows rows = {.header = &found, .channels = is_grey && options->is_grey ? 1 : 3};
    struct image image;
    status = image_take(scratch, found.width, found.height, rows.channels, &image, err);
    if (status == ST_OK) {
        status = decode_into(context, &image, &rows, scratch, err);
    }
    if (status == ST_OK) {
        *out = image;
    }
    return status;
}

static enum status decode(struct view file, const struct image_header *header,
                          const struct image_options *options, struct scratch *scratch,
                          struct image *out, struct err *err) {
    spng_ctx *context = spng_ctx_new(0);
    if (context == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory to decode a PNG");
    }
    struct feed feed = {.file = file, .until = SIGNATURE_BYTES};
    enum status status = ST_INTERNAL;
    if (spng_set_image_limits(context, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE) == 0
        && spng_set_png_stream(context, feed_read, &feed) == 0) {
        status = decode_with(context, header, options, scratch, out, err);
    } else {
        status = err_set(err, ST_NO_MEMORY, "no memory to decode a PNG");
    }
    spng_ctx_free(context);
    return status;
}

const struct image_format IMAGE_PNG = {
    .name = "PNG", .is_it = is_it, .read_header = read_header, .decode = decode};

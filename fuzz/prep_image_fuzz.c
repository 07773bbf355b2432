/* Any bytes as a picture's file: decoded or refused with a reason, within the limits, and to the
 * same pixels whatever lay in the buffers before (so none is left unwritten). The last byte
 * chooses the options; a file's end is where a picture minds it least. A PNG's checksums are
 * made right first, or no mutation would ever get past them. */
#include "prep/image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 16 };

static void soil(struct scratch *scratch, int value) {
    for (enum scratch_use use = SCRATCH_PIXELS; use <= SCRATCH_TURNED; use++) {
        void *memory = scratch_get(scratch, use, MAX_PIXELS * 4);
        if (memory == NULL) abort();
        memset(memory, value, scratch->buffers[use].capacity);
    }
}

static void check(const struct image *image, const struct image_info *info,
                  const struct image_options *options) {
    const bool is_whole = image->width == info->width && image->height == info->height;
    if (image->width == 0 || image->height == 0
        || (uint64_t)info->width * info->height > MAX_PIXELS
        || image->channels != (options->is_grey ? 1 : 3)
        || (!is_whole && (!options->scales_jpeg || image->width < options->least_width
                          || image->height < options->least_height))) {
        abort();
    }
}

static uint32_t checksum(const uint8_t *data, size_t size) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static void repair(uint8_t *png, size_t size) {
    for (size_t at = 8; at + 12 <= size;) {
        const size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16
            | (size_t)png[at + 2] << 8 | png[at + 3];
        if (length > size - at - 12) return;
        const uint32_t sum = checksum(png + at + 4, length + 4);
        for (int i = 0; i < 4; i++) png[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
}

static void run(const uint8_t *data, size_t size) {
    static struct scratch first, second;
    const unsigned choice = size > 0 ? data[size - 1] : 0;
    const struct image_options options = {
        .is_grey = choice & 1, .ignores_orientation = choice & 2, .scales_jpeg = choice & 4,
        .least_width = choice / 8, .least_height = choice / 16, .max_pixels = MAX_PIXELS};
    const struct view file = {(const char *)data, size};
    struct image image, again;
    struct image_info info;
    struct err err = {.text = ""};
    soil(&first, 0x00);
    soil(&second, 0xff);
    const enum status status = image_decode(file, &options, &first, &image, &info, &err);
    if (status == ST_NO_MEMORY || (status != ST_OK && err.text[0] == '\0')) abort();
    if (image_decode(file, &options, &second, &again, NULL, NULL) != status) abort();
    if (status != ST_OK) return;
    check(&image, &info, &options);
    if (again.width != image.width || again.height != image.height
        || memcmp(image.pixels, again.pixels,
                  (size_t)image.width * image.height * image.channels) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, data, size);
    if (size > 8 && memcmp(copy, "\x89PNG", 4) == 0 && copy[size - 1] < 0xf0) repair(copy, size);
    run(copy, size);
    free(copy);
    return 0;
}

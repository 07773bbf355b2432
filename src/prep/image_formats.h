/* Inside picture decoding only: what each format's file does for image.c. First the header is
 * read (pure, no memory), then, if its claims are within the limits, the pixels. */
#ifndef TELLTALE_PREP_IMAGE_FORMATS_H
#define TELLTALE_PREP_IMAGE_FORMATS_H

#include "prep/image.h"

struct image_header {
    uint32_t width, height;   /* as stored, before it is turned */
    unsigned orientation;     /* EXIF's, 1 to 8 */
    unsigned scans;           /* how often the pixels are gone over; 1 but for some JPEGs */
    unsigned samples;         /* JPEG: a pixel's, 1, 3 or 4 */
};

/* The pixels as stored go to SCRATCH_PIXELS; 3 channels, or 1 where options->is_grey and the file
 * itself is grey. */
struct image_format {
    const char *name;
    bool (*is_it)(struct view file);
    enum status (*read_header)(struct view file, struct image_header *out, struct err *err);
    enum status (*decode)(struct view file, const struct image_header *header,
                          const struct image_options *options, struct scratch *scratch,
                          struct image *out, struct err *err);
    /* Would it be decoded smaller if options said scales_jpeg? NULL: never. */
    bool (*can_scale)(const struct image_header *header, const struct image_options *options);
};
extern const struct image_format IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP;

/* Takes the memory that width * height * channels need; ST_NO_MEMORY. */
MUST_CHECK enum status image_take(struct scratch *scratch, uint32_t width, uint32_t height,
                                  uint32_t channels, struct image *out, struct err *err);

/* Whether that much could be taken at the moment: for libraries that call a file damaged, or
 * worse, where they had no memory. Memory that is out is mostly still out a moment later. */
bool image_has_memory(size_t size);

/* What people send by mistake: "a GIF", "a PDF", ...; NULL: not that either. */
const char *image_other_name(struct view file);

/* The orientation in EXIF data (with or without "Exif\0\0" before the TIFF header); 1 where there
 * is none that makes sense. */
unsigned exif_orientation(struct view exif);

#endif

/* A picture's file (JPEG, PNG, WebP) to pixels: 8 bits a sample, RGB or grey, upright. Pure but
 * for the buffers it keeps in scratch. Any input is either decoded or refused with a reason; what
 * a file claims is checked against the limits before memory is taken for it.
 *
 * Defined as Pillow does it: Image.open(f), ImageOps.exif_transpose, convert("RGB") or
 * convert("L"); where Pillow's own conversion is of no use (16 bits a sample) docs/images.md says
 * what is done. */
#ifndef TELLTALE_PREP_IMAGE_H
#define TELLTALE_PREP_IMAGE_H

#include "base/status.h"
#include "base/view.h"
#include "prep/scratch.h"
#include <stdbool.h>
#include <stdint.h>

struct image {
    unsigned char *pixels;   /* rows one behind the other without gaps, (height, width, channels) */
    uint32_t width, height;
    uint32_t channels;       /* 1: grey, 3: RGB */
};

struct image_options {
    bool is_grey;
    bool ignores_orientation; /* EXIF's */
    bool scales_jpeg;         /* decode a JPEG at 1/2, 1/4 or 1/8 while both sides stay at least ... */
    uint32_t least_width, least_height; /* ... this; not what a full decode and a resize give */
    uint64_t max_pixels;      /* width * height; 0: IMAGE_MAX_PIXELS */
};
enum { IMAGE_MAX_PIXELS = 64000000, IMAGE_MAX_SIDE = 32768 };

struct image_info {
    uint32_t width, height;   /* of the whole picture, upright */
    const char *format;       /* "JPEG", "PNG", "WebP" */
    bool is_scalable;         /* a JPEG that scales_jpeg would have had decoded smaller, were it on */
};

/* The picture lies in scratch until the next decode. out_info may be NULL; it has the size before
 * any scaled decoding. ST_INVALID: not a picture of a known kind, damaged or cut short;
 * ST_TOO_LARGE: over a limit; ST_UNSUPPORTED: a kind of JPEG, PNG or WebP that is not read (named);
 * ST_NO_MEMORY. Fuzzed. */
MUST_CHECK enum status image_decode(struct view file, const struct image_options *options,
                                    struct scratch *scratch, struct image *out,
                                    struct image_info *out_info, struct err *err);
/* True when file starts as a JPEG, PNG or WebP does. */
bool image_is_known(struct view file);

/* A picture as clients send it: the file's bytes as they are, or in base64 (standard or URL
 * alphabet, padded or not, line ends allowed), with or without "data:image/jpeg;base64," before
 * it. *out_file is the input itself or lies in scratch. ST_INVALID says where base64 ends being
 * that. out_was_base64 may be NULL. Fuzzed. */
MUST_CHECK enum status image_unwrap(struct view sent, struct scratch *scratch,
                                    struct view *out_file, bool *out_was_base64,
                                    struct err *err);

#endif

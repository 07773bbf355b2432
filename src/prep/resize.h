/* Resizing pictures, bit for bit as Pillow or as OpenCV does it: the two differ by up to tens of
 * levels, so a model wants the one it was trained with. Pure. */
#ifndef TELLTALE_PREP_RESIZE_H
#define TELLTALE_PREP_RESIZE_H

#include "prep/image.h"

#define RESIZE_CHOICES "pillow-bilinear|pillow-bicubic|opencv-linear|opencv-cubic|nearest"
enum resize_kind {
    RESIZE_PILLOW_BILINEAR, /* Image.resize(size, BILINEAR): antialiased when it shrinks */
    RESIZE_PILLOW_BICUBIC,
    RESIZE_OPENCV_LINEAR,   /* cv2.resize(image, size, interpolation=INTER_LINEAR): not */
    RESIZE_OPENCV_CUBIC,
    RESIZE_NEAREST,         /* Pillow's NEAREST */
    RESIZE_KIND_COUNT
};

/* in of 1 or 3 channels to width * height; *out lies in scratch (SCRATCH_RESIZED), or is *in where
 * the size is the same. Only ST_NO_MEMORY. */
MUST_CHECK enum status image_resize(const struct image *in, enum resize_kind kind, uint32_t width,
                                    uint32_t height, struct scratch *scratch, struct image *out,
                                    struct err *err);

#endif

/* Inside resizing only: a part of a resized picture, written where the caller says. A centre crop
 * and a letterbox both need no more than this, and neither pays for pixels that nobody sees. */
#ifndef TELLTALE_PREP_RESIZE_WINDOW_H
#define TELLTALE_PREP_RESIZE_WINDOW_H

#include "prep/resize.h"

struct resize_window {
    uint32_t scaled_width, scaled_height; /* of the whole picture after resizing; up to 2^30 */
    uint32_t left, top, width, height;    /* the part of it that is wanted; not empty, inside */
    unsigned char *out;                   /* its first sample */
    size_t stride;                        /* bytes from one row of out to the next */
};

/* As image_resize, the window of it. in's pixels do not overlap out's. Only ST_NO_MEMORY; uses
 * SCRATCH_WEIGHTS and SCRATCH_PASS. */
MUST_CHECK enum status image_resize_window(const struct image *in, enum resize_kind kind,
                                           const struct resize_window *window,
                                           struct scratch *scratch, struct err *err);

/* One for each implementation: resize_pillow.c, resize_opencv.c. False: no memory. */
bool resize_pillow(const struct image *in, bool is_cubic, const struct resize_window *window,
                   struct scratch *scratch);
bool resize_opencv_linear(const struct image *in, const struct resize_window *window,
                          struct scratch *scratch);
bool resize_opencv_cubic(const struct image *in, const struct resize_window *window,
                         struct scratch *scratch);

#endif

/* How a picture of any size comes to lie on the model's canvas, and how a place on the canvas is
 * found again in the picture. Pure arithmetic; the pixels are moved by image_place. */
#ifndef TELLTALE_PREP_FIT_H
#define TELLTALE_PREP_FIT_H

#include "prep/resize.h"

#define FIT_CHOICES "stretch|letterbox|crop|height|limit|none"
enum fit_kind {
    FIT_STRETCH,   /* to width * height, the aspect ratio lost */
    FIT_LETTERBOX, /* whole picture inside width * height, centred, the rest filled with `pad` */
    FIT_CROP,      /* shorter side to `shorter` (0: just covers), then the centre's width * height */
    FIT_HEIGHT,    /* to `height`, width by the aspect ratio, at most max_width (then squeezed);
                      filled on the right up to a multiple of `multiple`, at least `width` */
    FIT_LIMIT,     /* longer side at most max_side, both sides rounded to multiples of `multiple` */
    FIT_NONE,      /* as it is */
    FIT_KIND_COUNT
};

struct fit {
    enum fit_kind kind;
    uint32_t width, height; /* of the canvas; 0 where the kind does not use them */
    uint32_t shorter;       /* FIT_CROP */
    uint32_t max_width;     /* FIT_HEIGHT; 0: no limit */
    uint32_t max_side;      /* FIT_LIMIT */
    uint32_t multiple;      /* 0 or 1: of nothing */
};

struct placement {          /* all in pixels */
    uint32_t source_width, source_height;
    uint32_t scaled_width, scaled_height; /* the picture after resizing */
    int32_t left, top;      /* of the scaled picture on the canvas; negative: cropped away */
    uint32_t width, height; /* of the canvas */
};

/* source: the whole picture's size. ST_INVALID: a picture that cannot be fitted (a canvas of no
 * pixels). Rounding as documented in docs/images.md (YOLO's letterbox, torchvision's resize and
 * crop, PaddleOCR's recogniser and detector). */
MUST_CHECK enum status fit_place(const struct fit *fit, uint32_t source_width,
                                 uint32_t source_height, struct placement *out, struct err *err);
/* (x, y) of the canvas to the picture's own pixels, clamped to it. */
void fit_back(const struct placement *placement, float *x, float *y);

/* The pixels: resized (unless they have that size already) and laid on the canvas; outside it is
 * filled with pad (3 samples; the first for grey). *out lies in scratch. */
MUST_CHECK enum status image_place(const struct image *in, const struct placement *placement,
                                   enum resize_kind kind, const uint8_t pad[3],
                                   struct scratch *scratch, struct image *out, struct err *err);

#endif

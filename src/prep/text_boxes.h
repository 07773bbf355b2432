/* A text detector's probability map to boxes around lines of text (DB: differentiable
 * binarization, as PaddleOCR's DBPostProcess): regions over a threshold, the smallest rectangle
 * around each (it may be turned), its score, grown by the ratio of area to perimeter. Pure. */
#ifndef TELLTALE_PREP_TEXT_BOXES_H
#define TELLTALE_PREP_TEXT_BOXES_H

#include "base/arena.h"
#include "base/status.h"
#include "prep/fit.h"

struct text_boxes_config {
    float threshold;       /* a pixel is text when its probability is greater: 0.3 */
    float box_threshold;   /* a region is kept when its mean probability is at least: 0.6 */
    float unclip_ratio;    /* grown by area * ratio / perimeter on every side: 1.5 */
    float least_side;      /* pixels of the map; smaller rectangles are dropped: 3 */
    uint32_t max_boxes;    /* 0: 1000 */
};

struct text_box {
    float corners[8];      /* x y of top left, top right, bottom right, bottom left, in pixels of
                              the original picture, clamped to it */
    float score;
};

/* map: (height, width) of the canvas. Ordered from top to bottom, then from left to right. In
 * arena; masks and stacks in scratch. ST_NO_MEMORY, or ST_INVALID for a map that is not the
 * canvas's size. */
MUST_CHECK enum status text_boxes(const struct text_boxes_config *config, const float *map,
                                  uint32_t width, uint32_t height,
                                  const struct placement *placement, struct scratch *scratch,
                                  struct arena *arena, struct text_box **out, uint32_t *out_count,
                                  struct err *err);

#endif

/* Connected regions of a thresholded map, for text_boxes.c. Pure. */
#ifndef TELLTALE_PREP_REGIONS_H
#define TELLTALE_PREP_REGIONS_H

#include "prep/scratch.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns first..last of a row that are over the threshold. */
struct run {
    uint32_t row, first, last;
    uint32_t region; /* while regions are found: a run of the same region, itself at the root */
};

/* Runs of the same region side by side, each region's from top to bottom and from left to right:
 * region r has runs[starts[r]] up to, not including, runs[starts[r + 1]]. In scratch. */
struct regions {
    struct run *runs;
    uint32_t *starts;
    uint32_t count;
};

/* Regions of (height, width) values > threshold that touch at sides or corners, in order of their
 * first pixel. Memory is bounded by the map's size. False: no memory. */
bool regions_find(const float *map, uint32_t width, uint32_t height, float threshold,
                  struct scratch *scratch, struct regions *out);

#endif

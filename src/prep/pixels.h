/* Pixels to a model's numbers, written where the caller says: straight into a batch's row. Pure. */
#ifndef TELLTALE_PREP_PIXELS_H
#define TELLTALE_PREP_PIXELS_H

#include "base/tensor.h"
#include "prep/image.h"

#define COLOR_CHOICES "rgb|bgr|grey"
enum color_kind { COLOR_RGB, COLOR_BGR, COLOR_GREY };
#define LAYOUT_CHOICES "auto|nchw|nhwc"
enum layout_kind { LAYOUT_AUTO, LAYOUT_NCHW, LAYOUT_NHWC }; /* auto is gone before pixels_init */

struct pixel_format {
    enum color_kind color;
    enum layout_kind layout;
    enum dtype dtype;      /* FP32, FP16 or UINT8 (scale 1, mean 0, std 1 only) */
    double scale;          /* value = (sample * scale - mean) / std, in double, rounded once */
    double mean[3], std[3]; /* in the model's colour order */
};

struct pixel_table {       /* made once from the format */
    struct pixel_format format;
    float values[3][256];  /* FP32 */
    uint16_t halves[3][256];
};
MUST_CHECK enum status pixels_init(struct pixel_table *out, const struct pixel_format *format,
                                   struct err *err);
/* Bytes that an image of that size takes. */
size_t pixels_size(const struct pixel_table *table, uint32_t width, uint32_t height);
/* image: 1 channel where the format is grey, else 3 (RGB). out: pixels_size bytes, aligned to the
 * element's size; (channels, height, width) or (height, width, channels). blank_from: columns from
 * here on are filled with 0, whatever mean and scale are (a recogniser's right edge);
 * image->width: none. */
void pixels_write(const struct pixel_table *table, const struct image *image, uint32_t blank_from,
                  void *out);

#endif

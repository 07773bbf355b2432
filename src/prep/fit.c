/* Placing a picture on a canvas (fit.h). Pure but for scratch. Invariant: the rounding is that of
 * the code that the models were trained or are usually run with, named at each kind; where that
 * code would make a picture of no pixels, a side becomes 1. Python's round() and C's rint() both
 * round a half to the even neighbour. */
#include "prep/fit.h"
#include "prep/resize_window.h"
#include <math.h>
#include <string.h>

/* A resized side may be far longer than what of it lies on the canvas; beyond this the walk along
 * it would cost more than the picture. */
enum { MAX_SCALED = 1 << 24 };

/* A placement before it is known to be one: anything may be too large. */
struct plan {
    double source_width, source_height;
    double width, height;               /* of the picture after resizing */
    double canvas_width, canvas_height;
    double left, top;
};

static double at_least_one(double side) { return side < 1 ? 1 : side; }

/* YOLOv5's and v8's letterbox(auto=False): the larger margin, if any, is right or below. */
static void letterbox(struct plan *plan) {
    const double ratio = fmin(plan->canvas_height / plan->source_height,
                              plan->canvas_width / plan->source_width);
    plan->width = fmin(at_least_one(rint(plan->source_width * ratio)), plan->canvas_width);
    plan->height = fmin(at_least_one(rint(plan->source_height * ratio)), plan->canvas_height);
    plan->left = floor((plan->canvas_width - plan->width) / 2);
    plan->top = floor((plan->canvas_height - plan->height) / 2);
}

/* torchvision's CenterCrop along one direction: what is too large is cropped at round(half), what
 * is too small is padded, the smaller margin first. */
static double crop_offset(double scaled, double wanted) {
    const double spare = scaled - wanted;
    return spare >= 0 ? -rint(spare / 2) : floor(-spare / 2);
}

/* torchvision's Resize(shorter), whose longer side is cut off and not rounded, and CenterCrop. */
static void crop(struct plan *plan, double shorter) {
    const double sw = plan->source_width, sh = plan->source_height;
    if (shorter > 0) {
        plan->width = sw <= sh ? shorter : floor(shorter * sw / sh);
        plan->height = sw <= sh ? floor(shorter * sh / sw) : shorter;
    } else {
        const double ratio = fmax(plan->canvas_width / sw, plan->canvas_height / sh);
        plan->width = fmax(rint(sw * ratio), plan->canvas_width);
        plan->height = fmax(rint(sh * ratio), plan->canvas_height);
    }
    plan->left = crop_offset(plan->width, plan->canvas_width);
    plan->top = crop_offset(plan->height, plan->canvas_height);
}

static double rounded_up(double value, uint32_t multiple) {
    return multiple > 1 ? ceil(value / multiple) * multiple : value;
}

/* PaddleOCR's resize_norm_img: the width is rounded up, then cut to what is allowed. */
static void to_height(struct plan *plan, const struct fit *fit) {
    plan->height = fit->height;
    plan->width = at_least_one(ceil(fit->height * (plan->source_width / plan->source_height)));
    if (fit->max_width > 0) {
        plan->width = fmin(plan->width, fit->max_width);
    }
    plan->canvas_width = rounded_up(fmax(plan->width, fit->width), fit->multiple);
}

static double limited_side(double side, double ratio, uint32_t multiple) {
    const double cut = floor(side * ratio);
    if (multiple <= 1) {
        return at_least_one(cut);
    }
    return fmax(rint(cut / multiple) * multiple, multiple);
}

/* PaddleOCR's DetResizeForTest(limit_type="max"): cut off, then rounded to the nearest multiple. */
static void limit(struct plan *plan, const struct fit *fit) {
    const double longer = fmax(plan->source_width, plan->source_height);
    const double ratio = fit->max_side > 0 && longer > fit->max_side ? fit->max_side / longer : 1;
    plan->width = limited_side(plan->source_width, ratio, fit->multiple);
    plan->height = limited_side(plan->source_height, ratio, fit->multiple);
    plan->canvas_width = plan->width;
    plan->canvas_height = plan->height;
}

static struct plan make_plan(const struct fit *fit, uint32_t source_width, uint32_t source_height) {
    struct plan plan = {.source_width = source_width, .source_height = source_height,
                        .width = source_width, .height = source_height,
                        .canvas_width = fit->width, .canvas_height = fit->height};
    switch (fit->kind) {
    case FIT_LETTERBOX: letterbox(&plan); break;
    case FIT_CROP: crop(&plan, fit->shorter); break;
    case FIT_HEIGHT: to_height(&plan, fit); break;
    case FIT_LIMIT: limit(&plan, fit); break;
    case FIT_STRETCH:
        plan.width = fit->width;
        plan.height = fit->height;
        break;
    default:
        plan.canvas_width = source_width;
        plan.canvas_height = source_height;
        break;
    }
    return plan;
}

enum status fit_place(const struct fit *fit, uint32_t source_width, uint32_t source_height,
                      struct placement *out, struct err *err) {
    if (source_width == 0 || source_height == 0) {
        return err_set(err, ST_INVALID, "a picture of %ux%u has no pixels", source_width,
                       source_height);
    }
    const struct plan plan = make_plan(fit, source_width, source_height);
    if (plan.canvas_width < 1 || plan.canvas_height < 1) {
        return err_set(err, ST_INVALID, "a canvas of %.0fx%.0f has no pixels: its width and height "
                       "must be given", plan.canvas_width, plan.canvas_height);
    }
    if (plan.width > MAX_SCALED || plan.height > MAX_SCALED
        || plan.canvas_width * plan.canvas_height > IMAGE_MAX_PIXELS) {
        return err_set(err, ST_INVALID, "a picture of %ux%u is too long and thin: it would become "
                       "%.0fx%.0f on a canvas of %.0fx%.0f", source_width, source_height,
                       plan.width, plan.height, plan.canvas_width, plan.canvas_height);
    }
    *out = (struct placement){
        .source_width = source_width, .source_height = source_height,
        .scaled_width = (uint32_t)at_least_one(plan.width),
        .scaled_height = (uint32_t)at_least_one(plan.height),
        .left = (int32_t)plan.left, .top = (int32_t)plan.top,
        .width = (uint32_t)plan.canvas_width, .height = (uint32_t)plan.canvas_height};
    return ST_OK;
}

static float back(float at, int32_t offset, uint32_t scaled, uint32_t source) {
    const double found = ((double)at - offset) * source / scaled;
    /* the comparisons send what is not a number to 0 */
    return (float)(found > 0 ? (found < source ? found : source) : 0);
}

void fit_back(const struct placement *placement, float *x, float *y) {
    *x = back(*x, placement->left, placement->scaled_width, placement->source_width);
    *y = back(*y, placement->top, placement->scaled_height, placement->source_height);
}

/* Along one direction: from which place of the scaled picture on, at which of the canvas, how
 * many. */
static uint32_t overlap(int32_t offset, uint32_t scaled, uint32_t canvas, uint32_t *out_from,
                        uint32_t *out_at) {
    *out_from = offset < 0 ? (uint32_t)-offset : 0;
    *out_at = offset > 0 ? (uint32_t)offset : 0;
    if (*out_from >= scaled || *out_at >= canvas) {
        return 0;
    }
    const uint32_t left = scaled - *out_from, room = canvas - *out_at;
    return left < room ? left : room;
}

static void fill(unsigned char *to, size_t pixels, uint32_t channels, const uint8_t pad[3]) {
    if (channels == 1 || (pad[0] == pad[1] && pad[1] == pad[2])) {
        memset(to, pad[0], pixels * channels);
        return;
    }
    for (size_t i = 0; i < pixels; i++) {
        memcpy(to + 3 * i, pad, 3);
    }
}

/* Everything outside the window that the picture will fill. */
static void fill_around(const struct image *canvas, uint32_t x, uint32_t y, uint32_t width,
                        uint32_t height, const uint8_t pad[3]) {
    const uint32_t channels = canvas->channels;
    const size_t row = (size_t)canvas->width * channels;
    fill(canvas->pixels, (size_t)y * canvas->width, channels, pad);
    for (uint32_t j = y; j < y + height; j++) {
        fill(canvas->pixels + j * row, x, channels, pad);
        fill(canvas->pixels + j * row + (size_t)(x + width) * channels, canvas->width - x - width,
             channels, pad);
    }
    fill(canvas->pixels + (y + height) * row,
         (size_t)(canvas->height - y - height) * canvas->width, channels, pad);
}

enum status image_place(const struct image *in, const struct placement *placement,
                        enum resize_kind kind, const uint8_t pad[3], struct scratch *scratch,
                        struct image *out, struct err *err) {
    if (placement->left == 0 && placement->top == 0 && placement->width == in->width
        && placement->height == in->height && placement->scaled_width == in->width
        && placement->scaled_height == in->height) {
        *out = *in;
        return ST_OK;
    }
    struct image canvas = {.width = placement->width, .height = placement->height,
                           .channels = in->channels};
    const size_t stride = (size_t)canvas.width * canvas.channels;
    canvas.pixels = scratch_get(scratch, SCRATCH_PLACED, stride * canvas.height);
    if (canvas.pixels == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a canvas of %ux%u", canvas.width,
                       canvas.height);
    }
    uint32_t x, y;
    struct resize_window window = {.scaled_width = placement->scaled_width,
                                   .scaled_height = placement->scaled_height, .stride = stride};
    window.width = overlap(placement->left, window.scaled_width, canvas.width, &window.left, &x);
    window.height = overlap(placement->top, window.scaled_height, canvas.height, &window.top, &y);
    enum status status = ST_OK;
    if (window.width == 0 || window.height == 0) {
        fill(canvas.pixels, (size_t)canvas.width * canvas.height, canvas.channels, pad);
    } else {
        fill_around(&canvas, x, y, window.width, window.height, pad);
        window.out = canvas.pixels + y * stride + (size_t)x * canvas.channels;
        status = image_resize_window(in, kind, &window, scratch, err);
    }
    if (status == ST_OK) {
        *out = canvas;
    }
    return status;
}

/* See text_boxes.h. Any thread; no state. Coordinates are those of pixel centres on the map, as
 * in the reference, until fit_back. Order: regions -> smallest rectangle -> score -> grown ->
 * the original picture. */
#include "prep/text_boxes.h"

#include "prep/regions.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_BOXES = 1000, SAME_LINE_PIXELS = 10 };

struct point {
    double x, y;
};
/* centre, half the sides, and the unit vector along the first side. */
struct rectangle {
    struct point centre, along;
    double half_length, half_width;
};

static double cross(struct point o, struct point a, struct point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

static size_t chain_push(struct point *hull, size_t size, size_t least, struct point next) {
    while (size >= least + 2 && cross(hull[size - 2], hull[size - 1], next) <= 0) size--;
    hull[size] = next;
    return size + 1;
}

/* The convex hull of a region: two chains over the ends of its runs, which lie in order of y.
 * hull has room for 4 points a run. Returns how many there are. */
static size_t convex_hull(const struct run *runs, size_t count, struct point *hull) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size = chain_push(hull, size, 0, (struct point){runs[i].first, runs[i].row});
        if (runs[i].last != runs[i].first)
            size = chain_push(hull, size, 0, (struct point){runs[i].last, runs[i].row});
    }
    const size_t lower = size - 1;
    for (size_t i = count; i-- > 0;) {
        if (runs[i].last != runs[i].first)
            size = chain_push(hull, size, lower, (struct point){runs[i].last, runs[i].row});
        size = chain_push(hull, size, lower, (struct point){runs[i].first, runs[i].row});
    }
    return size > 1 ? size - 1 : size; /* the last is the first again */
}

/* Around the hull with a side along (ux, uy). */
static struct rectangle enclose(const struct point *hull, size_t count, struct point along) {
    double low_u = INFINITY, high_u = -INFINITY, low_v = INFINITY, high_v = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        const double u = hull[i].x * along.x + hull[i].y * along.y;
        const double v = hull[i].y * along.x - hull[i].x * along.y;
        low_u = fmin(low_u, u);
        high_u = fmax(high_u, u);
        low_v = fmin(low_v, v);
        high_v = fmax(high_v, v);
    }
    const double u = (low_u + high_u) / 2, v = (low_v + high_v) / 2;
    return (struct rectangle){.centre = {u * along.x - v * along.y, u * along.y + v * along.x},
                              .along = along,
                              .half_length = (high_u - low_u) / 2,
                              .half_width = (high_v - low_v) / 2};
}

/* The smallest one has a side on an edge of the hull. */
static struct rectangle smallest_rectangle(const struct point *hull, size_t count) {
    struct rectangle best = enclose(hull, count, (struct point){1, 0});
    for (size_t i = 0; i < count; i++) {
        const struct point a = hull[i], b = hull[(i + 1) % count];
        const double length = hypot(b.x - a.x, b.y - a.y);
        if (length == 0) continue;
        const struct rectangle next =
            enclose(hull, count, (struct point){(b.x - a.x) / length, (b.y - a.y) / length});
        if (next.half_length * next.half_width < best.half_length * best.half_width) best = next;
    }
    return best;
}

static double shorter_side(const struct rectangle *r) {
    return 2 * fmin(r->half_length, r->half_width);
}

static int by_x(const void *left, const void *right) {
    const struct point *a = left, *b = right;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return a->y < b->y ? -1 : a->y > b->y;
}

/* Top left, top right, bottom right, bottom left. */
static void corners_of(const struct rectangle *r, struct point out[4]) {
    const struct point l = {r->along.x * r->half_length, r->along.y * r->half_length};
    const struct point w = {-r->along.y * r->half_width, r->along.x * r->half_width};
    struct point all[4] = {{r->centre.x - l.x - w.x, r->centre.y - l.y - w.y},
                           {r->centre.x + l.x - w.x, r->centre.y + l.y - w.y},
                           {r->centre.x + l.x + w.x, r->centre.y + l.y + w.y},
                           {r->centre.x - l.x + w.x, r->centre.y - l.y + w.y}};
    qsort(all, 4, sizeof all[0], by_x);
    const size_t left_top = all[0].y <= all[1].y ? 0 : 1, right_top = all[2].y <= all[3].y ? 2 : 3;
    out[0] = all[left_top];
    out[1] = all[right_top];
    out[2] = all[5 - right_top];
    out[3] = all[1 - left_top];
}

/* Where row y enters and leaves the quadrilateral; false: it does not. */
static bool cut_row(const struct point corners[4], double y, double *out_from, double *out_to) {
    *out_from = INFINITY;
    *out_to = -INFINITY;
    for (size_t i = 0; i < 4; i++) {
        const struct point a = corners[i], b = corners[(i + 1) % 4];
        if (fmin(a.y, b.y) > y || fmax(a.y, b.y) < y) continue;
        const bool is_level = a.y == b.y;
        const double x = is_level ? a.x : a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y);
        *out_from = fmin(*out_from, is_level ? fmin(a.x, b.x) : x);
        *out_to = fmax(*out_to, is_level ? fmax(a.x, b.x) : x);
    }
    return *out_from <= *out_to;
}

/* Mean of the map over the pixels whose centres lie in the rectangle. */
static double mean_inside(const float *map, uint32_t width, uint32_t height,
                          const struct rectangle *r) {
    const double slack = 1e-6; /* an edge through pixel centres takes them in */
    struct point corners[4];
    corners_of(r, corners);
    double top = INFINITY, bottom = -INFINITY;
    for (size_t i = 0; i < 4; i++) {
        top = fmin(top, corners[i].y);
        bottom = fmax(bottom, corners[i].y);
    }
    const double last_row = fmin(floor(bottom + slack), (double)height - 1);
    double sum = 0, count = 0;
    for (double y = fmax(ceil(top - slack), 0); y <= last_row; y++) {
        double from, to;
        if (!cut_row(corners, fmin(fmax(y, top), bottom), &from, &to)) continue;
        const double last = fmin(floor(to + slack), (double)width - 1);
        const float *row = map + (size_t)y * width;
        for (double x = fmax(ceil(from - slack), 0); x <= last; x++) {
            sum += row[(size_t)x];
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

static void grow(struct rectangle *r, double ratio) {
    const double length = 2 * r->half_length, width = 2 * r->half_width;
    const double distance = length * width * ratio / (2 * (length + width));
    r->half_length += distance;
    r->half_width += distance;
}

/* One region; false: it is not a line of text. */
static bool box_of(const struct text_boxes_config *config, const float *map, uint32_t width,
                   uint32_t height, const struct run *runs, size_t count, struct point *hull,
                   struct rectangle *out, double *out_score) {
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        first = runs[i].first < first ? runs[i].first : first;
        last = runs[i].last > last ? runs[i].last : last;
    }
    /* No rectangle in an upright one of less area can have two sides of least_side: specks go
     * before their hull is made. */
    const double upright = (double)(last - first) * (runs[count - 1].row - runs[0].row);
    if (upright < (double)config->least_side * config->least_side) return false;
    const size_t corners = convex_hull(runs, count, hull);
    struct rectangle r = smallest_rectangle(hull, corners);
    if (shorter_side(&r) < config->least_side) return false;
    *out_score = mean_inside(map, width, height, &r);
    if (!(*out_score >= config->box_threshold)) return false;
    grow(&r, config->unclip_ratio);
    *out = r;
    return shorter_side(&r) >= config->least_side + 2;
}

static struct text_box to_picture(const struct rectangle *r, double score,
                                  const struct placement *placement) {
    struct point corners[4];
    struct text_box out = {.score = (float)score};
    corners_of(r, corners);
    for (size_t i = 0; i < 4; i++) {
        out.corners[2 * i] = (float)corners[i].x;
        out.corners[2 * i + 1] = (float)corners[i].y;
        fit_back(placement, &out.corners[2 * i], &out.corners[2 * i + 1]);
    }
    return out;
}

static int by_top(const void *left, const void *right) {
    const struct text_box *a = left, *b = right;
    if (a->corners[1] != b->corners[1]) return a->corners[1] < b->corners[1] ? -1 : 1;
    return a->corners[0] < b->corners[0] ? -1 : a->corners[0] > b->corners[0];
}

/* Top to bottom; boxes of one line, which are never quite level, from left to right. */
static void sort_boxes(struct text_box *boxes, uint32_t count) {
    qsort(boxes, count, sizeof *boxes, by_top);
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0; j--) {
            struct text_box *upper = &boxes[j - 1], *lower = &boxes[j];
            if (lower->corners[1] - upper->corners[1] >= SAME_LINE_PIXELS ||
                lower->corners[0] >= upper->corners[0])
                break;
            const struct text_box kept = *upper;
            *upper = *lower;
            *lower = kept;
        }
}

enum status text_boxes(const struct text_boxes_config *config, const float *map, uint32_t width,
                       uint32_t height, const struct placement *placement,
                       struct scratch *scratch, struct arena *arena, struct text_box **out,
                       uint32_t *out_count, struct err *err) {
    if (width != placement->width || height != placement->height)
        return err_set(err, ST_INVALID, "the map is %ux%u, the picture was laid on %ux%u", width,
                       height, placement->width, placement->height);
    struct regions regions;
    if (!regions_find(map, width, height, config->threshold, scratch, &regions))
        return err_set(err, ST_NO_MEMORY, "no memory for the regions of a %ux%u map", width, height);
    uint32_t longest = 0;
    for (uint32_t r = 0; r < regions.count; r++) {
        const uint32_t runs = regions.starts[r + 1] - regions.starts[r];
        longest = runs > longest ? runs : longest;
    }
    const uint32_t limit = config->max_boxes > 0 ? config->max_boxes : DEFAULT_BOXES;
    const uint32_t most = regions.count < limit ? regions.count : limit;
    struct point *hull = scratch_get(scratch, SCRATCH_PASS, (4 * (size_t)longest + 2) * sizeof *hull);
    struct text_box *boxes = arena_alloc(arena, most * sizeof *boxes);
    if (hull == NULL || boxes == NULL)
        return err_set(err, ST_NO_MEMORY, "no memory for %u boxes", most);
    uint32_t count = 0;
    for (uint32_t r = 0; r < regions.count && count < most; r++) {
        const uint32_t start = regions.starts[r], stop = regions.starts[r + 1];
        struct rectangle found;
        double score;
        if (box_of(config, map, width, height, regions.runs + start, stop - start, hull, &found,
                   &score))
            boxes[count++] = to_picture(&found, score, placement);
    }
    sort_boxes(boxes, count);
    *out = boxes;
    *out_count = count;
    return ST_OK;
}

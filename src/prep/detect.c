/* See detect.h. Any thread; what a call needs lies in the caller's arena. Invariant: at most
 * max_candidates are held however many scores are over the threshold, so a hostile output costs a
 * bounded time. Order: candidates in a heap -> best first -> suppression -> the original picture. */
#include "prep/detect.h"

#include <math.h>

enum { DEFAULT_CANDIDATES = 4096, DEFAULT_DETECTIONS = 300 };

struct candidate {
    float score;
    uint32_t anchor, class_id;
};

/* The best so far: once full, heap[0] is the worst of them. */
struct candidates {
    struct candidate *items;
    uint32_t count, most;
};

/* Best first; equal scores by anchor, then by class: the same answer every time. */
static int compare(const struct candidate *a, const struct candidate *b) {
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->anchor != b->anchor) return a->anchor < b->anchor ? -1 : 1;
    return a->class_id < b->class_id ? -1 : a->class_id > b->class_id;
}

static void swap(struct candidate *a, struct candidate *b) {
    const struct candidate kept = *a;
    *a = *b;
    *b = kept;
}

static void heap_down(struct candidate *items, uint32_t count, uint32_t at) {
    for (;;) {
        uint32_t worst = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (compare(&items[worst], &items[child]) < 0) worst = child;
        if (worst == at) return;
        swap(&items[at], &items[worst]);
        at = worst;
    }
}

static void heap_build(struct candidate *items, uint32_t count) {
    for (uint32_t i = count / 2; i-- > 0;) heap_down(items, count, i);
}

/* Best first; in place, where qsort would ask for memory. */
static void sort(struct candidates *all) {
    heap_build(all->items, all->count);
    for (uint32_t size = all->count; size > 1; size--) {
        swap(&all->items[0], &all->items[size - 1]);
        heap_down(all->items, size - 1, 0);
    }
}

static void add(struct candidates *all, float score, uint32_t anchor, uint32_t class_id) {
    const struct candidate new = {score, anchor, class_id};
    if (all->count < all->most) {
        all->items[all->count++] = new;
        if (all->count == all->most) heap_build(all->items, all->count);
        return;
    }
    if (compare(&new, &all->items[0]) >= 0) return;
    all->items[0] = new;
    heap_down(all->items, all->count, 0);
}

/* ---- candidates of each kind of head ---- */

static void find_scores(const struct detect_config *config, const float *scores, uint32_t anchors,
                        uint32_t classes, struct candidates *out) {
    const uint32_t first = config->has_background ? 1 : 0;
    for (uint32_t a = 0; a < anchors; a++)
        for (uint32_t c = first; c < classes; c++) {
            const float score = scores[(size_t)a * classes + c];
            if (score > config->score_threshold) add(out, score, a, c - first);
        }
}

static void find_yolov5(const struct detect_config *config, const float *rows, uint32_t anchors,
                        uint32_t classes, struct candidates *out) {
    for (uint32_t a = 0; a < anchors; a++) {
        const float *row = rows + (size_t)a * (5 + (size_t)classes);
        if (!(row[4] > config->score_threshold)) continue; /* no class makes it more */
        uint32_t best = 0;
        for (uint32_t c = 1; c < classes; c++)
            if (row[5 + c] > row[5 + best] || isnan(row[5 + best])) best = c;
        const float score = row[4] * row[5 + best];
        if (score > config->score_threshold) add(out, score, a, best);
    }
}

/* Class by class along the anchors, as they lie in memory. */
static bool find_yolov8(const struct detect_config *config, const float *columns, uint32_t anchors,
                        uint32_t classes, struct arena *arena, struct candidates *out) {
    float *best = arena_alloc(arena, (size_t)anchors * sizeof *best);
    uint32_t *best_class = arena_alloc(arena, (size_t)anchors * sizeof *best_class);
    if (best == NULL || best_class == NULL) return false;
    for (uint32_t a = 0; a < anchors; a++) {
        best[a] = -INFINITY;
        best_class[a] = 0;
    }
    for (uint32_t c = 0; c < classes; c++) {
        const float *scores = columns + (4 + (size_t)c) * anchors;
        for (uint32_t a = 0; a < anchors; a++) {
            const bool is_better = scores[a] > best[a];
            best[a] = is_better ? scores[a] : best[a];
            best_class[a] = is_better ? c : best_class[a];
        }
    }
    for (uint32_t a = 0; a < anchors; a++)
        if (best[a] > config->score_threshold) add(out, best[a], a, best_class[a]);
    return true;
}

/* ---- boxes ---- */

static void read_box(const struct detect_config *config, const float *scores, const float *boxes,
                     uint32_t anchors, uint32_t classes, uint32_t anchor, float out[4]) {
    if (config->head == HEAD_YOLOV8) {
        for (size_t i = 0; i < 4; i++) out[i] = scores[i * anchors + anchor];
        return;
    }
    const float *from = config->head == HEAD_BOXES
                            ? boxes + (size_t)anchor * 4
                            : scores + (size_t)anchor * (5 + (size_t)classes);
    for (size_t i = 0; i < 4; i++) out[i] = from[i];
}

/* To corners in pixels of the canvas. False: no box at all. */
static bool canvas_box(const struct detect_config *config, const struct placement *placement,
                       float box[4]) {
    const enum box_form form = config->head == HEAD_BOXES ? config->form : BOX_CENTRE;
    if (form == BOX_CENTRE) {
        const float half_width = box[2] / 2, half_height = box[3] / 2;
        const float x = box[0], y = box[1];
        box[0] = x - half_width;
        box[1] = y - half_height;
        box[2] = x + half_width;
        box[3] = y + half_height;
    } else if (form == BOX_CORNER_SIZE) {
        box[2] += box[0];
        box[3] += box[1];
    }
    if (config->unit == BOX_FRACTION) {
        box[0] *= (float)placement->width;
        box[2] *= (float)placement->width;
        box[1] *= (float)placement->height;
        box[3] *= (float)placement->height;
    }
    for (size_t i = 0; i < 4; i++)
        if (!isfinite(box[i])) return false;
    return box[2] >= box[0] && box[3] >= box[1];
}

static float area(const float box[4]) { return (box[2] - box[0]) * (box[3] - box[1]); }

/* Intersection over union; 0 for two boxes without area. */
static float overlap(const float a[4], const float b[4]) {
    const float left = a[0] > b[0] ? a[0] : b[0], right = a[2] < b[2] ? a[2] : b[2];
    const float top = a[1] > b[1] ? a[1] : b[1], bottom = a[3] < b[3] ? a[3] : b[3];
    if (right <= left || bottom <= top) return 0;
    const float shared = (right - left) * (bottom - top);
    const float either = area(a) + area(b) - shared;
    return either > 0 ? shared / either : 0;
}

static bool is_suppressed(const struct detect_config *config, const struct detection *kept,
                          uint32_t count, const float box[4], uint32_t class_id) {
    for (uint32_t k = 0; k < count; k++)
        if ((config->is_class_agnostic || kept[k].class_id == class_id) &&
            overlap(kept[k].box, box) > config->iou_threshold)
            return true;
    return false;
}

static void to_picture(const struct placement *placement, struct detection *found) {
    fit_back(placement, &found->box[0], &found->box[1]);
    fit_back(placement, &found->box[2], &found->box[3]);
}

enum status detect(const struct detect_config *config, const float *scores, const float *boxes,
                   uint32_t anchors, uint32_t classes, const struct placement *placement,
                   struct arena *arena, struct detection **out, uint32_t *out_count,
                   struct err *err) {
    const uint32_t most = config->max_detections > 0 ? config->max_detections : DEFAULT_DETECTIONS;
    struct candidates all = {.most = config->max_candidates > 0 ? config->max_candidates
                                                                : DEFAULT_CANDIDATES};
    const uint64_t scored = (uint64_t)anchors * (config->head == HEAD_BOXES ? classes : 1);
    all.most = scored < all.most ? (uint32_t)scored : all.most;
    all.items = arena_alloc(arena, all.most * sizeof *all.items);
    struct detection *kept =
        arena_alloc(arena, (most < all.most ? most : all.most) * sizeof *kept);
    bool has_memory = all.items != NULL && kept != NULL;
    if (has_memory && all.most > 0 && classes > 0) {
        if (config->head == HEAD_BOXES) find_scores(config, scores, anchors, classes, &all);
        else if (config->head == HEAD_YOLOV5) find_yolov5(config, scores, anchors, classes, &all);
        else has_memory = find_yolov8(config, scores, anchors, classes, arena, &all);
    }
    if (!has_memory) return err_set(err, ST_NO_MEMORY, "no memory for detections");
    sort(&all);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all.count && count < most; i++) {
        const struct candidate *candidate = &all.items[i];
        struct detection found = {.score = candidate->score, .class_id = candidate->class_id};
        read_box(config, scores, boxes, anchors, classes, candidate->anchor, found.box);
        if (!canvas_box(config, placement, found.box)) continue;
        if (!is_suppressed(config, kept, count, found.box, found.class_id)) kept[count++] = found;
    }
    for (uint32_t i = 0; i < count; i++) to_picture(placement, &kept[i]);
    *out = kept;
    *out_count = count;
    return ST_OK;
}

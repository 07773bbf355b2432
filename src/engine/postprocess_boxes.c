/* Detections and boxes around text, a list a picture, filled up to the longest of the request.
 * Read next: prep/detect.h, prep/text_boxes.h. */
#include "engine/postprocess_private.h"

/* ---- detect ---- */

struct found {
    struct detection *items;
    uint32_t count;
};

static enum status detect_row(const struct finish *at, uint32_t row, struct found *out) {
    const struct detect_config *config = &at->output->spec->detect.config;
    const struct tensor *from = at->from;
    const size_t a = (size_t)from->shape[1], b = (size_t)from->shape[2];
    const float *scores = (const float *)from->data + row * a * b, *boxes = NULL;
    const uint32_t anchors = (uint32_t)(config->head == HEAD_YOLOV8 ? b : a);
    const uint32_t width = (uint32_t)(config->head == HEAD_YOLOV8 ? a : b);
    const uint32_t extra = config->head == HEAD_BOXES ? 0 : config->head == HEAD_YOLOV5 ? 5 : 4;
    if (width <= extra) return postprocess_wrong_shape(at, "scores beside the boxes");
    if (config->head == HEAD_BOXES) {
        const struct tensor *all = &at->request->job.outputs[at->output->boxes_from];
        if (all->rank != 3 || all->shape[0] != from->shape[0] || all->shape[1] != from->shape[1] ||
            all->shape[2] != 4)
            return err_set(&at->request->err, ST_INTERNAL,
                           "model %s: its boxes are not (rows, anchors, 4) for the anchors of its scores",
                           at->model->served.model->name);
        boxes = (const float *)all->data + (size_t)row * anchors * 4;
    }
    const struct placement placement = postprocess_placement(at, row);
    return detect(config, scores, boxes, anchors, width - extra, &placement, &at->request->arena, &out->items,
                  &out->count, &at->request->err);
}

static enum status give_labels(const struct finish *at, const struct found *all, size_t rows, size_t most) {
    const struct labels *labels = &at->output->labels;
    struct tensor *out = postprocess_make(at, 4, DTYPE_BYTES, (int64_t)rows, (int64_t)most, 0);
    struct view *names = arena_array(&at->request->arena, rows * most, sizeof *names);
    if (names == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < most; i++) {
            const bool has_label = i < all[r].count && all[r].items[i].class_id < labels->count;
            names[r * most + i] = has_label ? labels->names[all[r].items[i].class_id] : view_of("");
        }
    return postprocess_texts(at, names, rows * most, out) ? ST_OK : postprocess_no_memory(at);
}

static enum status give_detections(const struct finish *at, const struct found *all, size_t rows) {
    size_t most = 0;
    for (size_t r = 0; r < rows; r++) most = all[r].count > most ? all[r].count : most;
    const int64_t n = (int64_t)rows, m = (int64_t)most;
    float *boxes = (float *)(uintptr_t)postprocess_make(at, 0, DTYPE_FP32, n, m, 4)->data;
    float *scores = (float *)(uintptr_t)postprocess_make(at, 1, DTYPE_FP32, n, m, 0)->data;
    int64_t *classes = (int64_t *)(uintptr_t)postprocess_make(at, 2, DTYPE_INT64, n, m, 0)->data;
    int32_t *counts = (int32_t *)(uintptr_t)postprocess_make(at, 3, DTYPE_INT32, n, -1, 0)->data;
    if (boxes == NULL || scores == NULL || classes == NULL || counts == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++) {
        counts[r] = (int32_t)all[r].count;
        for (size_t i = 0; i < all[r].count; i++) {
            const struct detection *one = &all[r].items[i];
            memcpy(boxes + (r * most + i) * 4, one->box, sizeof one->box);
            scores[r * most + i] = one->score;
            classes[r * most + i] = one->class_id;
        }
    }
    return at->output->labels.count > 0 ? give_labels(at, all, rows, most) : ST_OK;
}

static enum status check_rows(const struct finish *at, size_t rows) {
    if (at->request->prepared == NULL || rows == at->request->prepared_rows) return ST_OK;
    return postprocess_wrong_shape(at, "a row a picture");
}

enum status postprocess_detect(const struct finish *at) {
    const struct tensor *from = at->from;
    if (from->rank != 3) return postprocess_wrong_shape(at, "(rows, anchors, classes)");
    const size_t rows = (size_t)from->shape[0];
    struct found *all = arena_array(&at->request->arena, rows, sizeof *all);
    if (all == NULL) return postprocess_no_memory(at);
    enum status status = check_rows(at, rows);
    for (size_t r = 0; r < rows && status == ST_OK; r++) status = detect_row(at, (uint32_t)r, &all[r]);
    return status == ST_OK ? give_detections(at, all, rows) : status;
}

/* ---- boxes around text ---- */

struct lines {
    struct text_box *items;
    uint32_t count;
};

static enum status give_lines(const struct finish *at, const struct lines *all, size_t rows) {
    size_t most = 0;
    for (size_t r = 0; r < rows; r++) most = all[r].count > most ? all[r].count : most;
    const int64_t n = (int64_t)rows, m = (int64_t)most;
    float *quads = (float *)(uintptr_t)postprocess_make(at, 0, DTYPE_FP32, n, m, 8)->data;
    float *scores = (float *)(uintptr_t)postprocess_make(at, 1, DTYPE_FP32, n, m, 0)->data;
    int32_t *counts = (int32_t *)(uintptr_t)postprocess_make(at, 2, DTYPE_INT32, n, -1, 0)->data;
    if (quads == NULL || scores == NULL || counts == NULL) return postprocess_no_memory(at);
    for (size_t r = 0; r < rows; r++) {
        counts[r] = (int32_t)all[r].count;
        for (size_t i = 0; i < all[r].count; i++) {
            memcpy(quads + (r * most + i) * 8, all[r].items[i].corners, sizeof all[r].items[i].corners);
            scores[r * most + i] = all[r].items[i].score;
        }
    }
    return ST_OK;
}

enum status postprocess_text_boxes(const struct finish *at) {
    const struct tensor *from = at->from;
    const bool has_channel = from->rank == 4 && from->shape[1] == 1;
    if (!has_channel && from->rank != 3) return postprocess_wrong_shape(at, "(rows, 1, height, width)");
    const size_t rows = (size_t)from->shape[0];
    const int64_t *dims = from->shape + from->rank - 2;
    struct lines *all = arena_array(&at->request->arena, rows, sizeof *all);
    if (all == NULL) return postprocess_no_memory(at);
    enum status status = check_rows(at, rows);
    for (size_t r = 0; r < rows && status == ST_OK; r++) {
        const struct placement placement = postprocess_placement(at, (uint32_t)r);
        const float *map = (const float *)from->data + r * (size_t)(dims[0] * dims[1]);
        status = text_boxes(&at->output->spec->text_boxes.config, map, (uint32_t)dims[1], (uint32_t)dims[0],
                            &placement, at->scratch, &at->request->arena, &all[r].items, &all[r].count,
                            &at->request->err);
    }
    return status == ST_OK ? give_lines(at, all, rows) : status;
}

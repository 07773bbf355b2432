/* Detector outputs of any content: no crash, boxes inside the picture, scores in order and over
 * the threshold. The first bytes choose head, form, unit; the rest are the floats. */
#include "prep/detect.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct detection *found, uint32_t count, const struct placement *place) {
    for (uint32_t i = 0; i < count; i++) {
        const float *box = found[i].box;
        if (!(found[i].score > 0.25f) || (i > 0 && found[i].score > found[i - 1].score)) abort();
        if (!(box[0] >= 0 && box[1] >= 0 && box[2] <= (float)place->source_width &&
              box[3] <= (float)place->source_height && box[0] <= box[2] && box[1] <= box[3]))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    const struct detect_config config = {
        .head = (enum head_kind)(data[0] % 3), .form = (enum box_form)(data[0] / 3 % 3),
        .unit = (enum box_unit)(data[0] / 9 % 2), .has_background = (data[0] & 128) != 0,
        .is_class_agnostic = (data[1] & 1) != 0, .score_threshold = 0.25f, .iou_threshold = 0.5f,
        .max_candidates = data[1] / 2 % 32, .max_detections = data[1] / 64};
    const uint32_t classes = 1 + data[2] % 8;
    const size_t row = 4 + classes + (config.head == HEAD_YOLOV5 ? 1 : 0);
    const uint32_t anchors = (uint32_t)((size - 3) / (row * sizeof(float)));
    float *values = malloc((size_t)anchors * row * sizeof *values + 1);
    memcpy(values, data + 3, (size_t)anchors * row * sizeof *values);
    const struct placement place = {640, 480, 320, 240, -3, 40, 314, 320};
    struct arena arena;
    struct detection *found;
    uint32_t count;
    arena_init(&arena);
    if (detect(&config, values, values + (size_t)anchors * classes, anchors, classes, &place, &arena,
               &found, &count, NULL) != ST_OK)
        abort();
    check(found, count, &place);
    free(values);
    arena_done(&arena);
    return 0;
}

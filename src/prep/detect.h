/* Detections from a detector's raw outputs: candidates over a threshold, class-wise non-maximum
 * suppression, boxes in the original picture's pixels. Pure. */
#ifndef TELLTALE_PREP_DETECT_H
#define TELLTALE_PREP_DETECT_H

#include "base/arena.h"
#include "base/status.h"
#include "prep/fit.h"

#define HEAD_CHOICES "boxes|yolov5|yolov8"
enum head_kind {
    HEAD_BOXES,  /* two outputs: scores (anchors, classes), boxes (anchors, 4): UltraFace, DETR-like */
    HEAD_YOLOV5, /* one output (anchors, 5 + classes): centre box, objectness, class scores; score =
                    objectness * class score */
    HEAD_YOLOV8, /* one output (4 + classes, anchors): centre box, class scores, transposed */
};
#define BOX_CHOICES "corners|centre|corner-size"
enum box_form { BOX_CORNERS /* x1 y1 x2 y2 */, BOX_CENTRE /* cx cy w h */, BOX_CORNER_SIZE };
#define UNIT_CHOICES "pixel|fraction"
enum box_unit { BOX_PIXEL /* of the model's canvas */, BOX_FRACTION /* 0..1 of it */ };

struct detect_config {
    enum head_kind head;
    enum box_form form;        /* HEAD_BOXES only: the YOLO heads are centre */
    enum box_unit unit;
    bool has_background;       /* class 0 is "nothing" and is left out (UltraFace, SSD) */
    bool is_class_agnostic;    /* suppress across classes */
    float score_threshold;     /* kept when score > threshold */
    float iou_threshold;       /* suppressed when intersection over union > threshold */
    uint32_t max_candidates;   /* into suppression, best first; 0: 4096 */
    uint32_t max_detections;   /* a picture; 0: 300 */
};

struct detection {
    float box[4];              /* x1 y1 x2 y2 in pixels of the original picture, clamped to it */
    float score;
    uint32_t class_id;         /* counted without the background */
};

/* Of one picture. scores: HEAD_BOXES: (anchors, classes); else the one output. boxes: (anchors, 4)
 * or NULL. classes: of the scores, the background among them. Ordered by score, equal ones by
 * anchor. The arrays live in arena; not-a-number scores and boxes are passed over. Only
 * ST_NO_MEMORY. */
MUST_CHECK enum status detect(const struct detect_config *config, const float *scores,
                              const float *boxes, uint32_t anchors, uint32_t classes,
                              const struct placement *placement, struct arena *arena,
                              struct detection **out, uint32_t *out_count, struct err *err);

#endif

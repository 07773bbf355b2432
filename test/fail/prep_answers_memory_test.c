/* Memory runs out in a post-processor, at each allocation in turn: ST_NO_MEMORY with a sentence,
 * nothing left behind (AddressSanitizer looks). */
#include "memory.h"

#include "prep/ctc.h"
#include "prep/detect.h"
#include "prep/text_boxes.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the above */
#include <cmocka.h>

enum { SIDE = 64, ANCHORS = 400, CLASSES = 5 };
static const struct placement PLACE = {SIDE, SIDE, SIDE, SIDE, 0, 0, SIDE, SIDE};
static float values[ANCHORS * (5 + CLASSES)];

static enum status find_detections(struct arena *arena, struct scratch *scratch, struct err *err) {
    (void)scratch;
    const struct detect_config config = {.head = HEAD_YOLOV8, .score_threshold = 0.2f,
                                         .iou_threshold = 0.5f};
    struct detection *found;
    uint32_t count;
    return detect(&config, values, NULL, ANCHORS, CLASSES, &PLACE, arena, &found, &count, err);
}

static enum status find_lines(struct arena *arena, struct scratch *scratch, struct err *err) {
    const struct text_boxes_config config = {0.3f, 0.3f, 1.5f, 1, 0};
    static float map[SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++) map[i] = i / SIDE % 8 < 5 ? 0.9f : 0;
    struct text_box *boxes;
    uint32_t count;
    return text_boxes(&config, map, SIDE, SIDE, &PLACE, scratch, arena, &boxes, &count, err);
}

static enum status read_text(struct arena *arena, struct scratch *scratch, struct err *err) {
    (void)scratch;
    static struct view names[CLASSES];
    for (size_t i = 0; i < CLASSES; i++) names[i] = view_of("long enough to need another block");
    const struct ctc_characters characters = {names, CLASSES, 0};
    struct view text;
    float score;
    return ctc_greedy(&characters, values, ANCHORS, CLASSES, arena, &text, &score, err);
}

static void survives(enum status (*run)(struct arena *, struct scratch *, struct err *)) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)(i * 7919 % 997) / 997;
    long refused = 0;
    for (struct shortage s = {0}; shortage_next(&s);) {
        struct arena arena;
        struct scratch scratch = {0};
        struct err err = {.text = ""};
        arena_init(&arena);
        memory_runs_out(&s);
        const enum status status = run(&arena, &scratch, &err);
        memory_is_back(&s);
        arena_done(&arena);
        scratch_done(&scratch);
        assert_int_equal(status, s.refused > 0 ? ST_NO_MEMORY : ST_OK);
        assert_true(s.refused == 0 || err.text[0] != '\0');
        refused += s.refused;
    }
    assert_true(refused > 0);
}

static void detections_survive_every_allocation_that_fails(void **state) {
    (void)state;
    survives(find_detections);
}
static void boxes_around_text_survive_every_allocation_that_fails(void **state) {
    (void)state;
    survives(find_lines);
}
static void ctc_survives_every_allocation_that_fails(void **state) {
    (void)state;
    survives(read_text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detections_survive_every_allocation_that_fails),
        cmocka_unit_test(boxes_around_text_survive_every_allocation_that_fails),
        cmocka_unit_test(ctc_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The corners of what becomes of a model's outputs: what docs/answers.md defines for ties, empty
 * boxes, numbers that are none, and outputs made to hurt. answers_oracle.py compares the rest. */
#include "prep/activation.h"
#include "prep/ctc.h"
#include "prep/detect.h"
#include "prep/pooling.h"
#include "prep/text_boxes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct placement AS_IT_IS = {100, 100, 100, 100, 0, 0, 100, 100};

struct fixture {
    struct arena arena;
    struct scratch scratch;
    struct detection *found;
    struct text_box *boxes;
    uint32_t count;
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    arena_init(&f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    arena_done(&f->arena);
    scratch_done(&f->scratch);
    free(f);
    return 0;
}

static void softmax_of_extremes_is_finite(void **state) {
    (void)state;
    float values[3] = {3e38f, -3e38f, 3e38f};
    activate(ACTIVATION_SOFTMAX, values, 3, values);
    assert_float_equal(values[0], 0.5, 1e-6);
    assert_float_equal(values[1], 0, 0);
    float infinite[2] = {INFINITY, 1};
    activate(ACTIVATION_SOFTMAX, infinite, 2, infinite);
    assert_float_equal(infinite[0], 1, 0);
    float extremes[3] = {-1000, 1000, 0};
    activate(ACTIVATION_SIGMOID, extremes, 3, extremes);
    assert_float_equal(extremes[0], 0, 0);
    assert_float_equal(extremes[1], 1, 0);
    assert_float_equal(extremes[2], 0.5, 0);
}

static void the_best_is_never_not_a_number(void **state) {
    (void)state;
    const float values[4] = {NAN, 1, NAN, 2};
    uint32_t best[4];
    assert_int_equal(best_of(values, 4), 3);
    top_k(values, 4, 4, best);
    assert_int_equal(best[0], 3);
    assert_int_equal(best[1], 1);
    assert_int_equal(best[2], 0);
    assert_int_equal(best[3], 2);
    top_k(values, 4, 9, best); /* there are only four */
    assert_int_equal(best[3], 2);
}

static void a_row_without_tokens_pools_to_zeros(void **state) {
    (void)state;
    const float hidden[4] = {1, 2, 3, 4};
    const int64_t mask[2] = {0, 0};
    for (int kind = POOLING_MEAN; kind <= POOLING_LAST; kind++) {
        float out[2] = {9, 9};
        pool_tokens((enum pooling)kind, hidden, 2, 2, mask, true, out);
        assert_float_equal(out[0], 0, 0);
        assert_float_equal(out[1], 0, 0);
    }
}

static void detect_boxes(struct fixture *f, const struct detect_config *config,
                         const float *scores, const float *boxes, uint32_t anchors,
                         uint32_t classes) {
    assert_int_equal(detect(config, scores, boxes, anchors, classes, &AS_IT_IS, &f->arena,
                            &f->found, &f->count, NULL),
                     ST_OK);
}

static void a_box_that_is_none_is_no_detection(void **state) {
    struct fixture *f = *state;
    const struct detect_config config = {.head = HEAD_BOXES, .score_threshold = 0.5f,
                                         .iou_threshold = 0.5f};
    const float scores[5] = {0.9f, 0.8f, 0.7f, NAN, 0.6f};
    const float boxes[5][4] = {
        {30, 30, 20, 40} /* right of its right */, {NAN, 0, 1, 1}, {0, 0, INFINITY, 1},
        {1, 1, 2, 2} /* score is no number */, {7, 7, 7, 7} /* a point is a box */};
    detect_boxes(f, &config, scores, boxes[0], 5, 1);
    assert_int_equal(f->count, 1);
    assert_float_equal(f->found[0].score, 0.6f, 0);
    assert_float_equal(f->found[0].box[0], 7, 0);
}

static void a_score_at_the_threshold_is_not_over_it(void **state) {
    struct fixture *f = *state;
    const struct detect_config config = {.head = HEAD_BOXES, .score_threshold = 0.5f,
                                         .iou_threshold = 0.5f};
    const float scores[2] = {0.5f, 0.50001f}, boxes[8] = {0, 0, 9, 9, 50, 50, 60, 60};
    detect_boxes(f, &config, scores, boxes, 2, 1);
    assert_int_equal(f->count, 1);
    assert_float_equal(f->found[0].box[0], 50, 0);
}

static void boxes_of_other_classes_are_kept_unless_agnostic(void **state) {
    struct fixture *f = *state;
    struct detect_config config = {.head = HEAD_BOXES, .score_threshold = 0.1f,
                                   .iou_threshold = 0.5f, .has_background = true};
    const float scores[6] = {0.99f, 0.9f, 0.2f, 0.99f, 0.1f, 0.8f};
    const float boxes[8] = {10, 10, 50, 50, 11, 10, 50, 50};
    detect_boxes(f, &config, scores, boxes, 2, 3);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->found[0].class_id, 0); /* counted without the background */
    assert_int_equal(f->found[1].class_id, 1);
    config.is_class_agnostic = true;
    detect_boxes(f, &config, scores, boxes, 2, 3);
    assert_int_equal(f->count, 1);
}

/* Two squares of 10 x 10, shifted: they share 70 of 130, 0.538. */
static void a_box_goes_when_it_overlaps_a_better_one_by_more(void **state) {
    struct fixture *f = *state;
    struct detect_config config = {.head = HEAD_BOXES, .score_threshold = 0.1f, .iou_threshold = 0.53f};
    const float scores[2] = {0.8f, 0.9f}, boxes[8] = {0, 0, 10, 10, 3, 0, 13, 10};
    detect_boxes(f, &config, scores, boxes, 2, 1);
    assert_int_equal(f->count, 1);
    assert_float_equal(f->found[0].score, 0.9f, 0);
    config.iou_threshold = 0.54f;
    detect_boxes(f, &config, scores, boxes, 2, 1);
    assert_int_equal(f->count, 2);
}

static void candidates_beyond_the_limit_are_the_worst(void **state) {
    struct fixture *f = *state;
    enum { ANCHORS = 5000, KEPT = 16 };
    const struct detect_config config = {.head = HEAD_BOXES, .score_threshold = 0,
                                         .iou_threshold = 0.5f, .max_candidates = KEPT};
    float *scores = malloc(ANCHORS * sizeof *scores), *boxes = calloc(ANCHORS, 4 * sizeof *boxes);
    for (uint32_t a = 0; a < ANCHORS; a++) {
        scores[a] = (float)((a * 7919u) % ANCHORS + 1) / ANCHORS;
        boxes[4 * a] = (float)(a % 100); /* points: nothing is suppressed */
        boxes[4 * a + 2] = boxes[4 * a];
    }
    detect_boxes(f, &config, scores, boxes, ANCHORS, 1);
    assert_int_equal(f->count, KEPT);
    for (uint32_t i = 0; i < KEPT; i++)
        assert_float_equal(f->found[i].score, (float)(ANCHORS - i) / ANCHORS, 1e-6);
    free(scores);
    free(boxes);
}

static void no_anchors_give_no_detections(void **state) {
    struct fixture *f = *state;
    for (int head = HEAD_BOXES; head <= HEAD_YOLOV8; head++) {
        const struct detect_config config = {.head = (enum head_kind)head, .score_threshold = 0.5f};
        const float none[1] = {0};
        f->count = 9;
        detect_boxes(f, &config, none, none, 0, 3);
        assert_int_equal(f->count, 0);
    }
}

static void a_repeated_character_needs_a_blank_between(void **state) {
    struct fixture *f = *state;
    struct view names[3] = {view_of(""), view_of("a"), view_of("\xc3\xa9")};
    const struct ctc_characters characters = {names, 3, 0};
    const float values[6][3] = {{0, 1, 0}, {0, 1, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0.5f}, {1, 0, 0}};
    struct view text;
    float score;
    assert_int_equal(ctc_greedy(&characters, values[0], 6, 3, &f->arena, &text, &score, NULL), ST_OK);
    assert_true(view_is(text, "aa\xc3\xa9"));
    assert_float_equal(score, 2.5 / 3, 1e-6);
    assert_int_equal(ctc_greedy(&characters, values[0], 0, 3, &f->arena, &text, &score, NULL), ST_OK);
    assert_int_equal(text.size, 0);
    assert_float_equal(score, 0, 0);
}

static void a_characters_file_of_another_length_is_named(void **state) {
    struct fixture *f = *state;
    struct view names[2] = {view_of(""), view_of("a")};
    const struct ctc_characters characters = {names, 2, 0};
    const float values[3] = {0};
    struct view text;
    float score;
    struct err err;
    assert_int_equal(ctc_greedy(&characters, values, 1, 3, &f->arena, &text, &score, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "3 classes"));
}

static void find_text(struct fixture *f, const float *map, uint32_t width, uint32_t height,
                      float least_side) {
    const struct text_boxes_config config = {0.3f, 0.6f, 1.5f, least_side, 0};
    const struct placement place = {width, height, width, height, 0, 0, width, height};
    assert_int_equal(text_boxes(&config, map, width, height, &place, &f->scratch, &f->arena,
                                &f->boxes, &f->count, NULL),
                     ST_OK);
}

static void an_upright_line_gives_its_grown_rectangle(void **state) {
    struct fixture *f = *state;
    static float map[50 * 100];
    memset(map, 0, sizeof map);
    for (size_t y = 20; y <= 30; y++)
        for (size_t x = 10; x <= 60; x++) map[y * 100 + x] = 0.9f;
    find_text(f, map, 100, 50, 3);
    assert_int_equal(f->count, 1);
    const double grown = 50.0 * 10 * 1.5 / 120; /* area * ratio / perimeter */
    assert_float_equal(f->boxes[0].corners[0], 10 - grown, 1e-3);
    assert_float_equal(f->boxes[0].corners[1], 20 - grown, 1e-3);
    assert_float_equal(f->boxes[0].corners[4], 60 + grown, 1e-3);
    assert_float_equal(f->boxes[0].corners[5], 30 + grown, 1e-3);
    assert_float_equal(f->boxes[0].score, 0.9, 1e-5);
}

static void lines_come_from_top_to_bottom_and_from_left_to_right(void **state) {
    struct fixture *f = *state;
    static float map[200 * 200];
    static const size_t places[3][2] = {{24, 100}, {20, 10}, {120, 10}}; /* y, x; not quite level */
    memset(map, 0, sizeof map);
    for (size_t i = 0; i < 3; i++)
        for (size_t y = 0; y < 12; y++)
            for (size_t x = 0; x < 60; x++) map[(places[i][0] + y) * 200 + places[i][1] + x] = 1;
    find_text(f, map, 200, 200, 3);
    assert_int_equal(f->count, 3);
    assert_true(f->boxes[0].corners[0] < 50 && f->boxes[0].corners[1] < 50);
    assert_true(f->boxes[1].corners[0] > 50);
    assert_true(f->boxes[2].corners[1] > 100);
}

/* Regions that touch at corners only are one, and specks are none: whatever the pattern, the work
 * stays in proportion to the map. */
static void hostile_maps_are_taken(void **state) {
    struct fixture *f = *state;
    enum { SIDE = 640 };
    float *map = malloc((size_t)SIDE * SIDE * sizeof *map);
    for (size_t pattern = 0; pattern < 4; pattern++) {
        for (size_t y = 0; y < SIDE; y++)
            for (size_t x = 0; x < SIDE; x++)
                map[y * SIDE + x] = pattern == 0   ? (float)((x + y) % 2)        /* checkerboard */
                                    : pattern == 1 ? (float)(x % 2 & y % 2)      /* specks */
                                    : pattern == 2 ? (float)((x < y ? x : y) % 4 < 2) /* nested */
                                                   : NAN;
        find_text(f, map, SIDE, SIDE, 3);
        if (pattern == 1 || pattern == 3) assert_int_equal(f->count, 0);
    }
    free(map);
}

static void a_map_of_another_size_is_refused(void **state) {
    struct fixture *f = *state;
    const struct text_boxes_config config = {0.3f, 0.6f, 1.5f, 3, 0};
    const float map[4] = {0};
    struct err err;
    assert_int_equal(text_boxes(&config, map, 2, 2, &AS_IT_IS, &f->scratch, &f->arena, &f->boxes,
                                &f->count, &err),
                     ST_INVALID);
    assert_non_null(strstr(err.text, "100x100"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(softmax_of_extremes_is_finite),
        TEST(the_best_is_never_not_a_number),
        TEST(a_row_without_tokens_pools_to_zeros),
        TEST(a_box_that_is_none_is_no_detection),
        TEST(a_score_at_the_threshold_is_not_over_it),
        TEST(boxes_of_other_classes_are_kept_unless_agnostic),
        TEST(a_box_goes_when_it_overlaps_a_better_one_by_more),
        TEST(candidates_beyond_the_limit_are_the_worst),
        TEST(no_anchors_give_no_detections),
        TEST(a_repeated_character_needs_a_blank_between),
        TEST(a_characters_file_of_another_length_is_named),
        TEST(an_upright_line_gives_its_grown_rectangle),
        TEST(lines_come_from_top_to_bottom_and_from_left_to_right),
        TEST(hostile_maps_are_taken),
        TEST(a_map_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

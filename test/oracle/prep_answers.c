/* Runs one post-processor over many cases for answers_oracle.py:
 *     oracle_prep_answers KIND CASES OUT
 * CASES is a sequence of (uint32 ints, uint32 floats, that many int32, that many float), OUT of
 * (uint32 floats, that many float), little endian; what the numbers mean stands at each kind below
 * and in the script. One thread. */
#include "prep/activation.h"
#include "prep/ctc.h"
#include "prep/detect.h"
#include "prep/pooling.h"
#include "prep/text_boxes.h"

#include <stdio.h>
#include <stdlib.h>

struct cases {
    const int32_t *ints;
    const float *floats;
    struct arena *arena;
    struct scratch *scratch;
    FILE *out;
};

static void give_up(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static void put(FILE *out, const float *values, uint32_t count) {
    if (fwrite(&count, sizeof count, 1, out) != 1 ||
        fwrite(values, sizeof *values, count, out) != count)
        give_up("cannot write");
}

static float *floats(const struct cases *at, size_t count) {
    float *memory = arena_alloc(at->arena, (count + 1) * sizeof *memory);
    if (memory == NULL) give_up("no memory");
    return memory;
}

static struct placement placement_of(const int32_t *ints) {
    return (struct placement){(uint32_t)ints[0], (uint32_t)ints[1], (uint32_t)ints[2],
                              (uint32_t)ints[3], ints[4], ints[5], (uint32_t)ints[6],
                              (uint32_t)ints[7]};
}

/* ints: kind, count, k; floats: values. Gives the activated values, then the k best indices. */
static void run_activation(const struct cases *at) {
    const size_t count = (size_t)at->ints[1], k = (size_t)at->ints[2];
    float *out = floats(at, count + k);
    uint32_t *best = arena_alloc(at->arena, (k + 1) * sizeof *best);
    if (best == NULL) give_up("no memory");
    activate((enum activation)at->ints[0], at->floats, count, out);
    top_k(at->floats, count, k, best);
    for (size_t i = 0; i < k; i++) out[count + i] = (float)best[i];
    put(at->out, out, (uint32_t)(count + k));
}

/* ints: kind, normalizes, has mask, length, size, mask[length]; floats: hidden. */
static void run_pooling(const struct cases *at) {
    const size_t length = (size_t)at->ints[3], size = (size_t)at->ints[4];
    int64_t *mask = arena_alloc(at->arena, (length + 1) * sizeof *mask);
    if (mask == NULL) give_up("no memory");
    for (size_t i = 0; i < length; i++) mask[i] = at->ints[5 + i];
    float *out = floats(at, size);
    pool_tokens((enum pooling)at->ints[0], at->floats, length, size,
                at->ints[2] != 0 ? mask : NULL, at->ints[1] != 0, out);
    put(at->out, out, (uint32_t)size);
}

/* ints: head, form, unit, background, agnostic, candidates, detections, anchors, classes,
 * placement (8); floats: score and IoU thresholds, scores, boxes (HEAD_BOXES). Gives
 * x1 y1 x2 y2 score class a detection. */
static void run_detect(const struct cases *at) {
    const int32_t *ints = at->ints;
    const struct detect_config config = {
        .head = (enum head_kind)ints[0], .form = (enum box_form)ints[1],
        .unit = (enum box_unit)ints[2], .has_background = ints[3] != 0,
        .is_class_agnostic = ints[4] != 0, .score_threshold = at->floats[0],
        .iou_threshold = at->floats[1], .max_candidates = (uint32_t)ints[5],
        .max_detections = (uint32_t)ints[6]};
    const uint32_t anchors = (uint32_t)ints[7], classes = (uint32_t)ints[8];
    const struct placement placement = placement_of(ints + 9);
    const float *scores = at->floats + 2, *boxes = scores + (size_t)anchors * classes;
    struct detection *found;
    uint32_t count;
    if (detect(&config, scores, boxes, anchors, classes, &placement, at->arena, &found, &count,
               NULL) != ST_OK)
        give_up("detect failed");
    float *out = floats(at, (size_t)count * 6);
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 4; c++) out[6 * i + c] = found[i].box[c];
        out[6 * i + 4] = found[i].score;
        out[6 * i + 5] = (float)found[i].class_id;
    }
    put(at->out, out, 6 * count);
}

/* ints: blank, steps, classes; floats: values. The characters are "A", "B", ... by class. Gives
 * the score, then the classes kept. */
static void run_ctc(const struct cases *at) {
    const uint32_t steps = (uint32_t)at->ints[1], classes = (uint32_t)at->ints[2];
    static char letters[256];
    struct view names[256];
    for (size_t i = 0; i < 256; i++) {
        letters[i] = (char)i;
        names[i] = (struct view){&letters[i], 1};
    }
    const struct ctc_characters characters = {names, classes, (uint32_t)at->ints[0]};
    struct view text;
    float score;
    if (ctc_greedy(&characters, at->floats, steps, classes, at->arena, &text, &score, NULL) !=
        ST_OK)
        give_up("ctc failed");
    float *out = floats(at, text.size + 1);
    out[0] = score;
    for (size_t i = 0; i < text.size; i++) out[1 + i] = (float)(unsigned char)text.data[i];
    put(at->out, out, (uint32_t)text.size + 1);
}

/* ints: most boxes, width, height, placement (8); floats: threshold, box threshold, ratio, least
 * side, map. Gives eight corners and a score a box. */
static void run_text_boxes(const struct cases *at) {
    const struct text_boxes_config config = {at->floats[0], at->floats[1], at->floats[2],
                                             at->floats[3], (uint32_t)at->ints[0]};
    const struct placement placement = placement_of(at->ints + 3);
    struct text_box *boxes;
    uint32_t count;
    if (text_boxes(&config, at->floats + 4, (uint32_t)at->ints[1], (uint32_t)at->ints[2],
                   &placement, at->scratch, at->arena, &boxes, &count, NULL) != ST_OK)
        give_up("text_boxes failed");
    float *out = floats(at, (size_t)count * 9);
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 8; c++) out[9 * i + c] = boxes[i].corners[c];
        out[9 * i + 8] = boxes[i].score;
    }
    put(at->out, out, 9 * count);
}

static const struct {
    const char *name;
    void (*run)(const struct cases *at);
} KINDS[] = {{"activation", run_activation},
             {"pooling", run_pooling},
             {"detect", run_detect},
             {"ctc", run_ctc},
             {"text_boxes", run_text_boxes}};

static bool read_words(FILE *from, void **words, uint32_t count) {
    *words = malloc(((size_t)count + 1) * 4);
    if (*words == NULL) give_up("no memory");
    return fread(*words, 4, count, from) == count;
}

int main(int argc, char **argv) {
    size_t kind = 0;
    const size_t kinds = sizeof KINDS / sizeof *KINDS;
    while (argc == 4 && kind < kinds && strcmp(KINDS[kind].name, argv[1]) != 0) kind++;
    if (argc != 4 || kind == kinds) give_up("usage: oracle_prep_answers KIND CASES OUT");
    FILE *from = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    if (from == NULL || out == NULL) give_up("cannot open the files");
    struct arena arena;
    struct scratch scratch = {0};
    arena_init(&arena);
    uint32_t sizes[2];
    while (fread(sizes, sizeof sizes, 1, from) == 1) {
        void *ints = NULL, *values = NULL;
        if (!read_words(from, &ints, sizes[0]) || !read_words(from, &values, sizes[1]))
            give_up("the cases are cut short");
        const struct cases at = {ints, values, &arena, &scratch, out};
        KINDS[kind].run(&at);
        arena_clear(&arena);
        free(ints);
        free(values);
    }
    arena_done(&arena);
    scratch_done(&scratch);
    (void)fclose(from);
    return fclose(out) == 0 ? 0 : 2;
}

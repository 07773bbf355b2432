/* Which keys of a pipeline file do nothing beside which others. Load time, one thread. Invariant: a
 * key that is in no row of the table has its effect whatever stands beside it. What only the model
 * can tell (a label without labels) engine/binding_outputs.c says. Read next: pipeline_file.c. */
#include "prep/pipeline_keys.h"

static const struct fit *fit_of(const void *target) {
    return &((const struct pipeline_input *)target)->image.fit;
}
static const struct detect_config *detector_of(const void *target) {
    return &((const struct pipeline_output *)target)->detect.config;
}

static bool is_on_canvas(const void *target) {
    return fit_of(target)->kind != FIT_LIMIT && fit_of(target)->kind != FIT_NONE;
}
static bool is_resized(const void *target) { return fit_of(target)->kind != FIT_NONE; }
static bool is_letterbox_or_crop(const void *target) {
    return fit_of(target)->kind == FIT_LETTERBOX || fit_of(target)->kind == FIT_CROP;
}
static bool is_crop(const void *target) { return fit_of(target)->kind == FIT_CROP; }
static bool is_height(const void *target) { return fit_of(target)->kind == FIT_HEIGHT; }
static bool is_limit(const void *target) { return fit_of(target)->kind == FIT_LIMIT; }
static bool is_height_or_limit(const void *target) { return is_height(target) || is_limit(target); }
/* To say that it is off is no mistake. */
static bool can_scale(const void *target) {
    return is_resized(target) || !((const struct pipeline_input *)target)->image.scales_jpeg;
}
static bool is_head_boxes(const void *target) { return detector_of(target)->head == HEAD_BOXES; }
static bool can_have_background(const void *target) {
    return is_head_boxes(target) || !detector_of(target)->has_background;
}

#define GOES_WITH(fits) "has no effect with this fit; it goes with fit: " fits
#define HEAD_BOXES_ONLY "goes with head: boxes; the other heads "

static const struct {
    enum pipeline_section section;
    const char *key;
    bool (*has_effect)(const void *target);
    const char *idle;
} RULES[] = {
    {SECTION_IMAGE, "width", is_on_canvas, GOES_WITH("stretch, letterbox, crop and height")},
    {SECTION_IMAGE, "height", is_on_canvas, GOES_WITH("stretch, letterbox, crop and height")},
    {SECTION_IMAGE, "shorter", is_crop, GOES_WITH("crop")},
    {SECTION_IMAGE, "max_width", is_height, GOES_WITH("height")},
    {SECTION_IMAGE, "max_side", is_limit, GOES_WITH("limit")},
    {SECTION_IMAGE, "multiple", is_height_or_limit, GOES_WITH("height and limit")},
    {SECTION_IMAGE, "pad", is_letterbox_or_crop, GOES_WITH("letterbox and crop")},
    {SECTION_IMAGE, "resize", is_resized, "has no effect with fit: none; nothing is resized then"},
    {SECTION_IMAGE, "jpeg_scaling", can_scale,
     "has no effect with fit: none; pictures are decoded at their own size then"},
    {SECTION_DETECT, "boxes_from", is_head_boxes, HEAD_BOXES_ONLY "hold their boxes"},
    {SECTION_DETECT, "form", is_head_boxes, HEAD_BOXES_ONLY "have the form centre"},
    {SECTION_DETECT, "background", can_have_background, HEAD_BOXES_ONLY "have no background"},
};

const char *pipeline_key_idle(enum pipeline_section section, const char *name, const void *target) {
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (RULES[i].section == section && strcmp(RULES[i].key, name) == 0 &&
            !RULES[i].has_effect(target))
            return RULES[i].idle;
    return NULL;
}

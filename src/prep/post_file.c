/* The post_processor section to plans. Load time, one thread. Invariant: a plan holds what a chain
 * of processors makes of one or two encodings, worked out on items instead of tokens: a segment
 * here is an encoding there. tokenizer.c fills the plans with tokens. */
#include "prep/post.h"
#include "prep/tokenizer_read.h"

enum { STEPS_MAX = 16, SEGMENTS_MAX = 64 };

enum step_kind { STEP_BERT, STEP_ROBERTA, STEP_TEMPLATE, STEP_BYTE_LEVEL };

struct template_piece {
    bool is_text, is_second;
    uint32_t type_id;
    const uint32_t *ids;
    size_t count;
};

struct template {
    struct template_piece *pieces;
    size_t count;
    bool is_there;
};

struct step {
    enum step_kind kind;
    uint32_t cls, sep;
    bool trims, adds_prefix_space;
    struct template templates[2]; /* single, pair */
};

struct segment {
    struct post_item *items;
    size_t count;
};

struct reader {
    struct arena *memory;
    struct err *err;
    struct step steps[STEPS_MAX];
    size_t step_count;
    bool is_in_sequence;
    /* while a template is read: */
    struct json_value special_tokens;
    struct template *template;
    uint32_t *ids;
    size_t id_count;
};

static enum status no_memory(struct reader *reader) {
    return err_set(reader->err, ST_NO_MEMORY, "no memory for the post_processor");
}

/* ["[SEP]", 102] of BertProcessing and RobertaProcessing. */
static enum status read_pair_part(void *context, struct view name, struct json_value value) {
    (void)name;
    if (dom_kind_of(value) == JSON_STRING) return ST_OK;
    return dom_u32(value, context) ? ST_OK : ST_INVALID;
}

static enum status read_pair(struct reader *reader, struct json_value object, const char *name,
                             uint32_t *out) {
    struct json_value value;
    uint32_t id = UINT32_MAX;
    if (!dom_member(object, name, &value) || dom_count(value) != 2
        || dom_each(value, read_pair_part, &id) != ST_OK || id == UINT32_MAX) {
        return err_set(reader->err, ST_INVALID, "post_processor: \"%s\" must be [token, id]",
                       name);
    }
    *out = id;
    return ST_OK;
}

static enum status read_around(struct reader *reader, struct json_value object,
                               struct step *step) {
    enum status status = read_pair(reader, object, "cls", &step->cls);
    return status == ST_OK ? read_pair(reader, object, "sep", &step->sep) : status;
}

static enum status read_bert(struct reader *reader, struct json_value object, struct step *step) {
    static const char *const NAMES[] = {"type", "sep", "cls", NULL};
    const enum status status = read_members(object, "post_processor", NAMES, reader->err);
    return status == ST_OK ? read_around(reader, object, step) : status;
}

static enum status read_trims(struct reader *reader, struct json_value object,
                              struct step *step) {
    const char *where = "post_processor";
    step->trims = step->adds_prefix_space = true; /* what absent means */
    enum status status = ST_OK;
    if (!read_is_null(object, "trim_offsets")) {
        status = read_bool(object, where, "trim_offsets", &step->trims, reader->err);
    }
    if (status == ST_OK && !read_is_null(object, "add_prefix_space")) {
        status = read_bool(object, where, "add_prefix_space", &step->adds_prefix_space,
                           reader->err);
    }
    return status;
}

static enum status read_roberta(struct reader *reader, struct json_value object,
                                struct step *step) {
    static const char *const NAMES[] = {"type", "sep", "cls", "trim_offsets", "add_prefix_space",
                                        NULL};
    enum status status = read_members(object, "post_processor", NAMES, reader->err);
    if (status == ST_OK) status = read_trims(reader, object, step);
    return status == ST_OK ? read_around(reader, object, step) : status;
}

static enum status read_byte_level(struct reader *reader, struct json_value object,
                                   struct step *step) {
    static const char *const NAMES[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    const enum status status = read_members(object, "post_processor", NAMES, reader->err);
    return status == ST_OK ? read_trims(reader, object, step) : status;
}

static enum status read_special_id(void *context, struct view name, struct json_value value) {
    struct reader *reader = context;
    (void)name;
    if (!dom_u32(value, &reader->ids[reader->id_count++])) {
        return err_set(reader->err, ST_INVALID, "post_processor: an id is not a whole number");
    }
    return ST_OK;
}

static enum status read_special(struct reader *reader, struct json_value special,
                                struct template_piece *piece) {
    struct view id;
    struct json_value token, ids;
    enum status status =
        read_string(special, "post_processor: SpecialToken", "id", &id, reader->err);
    if (status != ST_OK) return status;
    const char *name = arena_copy(reader->memory, id);
    if (name == NULL) return no_memory(reader);
    if (!dom_member(reader->special_tokens, name, &token) || !dom_member(token, "ids", &ids)
        || dom_kind_of(ids) != JSON_ARRAY) {
        return err_set(reader->err, ST_INVALID,
                       "post_processor: special_tokens has no ids for \"%.*s\"", VIEW_SHORT(id));
    }
    reader->ids = arena_array(reader->memory, dom_count(ids), sizeof *reader->ids);
    reader->id_count = 0;
    if (reader->ids == NULL) return no_memory(reader);
    status = dom_each(ids, read_special_id, reader);
    piece->ids = reader->ids;
    piece->count = reader->id_count;
    return status;
}

static enum status read_piece(void *context, struct view name, struct json_value value) {
    struct reader *reader = context;
    struct template_piece *piece = &reader->template->pieces[reader->template->count++];
    struct json_value inner;
    struct view id;
    enum status status;
    (void)name;
    if (dom_count(value) == 1 && dom_member(value, "Sequence", &inner)) {
        piece->is_text = true;
        status = read_string(inner, "post_processor: Sequence", "id", &id, reader->err);
        if (status != ST_OK) return status;
        piece->is_second = view_is(id, "B");
        if (!piece->is_second && !view_is(id, "A")) {
            return err_set(reader->err, ST_UNSUPPORTED,
                           "post_processor: sequence \"%.*s\" (A and B are known)",
                           VIEW_SHORT(id));
        }
    } else if (dom_count(value) == 1 && dom_member(value, "SpecialToken", &inner)) {
        if ((status = read_special(reader, inner, piece)) != ST_OK) return status;
    } else {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "post_processor: a template piece is neither Sequence nor SpecialToken");
    }
    return read_u32(inner, "post_processor: template piece", "type_id", &piece->type_id,
                    reader->err);
}

static enum status read_template(struct reader *reader, struct json_value object,
                                 struct step *step) {
    static const char *const NAMES[] = {"type", "single", "pair", "special_tokens", NULL};
    enum status status = read_members(object, "post_processor", NAMES, reader->err);
    if (status != ST_OK) return status;
    if (!dom_member(object, "special_tokens", &reader->special_tokens)) {
        return err_set(reader->err, ST_INVALID, "post_processor: there is no \"special_tokens\"");
    }
    for (int is_pair = 0; is_pair < 2 && status == ST_OK; is_pair++) {
        const char *name = is_pair ? "pair" : "single";
        struct json_value list;
        reader->template = &step->templates[is_pair];
        if (is_pair && read_is_null(object, name)) break;
        if (!dom_member(object, name, &list) || dom_kind_of(list) != JSON_ARRAY) {
            return err_set(reader->err, ST_INVALID, "post_processor: \"%s\" must be an array",
                           name);
        }
        reader->template->is_there = true;
        reader->template->pieces =
            arena_array(reader->memory, dom_count(list), sizeof *reader->template->pieces);
        if (reader->template->pieces == NULL) return no_memory(reader);
        status = dom_each(list, read_piece, reader);
    }
    return status;
}

static enum status read_step(void *context, struct view name, struct json_value value);

static enum status read_sequence(struct reader *reader, struct json_value object) {
    static const char *const NAMES[] = {"type", "processors", NULL};
    struct json_value list;
    const enum status status = read_members(object, "post_processor", NAMES, reader->err);
    if (status != ST_OK) return status;
    if (reader->is_in_sequence) {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "post_processor: a Sequence within a Sequence is not supported");
    }
    reader->is_in_sequence = true;
    if (!dom_member(object, "processors", &list) || dom_kind_of(list) != JSON_ARRAY) {
        return err_set(reader->err, ST_INVALID,
                       "post_processor: \"processors\" must be an array");
    }
    return dom_each(list, read_step, reader);
}

static enum status read_step(void *context, struct view name, struct json_value value) {
    struct reader *reader = context;
    struct view type;
    (void)name;
    const enum status status = read_type(value, "post_processor", &type, reader->err);
    if (status != ST_OK) return status;
    if (view_is(type, "Sequence")) return read_sequence(reader, value);
    if (reader->step_count == STEPS_MAX) {
        return err_set(reader->err, ST_UNSUPPORTED,
                       "post_processor: more than %d processors are not supported", STEPS_MAX);
    }
    struct step *step = &reader->steps[reader->step_count++];
    if (view_is(type, "TemplateProcessing")) {
        step->kind = STEP_TEMPLATE;
        return read_template(reader, value, step);
    }
    if (view_is(type, "BertProcessing")) {
        step->kind = STEP_BERT;
        return read_bert(reader, value, step);
    }
    if (view_is(type, "RobertaProcessing")) {
        step->kind = STEP_ROBERTA;
        return read_roberta(reader, value, step);
    }
    if (view_is(type, "ByteLevel")) {
        step->kind = STEP_BYTE_LEVEL;
        return read_byte_level(reader, value, step);
    }
    return err_set(reader->err, ST_UNSUPPORTED,
                   "post_processor \"%.*s\" is not supported (TemplateProcessing, "
                   "BertProcessing, RobertaProcessing, ByteLevel and Sequence are)",
                   VIEW_SHORT(type));
}

static bool trim(struct segment *segments, size_t count, bool adds_prefix_space) {
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; i < segments[s].count; i++) {
            struct post_item *item = &segments[s].items[i];
            if (!item->is_text) continue;
            if (item->trim_count == POST_TRIMS_MAX) return false;
            item->trims[item->trim_count++] =
                (struct post_trim){.keeps_prefix_space = adds_prefix_space, .is_first = i == 0};
        }
    }
    return true;
}

/* [CLS] first [SEP]; every other one [SEP] after it (RoBERTa: before it too). */
static bool put_around(const struct step *step, struct segment *segments, size_t count,
                       struct arena *memory) {
    const bool is_roberta = step->kind == STEP_ROBERTA;
    for (size_t s = 0; s < count; s++) {
        struct segment *segment = &segments[s];
        const uint32_t type_id = s == 0 || is_roberta ? 0 : 1;
        struct post_item *items = arena_array(memory, segment->count + 2, sizeof *items);
        uint32_t *ids = arena_array(memory, 2, sizeof *ids);
        if (items == NULL || ids == NULL) return false;
        size_t at = 0;
        ids[0] = s == 0 ? step->cls : step->sep;
        ids[1] = step->sep;
        if (s == 0 || is_roberta) {
            items[at++] = (struct post_item){
                .is_special = true, .type_id = type_id, .ids = &ids[0], .count = 1};
        }
        if (segment->count > 0) {
            memcpy(&items[at], segment->items, segment->count * sizeof *items);
        }
        for (size_t i = 0; i < segment->count; i++) items[at + i].is_special = false;
        at += segment->count;
        items[at++] = (struct post_item){
            .is_special = true, .type_id = type_id, .ids = &ids[1], .count = 1};
        *segment = (struct segment){items, at};
    }
    return true;
}

/* NULL when it is done, else why it cannot be; a text in place of a template's piece takes the
 * piece's type id whole. */
static const char *apply_template(const struct step *step, bool adds_special,
                                  struct segment *segments, size_t *count,
                                  struct arena *memory, bool *out_no_memory) {
    if (*count < 1 || *count > 2) return "a template follows one that made more than two parts";
    const struct template *template = &step->templates[*count - 1];
    struct segment made[SEGMENTS_MAX];
    size_t made_count = 0;
    if (!template->is_there) return "the template for a pair is missing";
    for (size_t i = 0; i < template->count; i++) {
        const struct template_piece *piece = &template->pieces[i];
        if (!piece->is_text && !adds_special) continue;
        if (made_count == SEGMENTS_MAX) return "a template has more than 64 pieces";
        if (piece->is_second && *count == 1) return "sequence B in the template of a single text";
        const struct segment one = {NULL, 1};
        const struct segment *from = piece->is_text ? &segments[piece->is_second] : &one;
        struct post_item *items = arena_array(memory, from->count, sizeof *items);
        if (items == NULL) {
            *out_no_memory = true;
            return "no memory";
        }
        if (!piece->is_text) {
            items[0] = (struct post_item){
                .is_special = true, .ids = piece->ids, .count = piece->count};
        } else if (from->count > 0) {
            memcpy(items, from->items, from->count * sizeof *items);
        }
        for (size_t k = 0; k < from->count; k++) items[k].type_id = piece->type_id;
        made[made_count++] = (struct segment){items, from->count};
    }
    memcpy(segments, made, made_count * sizeof *made);
    *count = made_count;
    return NULL;
}

static enum status join(struct reader *reader, const struct segment *segments, size_t count,
                        struct post_plan *out) {
    size_t total = 0;
    for (size_t s = 0; s < count; s++) total += segments[s].count;
    out->items = arena_array(reader->memory, total, sizeof *out->items);
    if (out->items == NULL) return no_memory(reader);
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; i < segments[s].count; i++) {
            const struct post_item *item = &segments[s].items[i];
            out->special_count += item->count;
            out->trims |= item->trim_count > 0;
            out->items[out->count++] = *item;
        }
    }
    return ST_OK;
}

static enum status make_plan(struct reader *reader, bool is_pair, bool adds_special,
                             struct post_plan *out) {
    struct post_item texts[2] = {{.is_text = true},
                                 {.is_text = true, .is_second = true, .type_id = 1}};
    struct segment segments[SEGMENTS_MAX] = {{&texts[0], 1}, {&texts[1], 1}};
    size_t count = is_pair ? 2 : 1;
    bool no_room = false;
    for (size_t i = 0; i < reader->step_count; i++) {
        const struct step *step = &reader->steps[i];
        if (step->kind == STEP_TEMPLATE) {
            out->refusal = apply_template(step, adds_special, segments, &count, reader->memory,
                                          &no_room);
            if (no_room) return no_memory(reader);
            if (out->refusal != NULL) return ST_OK;
            continue;
        }
        if (step->trims && !trim(segments, count, step->adds_prefix_space)) {
            out->refusal = "offsets are trimmed more than four times";
            return ST_OK;
        }
        for (size_t s = 0; step->kind == STEP_ROBERTA && s < count; s++) {
            for (size_t k = 0; k < segments[s].count; k++) segments[s].items[k].type_id = 0;
        }
        if (step->kind != STEP_BYTE_LEVEL && adds_special
            && !put_around(step, segments, count, reader->memory)) {
            return no_memory(reader);
        }
    }
    return join(reader, segments, count, out);
}

static size_t count_added(const struct step *step, bool is_pair) {
    if (step->kind == STEP_BYTE_LEVEL) return 0;
    if (step->kind == STEP_BERT) return is_pair ? 3 : 2;
    if (step->kind == STEP_ROBERTA) return is_pair ? 4 : 2;
    size_t count = 0;
    const struct template *template = &step->templates[is_pair];
    for (size_t i = 0; i < template->count; i++) count += template->pieces[i].count;
    return count;
}

enum status post_read(struct json_value value, struct arena *memory, struct post *out,
                      struct err *err) {
    struct reader reader = {.memory = memory, .err = err};
    struct post post = {.added_count = {0}};
    enum status status = ST_OK;
    if (dom_kind_of(value) != JSON_NULL) status = read_step(&reader, view_of(""), value);
    for (int is_pair = 0; is_pair < 2; is_pair++) {
        for (int special = 0; special < 2 && status == ST_OK; special++) {
            status = make_plan(&reader, is_pair, special, &post.plans[is_pair][special]);
        }
        for (size_t i = 0; i < reader.step_count; i++) {
            post.added_count[is_pair] += count_added(&reader.steps[i], is_pair);
        }
    }
    const char *refusal = post.plans[0][1].refusal != NULL ? post.plans[0][1].refusal
                                                           : post.plans[0][0].refusal;
    if (status == ST_OK && refusal != NULL) {
        return err_set(err, ST_UNSUPPORTED, "post_processor: %s", refusal);
    }
    if (status == ST_OK) *out = post;
    return status;
}

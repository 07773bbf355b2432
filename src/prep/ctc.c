/* See ctc.h. Any thread; no state but the characters, const after load. */
#include "prep/ctc.h"

#include "prep/activation.h"
#include "prep/classify.h"

enum status ctc_load(const char *path, uint32_t blank, bool has_space, struct arena *arena,
                     struct ctc_characters *out, struct err *err) {
    struct labels lines;
    const enum status status = labels_load(path, arena, &lines, err);
    if (status != ST_OK) return status;
    const size_t count = lines.count + 1 + (has_space ? 1 : 0);
    if (blank >= count)
        return err_set(err, ST_INVALID, "%s: the blank is class %u, there are %zu classes", path,
                       blank, count);
    struct view *names = arena_array(arena, count, sizeof *names);
    if (names == NULL)
        return err_set(err, ST_NO_MEMORY, "%s: no memory for %zu characters", path, count);
    size_t line = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == blank) names[i] = view_of("");
        else if (line < lines.count) names[i] = lines.names[line++];
        else names[i] = view_of(" ");
    }
    *out = (struct ctc_characters){.names = names, .count = count, .blank = blank};
    return ST_OK;
}

enum status ctc_greedy(const struct ctc_characters *characters, const float *values,
                       uint32_t steps, uint32_t classes, struct arena *arena,
                       struct view *out_text, float *out_score, struct err *err) {
    if (classes != characters->count)
        return err_set(err, ST_INVALID, "the model gives %u classes a step, the characters file has "
                       "%zu (blank and space counted)", classes, characters->count);
    uint32_t *kept = arena_alloc(arena, (size_t)steps * sizeof *kept);
    if (kept == NULL) return err_set(err, ST_NO_MEMORY, "no memory for %u steps", steps);
    size_t count = 0, size = 0;
    double sum = 0;
    uint32_t before = characters->blank;
    for (uint32_t step = 0; step < steps; step++) {
        const float *row = values + (size_t)step * classes;
        const uint32_t best = (uint32_t)best_of(row, classes);
        if (best != characters->blank && best != before) {
            kept[count++] = best;
            size += characters->names[best].size;
            sum += row[best];
        }
        before = best;
    }
    char *text = arena_alloc(arena, size);
    if (text == NULL) return err_set(err, ST_NO_MEMORY, "no memory for a text of %zu bytes", size);
    char *to = text;
    for (size_t i = 0; i < count; i++) {
        const struct view name = characters->names[kept[i]];
        if (name.size > 0) memcpy(to, name.data, name.size);
        to += name.size;
    }
    *out_text = (struct view){text, size};
    *out_score = count > 0 ? (float)(sum / (double)count) : 0;
    return ST_OK;
}

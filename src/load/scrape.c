/* Reads three figures out of a metrics page. Pure; any thread; never reads outside the view.
 * Invariant: a line that it does not understand changes nothing. */
#include "load/scrape.h"

#include <stdio.h>
#include <stdlib.h>

/* Value of label model in "{a="b",model="m"}"; false when there is none. */
static bool model_label(struct view labels, struct view *out) {
    static const char KEY[] = "model=\"";
    const char *at = labels.size == 0 ? NULL
                                      : memmem(labels.data, labels.size, KEY, sizeof KEY - 1);
    if (at == NULL || (at[-1] != '{' && at[-1] != ',')) return false;
    at += sizeof KEY - 1;
    const char *stop = memchr(at, '"', (size_t)(labels.data + labels.size - at));
    if (stop == NULL) return false;
    *out = (struct view){.data = at, .size = (size_t)(stop - at)};
    return true;
}

static void take(const char *model, struct view name, struct view labels, double value,
                 struct scrape *out) {
    struct view label;
    if (labels.size > 1 && model_label(labels, &label) && !view_is(label, model)) return;
    if (view_is(name, "process_cpu_seconds_total")) {
        out->has_cpu = true;
        out->cpu_s += value;
    } else if (view_is(name, "telltale_device_busy_seconds_total")) {
        out->has_device = true;
        out->device_busy_s += value;
    } else if (view_is(name, "telltale_instances")) {
        out->has_instances = true;
        out->instances += value;
    }
}

static void parse_line(const char *model, struct view line, struct scrape *out) {
    size_t name = 0;
    while (name < line.size && line.data[name] != '{' && line.data[name] != ' ') name++;
    size_t at = name;
    if (at < line.size && line.data[at] == '{') {
        const char *close = memrchr(line.data, '}', line.size);
        if (close == NULL) return;
        at = (size_t)(close - line.data) + 1;
    }
    char text[64], *end;
    int size = snprintf(text, sizeof text, "%.*s", (int)(line.size - at), line.data + at);
    if (size <= 0 || size >= (int)sizeof text) return;
    double value = strtod(text, &end);
    if (end == text) return;
    take(model, (struct view){.data = line.data, .size = name},
         (struct view){.data = line.data + name, .size = at - name}, value, out);
}

void scrape_parse(struct view text, const char *model, struct scrape *out) {
    *out = (struct scrape){0};
    const char *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        if (*at != '#') parse_line(model, (struct view){at, (size_t)(stop - at)}, out);
        at = stop + 1;
    }
}

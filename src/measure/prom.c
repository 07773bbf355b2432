/* Prometheus text exposition: see prom.h. Families and samples in the order of the calls; the
 * caller keeps a family's samples together, as the format wants.
 *
 * Thread: whoever owns the buffer. Next: histogram.h. */
#include "measure/prom.h"

#include <math.h>
#include <stdio.h>

enum { BOUNDS_AT_ONCE = 64 };

/* Label values escape the quote, help texts do not. */
static void escaped(struct buf *out, const char *text, bool is_label) {
    for (; *text != '\0'; text++) {
        if (*text == '\\') buf_text(out, "\\\\");
        else if (*text == '\n') buf_text(out, "\\n");
        else if (*text == '"' && is_label) buf_text(out, "\\\"");
        else buf_char(out, *text);
    }
}

/* name and suffix, then {labels,le="..."}; le may be NULL. */
static void sample_name(struct buf *out, const char *name, const char *suffix,
                        const struct prom_label *labels, unsigned count, const char *le) {
    buf_text(out, name);
    buf_text(out, suffix);
    if (count == 0 && le == NULL) return;
    buf_char(out, '{');
    for (unsigned i = 0; i < count; i++) {
        if (i > 0) buf_char(out, ',');
        buf_text(out, labels[i].name);
        buf_text(out, "=\"");
        escaped(out, labels[i].value, true);
        buf_char(out, '"');
    }
    if (le != NULL) {
        if (count > 0) buf_char(out, ',');
        buf_text(out, "le=\"");
        buf_text(out, le);
        buf_char(out, '"');
    }
    buf_char(out, '}');
}

static void number(struct buf *out, double value) {
    if (isnan(value)) buf_text(out, "NaN");
    else if (isinf(value)) buf_text(out, value > 0 ? "+Inf" : "-Inf");
    else buf_printf(out, "%.15g", value);
    buf_char(out, '\n');
}

void prom_family(struct buf *out, const char *name, const char *type, const char *help) {
    buf_text(out, "# HELP ");
    buf_text(out, name);
    buf_char(out, ' ');
    escaped(out, help, false);
    buf_text(out, "\n# TYPE ");
    buf_text(out, name);
    buf_char(out, ' ');
    buf_text(out, type);
    buf_char(out, '\n');
}

void prom_u64(struct buf *out, const char *name, const struct prom_label *labels, unsigned count,
              uint64_t value) {
    sample_name(out, name, "", labels, count, NULL);
    buf_char(out, ' ');
    buf_u64(out, value);
    buf_char(out, '\n');
}

void prom_double(struct buf *out, const char *name, const struct prom_label *labels,
                 unsigned count, double value) {
    sample_name(out, name, "", labels, count, NULL);
    buf_char(out, ' ');
    number(out, value);
}

static void bucket(struct buf *out, const char *name, const struct prom_label *labels,
                   unsigned count, const char *le, uint64_t value) {
    sample_name(out, name, "_bucket", labels, count, le);
    buf_char(out, ' ');
    buf_u64(out, value);
    buf_char(out, '\n');
}

void prom_histogram(struct buf *out, const char *name, const struct prom_label *labels,
                    unsigned count, const struct histogram *histogram, const uint64_t *bounds,
                    unsigned bound_count, double scale) {
    uint64_t below[BOUNDS_AT_ONCE];
    for (unsigned begin = 0; begin < bound_count; begin += BOUNDS_AT_ONCE) {
        const unsigned left = bound_count - begin;
        const unsigned n = left < BOUNDS_AT_ONCE ? left : BOUNDS_AT_ONCE;
        histogram_counts_below(histogram, bounds + begin, n, below);
        for (unsigned i = 0; i < n; i++) {
            char le[32];
            snprintf(le, sizeof le, "%.10g", (double)bounds[begin + i] / scale);
            bucket(out, name, labels, count, le, below[i]);
        }
    }
    bucket(out, name, labels, count, "+Inf", histogram->count);

    sample_name(out, name, "_sum", labels, count, NULL);
    buf_char(out, ' ');
    number(out, histogram->sum / scale);
    sample_name(out, name, "_count", labels, count, NULL);
    buf_char(out, ' ');
    buf_u64(out, histogram->count);
    buf_char(out, '\n');
}

/* Prometheus text exposition (version 0.0.4): a family's HELP and TYPE once, then its samples.
 * Label values are escaped here. */
#ifndef TELLTALE_MEASURE_PROM_H
#define TELLTALE_MEASURE_PROM_H

#include "base/buf.h"
#include "measure/histogram.h"

struct prom_label { const char *name; const char *value; };

void prom_family(struct buf *out, const char *name, const char *type, const char *help);
void prom_u64(struct buf *out, const char *name, const struct prom_label *labels, unsigned count,
              uint64_t value);
void prom_double(struct buf *out, const char *name, const struct prom_label *labels,
                 unsigned count, double value);
/* name_bucket{...,le="..."} for each upper bound (in the histogram's unit, divided by scale for
 * the label), then +Inf, name_sum (divided by scale), name_count. */
void prom_histogram(struct buf *out, const char *name, const struct prom_label *labels,
                    unsigned count, const struct histogram *histogram, const uint64_t *bounds,
                    unsigned bound_count, double scale);

#endif

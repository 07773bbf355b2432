/* Histogram of durations (or any uint64_t) with a fixed relative error: buckets as in
 * HdrHistogram with 3 significant digits by default (error at most 0.1 %). One writer; merge
 * after. Values above the range are counted in the last bucket and as saturated. */
#ifndef TELLTALE_MEASURE_HISTOGRAM_H
#define TELLTALE_MEASURE_HISTOGRAM_H

#include <stdint.h>

struct histogram {
    uint64_t *counts;
    uint32_t counts_size;
    uint32_t sub_bucket_half_magnitude;
    uint64_t count, saturated;
    uint64_t min, max; /* exact; 0 while empty */
    double sum;
    uint64_t highest;
};

/* digits 1..4; highest: largest value told apart. False when memory is out. */
int histogram_init(struct histogram *histogram, unsigned digits, uint64_t highest);
void histogram_done(struct histogram *histogram); /* a zeroed one is allowed */
void histogram_clear(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t value);
/* values[0], values[stride], ... n of them; zeros are passed over. */
enum { HISTOGRAM_MANY = 1024 }; /* n at most */
void histogram_record_many(struct histogram *histogram, const uint64_t *values, unsigned stride,
                           unsigned n);
void histogram_record_n(struct histogram *histogram, uint64_t value, uint64_t count);
/* into += from; both of the same digits and range. */
void histogram_add(struct histogram *into, const struct histogram *from);
/* Smallest value at or below which at least quantile*count values lie (the top of its bucket,
 * never above max); 0 when empty. quantile 0..1. */
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);
double histogram_mean(const struct histogram *histogram);
/* Number of values <= value (to bucket resolution): for Prometheus buckets. */
uint64_t histogram_count_below(const struct histogram *histogram, uint64_t value);
/* The same for bound_count ascending bounds in one pass; out_counts has bound_count entries. */
void histogram_counts_below(const struct histogram *histogram, const uint64_t *bounds,
                            unsigned bound_count, uint64_t *out_counts);

#endif

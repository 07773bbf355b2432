/* Log-linear histogram: each power of two is cut into equal parts, fine enough that a part is
 * at most 10^-digits of the values in it. The layout of the counts is HdrHistogram's (Gil
 * Tene), with a unit of 1, so that counts can be compared one by one.
 *
 * Thread: one writer; readers need the writer's lock or its end.
 * Invariant: count is the sum of counts[]; min and max are exact, also beyond highest.
 * Next: trace_stats.h (who fills them), prom.c (who prints them). */
#include "measure/histogram.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* With h = sub_bucket_half_magnitude, values below 2^(h+1) have a count each; bucket b >= 1
 * covers [2^(h+b), 2^(h+b+1)) in 2^h parts of 2^b. Only the upper half of a bucket is stored:
 * its lower half is the bucket before it. */
static inline uint32_t index_at(uint32_t half_magnitude, uint64_t value) {
    const uint64_t mask = ((uint64_t)2 << half_magnitude) - 1;
    const uint32_t bucket = 64 - (uint32_t)__builtin_clzll(value | mask) - (half_magnitude + 1);
    return (bucket << half_magnitude) + (uint32_t)(value >> bucket);
}

static uint32_t index_of(const struct histogram *histogram, uint64_t value) {
    return index_at(histogram->sub_bucket_half_magnitude, value);
}

/* Largest value that index_of maps to this index. */
static uint64_t top_of(const struct histogram *histogram, uint32_t index) {
    const uint32_t half_magnitude = histogram->sub_bucket_half_magnitude;
    if (index < ((uint32_t)2 << half_magnitude)) return index;
    const uint32_t bucket = (index >> half_magnitude) - 1;
    const uint64_t sub = index - ((uint64_t)bucket << half_magnitude);
    return (sub << bucket) + (((uint64_t)1 << bucket) - 1);
}

int histogram_init(struct histogram *histogram, unsigned digits, uint64_t highest) {
    static const uint64_t largest_single_unit[] = {20, 200, 2000, 20000};
    assert(digits >= 1 && digits <= 4);
    const uint64_t wanted = largest_single_unit[digits - 1];
    uint32_t half_magnitude = 0;
    while (((uint64_t)2 << half_magnitude) < wanted) half_magnitude++;
    if (highest < wanted) highest = wanted;
    if (highest > UINT64_MAX / 2) highest = UINT64_MAX / 2;

    struct histogram made = {.sub_bucket_half_magnitude = half_magnitude, .highest = highest};
    /* Whole buckets, as HdrHistogram allocates them: the last one ends above highest. */
    const uint32_t last_bucket = index_of(&made, highest) >> half_magnitude;
    made.counts_size = (last_bucket + 1) << half_magnitude;
    made.counts = calloc(made.counts_size, sizeof *made.counts);
    if (made.counts == NULL) return 0;
    *histogram = made;
    return 1;
}

void histogram_done(struct histogram *histogram) {
    free(histogram->counts);
    *histogram = (struct histogram){.counts = NULL};
}

void histogram_clear(struct histogram *histogram) {
    memset(histogram->counts, 0, histogram->counts_size * sizeof *histogram->counts);
    histogram->count = 0;
    histogram->saturated = 0;
    histogram->min = 0;
    histogram->max = 0;
    histogram->sum = 0;
}

void histogram_record_n(struct histogram *histogram, uint64_t value, uint64_t count) {
    if (count == 0) return;
    if (histogram->count == 0 || value < histogram->min) histogram->min = value;
    if (value > histogram->max) histogram->max = value;
    histogram->count += count;
    histogram->sum += (double)value * (double)count;
    if (value > histogram->highest) {
        histogram->saturated += count;
        histogram->counts[histogram->counts_size - 1] += count;
        return;
    }
    histogram->counts[index_of(histogram, value)] += count;
}

void histogram_record(struct histogram *histogram, uint64_t value) {
    histogram_record_n(histogram, value, 1);
}

/* This is what the tracer does most. Sums and limits stay in registers, and equal values behind
 * one another (a batch's requests share most of their stages) are counted together. */
void histogram_record_many(struct histogram *histogram, const uint64_t *values, unsigned stride,
                           unsigned n) {
    assert(n <= HISTOGRAM_MANY);
    const uint32_t half_magnitude = histogram->sub_bucket_half_magnitude;
    /* What is added up here must not wrap, and a value beyond that is rare. */
    const uint64_t highest = histogram->highest < UINT64_MAX / HISTOGRAM_MANY
                                 ? histogram->highest
                                 : UINT64_MAX / HISTOGRAM_MANY;
    uint64_t *const counts = histogram->counts;
    uint64_t min = UINT64_MAX, max = 0, sum = 0;
    uint64_t count = 0;
    for (unsigned i = 0; i < n;) {
        const uint64_t value = values[(size_t)i * stride];
        unsigned equal = 1;
        while (++i < n && values[(size_t)i * stride] == value) equal++;
        if (value == 0) continue;
        if (value > highest) {
            histogram_record_n(histogram, value, equal);
            continue;
        }
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += value * equal;
        count += equal;
        counts[index_at(half_magnitude, value)] += equal;
    }
    if (count == 0) return;
    if (histogram->count == 0 || min < histogram->min) histogram->min = min;
    if (max > histogram->max) histogram->max = max;
    histogram->count += count;
    histogram->sum += (double)sum;
}

void histogram_add(struct histogram *into, const struct histogram *from) {
    assert(into->counts_size == from->counts_size &&
           into->sub_bucket_half_magnitude == from->sub_bucket_half_magnitude);
    if (from->count == 0) return;
    if (into->count == 0 || from->min < into->min) into->min = from->min;
    if (from->max > into->max) into->max = from->max;
    into->count += from->count;
    into->saturated += from->saturated;
    into->sum += from->sum;
    for (uint32_t i = 0; i < from->counts_size; i++) into->counts[i] += from->counts[i];
}

uint64_t histogram_quantile(const struct histogram *histogram, double quantile) {
    if (histogram->count == 0) return 0;
    if (!(quantile > 0)) quantile = 0;
    /* 0.07 * 100 is a hair above 7: without the correction rank 8 would be taken. */
    const double exact = quantile * (double)histogram->count;
    double rank = ceil(exact - exact * 1e-12);
    if (rank < 1) rank = 1;
    if (rank >= (double)histogram->count) return histogram->max;

    const uint64_t wanted = (uint64_t)rank;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < histogram->counts_size; i++) {
        seen += histogram->counts[i];
        if (seen < wanted) continue;
        /* Saturated values share the last bucket: only max is known of them. */
        if (i == histogram->counts_size - 1 && histogram->saturated > 0) break;
        const uint64_t top = top_of(histogram, i);
        return top < histogram->max ? top : histogram->max;
    }
    return histogram->max;
}

double histogram_mean(const struct histogram *histogram) {
    return histogram->count == 0 ? 0 : histogram->sum / (double)histogram->count;
}

void histogram_counts_below(const struct histogram *histogram, const uint64_t *bounds,
                            unsigned bound_count, uint64_t *out_counts) {
    uint64_t seen = 0;
    uint32_t next = 0; /* first index not yet in seen */
    for (unsigned b = 0; b < bound_count; b++) {
        assert(b == 0 || bounds[b - 1] <= bounds[b]);
        if (bounds[b] >= histogram->max) {
            out_counts[b] = histogram->count;
            continue;
        }
        const uint64_t bound = bounds[b] < histogram->highest ? bounds[b] : histogram->highest;
        const uint32_t last = index_of(histogram, bound);
        for (; next <= last; next++) seen += histogram->counts[next];
        const bool has_saturated = next == histogram->counts_size;
        out_counts[b] = has_saturated ? seen - histogram->saturated : seen;
    }
}

uint64_t histogram_count_below(const struct histogram *histogram, uint64_t value) {
    uint64_t below = 0;
    histogram_counts_below(histogram, &value, 1, &below);
    return below;
}

/* 95 % confidence intervals of quantiles, for values that depend on each other. Pure.
 *
 * The usual interval, from binomial ranks, takes the values for independent. Latencies of a queue
 * are not: slow requests come together, and at a load of 0.7 that interval holds the truth in 46 %
 * of the runs instead of 95 %. Here the run is cut into batches of consecutive values, and the
 * interval comes from how much the share of values above the estimate varies between them:
 *
 *   half = t * sd(share of batch k above the quantile) / sqrt(batches),  t: Student's, 0.975
 *   low, high = the values at the ranks (p - half) * n and (p + half) * n
 *
 * (batch means on the exceedance indicator). 20 batches; 10 or 5 where neighbouring ones still
 * resemble each other. The wider of that and of the binomial one counts: rare quantiles have too
 * few values a batch. What it cannot see is dependence longer than a batch: repeat whole runs. */
#ifndef TELLTALE_LOAD_INTERVAL_H
#define TELLTALE_LOAD_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    uint64_t low, high;
    bool has_low, has_high; /* false: more values are needed before there is such a bound */
    uint32_t batches;       /* that it was computed from; 0: from the binomial ranks alone */
};

/* in_order: the values as time brought them; sorted: the same, ascending. share: 0 < share < 1. */
struct interval interval_of(const uint64_t *in_order, const uint64_t *sorted, size_t count,
                            double share);
/* For independent values, from binomial ranks alone. */
struct interval interval_binomial(const uint64_t *sorted, size_t count, double share);

#endif

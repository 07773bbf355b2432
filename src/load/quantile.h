/* Exact quantiles of recorded values, and when to believe them. Pure. */
#ifndef TELLTALE_LOAD_QUANTILE_H
#define TELLTALE_LOAD_QUANTILE_H

#include "load/interval.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUANTILE_TABLE(X) X(P50, 0.5) X(P90, 0.9) X(P95, 0.95) X(P99, 0.99) X(P99_9, 0.999)
enum quantile {
#define X(name, share) QUANTILE_##name,
    QUANTILE_TABLE(X)
#undef X
    QUANTILE_COUNT
};
const char *quantile_name(enum quantile quantile); /* "p999": the key in result.json */
double quantile_share(enum quantile quantile);     /* 0.999 */

/* Smallest value at or below which at least share * count of the values lie. 0 when empty. */
uint64_t quantile_sorted(const uint64_t *sorted, size_t count, double share);
void quantile_sort(uint64_t *values, size_t count);

enum quantile_trust {
    QUANTILE_ABSENT, /* fewer than 1/(1-share) values: it would only repeat the maximum */
    QUANTILE_ROUGH,  /* no finite 95 % upper bound for it exists yet */
    QUANTILE_FIRM
};
enum quantile_trust quantile_trust(size_t count, double share);
/* Values needed for a finite 95 % upper bound: ln(0.05) / ln(share). P99: 299, P99.9: 2995. */
uint64_t quantile_needs(double share);

struct distribution {
    uint64_t count, min, max;
    double mean;
    uint64_t at[QUANTILE_COUNT];
    bool has_intervals;
    struct interval interval[QUANTILE_COUNT]; /* 95 % */
};
/* Sorts values in place. All zero when count is 0. Without intervals. */
struct distribution distribution_of(uint64_t *values, size_t count);
/* The same with intervals; the values are to be in the order of time. sorted: room for as many. */
struct distribution distribution_in_time(const uint64_t *values, size_t count, uint64_t *sorted);

/* Did the generator's own lateness spoil the measurement? It did when its P99 is above both
 * 1 ms and a tenth of the P99 that it measured. */
bool quantile_lateness_spoils(uint64_t lateness_p99_ns, uint64_t latency_p99_ns);

#endif

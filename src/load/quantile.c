/* Exact quantiles. Pure; any thread. Invariant: a quantile is always one of the values. The
 * rules for too small samples are explained in docs/bench.md. */
#include "load/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct { double share; } QUANTILES[QUANTILE_COUNT] = {
#define X(name, share) [QUANTILE_##name] = {share},
    QUANTILE_TABLE(X)
#undef X
};

const char *quantile_name(enum quantile quantile) {
    static const char *const KEYS[QUANTILE_COUNT] = {
        [QUANTILE_P50] = "p50", [QUANTILE_P90] = "p90",     [QUANTILE_P95] = "p95",
        [QUANTILE_P99] = "p99", [QUANTILE_P99_9] = "p999",
    };
    return KEYS[quantile];
}

double quantile_share(enum quantile quantile) { return QUANTILES[quantile].share; }

uint64_t quantile_sorted(const uint64_t *sorted, size_t count, double share) {
    if (count == 0) return 0;
    /* 0.999 * 1000 may come out a hair above 999: that must not take the next value. */
    double rank = ceil(share * (double)count - 1e-6);
    if (rank < 1) rank = 1;
    if (rank > (double)count) rank = (double)count;
    return sorted[(size_t)rank - 1];
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void quantile_sort(uint64_t *values, size_t count) {
    if (count > 1) qsort(values, count, sizeof *values, compare);
}

uint64_t quantile_needs(double share) { return (uint64_t)ceil(log(0.05) / log(share) - 1e-9); }

enum quantile_trust quantile_trust(size_t count, double share) {
    if ((double)count * (1 - share) < 1 - 1e-9) return QUANTILE_ABSENT;
    return count < quantile_needs(share) ? QUANTILE_ROUGH : QUANTILE_FIRM;
}

struct distribution distribution_of(uint64_t *values, size_t count) {
    struct distribution out = {.count = count};
    if (count == 0) return out;
    quantile_sort(values, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i];
    out.mean = sum / (double)count;
    out.min = values[0];
    out.max = values[count - 1];
    for (int i = 0; i < QUANTILE_COUNT; i++)
        out.at[i] = quantile_sorted(values, count, QUANTILES[i].share);
    return out;
}

struct distribution distribution_in_time(const uint64_t *values, size_t count, uint64_t *sorted) {
    if (count > 0) memcpy(sorted, values, count * sizeof *values);
    struct distribution out = distribution_of(sorted, count);
    out.has_intervals = count > 0;
    for (int i = 0; i < QUANTILE_COUNT && count > 0; i++)
        out.interval[i] = interval_of(values, sorted, count, QUANTILES[i].share);
    return out;
}

bool quantile_lateness_spoils(uint64_t lateness_p99_ns, uint64_t latency_p99_ns) {
    return lateness_p99_ns > 1000000 && lateness_p99_ns > latency_p99_ns / 10;
}

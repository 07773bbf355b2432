/* Intervals by batched exceedances, and by binomial ranks. Pure; any thread. docs/bench.md
 * explains them; test/unit/load_interval_test.c simulates queues and counts how often the truth is
 * inside. */
#include "load/interval.h"

#include "load/quantile.h"

#include <math.h>

enum { MOST_BATCHES = 20, LEAST_BATCHES = 5, LEAST_PER_BATCH = 10 };

static const double ALPHA = 0.05;
static const double Z = 1.959964;       /* standard normal, 0.975 */
static const double ALIKE = 0.3;        /* lag-1 correlation from which batches are merged */

static double student(uint32_t batches) { /* 0.975, batches - 1 degrees of freedom */
    return batches >= MOST_BATCHES ? 2.093 : batches >= 10 ? 2.262 : 2.776;
}

static void take_low(struct interval *out, const uint64_t *sorted, double rank) {
    out->has_low = rank >= 1;
    if (out->has_low) out->low = sorted[(size_t)rank - 1];
}

static void take_high(struct interval *out, const uint64_t *sorted, size_t count, double rank) {
    out->has_high = rank <= (double)count;
    if (out->has_high) out->high = sorted[(size_t)rank - 1];
}

/* Of n values J lie above the true quantile, J ~ Bin(n, 1 - share). The (n - j)th value is an upper
 * bound unless J <= j, and a lower one unless J > j. */
static void exact_ranks(size_t count, double share, double *low, double *high) {
    const double n = (double)count, odds = (1 - share) / share;
    double mass = exp(n * log(share)), below = 0; /* below: P(J < j) */
    *low = 0;
    *high = n + 1;
    for (double j = 0; j < n; j++) {
        below += mass;
        if (below <= ALPHA / 2) *high = n - j;
        if (below >= 1 - ALPHA / 2) {
            *low = n - j;
            return;
        }
        mass *= (n - j) / (j + 1) * odds;
    }
}

struct interval interval_binomial(const uint64_t *sorted, size_t count, double share) {
    struct interval out = {0};
    const double n = (double)count, variance = n * share * (1 - share);
    double low, high;
    if (n * (1 - share) <= 200) {
        exact_ranks(count, share, &low, &high);
    } else {
        low = floor(n * share - Z * sqrt(variance));
        high = ceil(n * share + Z * sqrt(variance)) + 1;
    }
    take_low(&out, sorted, low);
    take_high(&out, sorted, count, high);
    return out;
}

/* Shares above the limit, of so many stretches of the run. */
static void shares_above(const uint64_t *in_order, size_t count, uint64_t limit, uint32_t batches,
                         double *shares) {
    for (uint32_t k = 0; k < batches; k++) {
        const size_t from = count * k / batches, to = count * (k + 1) / batches;
        size_t above = 0;
        for (size_t i = from; i < to; i++) above += in_order[i] > limit;
        shares[k] = (double)above / (double)(to - from);
    }
}

static double deviation(const double *shares, uint32_t batches, double *correlation) {
    double mean = 0, squares = 0, lagged = 0;
    for (uint32_t k = 0; k < batches; k++) mean += shares[k] / batches;
    for (uint32_t k = 0; k < batches; k++) {
        squares += (shares[k] - mean) * (shares[k] - mean);
        if (k > 0) lagged += (shares[k] - mean) * (shares[k - 1] - mean);
    }
    *correlation = squares > 0 ? lagged / squares : 0;
    return sqrt(squares / (batches - 1));
}

static struct interval batched(const uint64_t *in_order, const uint64_t *sorted, size_t count,
                               double share) {
    const double n = (double)count;
    double shares[MOST_BATCHES], correlation = 0, spread = 0;
    struct interval out = {0};
    for (uint32_t batches = MOST_BATCHES; batches >= LEAST_BATCHES; batches /= 2) {
        out.batches = batches;
        shares_above(in_order, count, quantile_sorted(sorted, count, share), batches, shares);
        spread = deviation(shares, batches, &correlation);
        if (correlation <= ALIKE) break;
    }
    const double half = student(out.batches) * spread / sqrt(out.batches);
    take_low(&out, sorted, floor(n * (share - half) + 1e-6));
    take_high(&out, sorted, count, share + half > 1 - 1 / n ? n + 1 : ceil(n * (share + half)));
    return out;
}

struct interval interval_of(const uint64_t *in_order, const uint64_t *sorted, size_t count,
                            double share) {
    struct interval plain = interval_binomial(sorted, count, share);
    if (count < MOST_BATCHES * LEAST_PER_BATCH) return plain;
    struct interval out = batched(in_order, sorted, count, share);
    out.has_low = out.has_low && plain.has_low;
    out.has_high = out.has_high && plain.has_high;
    if (plain.low < out.low) out.low = plain.low;
    if (plain.high > out.high) out.high = plain.high;
    return out;
}

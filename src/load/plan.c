/* Arrival schedules. Pure; any thread. Invariant: what is drawn depends on the seed and the
 * arguments only, never on time or on answers. Used by step.c. */
#include "load/plan.h"

#include <math.h>
#include <stdlib.h>

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream) {
    uint64_t mixed = stream;
    uint64_t state = seed ^ splitmix(&mixed);
    for (int i = 0; i < 4; i++) rng->state[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* xoshiro256**, by Blackman and Vigna (public domain algorithm). */
uint64_t rng_next(struct rng *rng) {
    uint64_t *s = rng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double rng_uniform(struct rng *rng) { return ((double)(rng_next(rng) >> 11) + 1) * 0x1p-53; }

uint64_t rng_below(struct rng *rng, uint64_t limit) {
    /* Rejects the few values that would favour the small results. */
    uint64_t reject_below = (0 - limit) % limit;
    uint64_t value = rng_next(rng);
    while (value < reject_below) value = rng_next(rng);
    return value % limit;
}

double rng_exponential(struct rng *rng, double mean) { return -log(rng_uniform(rng)) * mean; }

enum status plan_create(enum arrivals arrivals, double rate, uint64_t duration_ns, uint64_t seed,
                        struct plan *out, struct err *err) {
    double expected = rate * (double)duration_ns / 1e9;
    /* Eight standard deviations above the mean: a Poisson count never gets there. */
    double room = expected + 8 * sqrt(expected) + 64;
    if (room > PLAN_MAX_ARRIVALS)
        return err_set(err, ST_TOO_LARGE,
                       "%.0f arrivals in one step: at most %d; make --duration shorter", expected,
                       PLAN_MAX_ARRIVALS);
    size_t capacity = (size_t)room;
    uint64_t *at_ns = malloc(capacity * sizeof *at_ns);
    if (at_ns == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for %.0f arrivals", room);
    struct rng rng;
    rng_seed(&rng, seed, 0);
    double gap = 1e9 / rate, at = 0;
    size_t count = 0;
    while (count < capacity) {
        if (arrivals == ARRIVALS_POISSON) at += rng_exponential(&rng, gap);
        else at = (double)count * gap;
        if (at >= (double)duration_ns) break;
        at_ns[count++] = (uint64_t)at;
    }
    *out = (struct plan){.at_ns = at_ns, .count = count};
    return ST_OK;
}

void plan_done(struct plan *plan) {
    free(plan->at_ns);
    *plan = (struct plan){0};
}

void user_plan_init(struct user_plan *plan, enum arrivals arrivals, double rate, uint32_t users,
                    uint32_t user, uint64_t seed) {
    *plan = (struct user_plan){.arrivals = arrivals, .mean_gap_ns = 1e9 * users / rate};
    rng_seed(&plan->rng, seed, 1 + (uint64_t)user);
    /* Constant gaps: the users take turns, so that their sum is evenly spaced too. */
    if (arrivals == ARRIVALS_CONSTANT)
        plan->at_ns = plan->mean_gap_ns * ((double)user / users - 1);
}

uint64_t user_plan_next(struct user_plan *plan) {
    plan->at_ns += plan->arrivals == ARRIVALS_POISSON
                       ? rng_exponential(&plan->rng, plan->mean_gap_ns)
                       : plan->mean_gap_ns;
    return plan->at_ns < 0 ? 0 : (uint64_t)plan->at_ns;
}

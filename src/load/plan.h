/* When requests are due: seeded random numbers and arrival schedules. Pure: the same seed gives
 * the same arrivals on every machine, so that two runs can be compared. */
#ifndef TELLTALE_LOAD_PLAN_H
#define TELLTALE_LOAD_PLAN_H

#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

struct rng { uint64_t state[4]; };

/* Streams of one seed are independent of each other. */
void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct rng *rng);
double rng_uniform(struct rng *rng);                /* above 0, at most 1 */
uint64_t rng_below(struct rng *rng, uint64_t limit); /* 0 .. limit-1; limit >= 1 */
double rng_exponential(struct rng *rng, double mean);

enum arrivals { ARRIVALS_POISSON, ARRIVALS_CONSTANT };
#define ARRIVALS_CHOICES "poisson|constant"

/* Open loop: all arrivals of a step, drawn before it starts. */
struct plan {
    uint64_t *at_ns; /* after the step's start, ascending, below its duration */
    size_t count;
};
/* rate in requests a second, above 0. ST_TOO_LARGE above PLAN_MAX_ARRIVALS. */
enum { PLAN_MAX_ARRIVALS = 50 * 1000 * 1000 };
MUST_CHECK enum status plan_create(enum arrivals arrivals, double rate, uint64_t duration_ns,
                                   uint64_t seed, struct plan *out, struct err *err);
void plan_done(struct plan *plan);

/* One of `users` users who together offer `rate` requests a second: its own schedule, which
 * does not move when an answer is late. */
struct user_plan {
    struct rng rng;
    enum arrivals arrivals;
    double mean_gap_ns;
    double at_ns; /* of the last arrival given out */
};
void user_plan_init(struct user_plan *plan, enum arrivals arrivals, double rate, uint32_t users,
                    uint32_t user, uint64_t seed);
/* Instant of its next request, in ns after the step's start. */
uint64_t user_plan_next(struct user_plan *plan);

#endif

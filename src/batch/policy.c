/* The batching policies: pure, no clock, no lock. See policy.h for what they do; docs/batching.md
 * for what they were measured to do. Read next: batcher.c, which asks. */
#include "batch/policy.h"

#include <math.h>

/* The gap within which a further request must come for a batch to be held on: about 3 % of an
 * execution, the range in which holding was seen to pay for users who wait for their answers and
 * to cost nothing measurable on Poisson arrivals. Shorter than MIN it is below what a sleeping
 * thread can keep; longer than MAX it is felt. */
#define GAP_SHARE 0.03
#define GAP_MIN_NS 20000.0
#define GAP_MAX_NS 250000.0
#define GAP_MAX_COUNT 4   /* a hold lasts at most so many gaps */
#define EXPIRY_SLACK_NS 500000ull /* a hold for company ends so long before somebody's timeout */
#define EXEC_ERRORS 2.0   /* how many times its mean error an execution may be off its average */
#define OBSERVE_FIRST 16  /* holds tried before their success is judged */
#define RETRY_EVERY 16    /* holds not tried before one is tried again */
#define AVERAGE_WEIGHT 0.1
#define FIT_DECAY 0.98
#define FIT_MIN_WEIGHT 8.0
#define FIT_CLEAR 0.7     /* share of the variance that a fit must explain to limit a batch */
#define START_SHARE 0.05  /* of a row's own cost: what sharing the start may still gain */

static const char *const NAMES[POLICY_KIND_COUNT] = {"adaptive", "eager", "timer"};

const char *policy_name(enum policy_kind kind) { return NAMES[kind]; }

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static struct policy_decision dispatch(enum reason reason, uint64_t ready_ns, uint64_t now_ns) {
    return (struct policy_decision){
        .dispatch = true, .reason = reason, .ready_ns = min_u64(ready_ns, now_ns)};
}

uint64_t policy_gap_ns(const struct policy_state *state) {
    const double gap = state->exec_ns * GAP_SHARE;
    if (gap < GAP_MIN_NS) return 0;
    return (uint64_t)(gap < GAP_MAX_NS ? gap : GAP_MAX_NS);
}

/* Holds rows for one more gap: worth it when the chance of company, times the execution that the
 * newcomer is spared, outweighs the gap that everybody here waits. */
static bool hold_pays(struct policy_state *state, uint64_t gap_ns, uint32_t rows) {
    if (state->observed < OBSERVE_FIRST) return true;
    if (state->gap_hit * state->exec_ns >= (double)gap_ns * rows) return true;
    if (++state->skipped < RETRY_EVERY) return false;
    state->skipped = 0;
    return true;
}

static void observe_gap(struct policy_state *state, bool hit) {
    const double weight = state->observed < OBSERVE_FIRST ? 1.0 / (state->observed + 1) : AVERAGE_WEIGHT / 2;
    state->gap_hit += weight * ((hit ? 1.0 : 0.0) - state->gap_hit);
    if (state->observed < OBSERVE_FIRST) state->observed++;
}

static uint64_t before(uint64_t instant_ns, uint64_t by_ns) {
    return instant_ns > by_ns ? instant_ns - by_ns : 0;
}

/* The instant at which a hold ends if nobody else comes, and why it would end then. */
static uint64_t hold_limit(const struct policy_state *state, const struct policy_view *view,
                           uint64_t until_ns, enum reason *reason) {
    uint64_t latest = UINT64_MAX;
    if (view->deadline_ns != UINT64_MAX)
        latest = before(view->deadline_ns, (uint64_t)(state->exec_ns * 1.25));
    if (view->expires_ns != 0)
        latest = min_u64(latest, before(view->expires_ns, EXPIRY_SLACK_NS));
    if (latest >= until_ns) return until_ns;
    *reason = REASON_DEADLINE;
    return latest;
}

bool policy_is_preferred(const struct policy_config *config, uint32_t rows) {
    for (uint32_t i = 0; i < config->preferred_count; i++)
        if (config->preferred[i] == rows) return true;
    return false;
}

static uint32_t largest_preferred(const struct policy_config *config) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < config->preferred_count; i++)
        if (config->preferred[i] > largest && config->preferred[i] <= config->max_batch)
            largest = config->preferred[i];
    return largest;
}

/* A batch of a preferred size starts at once, and so does one that has outgrown them all. */
static bool decide_preferred(const struct policy_config *config, const struct policy_view *view,
                             struct policy_decision *out) {
    const uint32_t largest = largest_preferred(config);
    const bool is_exact = view->preferred_rows > 0;
    if (largest == 0 || (!is_exact && view->rows <= largest)) return false;
    *out = dispatch(is_exact ? REASON_PREFERRED : REASON_FULL,
                    max_u64(view->free_ns, view->oldest_ns), view->now_ns);
    out->rows = view->preferred_rows;
    return true;
}

static struct policy_decision decide_timer(const struct policy_config *config,
                                           const struct policy_state *state,
                                           const struct policy_view *view) {
    enum reason reason = REASON_TIMER;
    const uint64_t due =
        hold_limit(state, view, view->oldest_ns + config->max_delay_ns, &reason);
    if (view->now_ns < due) return (struct policy_decision){.wait_until_ns = due};
    return dispatch(reason, max_u64(view->free_ns, max_u64(due, view->oldest_ns)), view->now_ns);
}

static struct policy_decision decide_adaptive(const struct policy_config *config,
                                              struct policy_state *state,
                                              const struct policy_view *view) {
    const uint64_t start = max_u64(view->free_ns, view->oldest_ns);
    const uint64_t gap = policy_gap_ns(state);
    if (gap == 0) return dispatch(REASON_EAGER, start, view->now_ns);
    if (!state->is_holding) {
        if (!hold_pays(state, gap, view->rows)) return dispatch(REASON_EAGER, start, view->now_ns);
        state->is_holding = true;
        state->held_newest_ns = view->newest_ns;
    } else if (view->newest_ns > state->held_newest_ns) {
        observe_gap(state, true);
        state->held_newest_ns = view->newest_ns;
    }
    enum reason reason = REASON_GAP;
    uint64_t until = min_u64(max_u64(view->newest_ns, start) + gap, start + GAP_MAX_COUNT * gap);
    if (config->max_delay_ns != 0 && view->oldest_ns + config->max_delay_ns < until) {
        until = view->oldest_ns + config->max_delay_ns;
        reason = REASON_TIMER;
    }
    until = hold_limit(state, view, until, &reason);
    if (view->now_ns < until) return (struct policy_decision){.wait_until_ns = until};
    observe_gap(state, false);
    state->is_holding = false;
    return dispatch(reason, max_u64(until, start), view->now_ns);
}

struct policy_decision policy_decide(const struct policy_config *config, struct policy_state *state,
                                     const struct policy_view *view) {
    const uint64_t start = max_u64(view->free_ns, view->oldest_ns);
    struct policy_decision preferred;
    if (config->kind == POLICY_TIMER && decide_preferred(config, view, &preferred)) return preferred;
    if (view->rows >= config->max_batch) {
        if (state->is_holding) observe_gap(state, true);
        state->is_holding = false;
        return dispatch(REASON_FULL, max_u64(view->free_ns, view->newest_ns), view->now_ns);
    }
    if (view->is_draining) {
        state->is_holding = false;
        return dispatch(REASON_DRAIN, start, view->now_ns);
    }
    switch (config->kind) {
    case POLICY_TIMER: return decide_timer(config, state, view);
    case POLICY_ADAPTIVE: return decide_adaptive(config, state, view);
    case POLICY_EAGER:
    case POLICY_KIND_COUNT: break;
    }
    return dispatch(REASON_EAGER, start, view->now_ns);
}

bool policy_may_pass_over(const struct policy_config *config, const struct policy_state *state,
                          uint64_t oldest_ns, uint64_t now_ns) {
    if (config->kind == POLICY_TIMER) return true; /* its hold ends at an instant that stays */
    return now_ns < oldest_ns + (uint64_t)state->exec_ns;
}

void policy_learn(struct policy_state *state, uint64_t exec_ns, double elements) {
    const double y = (double)exec_ns;
    if (state->exec_ns == 0) state->exec_ns = y;
    state->exec_error_ns += AVERAGE_WEIGHT * (fabs(y - state->exec_ns) - state->exec_error_ns);
    state->exec_ns += AVERAGE_WEIGHT * (y - state->exec_ns);
    state->fit_w = state->fit_w * FIT_DECAY + 1;
    state->fit_x = state->fit_x * FIT_DECAY + elements;
    state->fit_y = state->fit_y * FIT_DECAY + y;
    state->fit_xx = state->fit_xx * FIT_DECAY + elements * elements;
    state->fit_xy = state->fit_xy * FIT_DECAY + elements * y;
    state->fit_yy = state->fit_yy * FIT_DECAY + y * y;
}

uint64_t policy_exec_least_ns(const struct policy_state *state) {
    return (uint64_t)fmax(state->exec_ns - EXEC_ERRORS * state->exec_error_ns, 0);
}

uint64_t policy_exec_most_ns(const struct policy_state *state) {
    return (uint64_t)(state->exec_ns + EXEC_ERRORS * state->exec_error_ns);
}

/* Share of the variance of the times that the sizes explain (r squared). */
static double fit_quality(const struct policy_state *state) {
    const double x = state->fit_x / state->fit_w, y = state->fit_y / state->fit_w;
    const double cov = state->fit_xy / state->fit_w - x * y;
    const double var_x = state->fit_xx / state->fit_w - x * x;
    const double var_y = state->fit_yy / state->fit_w - y * y;
    return var_x > 0 && var_y > 0 ? cov * cov / (var_x * var_y) : 0;
}

uint32_t policy_useful_rows(const struct policy_config *config, const struct policy_state *state,
                            uint32_t length) {
    double a, b;
    if (config->kind != POLICY_ADAPTIVE || !policy_cost(state, &a, &b)) return config->max_batch;
    if (b <= 0 || fit_quality(state) < FIT_CLEAR) return config->max_batch;
    const double rows = ceil(a / (START_SHARE * b * (length > 0 ? length : 1)));
    if (rows >= config->max_batch) return config->max_batch;
    return rows > 1 ? (uint32_t)rows : 1;
}

bool policy_cost(const struct policy_state *state, double *out_a_ns, double *out_b_ns) {
    if (state->fit_w < FIT_MIN_WEIGHT) return false;
    const double mean_x = state->fit_x / state->fit_w;
    const double mean_y = state->fit_y / state->fit_w;
    const double var = state->fit_xx / state->fit_w - mean_x * mean_x;
    if (var < 0.01 * mean_x * mean_x) return false; /* sizes hardly differ: no slope to be seen */
    const double cov = state->fit_xy / state->fit_w - mean_x * mean_y;
    const double b = fmax(cov / var, 0);
    *out_b_ns = b;
    *out_a_ns = fmax(mean_y - b * mean_x, 0);
    return true;
}

bool policy_should_merge(const struct policy_state *state, uint32_t batch_rows,
                         uint32_t batch_length, uint32_t rows, uint32_t length) {
    double a, b;
    if (!policy_cost(state, &a, &b)) return false;
    const double longest = batch_length > length ? batch_length : length;
    const double extra = ((double)batch_rows + rows) * longest - (double)batch_rows * batch_length -
                         (double)rows * length;
    return extra * b < a;
}

/* When does a batch start? A pure function of counts, ages and the present instant, used by the
 * batcher and by whatever simulates it.
 *
 * adaptive: an instance is free: take what waits; hold on only while requests keep arriving
 *   within a short gap of each other (GAP_SHARE of the learned execution time), at most GAP_MAX
 *   gaps, and only while that has been paying: the chance that one more arrives within the gap,
 *   times the execution time it is spared, against the gap times those that wait.
 *   max_delay is only a hard cap. No batch grows beyond what pays (policy_useful_rows).
 * eager: take all that waits, never hold.
 * timer: full, of a preferred size, or the oldest has waited max_delay (Triton's max_queue_delay). */
#ifndef TELLTALE_BATCH_POLICY_H
#define TELLTALE_BATCH_POLICY_H

#include "measure/stage.h"
#include <stdbool.h>
#include <stdint.h>

enum policy_kind { POLICY_ADAPTIVE, POLICY_EAGER, POLICY_TIMER, POLICY_KIND_COUNT };
const char *policy_name(enum policy_kind kind);
#define POLICY_CHOICES "adaptive|eager|timer" /* for options.h, in the order of the enum */

enum { POLICY_PREFERRED_MAX = 16 };

struct policy_config {
    enum policy_kind kind;
    uint32_t max_batch;    /* rows; >= 1 */
    uint64_t max_delay_ns; /* timer: the delay; adaptive: hard cap, 0 = none; eager: unused */
    /* timer: rows of batches that need not wait for the delay (Triton's preferred_batch_size), any
     * order; those above max_batch count for nothing. */
    uint32_t preferred[POLICY_PREFERRED_MAX];
    uint32_t preferred_count;
};

/* What has been learned; written by the collector only. Zeroed at start. */
struct policy_state {
    double exec_ns;      /* moving average of a batch's time on its instance; 0: unknown */
    double exec_error_ns; /* of a batch's distance from it */
    double gap_hit;      /* moving average of "one more came within the gap", 0..1 */
    uint32_t observed;   /* holds observed so far */
    uint32_t skipped;    /* holds not tried since the last try: every 16th is tried anyway */
    bool is_holding;     /* the present batch is being held */
    uint64_t held_newest_ns; /* newest arrival when the present hold was last judged */
    /* execution time as a + b * padded elements, exponentially weighted least squares */
    double fit_w, fit_x, fit_y, fit_xx, fit_xy, fit_yy;
};

struct policy_view {
    uint64_t now_ns;
    uint32_t rows;           /* in the batch as it would be taken now; >= 1 */
    uint64_t oldest_ns;      /* enqueue instant of its oldest request */
    uint64_t newest_ns;      /* of the newest request in the whole queue */
    uint64_t free_ns;        /* since when an instance has been free for it */
    uint64_t deadline_ns;    /* earliest deadline among them; UINT64_MAX: none */
    uint64_t expires_ns;     /* earliest end of a timeout in the queue among them; 0: none */
    uint32_t preferred_rows; /* largest preferred size that whole requests make up; 0: none */
    bool is_draining;
};

struct policy_decision {
    bool dispatch;
    enum reason reason;   /* when dispatch */
    uint32_t rows;        /* when dispatch: take no more than so many; 0: as many as there are */
    uint64_t ready_ns;    /* when dispatch: the instant at which the condition became true, <= now */
    uint64_t wait_until_ns; /* when !dispatch: look again then at the latest */
};

/* state is updated (hold bookkeeping) only for adaptive. */
struct policy_decision policy_decide(const struct policy_config *config, struct policy_state *state,
                                     const struct policy_view *view);
/* A batch that is held may be passed over by a full one of another shape, but only while its
 * oldest request has waited no longer than an execution takes: else, with every instance busy, it
 * would be passed over again and again. */
bool policy_may_pass_over(const struct policy_config *config, const struct policy_state *state,
                          uint64_t oldest_ns, uint64_t now_ns);
/* rows is one of the preferred sizes. */
bool policy_is_preferred(const struct policy_config *config, uint32_t rows);
/* What an execution may be expected to take at least, and at most but for the exceptional one; 0
 * while nothing is known. A request with less time left than the latter gives its place to another,
 * where one waits. */
uint64_t policy_exec_least_ns(const struct policy_state *state);
uint64_t policy_exec_most_ns(const struct policy_state *state);
/* After a batch: its time on the instance and its size in padded elements (rows where there is
 * no padded axis). */
void policy_learn(struct policy_state *state, uint64_t exec_ns, double elements);
/* The learned gap in ns: 0 while unknown or too short to be worth a hold. */
uint64_t policy_gap_ns(const struct policy_state *state);
/* Fit exec = a + b * elements. False until there is enough to tell. Never negative. */
bool policy_cost(const struct policy_state *state, double *out_a_ns, double *out_b_ns);
/* The largest batch that pays, in rows of `length` elements each (1 where there is no padded
 * axis), at most max_batch. A batch of n rows costs a + b * n * length, so its share of a in each
 * row is a / n: more rows than make that 5 % of the row's own cost only make the first of them
 * wait for the last. max_batch where a and b are not clearly known, and for eager and timer. */
uint32_t policy_useful_rows(const struct policy_config *config, const struct policy_state *state,
                            uint32_t length);
/* Would adding rows of length `length` to a batch of batch_rows padded to batch_length cost less
 * than starting them on their own later? extra padding * b < a. */
bool policy_should_merge(const struct policy_state *state, uint32_t batch_rows, uint32_t batch_length,
                         uint32_t rows, uint32_t length);

#endif

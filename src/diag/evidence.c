/* Who is slow, who is the middle, and the means of both. Any thread. Invariant: the parts' means
 * add up to whole_ns in every group, since each request's parts do.
 *
 * The middle is the 40th to 60th percentile of the uniform sample, each request with the number
 * of requests it stands for as its weight. Read next: evidence_batches.c, causes.c. */
#include "diag/evidence.h"

#include "diag/evidence_batches.h"

#include <math.h>
#include <stdlib.h>

#define MIDDLE_FROM 0.4
#define MIDDLE_TO 0.6
enum { UNIFORM_MIN = 20, MIDDLE_MIN = 4 };

const struct run_batch *evidence_batch(const struct evidence *evidence,
                                       const struct run_request *request) {
    return request->batch_index == NO_BATCH ? NULL
                                            : &evidence->run->batches[request->batch_index];
}

double evidence_wake_ns(const struct run_request *request) {
    return fmin(request->part_ns[STAGE_DISPATCH],
                run_span_ns(request->ready_ns, request->taken_ns));
}

double evidence_excess_ns(const struct evidence *evidence) {
    return evidence->slow.whole_ns - evidence->middle.whole_ns;
}

/* ---- membership ---- */

struct ranked {
    double whole_ns;
    uint32_t index;
};

static int by_length(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->whole_ns != y->whole_ns) return x->whole_ns < y->whole_ns ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Sorted, of those for which keep says so; returns their number. */
static size_t rank(const struct run *run, bool (*keep)(const struct run_request *),
                   struct ranked *out) {
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++)
        if (keep(&run->requests[i]))
            out[count++] = (struct ranked){run->requests[i].whole_ns, (uint32_t)i};
    qsort(out, count, sizeof *out, by_length);
    return count;
}

static bool is_any(const struct run_request *request) { return request->whole_ns >= 0; }
static bool is_uniform(const struct run_request *request) { return request->weight > 0; }
static bool is_slow_chosen(const struct run_request *request) {
    return request->sampled == SAMPLED_SLOW;
}

static void mark_middle(struct evidence *evidence, const struct ranked *ranked, size_t count) {
    const struct run *run = evidence->run;
    double sum = 0, passed = 0;
    for (size_t i = 0; i < count; i++) sum += run->requests[ranked[i].index].weight;
    for (size_t i = 0; i < count; i++) {
        const double weight = run->requests[ranked[i].index].weight;
        const double share = (passed + weight / 2) / sum;
        passed += weight;
        if (share > MIDDLE_FROM && share <= MIDDLE_TO)
            evidence->members[ranked[i].index] |= MIDDLE_MEMBER;
        if (share <= 0.5) evidence->p50_ns = (uint64_t)ranked[i].whole_ns;
        if (share <= 0.99) evidence->p99_ns = (uint64_t)ranked[i].whole_ns;
    }
}

static void mark_last(struct evidence *evidence, const struct ranked *ranked, size_t count,
                      size_t wanted) {
    if (wanted < 1) wanted = 1;
    if (wanted > count) wanted = count;
    for (size_t i = count - wanted; i < count; i++)
        evidence->members[ranked[i].index] |= SLOW_MEMBER;
    for (size_t i = 0; i < SLOWEST_SHOWN && i < wanted; i++)
        evidence->slowest[evidence->slowest_count++] = ranked[count - 1 - i].index;
}

static size_t share_of(size_t count, double share) {
    return (size_t)ceil((double)count * share - 1e-9);
}

static void mark_slow(struct evidence *evidence, struct ranked *ranked) {
    const struct run *run = evidence->run;
    const double share = evidence->slow_share;
    bool is_all = run->count > 0;
    for (size_t i = 0; i < run->count && is_all; i++)
        is_all = run->requests[i].sampled == SAMPLED_ALL;
    if (is_all) {
        evidence->slow_rule = SLOW_OF_ALL;
        const size_t count = rank(run, is_any, ranked);
        mark_last(evidence, ranked, count, share_of(count, share));
        return;
    }
    const double chosen_share = run->summary.slow_share > 0 ? run->summary.slow_share : 0.01;
    const size_t chosen = rank(run, is_slow_chosen, ranked);
    if (chosen > 0 && share <= chosen_share * 1.001) {
        evidence->slow_rule = SLOW_BY_WINDOW;
        mark_last(evidence, ranked, chosen, share_of(chosen, share / chosen_share));
        return;
    }
    evidence->slow_rule = SLOW_OF_UNIFORM;
    const size_t count = rank(run, is_uniform, ranked);
    mark_last(evidence, ranked, count, share_of(count, share));
}

static enum status too_few(size_t uniform, const struct run *run, struct err *err) {
    if (run->count == 0)
        return err_set(err, ST_UNAVAILABLE,
                       "no request that ended in success is in the trace (%llu did not): there is "
                       "nothing to compare", (unsigned long long)run->not_ok);
    return err_set(err, ST_UNAVAILABLE,
                   "the trace holds %zu requests of a uniform sample, %d are needed: record a "
                   "longer run, or one with --trace-all", uniform, UNIFORM_MIN);
}

static enum status mark_members(struct evidence *evidence, struct err *err) {
    const struct run *run = evidence->run;
    struct ranked *ranked = malloc((run->count + 1) * sizeof *ranked);
    evidence->members = calloc(run->count + 1, 1);
    if (ranked == NULL || evidence->members == NULL) {
        free(ranked);
        return err_set(err, ST_NO_MEMORY, "no memory to rank %zu requests", run->count);
    }
    const size_t uniform = rank(run, is_uniform, ranked);
    enum status status = ST_OK;
    if (uniform < UNIFORM_MIN) {
        status = too_few(uniform, run, err);
    } else {
        mark_middle(evidence, ranked, uniform);
        mark_slow(evidence, ranked);
    }
    free(ranked);
    return status;
}

/* ---- means ---- */

static void add_batch(struct group *group, const struct run_batch *batch, double weight) {
    group->batch_rows += weight * batch->rows;
    group->elements += weight * (double)batch->padded_elements;
    group->cpu_ns += weight * (double)batch->cpu_ns;
    group->run_delay_ns += weight * (double)batch->run_delay_ns;
}

static void add_waits(const struct timeline *timeline, struct group *group,
                      const struct run_request *request, double weight) {
    if (request->taken_ns <= request->enqueued_ns || request->enqueued_ns == 0) return;
    double activity[ACTIVITY_COUNT];
    timeline_overlap(timeline, request->enqueued_ns, request->taken_ns, activity);
    group->queue_ns += weight * (double)(request->taken_ns - request->enqueued_ns);
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) group->activity_ns[i] += weight * activity[i];
    const struct run_batch *ahead =
        timeline_busy_with(timeline, request->instance, request->enqueued_ns);
    if (ahead == NULL) return;
    group->ahead_known += weight;
    group->ahead_ns += weight * run_span_ns(ahead->taken_ns, ahead->outputs_ready_ns);
}

static void add(const struct evidence *evidence, const struct timeline *timeline,
                struct group *group, const struct run_request *request, double weight) {
    const uint64_t whole_ns = (uint64_t)request->whole_ns;
    if (group->requests == 0 || whole_ns < group->from_ns) group->from_ns = whole_ns;
    if (whole_ns > group->to_ns) group->to_ns = whole_ns;
    group->requests++;
    group->weight += weight;
    group->whole_ns += weight * request->whole_ns;
    group->total_ns += weight * (double)request->total_ns;
    for (unsigned i = 0; i < PART_COUNT; i++)
        group->part_ns[i] += weight * (double)request->part_ns[i];
    for (unsigned i = 0; i < STEP_COUNT; i++)
        group->step_ns[i] += weight * (double)request->step_ns[i];
    group->wake_ns += weight * evidence_wake_ns(request);
    group->lock_wait_ns += weight * (double)request->lock_wait_ns;
    group->holder_ns[request->holder] += weight * (double)request->lock_wait_ns;
    if (request->lock_wait_ns > 0) group->lock_waited += weight;
    group->tokens += weight * request->tokens;
    group->padded += weight * request->padded;
    group->bytes_in += weight * request->bytes_in;
    group->bytes_out += weight * request->bytes_out;
    group->pictures += weight * request->pictures;
    group->scalable_jpegs += weight * request->scalable_jpegs;
    group->batch_size += weight * request->batch_size;
    if (request->reason < REASON_COUNT) group->reason_share[request->reason] += weight;
    const struct run_batch *batch = evidence_batch(evidence, request);
    if (batch != NULL) add_batch(group, batch, weight);
    if (timeline != NULL) add_waits(timeline, group, request, weight);
}

/* Sums become means. All doubles of the struct between weight and from_ns are sums, ahead_ns
 * alone has a divisor of its own. */
static void divide(struct group *group) {
    if (group->weight <= 0) return;
    if (group->ahead_known > 0) group->ahead_ns *= group->weight / group->ahead_known;
    const double by = 1 / group->weight;
    double *sums[] = {&group->whole_ns, &group->total_ns, &group->queue_ns, &group->wake_ns,
                      &group->lock_wait_ns, &group->lock_waited, &group->ahead_ns,
                      &group->ahead_known, &group->tokens, &group->padded, &group->bytes_in,
                      &group->bytes_out, &group->batch_size, &group->batch_rows,
                      &group->elements, &group->cpu_ns, &group->run_delay_ns,
                      &group->pictures, &group->scalable_jpegs};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) *sums[i] *= by;
    for (unsigned i = 0; i < PART_COUNT; i++) group->part_ns[i] *= by;
    for (unsigned i = 0; i < STEP_COUNT; i++) group->step_ns[i] *= by;
    for (unsigned i = 0; i < HOLDER_COUNT; i++) group->holder_ns[i] *= by;
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) group->activity_ns[i] *= by;
    for (unsigned i = 0; i < REASON_COUNT; i++) group->reason_share[i] *= by;
}

/* The part of instance_wait during which instances tokenized. What the timeline does not show
 * is taken to be like the batches that were written. */
static void set_tokenizing_wait(const struct evidence *evidence, const struct timeline *timeline,
                                struct run_request *request) {
    if (!evidence->is_inline || request->free_ns <= request->enqueued_ns) return;
    double activity[ACTIVITY_COUNT];
    timeline_overlap(timeline, request->enqueued_ns, request->free_ns, activity);
    const double inline_share = evidence->batches.busy_ns > 0
                                    ? evidence->batches.inline_ns / evidence->batches.busy_ns
                                    : 0;
    const double tokenizing =
        activity[ACTIVITY_TOKENIZING] + activity[ACTIVITY_UNKNOWN] * inline_share;
    request->tokenizing_wait_ns =
        (float)fmin(tokenizing, request->part_ns[STAGE_INSTANCE_WAIT]);
}

static void gather(struct run *run, struct evidence *evidence, const struct timeline *timeline) {
    for (size_t i = 0; i < run->count; i++) {
        struct run_request *request = &run->requests[i];
        const unsigned member = evidence->members[i];
        if (member != 0) set_tokenizing_wait(evidence, timeline, request);
        if (member & SLOW_MEMBER) add(evidence, timeline, &evidence->slow, request, 1);
        if (member & MIDDLE_MEMBER)
            add(evidence, timeline, &evidence->middle, request, request->weight);
        if (request->weight > 0) add(evidence, NULL, &evidence->all, request, request->weight);
    }
    divide(&evidence->slow);
    divide(&evidence->middle);
    divide(&evidence->all);
}

enum status evidence_create(struct run *run, double slow_share, struct evidence *out,
                            struct err *err) {
    struct evidence evidence = {.run = run, .slow_share = slow_share};
    struct timeline timeline;
    enum status status = timeline_create(run, &timeline, err);
    if (status != ST_OK) return status;
    evidence.instances = timeline.instances;
    status = mark_members(&evidence, err);
    if (status == ST_OK) status = evidence_of_batches(&evidence, err);
    if (status == ST_OK) {
        gather(run, &evidence, &timeline);
        evidence_of_load(&evidence);
        if (evidence.middle.requests < MIDDLE_MIN)
            status = too_few(evidence.middle.requests, run, err);
    }
    timeline_done(&timeline);
    if (status != ST_OK) {
        evidence_done(&evidence);
        return status;
    }
    *out = evidence;
    return ST_OK;
}

void evidence_done(struct evidence *evidence) {
    free(evidence->members);
    *evidence = (struct evidence){0};
}

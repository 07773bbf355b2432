/* Rules about the queue: holding, the lock, waiting for an instance. Any thread; pure. Invariant:
 * of the rules that share instance_wait (saturated, busy_instance, head_of_line, bursts, queueing)
 * at most one holds in a run. Read next: cause_rules_work.c. */
#include "diag/cause_rules.h"

#include <math.h>
#include <string.h>

#define UTILISATION_HIGH 0.7
#define FILL_HIGH 0.7    /* of max_batch: "full or near" */
#define AHEAD_LONGER 1.5 /* batch in front against the mean batch */
#define DISPERSION_BURST 2.0

/* ---- holding ---- */

double cause_part_timer(const struct evidence *evidence, const struct run_request *request) {
    const bool is_timed =
        request->reason == REASON_TIMER || (request->reason == REASON_FULL && evidence->is_timer);
    return is_timed ? request->part_ns[STAGE_BATCH_HOLD] : 0;
}

bool cause_holds_timer(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const uint64_t delay_us = evidence->run->config.max_delay_us;
    const double idle = slow->queue_ns > 0 ? slow->activity_ns[ACTIVITY_IDLE] / slow->queue_ns : 0;
    finding_figure(finding, "hold_slow_ms", "held while an instance was free, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "hold_middle_ms", "middle", "ms", MS(finding->middle_ns));
    if (delay_us > 0)
        finding_figure(finding, "max_delay_ms", "--max-delay-us is", "ms", (double)delay_us / 1e3);
    finding_figure(finding, "timer_slow_percent", "slow ones whose batch the timer released", "%",
                   PERCENT(slow->reason_share[REASON_TIMER]));
    finding_figure(finding, "idle_percent", "instances idle while they waited", "%", PERCENT(idle));
    finding_figure(finding, "batch_size", "requests in the slow ones' batches", "",
                   slow->batch_size);
    finding_figure(finding, "max_batch", "of at most", "", evidence->batches.max_batch);
    /* Under the timer policy a batch that filled in time was held for just as long as it took to
     * fill, with an instance free: a shorter timer helps those too. */
    if (!evidence->is_timer && slow->reason_share[REASON_TIMER] < 0.5)
        return finding_unless(finding,
                              "the timer released the batches of only %.0f %% of the slow requests",
                              PERCENT(slow->reason_share[REASON_TIMER]));
    finding_advise(finding,
                   "use --policy adaptive, which has no delay to choose, or a much shorter "
                   "--max-delay-us: an instance was free while the batches filled to %.1f of %u "
                   "requests",
                   slow->batch_size, evidence->batches.max_batch);
    finding_expect(evidence, finding, 0);
    return true;
}

double cause_part_gap(const struct evidence *evidence, const struct run_request *request) {
    return request->part_ns[STAGE_BATCH_HOLD] - cause_part_timer(evidence, request);
}

bool cause_holds_gap(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "hold_slow_ms", "held for company, slow", "ms", MS(finding->slow_ns));
    finding_figure(finding, "hold_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_advise(finding, "--policy eager never holds");
    finding_expect(evidence, finding, 0);
    return true;
}

/* ---- lock ---- */

double cause_part_lock(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->lock_wait_ns;
}

bool cause_holds_lock(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    unsigned holder = HOLDER_LOOP;
    for (unsigned i = HOLDER_LOOP; i < HOLDER_COUNT; i++)
        if (slow->holder_ns[i] > slow->holder_ns[holder])
            holder = i;
    if (finding->slow_ns <= 0)
        return finding_unless(finding, "nobody waited for a lock");
    finding_figure(finding, "lock_wait_slow_ms", "waiting for the queue's lock, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "lock_wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "waited_percent", "slow ones that waited for it", "%",
                   PERCENT(slow->lock_waited));
    finding_figure(finding, "holder_percent", "of that wait under the holder named below", "%",
                   PERCENT(slow->holder_ns[holder] / finding->slow_ns));
    finding_advise(finding, "use --queue ring, which has no lock; it was held by the %s threads",
                   holder_name((enum holder)holder));
    finding_expect(evidence, finding, 0);
    return true;
}

/* ---- waiting for an instance ---- */

double cause_part_wait(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return fmax(request->part_ns[STAGE_INSTANCE_WAIT] - request->tokenizing_wait_ns, 0);
}

static void wait_figures(const struct evidence *evidence, struct finding *finding) {
    const struct batch_evidence *batches = &evidence->batches;
    finding_figure(finding, "wait_slow_ms", "waiting for a free instance, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "busy_percent", "instances busy, whole run", "%",
                   PERCENT(evidence->utilisation));
    finding_figure(finding, "batch_size", "requests a batch", "", batches->size);
    finding_figure(finding, "max_batch", "of at most", "", batches->max_batch);
    finding_figure(finding, "waiting_behind", "left waiting when a batch was taken", "",
                   batches->waiting);
    finding_figure(finding, "batch_ms", "a batch takes", "ms", MS(batches->busy_ns));
}

static bool is_busy(const struct evidence *evidence) {
    return evidence->utilisation >= UTILISATION_HIGH;
}

static bool is_full(const struct evidence *evidence) {
    const struct batch_evidence *batches = &evidence->batches;
    return batches->fill >= FILL_HIGH ||
           batches->waiting >= FILL_HIGH * (batches->max_batch > 1 ? batches->max_batch : 1);
}

bool cause_holds_saturated(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (!is_busy(evidence))
        return finding_unless(finding, "the instances were busy %.0f %% of the time, below %.0f %%",
                              PERCENT(evidence->utilisation), PERCENT(UTILISATION_HIGH));
    if (!is_full(evidence))
        return finding_unless(finding, "batches have room: %.1f of %u requests",
                              evidence->batches.size, evidence->batches.max_batch);
    finding_advise(finding,
                   "this load needs more capacity: more --instances where processors or devices "
                   "are free, a faster model (int8, a shorter --max-tokens), or fewer requests a "
                   "server");
    return true;
}

bool cause_holds_busy(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (!is_busy(evidence) || is_full(evidence))
        return finding_unless(finding, "the instances are not busy, or the batches are full");
    finding_advise(finding,
                   "capacity is not what is missing: batches have room. What is waited for is the "
                   "batch in front; a faster model%s shortens it",
                   strcmp(evidence->run->config.policy, "adaptive") == 0
                       ? ""
                       : ", or --policy adaptive so that those who come together run together,");
    return true;
}

static bool is_ahead_long(const struct evidence *evidence) {
    const struct group *slow = &evidence->slow;
    return slow->ahead_known >= 0.5 && slow->ahead_ns >= AHEAD_LONGER * evidence->batches.busy_ns;
}

bool cause_holds_head_of_line(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    wait_figures(evidence, finding);
    finding_figure(finding, "ahead_ms", "the batch in front of the slow ones took", "ms",
                   MS(slow->ahead_ns));
    finding_figure(finding, "ahead_known_percent", "known for", "%", PERCENT(slow->ahead_known));
    if (is_busy(evidence))
        return finding_unless(finding, "the instances are busy most of the time");
    if (!is_ahead_long(evidence))
        return finding_unless(finding,
                              "the batches in front were not longer than others (%.3f against %.3f "
                              "ms, known for %.0f %%)",
                              MS(slow->ahead_ns), MS(evidence->batches.busy_ns),
                              PERCENT(slow->ahead_known));
    finding_advise(finding, "long batches stand in the way of others: a smaller --max-batch or "
                            "--max-tokens bounds them, more --instances let others pass");
    return true;
}

bool cause_holds_bursts(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    finding_figure(finding, "dispersion", "arrivals' index of dispersion (1: Poisson)", "",
                   evidence->dispersion);
    if (is_busy(evidence) || is_ahead_long(evidence))
        return finding_unless(finding, "the wait has another reason");
    if (evidence->dispersion < DISPERSION_BURST)
        return finding_unless(finding,
                              evidence->dispersion > 0
                                  ? "arrivals are not bursty (index of dispersion %.2f)"
                                  : "arrivals cannot be judged from a sample (%.0f)",
                              evidence->dispersion);
    finding_advise(finding,
                   "requests come in bursts: smooth them at the client, or keep --instances for "
                   "the peak");
    return true;
}

bool cause_holds_queueing(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (is_busy(evidence) || is_ahead_long(evidence) || evidence->dispersion >= DISPERSION_BURST)
        return finding_unless(finding, "the wait has another reason");
    finding_advise(finding,
                   "ordinary queueing at this use: they came while the instances ran others. "
                   "More --instances or less load shortens it");
    return true;
}

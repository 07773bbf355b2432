/* Shares, intervals, ranking. Any thread. Invariant: every cause of the table is in the result
 * once, so that what was looked at can be shown. Read next: explain_print.c.
 *
 * Intervals: block bootstrap. Latencies of neighbours in time are alike, so whole blocks of the
 * run are drawn again, not single requests. Membership (slow, middle) stays as it was. */
#include "diag/findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *verdict_name(enum verdict verdict) {
    static const char *const NAMES[] = {"cause", "inconclusive", "none"};
    return NAMES[verdict];
}

/* Sums of a block of time, weighted. */
struct block {
    double slow, slow_whole_ns, middle, middle_whole_ns;
    double slow_part_ns[CAUSES_MAX], middle_part_ns[CAUSES_MAX];
};

static void add_request(const struct evidence *evidence, size_t index, struct block *block) {
    const struct run_request *request = &evidence->run->requests[index];
    const unsigned member = evidence->members[index];
    double part[CAUSES_MAX];
    for (size_t i = 0; i < cause_count(); i++) part[i] = CAUSES[i].part_ns(evidence, request);
    if (member & SLOW_MEMBER) {
        block->slow++;
        block->slow_whole_ns += request->whole_ns;
        for (size_t i = 0; i < cause_count(); i++) block->slow_part_ns[i] += part[i];
    }
    if (member & MIDDLE_MEMBER) {
        const double weight = request->weight;
        block->middle += weight;
        block->middle_whole_ns += weight * request->whole_ns;
        for (size_t i = 0; i < cause_count(); i++) block->middle_part_ns[i] += weight * part[i];
    }
}

static void fill_blocks(const struct evidence *evidence, struct block *blocks) {
    memset(blocks, 0, BOOTSTRAP_BLOCKS * sizeof *blocks);
    for (size_t i = 0; i < evidence->run->count; i++) {
        if (evidence->members[i] == 0) continue;
        const double at = run_span_ns(evidence->from_ns, evidence->run->requests[i].start_ns);
        size_t block = (size_t)(at / evidence->span_ns * BOOTSTRAP_BLOCKS);
        if (block >= BOOTSTRAP_BLOCKS) block = BOOTSTRAP_BLOCKS - 1;
        add_request(evidence, i, &blocks[block]);
    }
}

static void add_block(struct block *sum, const struct block *block) {
    sum->slow += block->slow;
    sum->slow_whole_ns += block->slow_whole_ns;
    sum->middle += block->middle;
    sum->middle_whole_ns += block->middle_whole_ns;
    for (size_t i = 0; i < cause_count(); i++) {
        sum->slow_part_ns[i] += block->slow_part_ns[i];
        sum->middle_part_ns[i] += block->middle_part_ns[i];
    }
}

static double share_of_total(const struct block *sum, size_t cause) {
    return sum->slow_whole_ns > 0 ? sum->slow_part_ns[cause] / sum->slow_whole_ns : 0;
}

static double share_of_excess(const struct block *sum, size_t cause) {
    const double excess = sum->slow_whole_ns / sum->slow - sum->middle_whole_ns / sum->middle;
    const double part =
        sum->slow_part_ns[cause] / sum->slow - sum->middle_part_ns[cause] / sum->middle;
    return excess > 0 ? part / excess : 0;
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct interval interval_of(double *values, size_t count) {
    if (count == 0) return (struct interval){0};
    qsort(values, count, sizeof *values, by_value);
    return (struct interval){values[(size_t)((double)(count - 1) * 0.025)],
                             values[(size_t)((double)(count - 1) * 0.975)]};
}

/* One cause at a time over the same draws: memory for one cause's repeats is enough. */
static void set_intervals(const struct block *blocks, uint64_t seed, struct findings *out) {
    for (size_t cause = 0; cause < cause_count(); cause++) {
        struct finding *finding = &out->items[cause];
        double totals[BOOTSTRAP_REPEATS], excesses[BOOTSTRAP_REPEATS];
        size_t count = 0;
        uint64_t state = seed;
        if (!finding->is_large) continue;
        for (int repeat = 0; repeat < BOOTSTRAP_REPEATS; repeat++) {
            struct block sum = {0};
            for (int i = 0; i < BOOTSTRAP_BLOCKS; i++) {
                const struct block *block = &blocks[next_random(&state) % BOOTSTRAP_BLOCKS];
                sum.slow += block->slow;
                sum.slow_whole_ns += block->slow_whole_ns;
                sum.middle += block->middle;
                sum.middle_whole_ns += block->middle_whole_ns;
                sum.slow_part_ns[cause] += block->slow_part_ns[cause];
                sum.middle_part_ns[cause] += block->middle_part_ns[cause];
            }
            if (sum.slow <= 0 || sum.middle <= 0) continue;
            totals[count] = share_of_total(&sum, cause);
            excesses[count++] = share_of_excess(&sum, cause);
        }
        finding->total_interval = interval_of(totals, count);
        finding->excess_interval = interval_of(excesses, count);
    }
}

/* ---- ranking ---- */

/* Every request may suffer from a cause (a long timer at low load): then slow less middle is
 * small, and the share of the whole time says more. Both are looked at, the larger one ranks;
 * but the excess only where it is a good part of the time at all. */
static void score(const struct evidence *evidence, struct finding *finding) {
    const double whole_ns = evidence->slow.whole_ns;
    const double excess_ns = evidence_excess_ns(evidence);
    const double part_ns = finding->slow_ns - finding->middle_ns;
    const bool is_felt = part_ns >= FINDING_MIN_OF_TOTAL * whole_ns;
    const bool by_total =
        !finding->cause->is_work && finding->share_of_total >= FINDING_MIN_SHARE;
    const bool by_excess = finding->share_of_excess >= FINDING_MIN_SHARE && is_felt;
    finding->is_large = by_total || by_excess;
    finding->score = finding->share_of_total;
    finding->is_by_excess = by_excess && !by_total;
    if (by_excess && excess_ns >= EXCESS_MIN * whole_ns &&
        finding->share_of_excess > finding->share_of_total) {
        finding->score = finding->share_of_excess;
        finding->is_by_excess = true;
    }
}

/* An interval that reaches zero: it may be chance. */
static bool is_chance(const struct finding *finding) {
    return (finding->is_by_excess ? finding->excess_interval.low : finding->total_interval.low) <=
           0;
}

static int group_of(const struct finding *finding) {
    if (!finding->is_large || !finding->holds || is_chance(finding)) return 2;
    return finding->cause->kind == CAUSE_FAULT ? 0 : 1;
}

static int by_rank(const void *a, const void *b) {
    const struct finding *x = a, *y = b;
    if (group_of(x) != group_of(y)) return group_of(x) - group_of(y);
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->cause < y->cause ? -1 : 1;
}

static bool is_close(const struct finding *first, const struct finding *second) {
    if (first->is_by_excess)
        return second->excess_interval.high >= first->excess_interval.low;
    return second->total_interval.high >= first->total_interval.low;
}

/* ---- notes: what was looked at and is not blamed ---- */

__attribute__((format(printf, 2, 3)))
static void note(struct findings *out, const char *format, ...) {
    if (out->note_count == NOTES_MAX) return;
    va_list args;
    va_start(args, format);
    vsnprintf(out->notes[out->note_count++], FINDING_TEXT, format, args);
    va_end(args);
}

static bool stands(const struct findings *out, const char *name) {
    for (size_t i = 0; i < out->standing; i++)
        if (strcmp(out->items[i].cause->name, name) == 0) return true;
    return false;
}

static void note_lock(const struct evidence *evidence, struct findings *out) {
    const struct group *slow = &evidence->slow;
    if (strcmp(evidence->run->config.queue, "mutex") != 0 && slow->lock_wait_ns <= 0) return;
    if (stands(out, "lock_contention")) return;
    note(out, "the queue's lock was waited for %.1f us of %.3f ms (%.2f %%): not the cause",
         slow->lock_wait_ns / 1e3, slow->whole_ns / 1e6, slow->lock_wait_ns / slow->whole_ns * 100);
}

static void note_load(const struct evidence *evidence, struct findings *out) {
    const double wait = evidence->slow.part_ns[STAGE_INSTANCE_WAIT] / evidence->slow.whole_ns;
    if (evidence->utilisation < 0 || evidence->utilisation >= 0.5 || wait >= FINDING_MIN_SHARE)
        return;
    note(out, "the instances were busy %.0f %% of the time with %.1f requests in flight: more use "
              "needs more requests at once, it is no fault of the server",
         evidence->utilisation * 100, evidence->in_flight);
}

static void note_execution(const struct evidence *evidence, struct findings *out) {
    const double share = evidence->slow.part_ns[STAGE_EXECUTE] / evidence->slow.whole_ns;
    if (out->faults == 0 && share >= FINDING_MIN_SHARE)
        note(out, "%.0f %% of the slow ones' time is the model's execution itself (%.3f ms; middle "
                  "%.3f ms)", share * 100, evidence->slow.part_ns[STAGE_EXECUTE] / 1e6,
             evidence->middle.part_ns[STAGE_EXECUTE] / 1e6);
}

/* Work that everybody has is no cause of being slower than others, but it may be worth sparing. */
static void note_wire(const struct evidence *evidence, struct findings *out) {
    const struct group *slow = &evidence->slow;
    const double wire_ns = slow->part_ns[STAGE_DECODE] + slow->step_ns[STEP_BASE64];
    if (wire_ns < FINDING_MIN_SHARE * slow->whole_ns || stands(out, "request_body")) return;
    note(out, "JSON and base64 are %.0f %% of the slow ones' time (%.3f ms): tensors in binary, and "
              "a picture or text as the raw body, need neither",
         wire_ns / slow->whole_ns * 100, wire_ns / 1e6);
}

static void note_pictures(const struct evidence *evidence, struct findings *out) {
    const struct group *slow = &evidence->slow;
    const double decode_ns = slow->step_ns[STEP_IMAGE_DECODE];
    if (decode_ns < FINDING_MIN_SHARE * slow->whole_ns || stands(out, "pictures")) return;
    note(out, "decoding pictures is %.0f %% of the slow ones' time (%.3f ms; middle %.3f ms); more "
              "--workers do more at once; %s", decode_ns / slow->whole_ns * 100, decode_ns / 1e6,
         evidence->middle.step_ns[STEP_IMAGE_DECODE] / 1e6, pictures_remedy(slow));
}

static void note_data(const struct evidence *evidence, struct findings *out) {
    const struct run *run = evidence->run;
    if (evidence->slow.requests < 20)
        note(out, "only %llu slow requests are behind this: record a longer run to be sure",
             (unsigned long long)evidence->slow.requests);
    if (run->not_ok > 0)
        note(out, "%llu written requests did not end in success and are left out",
             (unsigned long long)run->not_ok);
    if (run->summary.dropped > 0)
        note(out, "%llu records were dropped while recording",
             (unsigned long long)run->summary.dropped);
    if (run->summary.is_known && !run->summary.is_complete)
        note(out, "the trace is not complete: writing stopped before the run did");
    if (!run->summary.is_known)
        note(out, "there is no summary.json: the run was not ended in order, or goes on");
    if (run->lines_cut > 0)
        note(out, "a last line was cut and left out: the writer was killed, or still writes");
    if (run->client_lines > 0 && run->joined == 0)
        note(out, "no request of client.jsonl is in this trace: the client's side is missing");
}

void findings_of(const struct evidence *evidence, uint64_t seed, struct findings *out) {
    struct block blocks[BOOTSTRAP_BLOCKS], sum = {0};
    *out = (struct findings){.count = cause_count(), .verdict = VERDICT_NONE};
    fill_blocks(evidence, blocks);
    for (int i = 0; i < BOOTSTRAP_BLOCKS; i++) {
        add_block(&sum, &blocks[i]);
        if (blocks[i].slow > 0) out->blocks++;
    }
    for (size_t i = 0; i < out->count; i++) {
        struct finding *finding = &out->items[i];
        finding->cause = &CAUSES[i];
        finding->slow_ns = sum.slow_part_ns[i] / sum.slow;
        finding->middle_ns = sum.middle_part_ns[i] / sum.middle;
        finding->share_of_total = share_of_total(&sum, i);
        finding->share_of_excess = share_of_excess(&sum, i);
        score(evidence, finding);
        finding->holds = CAUSES[i].holds(evidence, finding);
    }
    set_intervals(blocks, seed, out);
    qsort(out->items, out->count, sizeof *out->items, by_rank);
    for (size_t i = 0; i < out->count && group_of(&out->items[i]) < 2; i++) {
        out->standing++;
        if (group_of(&out->items[i]) == 0) out->faults++;
    }
    if (out->faults > 0) out->verdict = VERDICT_CAUSE;
    if (out->faults > 1 && is_close(&out->items[0], &out->items[1])) {
        out->is_close = true;
        out->verdict = VERDICT_INCONCLUSIVE;
    }
    note_lock(evidence, out);
    note_load(evidence, out);
    note_execution(evidence, out);
    note_wire(evidence, out);
    note_pictures(evidence, out);
    note_data(evidence, out);
}

/* The only place where instants become durations. Log lines, Server-Timing, metrics and the
 * trace's files all use what comes out here, so that they cannot disagree.
 *
 * Thread: any; pure.
 * Invariant: the durations add up to the total, to the nanosecond, whatever the stamps are.
 * Next: stage.h (what the stages mean), trace.h (what the stamps mean). */
#include "measure/trace.h"

static uint64_t first_stamp(const struct trace_record *record) {
    for (unsigned i = 0; i < AT_COUNT; i++) {
        if (record->at[i] != 0) return record->at[i];
    }
    return 0;
}

uint64_t trace_durations_checked(const struct trace_record *record, uint64_t *out,
                                 bool *out_ordered) {
    const uint64_t start = first_stamp(record);
    uint64_t last = start;
    unsigned missing = 0, below = 0;
    /* One variable a stage, so that the sums stay in registers. */
#define X(stage, name, help) uint64_t sum_##stage = 0;
    STAGE_TABLE(X)
#undef X
    /* A stamp that is missing (0) or goes back is below last and so gives its stage nothing:
     * no branch, and the sum telescopes. */
#define X(name, stage)                                                                         \
    {                                                                                          \
        const uint64_t at = record->at[AT_##name];                                             \
        const uint64_t end = at < last ? last : at;                                            \
        below += at < last;                                                                    \
        missing += at == 0;                                                                    \
        sum_##stage += end - last;                                                             \
        last = end;                                                                            \
    }
    AT_TABLE(X)
#undef X
#define X(stage, name, help) out[STAGE_##stage] = sum_##stage;
    STAGE_TABLE(X)
#undef X
    /* Every missing stamp is below the first one that is there; one more went back. */
    *out_ordered = start == 0 || below == missing;
    return last - start;
}

uint64_t trace_durations(const struct trace_record *record, uint64_t *out) {
    bool is_ordered;
    return trace_durations_checked(record, out, &is_ordered);
}

uint64_t trace_end(const struct trace_record *record) {
    uint64_t last = 0;
    for (unsigned i = 0; i < AT_COUNT; i++) {
        if (record->at[i] > last) last = record->at[i];
    }
    return last;
}

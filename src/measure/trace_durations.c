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
    for (unsigned i = 0; i < STAGE_COUNT; i++) out[i] = 0;
    const uint64_t start = first_stamp(record);
    uint64_t last = start;
    bool went_back = false;
    /* A stamp that is missing (0) or goes back is below last and so gives its stage nothing:
     * no branch, and the sum telescopes. */
#define X(name, stage)                                                                         \
    {                                                                                          \
        const uint64_t at = record->at[AT_##name];                                             \
        const uint64_t end = at > last ? at : last;                                            \
        went_back |= (at != 0) & (at < last);                                                  \
        out[STAGE_##stage] += end - last;                                                      \
        last = end;                                                                            \
    }
    AT_TABLE(X)
#undef X
    *out_ordered = !went_back;
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

/* See pace.h. */
#include "batch/pace.h"

#include <math.h>

#define WEIGHT 0.1
#define FIRST 8        /* samples before anything is told */
#define ERRORS 2.0     /* how many times the mean error a wait may fall short of the average */

void pace_learn(struct pace *pace, uint64_t now_ns, uint32_t jobs, bool is_full, bool leaves_full) {
    if (pace->was_full && is_full && jobs > 0) {
        const double interval = (double)(now_ns - pace->taken_ns);
        const double weight = pace->samples < FIRST ? 1.0 / (pace->samples + 1) : WEIGHT;
        if (pace->samples > 0)
            pace->error_ns += weight * (fabs(interval - pace->interval_ns) - pace->error_ns);
        pace->interval_ns += weight * (interval - pace->interval_ns);
        pace->jobs += weight * (jobs - pace->jobs);
        if (pace->samples < FIRST) pace->samples++;
    }
    pace->taken_ns = now_ns;
    pace->was_full = leaves_full;
}

void pace_tell(const struct pace *pace, struct pace_facts *out) {
    const bool is_known = pace->samples >= FIRST;
    out->interval_ns = (uint64_t)pace->interval_ns;
    out->error_ns = (uint64_t)pace->error_ns;
    out->jobs_x16 = is_known ? (uint64_t)(pace->jobs * 16) : 0;
    out->taken_ns = pace->taken_ns;
}

uint64_t pace_wait_ns(const struct pace_facts *facts, uint64_t ahead, uint64_t now_ns) {
    if (facts->jobs_x16 == 0) return 0;
    /* Those ahead fill so many batches that end before this one's begins; the one that runs now
     * began at taken_ns. */
    const uint64_t batches = ahead * 16 / facts->jobs_x16;
    const uint64_t due_ns = facts->taken_ns + facts->interval_ns;
    const uint64_t rest_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    const double wait = (double)(rest_ns + batches * facts->interval_ns) -
                        ERRORS * (double)facts->error_ns * sqrt((double)batches + 1);
    return wait > 0 ? (uint64_t)wait : 0;
}

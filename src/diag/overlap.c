/* Interval intersection. Any thread. Invariant: whatever the instants are, the activities of an
 * interval add up to its length: a cursor only moves on, and what no batch claims is unknown.
 * Read next: evidence.c, which asks for the slow requests' waits. */
#include "diag/overlap.h"

#include <stdlib.h>

const char *activity_name(enum activity activity) {
    static const char *const NAMES[ACTIVITY_COUNT] = {
#define X(name, text, help) [ACTIVITY_##name] = text,
        ACTIVITY_TABLE(X)
#undef X
    };
    return NAMES[activity];
}

enum status timeline_create(const struct run *run, struct timeline *out, struct err *err) {
    struct timeline timeline = {.run = run, .instances = 1};
    if (run->config.instances > 0 && run->config.instances <= TIMELINE_INSTANCES_MAX)
        timeline.instances = (uint32_t)run->config.instances;
    for (size_t i = 0; i < run->batch_count; i++)
        if (run->batches[i].instance >= timeline.instances)
            timeline.instances = run->batches[i].instance + 1u;
    timeline.order = malloc((run->batch_count + 1) * sizeof *timeline.order);
    if (timeline.order == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the timeline");
    /* Counting sort; batches come by number, which is by time within an instance. */
    for (size_t i = 0; i < run->batch_count; i++) timeline.begin[run->batches[i].instance + 1]++;
    for (uint32_t i = 0; i < TIMELINE_INSTANCES_MAX; i++)
        timeline.begin[i + 1] += timeline.begin[i];
    uint32_t next[TIMELINE_INSTANCES_MAX];
    for (uint32_t i = 0; i < TIMELINE_INSTANCES_MAX; i++) next[i] = timeline.begin[i];
    for (size_t i = 0; i < run->batch_count; i++)
        timeline.order[next[run->batches[i].instance]++] = (uint32_t)i;
    *out = timeline;
    return ST_OK;
}

void timeline_done(struct timeline *timeline) {
    free(timeline->order);
    timeline->order = NULL;
}

static const struct run_batch *batch_at(const struct timeline *timeline, uint32_t place) {
    return &timeline->run->batches[timeline->order[place]];
}

/* Place of the instance's first batch that ends after at_ns. */
static uint32_t first_after(const struct timeline *timeline, uint32_t instance, uint64_t at_ns) {
    uint32_t low = timeline->begin[instance], high = timeline->begin[instance + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (batch_at(timeline, middle)->outputs_ready_ns <= at_ns) low = middle + 1;
        else high = middle;
    }
    return low;
}

struct cursor {
    uint64_t at_ns, to_ns;
    double *out;
};

/* The time up to until_ns went into activity. */
static void spend(struct cursor *cursor, uint64_t until_ns, enum activity activity) {
    if (until_ns > cursor->to_ns) until_ns = cursor->to_ns;
    if (until_ns <= cursor->at_ns) return;
    cursor->out[activity] += (double)(until_ns - cursor->at_ns);
    cursor->at_ns = until_ns;
}

static void overlap_instance(const struct timeline *timeline, uint32_t instance,
                             struct cursor *cursor) {
    const uint32_t begin = timeline->begin[instance], end = timeline->begin[instance + 1];
    for (uint32_t place = first_after(timeline, instance, cursor->at_ns);
         place < end && cursor->at_ns < cursor->to_ns; place++) {
        const struct run_batch *batch = batch_at(timeline, place);
        /* Between two batches that follow each other, the answers of the first go out. Where
         * only some batches are written, others may have run in between. */
        const bool follows = timeline->run->summary.is_all && place > begin;
        spend(cursor, batch->free_ns, follows ? ACTIVITY_ANSWERING : ACTIVITY_UNKNOWN);
        spend(cursor, batch->taken_ns, ACTIVITY_IDLE);
        spend(cursor, batch->taken_ns + batch->inline_ns, ACTIVITY_TOKENIZING);
        spend(cursor, batch->inputs_ready_ns, ACTIVITY_COPYING);
        spend(cursor, batch->executed_ns, ACTIVITY_EXECUTING);
        spend(cursor, batch->outputs_ready_ns, ACTIVITY_COPYING);
    }
    spend(cursor, cursor->to_ns, ACTIVITY_UNKNOWN);
}

void timeline_overlap(const struct timeline *timeline, uint64_t from_ns, uint64_t to_ns,
                      double *out) {
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) out[i] = 0;
    for (uint32_t i = 0; i < timeline->instances; i++) {
        struct cursor cursor = {.at_ns = from_ns, .to_ns = to_ns, .out = out};
        overlap_instance(timeline, i, &cursor);
    }
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) out[i] /= timeline->instances;
}

const struct run_batch *timeline_busy_with(const struct timeline *timeline, uint32_t instance,
                                           uint64_t at_ns) {
    if (instance >= timeline->instances) return NULL;
    const uint32_t place = first_after(timeline, instance, at_ns);
    if (place == timeline->begin[instance + 1]) return NULL;
    const struct run_batch *batch = batch_at(timeline, place);
    return batch->taken_ns <= at_ns ? batch : NULL;
}

/* Runs whose cause is known, because they are made here. A run is a row of batches on one
 * instance; each request's stages are set, its instants follow from them. For diag's tests. */
#ifndef TELLTALE_TEST_DIAG_STORY_H
#define TELLTALE_TEST_DIAG_STORY_H

#include "diag/explain_print.h"
#include "diag/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#define MS 1e6
enum { REQUESTS = 4000, SLOW_EVERY = 100 };

struct made {
    double stage_ns[STAGE_COUNT];
    double network_ns, generator_ns;
    double step_ns[STEP_COUNT];
    double lock_wait_ns, inline_ns, run_delay_ns;
    double period_ns;      /* between batches */
    uint32_t batch_size, max_batch, rows_length, tokens, bytes_in, waiting;
    uint32_t pictures, scalable_jpegs;
    enum reason reason;
};

/* 1 ms apart, 0.5 ms of execution: nothing waits for anything. */
static inline struct made calm(void) {
    return (struct made){
        .stage_ns = {[STAGE_RECEIVE] = 0.02 * MS, [STAGE_DECODE] = 0.03 * MS,
                     [STAGE_BATCH_ENQUEUE] = 0.001 * MS, [STAGE_DISPATCH] = 0.01 * MS,
                     [STAGE_INPUT_COPY] = 0.01 * MS, [STAGE_EXECUTE] = 2 * MS,
                     [STAGE_OUTPUT_COPY] = 0.01 * MS, [STAGE_ENCODE] = 0.02 * MS,
                     [STAGE_SEND] = 0.02 * MS, [STAGE_OTHER] = 0.03 * MS},
        .period_ns = 5 * MS, .batch_size = 1, .max_batch = 32, .tokens = 100, .rows_length = 100,
        .bytes_in = 1000, .reason = REASON_EAGER};
}

/* 0.95 to 1.05, the same every time. */
static inline double jitter(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    return 0.95 + 0.1 * (double)(z >> 40 & 0xffff) / 65535;
}

static inline uint64_t until(const double *stage_ns, enum stage stage) {
    double sum = 0;
    for (int i = 0; i <= (int)stage; i++) sum += stage_ns[i];
    return (uint64_t)sum;
}

static inline void add_batch(struct run *run, const struct made *made, const struct run_request *first) {
    const struct run_batch batch = {
        .batch = first->batch, .free_ns = first->free_ns, .ready_ns = first->ready_ns,
        .taken_ns = first->taken_ns,
        .inputs_ready_ns = first->start_ns + until(made->stage_ns, STAGE_INPUT_COPY),
        .executed_ns = first->start_ns + until(made->stage_ns, STAGE_EXECUTE),
        .outputs_ready_ns = first->start_ns + until(made->stage_ns, STAGE_OUTPUT_COPY),
        .inline_ns = (uint64_t)made->inline_ns,
        .real_elements = (uint64_t)made->tokens * made->batch_size,
        .padded_elements = (uint64_t)made->rows_length * made->batch_size,
        .run_delay_ns = (uint64_t)made->run_delay_ns, .cpu_ns = (uint64_t)MS,
        .requests = made->batch_size, .rows = made->batch_size, .max_batch = made->max_batch,
        .waiting = made->waiting, .reason = made->reason};
    assert_true(run_add_batch(run, &batch));
}

/* The i-th request; a new batch begins every batch_size of them. */
static inline void add(struct run *run, const struct made *like, uint64_t i) {
    struct made made = *like;
    double total = 0;
    for (int s = 0; s < STAGE_COUNT; s++)
        total += made.stage_ns[s] *= jitter(i * STAGE_COUNT + (unsigned)s);
    const uint64_t start = 1000000000u + (uint64_t)((double)(i / made.batch_size) * made.period_ns);
    const double before = (double)until(made.stage_ns, STAGE_BATCH_ENQUEUE);
    struct run_request request = {
        .start_ns = start, .total_ns = (uint64_t)total, .batch = 1 + i / made.batch_size,
        .whole_ns = total + made.network_ns + made.generator_ns,
        .lock_wait_ns = (float)made.lock_wait_ns, .weight = 1, .batch_size = made.batch_size,
        .rows = 1, .tokens = made.tokens, .padded = made.rows_length, .bytes_in = made.bytes_in,
        .pictures = made.pictures, .scalable_jpegs = made.scalable_jpegs,
        .batch_index = NO_BATCH, .sampled = SAMPLED_ALL, .reason = made.reason, .is_ok = true,
        .holder = made.lock_wait_ns > 0 ? HOLDER_WORKER : HOLDER_NONE};
    request.enqueued_ns = start + (uint64_t)before;
    request.free_ns = request.enqueued_ns + (uint64_t)made.stage_ns[STAGE_INSTANCE_WAIT];
    request.ready_ns = request.free_ns + (uint64_t)made.stage_ns[STAGE_BATCH_HOLD];
    request.taken_ns = request.ready_ns + (uint64_t)made.stage_ns[STAGE_DISPATCH];
    for (int s = 0; s < STAGE_COUNT; s++) request.part_ns[s] = (float)made.stage_ns[s];
    for (int s = 0; s < STEP_COUNT; s++) request.step_ns[s] = (float)made.step_ns[s];
    request.part_ns[PART_NETWORK] = (float)made.network_ns;
    request.part_ns[PART_GENERATOR] = (float)made.generator_ns;
    if (i % made.batch_size == 0) add_batch(run, &made, &request);
    assert_true(run_add_request(run, &request));
}

struct story {
    struct run run;
    struct evidence evidence;
    struct findings findings;
};

static inline struct story *story_of(const struct made *usual, const struct made *slow) {
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    run_init(&story->run);
    strcpy(story->run.models[0], "m");
    story->run.model_count = 1;
    story->run.summary =
        (struct run_summary){.is_known = true, .is_complete = true, .is_all = true};
    for (uint64_t i = 0; i < REQUESTS; i++)
        add(&story->run, i % SLOW_EVERY == 7 ? slow : usual, i);
    return story;
}

static inline struct findings *judge(struct story *story) {
    struct err err = {""};
    const enum status status = run_finish(&story->run, NULL, &err);
    if (status == ST_OK)
        assert_int_equal(evidence_create(&story->run, 0.01, &story->evidence, &err), ST_OK);
    findings_of(&story->evidence, 1, &story->findings);
    return &story->findings;
}

static inline void story_free(struct story *story) {
    evidence_done(&story->evidence);
    run_done(&story->run);
    free(story);
}

static inline bool stands(const struct findings *findings, const char *name) {
    for (size_t i = 0; i < findings->standing; i++)
        if (strcmp(findings->items[i].cause->name, name) == 0) return true;
    return false;
}

static inline void assert_first(const struct findings *findings, const char *name) {
    if (findings->faults == 0 || strcmp(findings->items[0].cause->name, name) != 0)
        fail_msg("expected %s first, got %s (%zu faults)", name,
                 findings->standing > 0 ? findings->items[0].cause->name : "none",
                 findings->faults);
    assert_int_equal(findings->verdict, VERDICT_CAUSE);
}

/* Expects one cause first and no other fault beside it. */
static inline struct findings *assert_only(struct story *story, const char *name) {
    struct findings *findings = judge(story);
    assert_first(findings, name);
    if (findings->faults != 1) fail_msg("%s is blamed too", findings->items[1].cause->name);
    return findings;
}

#endif

/* Staged rows under contention: several threads write rows and push them, several instances run
 * them where they lie or copied together. Every answer is its own rows' answer, and no row stays
 * reserved. Meant for ThreadSanitizer, for which rows given to a new owner before the batch is
 * through with them are a race between this test's writes and the device's reads. */
#include "batch/batcher.h"
#include "batch/staging.h"
#include "sync/parker.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WIDTH = 16, ROW_BYTES = WIDTH * sizeof(float), ROWS_MAX = 3, PRODUCERS = 4, IN_FLIGHT = 24,
       EACH = 3000 };

struct producer;
struct sent {
    struct job job;
    struct producer *producer;
    struct arena arena;
    struct trace_record trace;
    struct tensor input;
    float own[ROWS_MAX * WIDTH];
    float first;
};

struct producer {
    struct batcher *batcher;
    unsigned name;
    struct mpsc done; /* job->node */
    struct parker parker;
    struct sent sent[IN_FLIGHT];
    unsigned wrong, staged;
};

static void on_done(struct job *list, void *ctx) {
    (void)ctx;
    while (list != NULL) {
        struct sent *sent = (struct sent *)list; /* job is the first member */
        struct producer *producer = sent->producer;
        list = list->next; /* afterwards it is the producer's */
        mpsc_push(&producer->done, &sent->job.node);
        parker_wake(&producer->parker, 1);
    }
}

static void send(struct producer *producer, struct sent *sent, unsigned number) {
    const uint32_t rows = 1 + number % 11 / 9 * (ROWS_MAX - 1); /* now and then three */
    struct arena arena = sent->arena;
    arena_clear(&arena);
    *sent = (struct sent){.producer = producer, .arena = arena,
                          .first = (float)(producer->name * 100000 + number)};
    sent->job = (struct job){
        .inputs = &sent->input, .arena = &sent->arena, .trace = &sent->trace, .rows = rows};
    float *to = sent->own;
    if (staging_reserve(batcher_staging(producer->batcher), &sent->job)) {
        to = (float *)(void *)staging_rows(&sent->job, 0);
        producer->staged++;
    }
    for (uint32_t i = 0; i < rows * WIDTH; i++) to[i] = sent->first + (float)i;
    if (number % 53 == 0) flag_raise(&sent->job.is_cancelled);
    sent->input = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                  .shape = {rows, WIDTH}, .data = to,
                                  .size = (size_t)rows * ROW_BYTES};
    if (batcher_push(producer->batcher, &sent->job, true) != ST_OK) producer->wrong++;
}

static bool is_right(const struct sent *sent) {
    if (sent->job.staging != NULL) return false;
    if (sent->job.status == ST_CANCELLED) return true;
    if (sent->job.status != ST_OK || sent->job.outputs[0].shape[0] != sent->job.rows) return false;
    const float *values = sent->job.outputs[0].data;
    for (uint32_t i = 0; i < sent->job.rows * WIDTH; i++)
        if (values[i] != sent->first + (float)i + 1) return false;
    return true;
}

static void *produce(void *argument) {
    struct producer *producer = argument;
    unsigned sent = 0, done = 0;
    for (; sent < IN_FLIGHT; sent++) send(producer, &producer->sent[sent], sent);
    while (done < EACH) {
        const uint32_t key = parker_prepare(&producer->parker);
        struct mpsc_node *node = mpsc_take_all(&producer->done);
        if (node == NULL) parker_wait(&producer->parker, key, UINT64_MAX);
        else parker_cancel(&producer->parker);
        while (node != NULL) {
            struct sent *answered = (struct sent *)(void *)node; /* likewise */
            node = node->next;
            done++;
            if (!is_right(answered)) producer->wrong++;
            if (sent < EACH) send(producer, answered, sent++);
        }
    }
    return NULL;
}

static void check(uint32_t room, bool often_full) {
    struct model *model = NULL;
    struct batcher *batcher = NULL;
    struct counter batch_ids = {0};
    const struct session_config session = {.simulate = "a=0us,b=1us", .intra_op_threads = 1};
    assert_int_equal(model_simulated(NULL, &model, NULL), ST_OK);
    assert_int_equal(model_open(model, &backend_sim, &session, NULL), ST_OK);
    struct batcher_config config = {
        .policy = {.kind = POLICY_EAGER, .max_batch = 4}, .is_batched = true, .instances = 2,
        .queue_limit = PRODUCERS * IN_FLIGHT, .on_done = on_done, .batch_ids = &batch_ids,
        .staged_row_bytes = {ROW_BYTES}, .staged_rows = room};
    for (int i = 0; i < MODEL_MAX_IO; i++) config.pad_axis[i] = config.output_pad_axis[i] = -1;
    assert_int_equal(batcher_create(model, &config, &batcher, NULL), ST_OK);
    static struct producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.batcher = batcher, .name = i};
        mpsc_init(&producers[i].done);
        parker_init(&producers[i].parker);
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    unsigned staged = 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(producers[i].wrong, 0);
        staged += producers[i].staged;
        for (int s = 0; s < IN_FLIGHT; s++) arena_done(&producers[i].sent[s].arena);
    }
    struct batcher_stats stats;
    batcher_stats(batcher, &stats);
    print_message("room for %u rows: %u of %u jobs staged, %llu batches in place, %llu copied\n",
                  room, staged, PRODUCERS * EACH, (unsigned long long)stats.batches_in_place,
                  (unsigned long long)stats.batches_copied);
    assert_true(stats.batches_in_place > 0);
    assert_int_equal(stats.staging_refused, PRODUCERS * EACH - staged);
    /* Rows come free in the order in which they were taken, so that a thread that is not running
     * can fill any room for a while. */
    if (often_full) assert_true(stats.staging_refused > 0);
    else assert_true(staged > PRODUCERS * EACH / 2);
    struct job last = {.rows = room / 2}; /* nothing is left reserved */
    assert_true(staging_reserve(batcher_staging(batcher), &last));
    staging_release(&last);
    batcher_free(batcher);
    model_free(model);
}

static void with_room_for_everybody(void **state) {
    (void)state;
    check(2 * PRODUCERS * IN_FLIGHT * ROWS_MAX, false);
}

static void with_a_slab_that_is_mostly_full(void **state) {
    (void)state;
    check(16, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_room_for_everybody),
        cmocka_unit_test(with_a_slab_that_is_mostly_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

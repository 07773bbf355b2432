/* The MPMC queue with threads that give up the processor at its most delicate points, which
 * plain load on few cores hardly ever hits: without the tags, or with an item read too late,
 * this test fails and the plain stress test does not. The source is included so that the
 * pauses are in it; the library's copy is then not linked. */
#include <sched.h>

static _Thread_local unsigned pause_seed;
static void pause_now_and_then(void) {
    pause_seed = pause_seed * 1664525u + 1013904223u;
    if (pause_seed >> 29 == 0) {
        sched_yield();
    }
}
#define MPMC_PAUSE() pause_now_and_then()
#include "../../src/sync/mpmc.c"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MPMC_ITEMS = 40000, THREADS_MAX = 16 };

struct item {
    unsigned producer;
    unsigned sequence;
    unsigned deliveries; /* plain: a second delivery would be a race */
};

struct producer {
    void *queue;
    struct item *items;
    unsigned count;
};

struct shared {
    struct mpmc *queue;
    _Atomic unsigned popped;
    unsigned total;
};

static void *push_mpmc(void *argument) {
    const struct producer *self = argument;
    pause_seed = self->items[0].producer + 1;
    const struct shared *shared = self->queue;
    for (unsigned i = 0; i < self->count; i++) {
        while (!mpmc_push(shared->queue, &self->items[i])) {
            sched_yield();
        }
    }
    return NULL;
}

struct consumer {
    struct shared *shared;
    unsigned *seen; /* items got, by producer */
    unsigned disorder;
    unsigned first_seed;
};

static void *pop_mpmc(void *argument) {
    struct consumer *self = argument;
    unsigned last[THREADS_MAX] = {0};
    pause_seed = self->first_seed;
    while (atomic_load(&self->shared->popped) < self->shared->total) {
        struct item *item = mpmc_pop(self->shared->queue);
        if (item == NULL) {
            sched_yield();
            continue;
        }
        atomic_fetch_add(&self->shared->popped, 1);
        /* What one consumer gets of one producer comes in order; sequences begin with 1. */
        self->disorder += item->sequence <= last[item->producer];
        last[item->producer] = item->sequence;
        item->deliveries++;
        self->seen[item->producer]++;
    }
    return NULL;
}

static void check_mpmc(unsigned producers, unsigned consumers, size_t capacity) {
    pthread_t threads[2 * THREADS_MAX];
    struct producer makers[THREADS_MAX];
    struct consumer takers[THREADS_MAX];
    static unsigned seen[THREADS_MAX][THREADS_MAX];
    const unsigned each = MPMC_ITEMS / producers;
    struct shared shared = {.queue = mpmc_create(capacity), .total = each * producers};
    struct item *items = calloc(shared.total, sizeof(*items));
    assert_non_null(items);
    for (unsigned c = 0; c < consumers; c++) {
        for (unsigned p = 0; p < producers; p++) {
            seen[c][p] = 0;
        }
        takers[c] = (struct consumer){.shared = &shared, .seen = seen[c], .first_seed = 100 + c};
        assert_int_equal(pthread_create(&threads[c], NULL, pop_mpmc, &takers[c]), 0);
    }
    for (unsigned p = 0; p < producers; p++) {
        for (unsigned i = 0; i < each; i++) {
            items[p * each + i] = (struct item){.producer = p, .sequence = i + 1};
        }
        makers[p] = (struct producer){.queue = &shared, .items = items + p * each, .count = each};
        assert_int_equal(pthread_create(&threads[consumers + p], NULL, push_mpmc, &makers[p]), 0);
    }
    for (unsigned i = 0; i < consumers + producers; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned p = 0; p < producers; p++) {
        unsigned count = 0;
        for (unsigned c = 0; c < consumers; c++) {
            count += seen[c][p];
            assert_int_equal(takers[c].disorder, 0);
        }
        assert_int_equal(count, each);
    }
    for (unsigned i = 0; i < shared.total; i++) {
        assert_int_equal(items[i].deliveries, 1);
    }
    assert_null(mpmc_pop(shared.queue));
    assert_int_equal(mpmc_size_hint(shared.queue), 0);
    /* All nodes came back: it still holds its capacity, and not one more. */
    for (size_t i = 0; i < capacity; i++) {
        assert_true(mpmc_push(shared.queue, items));
    }
    assert_false(mpmc_push(shared.queue, items));
    mpmc_free(shared.queue);
    free(items);
}

static void delivers_once_through_a_single_place(void **state) {
    (void)state;
    check_mpmc(2, 2, 1);
}
static void delivers_once_through_3_nodes(void **state) {
    (void)state;
    check_mpmc(3, 3, 2);
}
static void delivers_once_between_many(void **state) {
    (void)state;
    check_mpmc(8, 8, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivers_once_through_a_single_place),
        cmocka_unit_test(delivers_once_through_3_nodes),
        cmocka_unit_test(delivers_once_between_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

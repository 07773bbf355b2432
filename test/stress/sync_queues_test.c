/* The three queues under contention: everything arrives, once, in its producer's order. Meant
 * for ThreadSanitizer; counts are small enough for it on two busy cores. */
#include "sync/mpmc.h"
#include "sync/mpsc.h"
#include "sync/spsc.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MPSC_ITEMS = 60000, MPMC_ITEMS = 40000, SPSC_RECORDS = 200000, THREADS_MAX = 32 };

/* A lost item hangs the test, and the runner's time limit tells. */
struct item {
    struct mpsc_node node;
    unsigned producer;
    unsigned sequence;
};

struct producer {
    void *queue;
    struct item *items;
    unsigned count;
    unsigned *became_nonempty; /* one a producer */
};

static void *push_mpsc(void *argument) {
    const struct producer *self = argument;
    for (unsigned i = 0; i < self->count; i++) {
        if (mpsc_push(self->queue, &self->items[i].node)) {
            ++*self->became_nonempty;
        }
    }
    return NULL;
}

static void check_mpsc(unsigned producers) {
    struct mpsc queue;
    pthread_t threads[THREADS_MAX];
    struct producer selves[THREADS_MAX];
    unsigned next[THREADS_MAX] = {0};
    unsigned nonempty[THREADS_MAX] = {0};
    const unsigned each = MPSC_ITEMS / producers;
    struct item *items = calloc((size_t)each * producers, sizeof(*items));
    assert_non_null(items);
    mpsc_init(&queue);
    for (unsigned p = 0; p < producers; p++) {
        for (unsigned i = 0; i < each; i++) {
            items[p * each + i] = (struct item){.producer = p, .sequence = i};
        }
        selves[p] = (struct producer){&queue, items + p * each, each, &nonempty[p]};
        assert_int_equal(pthread_create(&threads[p], NULL, push_mpsc, &selves[p]), 0);
    }
    unsigned batches = 0;
    for (unsigned taken = 0; taken < each * producers;) {
        struct mpsc_node *node = mpsc_take_all(&queue);
        batches += node != NULL;
        if (node == NULL) {
            sched_yield();
        }
        for (; node != NULL; node = node->next, taken++) {
            const struct item *item = (const struct item *)node; /* node is the first member */
            assert_int_equal(item->sequence, next[item->producer]++);
        }
    }
    unsigned first_pushes = 0;
    for (unsigned p = 0; p < producers; p++) {
        pthread_join(threads[p], NULL);
        assert_int_equal(next[p], each);
        first_pushes += nonempty[p];
    }
    /* Exactly one push a batch found the queue empty: nobody else needs to wake the taker. */
    assert_int_equal(first_pushes, batches);
    assert_true(mpsc_is_empty(&queue));
    free(items);
}

static void mpsc_delivers_in_order_from_1_producer(void **state) {
    (void)state;
    check_mpsc(1);
}
static void mpsc_delivers_in_order_from_4_producers(void **state) {
    (void)state;
    check_mpsc(4);
}
static void mpsc_delivers_in_order_from_32_producers(void **state) {
    (void)state;
    check_mpsc(32);
}

struct shared {
    struct mpmc *queue;
    _Atomic unsigned popped;
    unsigned total;
};

static void *push_mpmc(void *argument) {
    const struct producer *self = argument;
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
};

static void *pop_mpmc(void *argument) {
    struct consumer *self = argument;
    unsigned last[THREADS_MAX] = {0};
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
        item->node.next = &item->node; /* plain store: a second delivery would be a race */
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
        takers[c] = (struct consumer){.shared = &shared, .seen = seen[c]};
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
        assert_ptr_equal(items[i].node.next, &items[i].node);
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

static void mpmc_delivers_once_through_3_nodes(void **state) {
    (void)state;
    check_mpmc(4, 4, 2);
}
static void mpmc_delivers_once_through_a_single_place(void **state) {
    (void)state;
    check_mpmc(2, 2, 1);
}
static void mpmc_delivers_once_between_many(void **state) {
    (void)state;
    check_mpmc(16, 16, 64);
}
static void mpmc_delivers_once_to_one_consumer(void **state) {
    (void)state;
    check_mpmc(8, 1, 16);
}

struct record {
    uint64_t sequence;
    uint64_t check;
    unsigned char filling[25];
};

static void *write_spsc(void *argument) {
    struct spsc *ring = argument;
    for (uint64_t i = 0; i < SPSC_RECORDS; i++) {
        struct record *record = spsc_reserve(ring);
        if (record == NULL) {
            sched_yield();
            continue; /* this one is dropped, and counted */
        }
        record->sequence = i;
        record->check = ~i;
        spsc_commit(ring);
    }
    return NULL;
}

static void spsc_delivers_in_order_all_that_it_did_not_drop(void **state) {
    (void)state;
    struct spsc *ring = spsc_create(8, sizeof(struct record));
    pthread_t thread;
    uint64_t read = 0;
    uint64_t next = 0;
    assert_int_equal(pthread_create(&thread, NULL, write_spsc, ring), 0);
    while (read + spsc_dropped(ring) < SPSC_RECORDS) {
        const struct record *record = spsc_peek(ring);
        if (record == NULL) {
            sched_yield();
            continue;
        }
        assert_true(record->sequence >= next && record->check == ~record->sequence);
        next = record->sequence + 1;
        read++;
        spsc_release(ring);
    }
    pthread_join(thread, NULL);
    assert_null(spsc_peek(ring));
    assert_true(read > 0);
    spsc_free(ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpsc_delivers_in_order_from_1_producer),
        cmocka_unit_test(mpsc_delivers_in_order_from_4_producers),
        cmocka_unit_test(mpsc_delivers_in_order_from_32_producers),
        cmocka_unit_test(mpmc_delivers_once_through_a_single_place),
        cmocka_unit_test(mpmc_delivers_once_through_3_nodes),
        cmocka_unit_test(mpmc_delivers_once_between_many),
        cmocka_unit_test(mpmc_delivers_once_to_one_consumer),
        cmocka_unit_test(spsc_delivers_in_order_all_that_it_did_not_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* sync/mpsc.h, spsc.h, mpmc.h on one thread: order, full, empty, wrap-around. With many threads:
 * test/stress/. */
#include "sync/mpmc.h"
#include "sync/mpsc.h"
#include "sync/spsc.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The sanitizers would end the program where malloc gives NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static void mpsc_gives_back_in_arrival_order(void **state) {
    (void)state;
    struct mpsc queue;
    struct mpsc_node nodes[3];
    mpsc_init(&queue);
    assert_true(mpsc_is_empty(&queue));
    assert_true(mpsc_push(&queue, &nodes[0]));
    assert_false(mpsc_push(&queue, &nodes[1]));
    assert_false(mpsc_push(&queue, &nodes[2]));
    assert_false(mpsc_is_empty(&queue));
    struct mpsc_node *taken = mpsc_take_all(&queue);
    assert_ptr_equal(taken, &nodes[0]);
    assert_ptr_equal(taken->next, &nodes[1]);
    assert_ptr_equal(taken->next->next, &nodes[2]);
    assert_null(taken->next->next->next);
    assert_null(mpsc_take_all(&queue));
    assert_true(mpsc_push(&queue, &nodes[1]));
}

static void mpmc_fills_to_its_capacity_and_empties_in_order(void **state) {
    (void)state;
    int items[5];
    struct mpmc *queue = mpmc_create(4);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 4; i++) {
            assert_true(mpmc_push(queue, &items[i]));
            assert_int_equal(mpmc_size_hint(queue), i + 1);
        }
        assert_false(mpmc_push(queue, &items[4]));
        for (int i = 0; i < 4; i++) {
            assert_ptr_equal(mpmc_pop(queue), &items[i]);
        }
        assert_null(mpmc_pop(queue));
        assert_int_equal(mpmc_size_hint(queue), 0);
    }
    mpmc_free(queue);
}

static void mpmc_of_one_holds_one(void **state) {
    (void)state;
    int items[2];
    struct mpmc *queue = mpmc_create(1);
    for (int round = 0; round < 10; round++) {
        assert_true(mpmc_push(queue, &items[0]));
        assert_false(mpmc_push(queue, &items[1]));
        assert_ptr_equal(mpmc_pop(queue), &items[0]);
        assert_null(mpmc_pop(queue));
    }
    mpmc_free(queue);
    mpmc_free(NULL);
}

static void mpmc_refuses_a_capacity_that_its_indices_cannot_name(void **state) {
    (void)state;
    assert_null(mpmc_create(0));
    assert_null(mpmc_create((1u << 24) - 1));
    assert_null(mpmc_create(SIZE_MAX));
}

static void spsc_rounds_up_and_drops_when_full(void **state) {
    (void)state;
    struct spsc *ring = spsc_create(3, 12);
    for (uint64_t round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t *slot = spsc_reserve(ring);
            assert_non_null(slot);
            *slot = round * 10 + i;
            spsc_commit(ring);
        }
        assert_null(spsc_reserve(ring));
        assert_int_equal(spsc_dropped(ring), round + 1);
        for (uint64_t i = 0; i < 4; i++) {
            const uint64_t *slot = spsc_peek(ring);
            assert_non_null(slot);
            assert_true(*slot == round * 10 + i);
            spsc_release(ring);
        }
        assert_null(spsc_peek(ring));
    }
    spsc_free(ring);
}

static void spsc_shows_nothing_before_commit(void **state) {
    (void)state;
    struct spsc *ring = spsc_create(2, 8);
    const void *slot = spsc_reserve(ring);
    assert_null(spsc_peek(ring));
    assert_ptr_equal(spsc_reserve(ring), slot);
    spsc_commit(ring);
    assert_ptr_equal(spsc_peek(ring), slot);
    assert_ptr_equal(spsc_peek(ring), slot);
    spsc_free(ring);
}

static void spsc_refuses_what_memory_cannot_hold(void **state) {
    (void)state;
    assert_null(spsc_create(SIZE_MAX, 1));
    assert_null(spsc_create((size_t)1 << 62, 16));
    assert_null(spsc_create(1, SIZE_MAX));
    assert_null(spsc_create((size_t)1 << 40, 1 << 20));
    spsc_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpsc_gives_back_in_arrival_order),
        cmocka_unit_test(mpmc_fills_to_its_capacity_and_empties_in_order),
        cmocka_unit_test(mpmc_of_one_holds_one),
        cmocka_unit_test(mpmc_refuses_a_capacity_that_its_indices_cannot_name),
        cmocka_unit_test(spsc_rounds_up_and_drops_when_full),
        cmocka_unit_test(spsc_shows_nothing_before_commit),
        cmocka_unit_test(spsc_refuses_what_memory_cannot_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* sync/tickets.h in one thread: which places, when full, when free again. */
#include "sync/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static uint64_t reserve(struct tickets *tickets, uint32_t count) {
    uint64_t ticket = UINT64_MAX;
    assert_true(tickets_reserve(tickets, count, &ticket));
    return ticket;
}

static void runs_lie_side_by_side(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(8);
    const uint64_t first = reserve(tickets, 3), second = reserve(tickets, 2);
    assert_int_equal(tickets_place(tickets, first), 0);
    assert_int_equal(second, first + 3);
    assert_int_equal(tickets_place(tickets, second), 3);
    assert_int_equal(tickets_taken_hint(tickets), 5);
    tickets_free(tickets);
}

static void a_full_ring_refuses_and_leaves_the_ticket_alone(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(4);
    uint64_t ticket = 77;
    const uint64_t all = reserve(tickets, 4);
    assert_false(tickets_reserve(tickets, 1, &ticket));
    assert_int_equal(ticket, 77);
    tickets_release(tickets, all, 4);
    assert_int_equal(reserve(tickets, 4), 4);
    assert_false(tickets_reserve(tickets, 5, &ticket));
    tickets_free(tickets);
}

static void runs_released_out_of_order_are_free_once_the_oldest_is(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(6);
    const uint64_t a = reserve(tickets, 2), b = reserve(tickets, 2), c = reserve(tickets, 2);
    uint64_t ticket;
    tickets_release(tickets, c, 2);
    tickets_release(tickets, b, 2);
    assert_false(tickets_reserve(tickets, 1, &ticket)); /* a is in the way */
    tickets_release(tickets, a, 2);
    assert_int_equal(tickets_taken_hint(tickets), 0);
    assert_int_equal(tickets_place(tickets, reserve(tickets, 6)), 0);
    tickets_free(tickets);
}

static void a_run_that_would_wrap_begins_at_the_beginning(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(8);
    const uint64_t a = reserve(tickets, 3), b = reserve(tickets, 3);
    uint64_t ticket;
    assert_false(tickets_reserve(tickets, 3, &ticket)); /* 2 left, and a not free yet */
    tickets_release(tickets, a, 3);
    const uint64_t c = reserve(tickets, 3);
    assert_int_equal(tickets_place(tickets, c), 0);
    assert_int_equal(c, b + 3 + 2); /* not right behind b: two places were left out */
    tickets_release(tickets, c, 3);
    tickets_release(tickets, b, 3);
    assert_int_equal(tickets_taken_hint(tickets), 0); /* those two as well */
    tickets_free(tickets);
}

static void an_idle_ring_begins_at_its_beginning_again(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(64);
    for (int i = 0; i < 200; i++) {
        const uint64_t ticket = reserve(tickets, 1);
        assert_int_equal(tickets_place(tickets, ticket), 0);
        tickets_release(tickets, ticket, 1);
    }
    tickets_free(tickets);
}

static void half_of_it_always_fits_into_an_empty_ring(void **state) {
    (void)state;
    for (uint32_t before = 1; before <= 9; before++) {
        struct tickets *tickets = tickets_create(9);
        tickets_release(tickets, reserve(tickets, before), before);
        for (uint32_t count = 4; count > 0; count--)
            tickets_release(tickets, reserve(tickets, count), count);
        tickets_free(tickets);
    }
}

static void a_ring_of_one_place_works(void **state) {
    (void)state;
    struct tickets *tickets = tickets_create(1);
    uint64_t ticket;
    for (int i = 0; i < 5; i++) {
        const uint64_t mine = reserve(tickets, 1);
        assert_false(tickets_reserve(tickets, 1, &ticket));
        tickets_release(tickets, mine, 1);
    }
    tickets_free(tickets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_lie_side_by_side),
        cmocka_unit_test(a_full_ring_refuses_and_leaves_the_ticket_alone),
        cmocka_unit_test(runs_released_out_of_order_are_free_once_the_oldest_is),
        cmocka_unit_test(a_run_that_would_wrap_begins_at_the_beginning),
        cmocka_unit_test(an_idle_ring_begins_at_its_beginning_again),
        cmocka_unit_test(half_of_it_always_fits_into_an_empty_ring),
        cmocka_unit_test(a_ring_of_one_place_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

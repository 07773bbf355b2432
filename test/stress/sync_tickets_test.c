/* A ring's room under contention, with threads that give up the processor at its most delicate
 * points: no place has two owners, and none is lost. Meant for ThreadSanitizer, for which the
 * plain writes below are a race wherever two threads hold one place, or where a new owner does
 * not see that the old one is through. The source is included so that the pauses are in it; the
 * library's copy is then not linked. */
#include <sched.h>

static _Thread_local unsigned pause_seed;
static unsigned next_random(void) {
    pause_seed = pause_seed * 1664525u + 1013904223u;
    return pause_seed >> 16;
}
static void pause_now_and_then(void) {
    if (next_random() % 8 == 0) sched_yield();
}
#define TICKETS_PAUSE() pause_now_and_then()
#include "../../src/sync/tickets.c"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ROUNDS = 20000, THREADS_MAX = 16, CAPACITY_MAX = 64, HELD_MAX = 4 };

struct run {
    uint64_t ticket;
    uint32_t count;
};

struct user {
    struct tickets *tickets;
    unsigned *places; /* whose: plain on purpose */
    unsigned name, rounds;
    unsigned reserved, refused, strangers;
};

static void release(struct user *user, const struct run *run) {
    const uint32_t place = tickets_place(user->tickets, run->ticket);
    for (uint32_t i = 0; i < run->count; i++) {
        if (user->places[place + i] != user->name) user->strangers++;
        user->places[place + i] = 0;
    }
    tickets_release(user->tickets, run->ticket, run->count);
}

/* Holds a few runs at a time and gives them back in any order. */
static void *use(void *argument) {
    struct user *user = argument;
    struct run held[HELD_MAX];
    unsigned holds = 0;
    pause_seed = user->name;
    for (unsigned i = 0; i < user->rounds; i++) {
        struct run run = {.count = 1 + next_random() % 3};
        if (holds < HELD_MAX && tickets_reserve(user->tickets, run.count, &run.ticket)) {
            const uint32_t place = tickets_place(user->tickets, run.ticket);
            for (uint32_t p = 0; p < run.count; p++) {
                if (user->places[place + p] != 0) user->strangers++;
                user->places[place + p] = user->name;
            }
            held[holds++] = run;
            user->reserved++;
        } else if (holds > 0) {
            const unsigned which = next_random() % holds;
            release(user, &held[which]);
            held[which] = held[--holds];
        } else {
            user->refused++;
            sched_yield();
        }
    }
    while (holds > 0) release(user, &held[--holds]);
    return NULL;
}

static void check(unsigned threads, uint32_t capacity) {
    unsigned places[CAPACITY_MAX] = {0};
    pthread_t ids[THREADS_MAX];
    struct user users[THREADS_MAX];
    struct tickets *tickets = tickets_create(capacity);
    assert_non_null(tickets);
    for (unsigned i = 0; i < threads; i++) {
        users[i] = (struct user){.tickets = tickets, .places = places, .name = i + 1,
                                 .rounds = ROUNDS / threads};
        assert_int_equal(pthread_create(&ids[i], NULL, use, &users[i]), 0);
    }
    unsigned reserved = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        assert_int_equal(users[i].strangers, 0);
        reserved += users[i].reserved;
    }
    assert_true(reserved > 100);
    /* Nothing is left behind, and the ring is of use again. */
    assert_int_equal(tickets_taken_hint(tickets), 0);
    uint64_t ticket;
    assert_true(tickets_reserve(tickets, (capacity + 1) / 2, &ticket));
    tickets_free(tickets);
}

static void two_threads_share_a_small_ring(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) check(2, 4);
}

static void four_threads_share_a_ring_that_is_often_full(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) check(4, 12);
}

static void sixteen_threads_share_a_ring(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) check(16, CAPACITY_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_share_a_small_ring),
        cmocka_unit_test(four_threads_share_a_ring_that_is_often_full),
        cmocka_unit_test(sixteen_threads_share_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

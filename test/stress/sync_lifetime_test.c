/* A thing that is taken away and set up again while others use it: nobody sees it half made, and
 * exactly one of those who let go of it hears that it was the last. For TSan. */
#include "sync/counter.h"
#include "sync/growing.h"
#include "sync/lifetime.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sched.h>
#include <cmocka.h>

enum { USERS = 3, ROUNDS = 2000 };

struct thing {
    struct lifetime lifetime;
    int64_t first, second; /* plain on purpose: the lifetime publishes them */
    struct counter lasts;  /* how often somebody heard that it was the last */
    struct counter uses;
    struct flag is_over;
};

static void *use(void *argument) {
    struct thing *thing = argument;
    while (!flag_is_up(&thing->is_over)) {
        if (!lifetime_take(&thing->lifetime)) {
            sched_yield();
            continue;
        }
        assert_true(lifetime_share(&thing->lifetime)); /* held: so it is there */
        assert_int_equal(thing->first, thing->second);
        counter_add(&thing->uses, 1);
        assert_false(lifetime_release(&thing->lifetime));
        if (lifetime_release(&thing->lifetime)) counter_add(&thing->lasts, 1);
    }
    return NULL;
}

static void a_thing_is_whole_for_all_who_hold_it(void **state) {
    (void)state;
    static struct thing thing;
    pthread_t users[USERS];
    for (int i = 0; i < USERS; i++) assert_int_equal(pthread_create(&users[i], NULL, use, &thing), 0);
    int64_t own = 0;
    for (int64_t round = 1; round <= ROUNDS; round++) {
        thing.first = thing.second = round;
        const int64_t before = counter_get(&thing.uses);
        lifetime_begin(&thing.lifetime);
        while (counter_get(&thing.uses) == before) sched_yield();
        own += lifetime_end(&thing.lifetime) ? 1 : 0;
        while (!lifetime_is_over(&thing.lifetime)) sched_yield();
        thing.first = -round; /* a user who still looked would see the difference */
    }
    flag_raise(&thing.is_over);
    for (int i = 0; i < USERS; i++) pthread_join(users[i], NULL);
    assert_int_equal(own + counter_get(&thing.lasts), ROUNDS);
}

static void a_lifetime_that_is_over_cannot_be_held(void **state) {
    (void)state;
    struct lifetime lifetime = {0};
    assert_false(lifetime_take(&lifetime));
    assert_false(lifetime_share(&lifetime));
    lifetime_begin(&lifetime);
    assert_true(lifetime_take(&lifetime));
    assert_false(lifetime_end(&lifetime));
    assert_false(lifetime_take(&lifetime));
    assert_true(lifetime_share(&lifetime)); /* somebody holds it still */
    assert_false(lifetime_release(&lifetime));
    assert_false(lifetime_is_over(&lifetime));
    assert_true(lifetime_release(&lifetime));
    assert_true(lifetime_is_over(&lifetime));
    assert_false(lifetime_share(&lifetime));
}

struct numbered {
    struct growing_node node; /* first */
    int value;
};

static void *walk(void *argument) {
    struct growing *list = argument;
    int newest = 0;
    while (newest < ROUNDS) {
        int expected = 0;
        for (const struct growing_node *node = growing_first(list); node != NULL; node = node->next) {
            const int value = ((const struct numbered *)node)->value;
            if (expected == 0) newest = value;
            else assert_int_equal(value, expected);
            expected = value - 1;
        }
        assert_int_equal(expected, 0);
    }
    return NULL;
}

static void a_list_that_grows_is_whole_for_those_who_walk_it(void **state) {
    (void)state;
    static struct growing list;
    static struct numbered items[ROUNDS];
    pthread_t walkers[USERS];
    items[0].value = 1;
    growing_add(&list, &items[0].node);
    for (int i = 0; i < USERS; i++) assert_int_equal(pthread_create(&walkers[i], NULL, walk, &list), 0);
    for (int i = 1; i < ROUNDS; i++) {
        items[i].value = i + 1;
        growing_add(&list, &items[i].node);
    }
    for (int i = 0; i < USERS; i++) pthread_join(walkers[i], NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thing_is_whole_for_all_who_hold_it),
        cmocka_unit_test(a_lifetime_that_is_over_cannot_be_held),
        cmocka_unit_test(a_list_that_grows_is_whole_for_those_who_walk_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

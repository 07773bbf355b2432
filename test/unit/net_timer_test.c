/* Timers and wakes: order, never early, nothing lost. No test waits longer than its timers. */
#include "base/clock.h"
#include "net/loop.h"
#include "sync/counter.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
/* after the above */
#include <cmocka.h>

static struct loop *new_loop(void) {
    struct loop *loop = NULL;
    struct err err;
    assert_int_equal(loop_create(&loop, &err), ST_OK);
    return loop;
}

enum { MANY = 500 };

struct probe {
    struct loop_timer *timer;
    uint64_t at_ns;
    int id;
    struct record *record;
};
struct record {
    struct loop *loop;
    int fired[2 * MANY];
    int count;
};

static void on_probe(void *ctx) {
    struct probe *probe = ctx;
    assert_true(mono_ns() >= probe->at_ns);
    assert_true(loop_turn_ns(probe->record->loop) <= mono_ns());
    probe->record->fired[probe->record->count++] = probe->id;
}

static void fires_in_order_and_never_early(void **state) {
    (void)state;
    struct record record = {.loop = new_loop()};
    static struct probe probes[MANY];
    const uint64_t start = mono_ns();
    uint32_t seed = 1;
    for (int i = 0; i < MANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        probes[i] = (struct probe){.at_ns = start + (seed >> 16) % 200 * 100000, .id = i,
                                   .record = &record};
        probes[i].timer = loop_timer_create(record.loop, on_probe, &probes[i]);
        loop_timer_set(probes[i].timer, probes[i].at_ns);
    }
    loop_run(record.loop); /* ends with the last timer */
    assert_int_equal(record.count, MANY);
    for (int i = 1; i < MANY; i++) {
        const struct probe *a = &probes[record.fired[i - 1]], *b = &probes[record.fired[i]];
        assert_true(a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->id < b->id));
    }
    for (int i = 0; i < MANY; i++)
        loop_timer_close(probes[i].timer);
    loop_free(record.loop);
}

static void does_not_fire_what_was_disarmed_or_closed(void **state) {
    (void)state;
    struct record record = {.loop = new_loop()};
    static struct probe probes[MANY];
    const uint64_t at = mono_ns() + 3000000;
    for (int i = 0; i < MANY; i++) {
        probes[i] = (struct probe){.at_ns = at, .id = i, .record = &record};
        probes[i].timer = loop_timer_create(record.loop, on_probe, &probes[i]);
        loop_timer_set(probes[i].timer, at + (uint64_t)(i * 7919 % MANY));
    }
    for (int i = 0; i < MANY; i++) {
        if (i % 3 == 1) {
            loop_timer_set(probes[i].timer, 0);
        } else if (i % 3 == 2) {
            loop_timer_close(probes[i].timer);
            probes[i].timer = NULL;
        }
    }
    loop_run(record.loop);
    assert_int_equal(record.count, (MANY + 2) / 3);
    for (int i = 0; i < record.count; i++)
        assert_int_equal(record.fired[i] % 3, 0);
    for (int i = 0; i < MANY; i++)
        loop_timer_close(probes[i].timer);
    loop_free(record.loop);
}

struct repeater {
    struct loop_timer *timer, *other;
    int left, other_fired;
};
static void on_repeat(void *ctx) {
    struct repeater *repeater = ctx;
    if (--repeater->left > 0)
        loop_timer_set(repeater->timer, 1); /* long past */
    else
        loop_timer_close(repeater->timer); /* itself */
}
static void on_other(void *ctx) {
    struct repeater *repeater = ctx;
    assert_true(repeater->left > 0);
    repeater->other_fired++;
    loop_timer_close(repeater->other);
}

static void a_timer_in_the_past_starves_no_other(void **state) {
    (void)state;
    struct loop *loop = new_loop();
    struct repeater repeater = {.left = 1000};
    repeater.timer = loop_timer_create(loop, on_repeat, &repeater);
    repeater.other = loop_timer_create(loop, on_other, &repeater);
    loop_timer_set(repeater.timer, 1);
    loop_timer_set(repeater.other, mono_ns());
    loop_run(loop);
    assert_int_equal(repeater.other_fired, 1);
    assert_int_equal(repeater.left, 0);
    loop_free(loop);
}

static void moves_to_an_earlier_instant(void **state) {
    (void)state;
    struct record record = {.loop = new_loop()};
    struct probe probe = {.at_ns = mono_ns() + 1000000, .record = &record};
    probe.timer = loop_timer_create(record.loop, on_probe, &probe);
    loop_timer_set(probe.timer, mono_ns() + 3600000000000u); /* the test would time out */
    loop_timer_set(probe.timer, probe.at_ns);
    loop_run(record.loop);
    assert_int_equal(record.count, 1);
    loop_timer_close(probe.timer);
    loop_free(record.loop);
}

struct shared {
    struct loop *loop;
    struct loop_wake *wake;
    struct counter sent, finished;
    int64_t heard;
    int calls, turns_ended, calls_at_turn_end;
};

enum { SENDERS = 4, SENDS = 2000 };

static void *send_many(void *arg) {
    struct shared *shared = arg;
    for (int i = 0; i < SENDS; i++) {
        counter_add(&shared->sent, 1);
        loop_wake_send(shared->wake);
    }
    counter_add(&shared->finished, 1);
    loop_wake_send(shared->wake);
    return NULL;
}

static void on_wake(void *ctx) {
    struct shared *shared = ctx;
    shared->calls++;
    shared->heard = counter_get(&shared->sent);
    if (counter_get(&shared->finished) == SENDERS && shared->heard == SENDERS * SENDS)
        loop_stop(shared->loop);
}

static void on_turn_end(void *ctx) {
    struct shared *shared = ctx;
    shared->turns_ended++;
    shared->calls_at_turn_end = shared->calls;
}

static void hears_every_wake_from_other_threads(void **state) {
    (void)state;
    struct shared shared = {.loop = new_loop()};
    shared.wake = loop_wake_create(shared.loop, on_wake, &shared);
    loop_on_turn_end(shared.loop, on_turn_end, &shared);
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &shared), 0);
    loop_run(shared.loop); /* a lost wake would leave it here */
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared.heard, SENDERS * SENDS);
    assert_int_equal(shared.calls_at_turn_end, shared.calls); /* a turn end after the last call */
    assert_true(shared.turns_ended <= shared.calls);
    loop_wake_close(shared.wake);
    loop_free(shared.loop);
}

static void on_several(void *ctx) {
    struct shared *shared = ctx;
    shared->calls++;
    loop_stop(shared->loop);
}

static void several_wakes_become_one_call(void **state) {
    (void)state;
    struct shared shared = {.loop = new_loop()};
    shared.wake = loop_wake_create(shared.loop, on_several, &shared);
    for (int i = 0; i < 10; i++)
        loop_wake_send(shared.wake);
    loop_run(shared.loop);
    assert_int_equal(shared.calls, 1);
    loop_wake_send(shared.wake); /* and the next is heard again */
    loop_run(shared.loop);
    assert_int_equal(shared.calls, 2);
    loop_wake_close(shared.wake);
    loop_free(shared.loop);
}

static void on_signal(void *ctx, int signum) {
    struct shared *shared = ctx;
    shared->calls = signum;
    loop_stop(shared->loop);
}
static void raise_term(void *ctx) {
    (void)ctx;
    raise(SIGTERM);
}

static void delivers_signals_on_the_loop(void **state) {
    (void)state;
    struct shared shared = {.loop = new_loop()};
    struct loop_signal *term = loop_signal_create(shared.loop, SIGTERM, on_signal, &shared);
    struct loop_wake *keep = loop_wake_create(shared.loop, on_several, &shared);
    struct loop_timer *timer = loop_timer_create(shared.loop, raise_term, NULL);
    loop_timer_set(timer, 1);
    loop_run(shared.loop);
    assert_int_equal(shared.calls, SIGTERM);
    loop_timer_close(timer);
    loop_signal_close(term);
    loop_wake_close(keep);
    loop_free(shared.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_in_order_and_never_early),
        cmocka_unit_test(does_not_fire_what_was_disarmed_or_closed),
        cmocka_unit_test(a_timer_in_the_past_starves_no_other),
        cmocka_unit_test(moves_to_an_earlier_instant),
        cmocka_unit_test(hears_every_wake_from_other_threads),
        cmocka_unit_test(several_wakes_become_one_call),
        cmocka_unit_test(delivers_signals_on_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* sync/parker.h, role.h, timed_mutex.h, pool.h: what each promises without contention, and the
 * few promises that need a second thread but no race. */
#include "base/clock.h"
#include "sync/parker.h"
#include "sync/pool.h"
#include "sync/role.h"
#include "sync/timed_mutex.h"
#include <pthread.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void parker_makes_no_system_call_when_nobody_sleeps(void **state) {
    (void)state;
    struct parker parker;
    parker_init(&parker);
    assert_false(parker_wake(&parker, 1));
    (void)parker_prepare(&parker);
    parker_cancel(&parker);
    assert_false(parker_wake(&parker, 1));
    assert_int_equal(atomic_load(&parker.wake_calls), 0);
}

static void parker_does_not_lose_a_wake_between_prepare_and_wait(void **state) {
    (void)state;
    struct parker parker;
    parker_init(&parker);
    const uint32_t key = parker_prepare(&parker);
    assert_true(parker_wake(&parker, 1));
    assert_true(parker_wait(&parker, key, UINT64_MAX)); /* would hang for ever */
    assert_int_equal(atomic_load(&parker.sleepers), 0);
    assert_int_equal(atomic_load(&parker.wake_calls), 1);
}

static void parker_returns_false_at_the_deadline_and_not_before(void **state) {
    (void)state;
    struct parker parker;
    parker_init(&parker);
    const uint64_t deadline_ns = mono_ns() + 2000000;
    bool is_woken = true;
    while (is_woken) { /* an interrupted wait may end early, but says woken */
        is_woken = parker_wait(&parker, parker_prepare(&parker), deadline_ns);
    }
    assert_true(mono_ns() >= deadline_ns);
    assert_false(parker_wait(&parker, parker_prepare(&parker), 0));
    assert_int_equal(atomic_load(&parker.sleepers), 0);
}

static void role_names_the_thread(void **state) {
    (void)state;
    char name[16] = "";
    char before[16] = "";
    pthread_getname_np(pthread_self(), before, sizeof(before));
    assert_int_equal(role_get(), ROLE_OTHER);
    role_set(ROLE_INSTANCE, 123);
    assert_role(ROLE_INSTANCE);
    pthread_getname_np(pthread_self(), name, sizeof(name));
    assert_string_equal(name, "tt-instance-123");
    role_set(ROLE_OTHER, 0);
    pthread_setname_np(pthread_self(), before);
    assert_string_equal(role_name(ROLE_LOOP), "loop");
    assert_string_equal(role_name(ROLE_COUNT), "unknown");
}

static void timed_mutex_says_0_when_it_was_free(void **state) {
    (void)state;
    struct timed_mutex lock;
    struct lock_stats stats[ROLE_COUNT];
    uint64_t wait_ns = 99;
    enum role blocker = ROLE_LOADER;
    assert_int_equal(timed_mutex_init(&lock), 0);
    timed_mutex_lock(&lock, &wait_ns, &blocker);
    timed_mutex_unlock(&lock);
    timed_mutex_lock(&lock, NULL, NULL);
    timed_mutex_unlock(&lock);
    timed_mutex_stats(&lock, stats);
    assert_int_equal(wait_ns, 0);
    assert_int_equal(stats[ROLE_OTHER].acquisitions, 2);
    assert_int_equal(stats[ROLE_OTHER].contended, 0);
    assert_true(stats[ROLE_OTHER].hold_ns >= stats[ROLE_OTHER].hold_max_ns);
    timed_mutex_done(&lock);
}

struct holder {
    struct timed_mutex *lock;
    struct parker parker;
    _Atomic bool is_holding;
    uint64_t until_ns;
};

static void *hold_until(void *argument) {
    struct holder *holder = argument;
    role_set(ROLE_INSTANCE, 0);
    timed_mutex_lock(holder->lock, NULL, NULL);
    holder->until_ns = mono_ns() + 3000000;
    atomic_store(&holder->is_holding, true);
    parker_wake(&holder->parker, 1);
    while (mono_ns() < holder->until_ns) {
    }
    timed_mutex_unlock(holder->lock);
    return NULL;
}

static void timed_mutex_blames_the_holder_for_the_wait(void **state) {
    (void)state;
    struct timed_mutex lock;
    struct lock_stats stats[ROLE_COUNT];
    struct holder holder = {.lock = &lock};
    pthread_t thread;
    uint64_t wait_ns = 0;
    enum role blocker = ROLE_OTHER;
    uint64_t in_buckets = 0;
    assert_int_equal(timed_mutex_init(&lock), 0);
    parker_init(&holder.parker);
    assert_int_equal(pthread_create(&thread, NULL, hold_until, &holder), 0);
    while (!atomic_load(&holder.is_holding)) {
        const uint32_t key = parker_prepare(&holder.parker);
        if (atomic_load(&holder.is_holding)) {
            parker_cancel(&holder.parker);
        } else {
            parker_wait(&holder.parker, key, UINT64_MAX);
        }
    }
    const uint64_t asked_ns = mono_ns();
    timed_mutex_lock(&lock, &wait_ns, &blocker);
    const uint64_t got_ns = mono_ns();
    timed_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    timed_mutex_stats(&lock, stats);
    timed_mutex_done(&lock);
    assert_true(got_ns >= holder.until_ns);
    assert_int_equal(stats[ROLE_INSTANCE].acquisitions, 1);
    assert_true(stats[ROLE_INSTANCE].hold_ns >= 3000000);
    if (asked_ns >= holder.until_ns) {
        return; /* the machine was so busy that the hold was over: nothing to see */
    }
    assert_int_equal(blocker, ROLE_INSTANCE);
    assert_int_equal(stats[ROLE_OTHER].contended, 1);
    assert_true(wait_ns <= got_ns - asked_ns);
    assert_true(stats[ROLE_OTHER].wait_ns == wait_ns && stats[ROLE_OTHER].wait_max_ns == wait_ns);
    for (int i = 0; i < LOCK_BUCKETS; i++) {
        const uint64_t count = stats[ROLE_OTHER].wait_buckets[i];
        in_buckets += count;
        assert_true(count == 0 || (wait_ns >> i) == 1);
    }
    assert_int_equal(in_buckets, 1);
}

static void timed_mutex_wait_ends_at_the_deadline_and_is_no_hold(void **state) {
    (void)state;
    struct timed_mutex lock;
    struct lock_stats stats[ROLE_COUNT];
    assert_int_equal(timed_mutex_init(&lock), 0);
    timed_mutex_lock(&lock, NULL, NULL);
    const uint64_t begun_ns = mono_ns();
    const uint64_t deadline_ns = begun_ns + 20000000;
    while (timed_mutex_wait(&lock, deadline_ns)) {
    }
    assert_true(mono_ns() >= deadline_ns);
    timed_mutex_unlock(&lock);
    const uint64_t outside_ns = mono_ns() - begun_ns;
    timed_mutex_stats(&lock, stats);
    assert_true(stats[ROLE_OTHER].hold_ns <= outside_ns - 19000000);
    assert_int_equal(stats[ROLE_OTHER].acquisitions, 2);
    timed_mutex_done(&lock);
}

struct count_job {
    struct pool_job job;
    _Atomic unsigned runs;
    enum role role;
};

static void count_run(struct pool_job *job, unsigned worker) {
    struct count_job *self = (struct count_job *)job; /* job is the first member */
    self->role = worker < 2 ? role_get() : ROLE_COUNT;
    atomic_fetch_add(&self->runs, 1);
}

static void pool_runs_what_was_submitted_before_it_is_freed(void **state) {
    (void)state;
    enum { JOBS = 100 };
    static struct count_job jobs[JOBS];
    struct pool *pool = NULL;
    struct err err = {.text = ""};
    assert_int_equal(pool_create(2, JOBS, &pool, &err), ST_OK);
    assert_int_equal(pool_workers(pool), 2);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct count_job){.job = {.run = count_run}};
        assert_true(pool_submit(pool, &jobs[i].job));
    }
    pool_free(pool);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(atomic_load(&jobs[i].runs), 1);
        assert_int_equal(jobs[i].role, ROLE_WORKER);
    }
}

struct gate_job {
    struct pool_job job;
    pthread_mutex_t gate;
    _Atomic bool has_begun;
};

static void gate_run(struct pool_job *job, unsigned worker) {
    struct gate_job *self = (struct gate_job *)job;
    (void)worker;
    atomic_store(&self->has_begun, true);
    pthread_mutex_lock(&self->gate);
    pthread_mutex_unlock(&self->gate);
}

static void pool_refuses_jobs_when_its_queue_is_full(void **state) {
    (void)state;
    struct pool *pool = NULL;
    struct gate_job blocker = {.job = {.run = gate_run}, .gate = PTHREAD_MUTEX_INITIALIZER};
    struct count_job jobs[3];
    assert_int_equal(pool_create(1, 2, &pool, NULL), ST_OK);
    pthread_mutex_lock(&blocker.gate);
    assert_true(pool_submit(pool, &blocker.job));
    while (!atomic_load(&blocker.has_begun)) {
    }
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct count_job){.job = {.run = count_run}};
        assert_int_equal(pool_submit(pool, &jobs[i].job), i < 2);
    }
    assert_int_equal(pool_waiting(pool), 2);
    pthread_mutex_unlock(&blocker.gate);
    pool_free(pool);
    assert_int_equal(atomic_load(&jobs[1].runs), 1);
    assert_int_equal(atomic_load(&jobs[2].runs), 0);
}

struct order_job {
    struct pool_job job;
    unsigned *next, place;
};

static void order_run(struct pool_job *job, unsigned worker) {
    struct order_job *self = (struct order_job *)job;
    (void)worker;
    self->place = ++*self->next;
}

static void pool_runs_jobs_that_come_first_before_those_that_waited_longer(void **state) {
    (void)state;
    enum { JOBS = 6 };
    static const unsigned PLACES[JOBS] = {3, 4, 1, 5, 2, 6};
    struct pool *pool = NULL;
    struct gate_job blocker = {.job = {.run = gate_run}, .gate = PTHREAD_MUTEX_INITIALIZER};
    struct order_job jobs[JOBS];
    unsigned next = 0;
    assert_int_equal(pool_create(1, JOBS, &pool, NULL), ST_OK);
    pthread_mutex_lock(&blocker.gate);
    assert_true(pool_submit(pool, &blocker.job));
    while (!atomic_load(&blocker.has_begun)) {
    }
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct order_job){.job = {.run = order_run}, .next = &next};
        const bool comes_first = i == 2 || i == 4;
        assert_true(comes_first ? pool_submit_first(pool, &jobs[i].job)
                                : pool_submit(pool, &jobs[i].job));
    }
    assert_int_equal(pool_waiting(pool), JOBS);
    pthread_mutex_unlock(&blocker.gate);
    pool_free(pool);
    for (int i = 0; i < JOBS; i++) assert_int_equal(jobs[i].place, PLACES[i]);
}

static void pool_says_why_it_cannot_be_made(void **state) {
    (void)state;
    struct pool *pool = (struct pool *)state; /* stays as it was */
    struct err err = {.text = ""};
    assert_int_equal(pool_create(0, 8, &pool, &err), ST_INVALID);
    assert_string_equal(err.text, "a pool needs a worker and room for a job, not 0 and 8");
    assert_int_equal(pool_create(1, SIZE_MAX, &pool, &err), ST_NO_MEMORY);
    assert_non_null(strstr(err.text, "no memory for a queue of"));
    assert_ptr_equal(pool, state);
    pool_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parker_makes_no_system_call_when_nobody_sleeps),
        cmocka_unit_test(parker_does_not_lose_a_wake_between_prepare_and_wait),
        cmocka_unit_test(parker_returns_false_at_the_deadline_and_not_before),
        cmocka_unit_test(role_names_the_thread),
        cmocka_unit_test(timed_mutex_says_0_when_it_was_free),
        cmocka_unit_test(timed_mutex_blames_the_holder_for_the_wait),
        cmocka_unit_test(timed_mutex_wait_ends_at_the_deadline_and_is_no_hold),
        cmocka_unit_test(pool_runs_what_was_submitted_before_it_is_freed),
        cmocka_unit_test(pool_refuses_jobs_when_its_queue_is_full),
        cmocka_unit_test(pool_runs_jobs_that_come_first_before_those_that_waited_longer),
        cmocka_unit_test(pool_says_why_it_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Parker, pool and timed mutex under contention: no lost wake-up, no lost job, accounts that add
 * up. Meant for ThreadSanitizer. A lost wake-up hangs: the runner's time limit tells. */
#include "base/clock.h"
#include "sync/mpsc.h"
#include "sync/parker.h"
#include "sync/pool.h"
#include "sync/timed_mutex.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { HANDOVERS = 100000, ROUNDS = 100000, POOL_JOBS = 20000, LONE_JOBS = 20000, LOCKERS = 6,
       LOCKS_EACH = 5000 };

/* So many turns of an empty loop, fewer than 2^bits, other ones each time, so that what one
 * thread does meets every point of what the other does. */
static void dawdle(unsigned *seed, unsigned bits) {
    *seed = *seed * 1664525u + 1013904223u;
    for (volatile unsigned i = *seed >> (32 - bits); i > 0; i--) {
    }
}

struct side {
    struct parker parker;
    _Atomic unsigned turn; /* the work */
};

struct table {
    struct side ping;
    struct side pong;
};

static void await(struct side *side, unsigned turn) {
    while (atomic_load_explicit(&side->turn, memory_order_acquire) < turn) {
        const uint32_t key = parker_prepare(&side->parker);
        if (atomic_load_explicit(&side->turn, memory_order_acquire) >= turn) {
            parker_cancel(&side->parker);
            return;
        }
        parker_wait(&side->parker, key, UINT64_MAX);
    }
}

static void hand_over(struct side *side, unsigned turn) {
    atomic_store_explicit(&side->turn, turn, memory_order_release);
    parker_wake(&side->parker, 1);
}

static void *answer(void *argument) {
    struct table *table = argument;
    unsigned seed = 1;
    for (unsigned turn = 1; turn <= HANDOVERS / 2; turn++) {
        await(&table->ping, turn);
        dawdle(&seed, 8);
        hand_over(&table->pong, turn);
    }
    return NULL;
}

static void parker_loses_no_wake_in_100000_handovers(void **state) {
    (void)state;
    struct table table = {.ping = {.turn = 0}};
    pthread_t thread;
    parker_init(&table.ping.parker);
    parker_init(&table.pong.parker);
    assert_int_equal(pthread_create(&thread, NULL, answer, &table), 0);
    unsigned seed = 2;
    for (unsigned turn = 1; turn <= HANDOVERS / 2; turn++) {
        dawdle(&seed, 8);
        hand_over(&table.ping, turn);
        await(&table.pong, turn);
    }
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&table.ping.parker.sleepers), 0);
    assert_int_equal(atomic_load(&table.pong.parker.sleepers), 0);
}

/* Two threads meet, then one prepares to sleep and looks for work while the other publishes
 * work and wakes: the invariant in parker.c, without the sleep. */
struct meeting {
    struct parker parker;
    _Alignas(64) _Atomic unsigned work;
    _Alignas(64) _Atomic unsigned arrived;
    bool has_woken[ROUNDS + 1];
};

static void meet(struct meeting *meeting, unsigned arrivals) {
    atomic_fetch_add(&meeting->arrived, 1);
    for (unsigned spins = 0; atomic_load(&meeting->arrived) < arrivals; spins++) {
        if (spins > 1000) {
            sched_yield();
        }
    }
}

static void *wake_each_round(void *argument) {
    struct meeting *meeting = argument;
    unsigned seed = 4;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        meet(meeting, 4 * round - 2);
        dawdle(&seed, 6);
        atomic_store_explicit(&meeting->work, round, memory_order_relaxed);
        meeting->has_woken[round] = parker_wake(&meeting->parker, 1);
        meet(meeting, 4 * round);
    }
    return NULL;
}

static void parker_shows_the_sleeper_to_the_waker_or_the_work_to_the_sleeper(void **state) {
    (void)state;
    struct meeting *meeting = aligned_alloc(64, (sizeof(*meeting) + 63) / 64 * 64);
    unsigned sleeper_saw_work = 0;
    unsigned seed = 5;
    pthread_t thread;
    assert_non_null(meeting);
    parker_init(&meeting->parker);
    atomic_store(&meeting->work, 0);
    atomic_store(&meeting->arrived, 0);
    assert_int_equal(pthread_create(&thread, NULL, wake_each_round, meeting), 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        meet(meeting, 4 * round - 2);
        dawdle(&seed, 6);
        (void)parker_prepare(&meeting->parker);
        const unsigned work = atomic_load_explicit(&meeting->work, memory_order_relaxed);
        meet(meeting, 4 * round);
        parker_cancel(&meeting->parker);
        assert_true(work == round || meeting->has_woken[round]);
        sleeper_saw_work += work == round;
    }
    pthread_join(thread, NULL);
    assert_true(sleeper_saw_work > 0);
    free(meeting);
}

struct feed {
    struct parker parker;
    struct mpsc queue;
};

struct feeder {
    struct feed *feed;
    struct mpsc_node *nodes;
    unsigned count;
};

static void *feed_nodes(void *argument) {
    const struct feeder *self = argument;
    for (unsigned i = 0; i < self->count; i++) {
        mpsc_push(&self->feed->queue, &self->nodes[i]);
        parker_wake(&self->feed->parker, 1);
    }
    return NULL;
}

static void parker_wakes_the_taker_of_a_queue_with_4_producers(void **state) {
    (void)state;
    enum { FEEDERS = 4, EACH = 10000 };
    struct feed feed;
    struct feeder feeders[FEEDERS];
    pthread_t threads[FEEDERS];
    struct mpsc_node *nodes = calloc(FEEDERS * EACH, sizeof(*nodes));
    unsigned timeouts = 0;
    assert_non_null(nodes);
    parker_init(&feed.parker);
    mpsc_init(&feed.queue);
    for (unsigned i = 0; i < FEEDERS; i++) {
        feeders[i] = (struct feeder){&feed, nodes + i * EACH, EACH};
        assert_int_equal(pthread_create(&threads[i], NULL, feed_nodes, &feeders[i]), 0);
    }
    for (unsigned taken = 0; taken < FEEDERS * EACH;) {
        struct mpsc_node *node = mpsc_take_all(&feed.queue);
        if (node == NULL) {
            const uint32_t key = parker_prepare(&feed.parker);
            if (!mpsc_is_empty(&feed.queue)) {
                parker_cancel(&feed.parker);
            } else {
                /* Short deadlines, so that they and wakes often meet. */
                timeouts += !parker_wait(&feed.parker, key, mono_ns() + 20000);
            }
        }
        for (; node != NULL; node = node->next) {
            taken++;
        }
    }
    for (unsigned i = 0; i < FEEDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    (void)timeouts; /* however many there were, nothing was lost */
    assert_int_equal(atomic_load(&feed.parker.sleepers), 0);
    free(nodes);
}

struct job {
    struct pool_job job;
    unsigned runs; /* plain: a second run at the same time would be a race */
};

static void run_job(struct pool_job *job, unsigned worker) {
    (void)worker;
    ((struct job *)job)->runs++; /* job is the first member */
}

struct submitter {
    struct pool *pool;
    struct job *jobs;
    unsigned count;
};

static void *submit_jobs(void *argument) {
    const struct submitter *self = argument;
    for (unsigned i = 0; i < self->count; i++) {
        self->jobs[i] = (struct job){.job = {.run = run_job}};
        while (!pool_submit(self->pool, &self->jobs[i].job)) {
            sched_yield();
        }
    }
    return NULL;
}

static void pool_runs_every_job_once(void **state) {
    (void)state;
    enum { SUBMITTERS = 4, EACH = POOL_JOBS / SUBMITTERS };
    struct pool *pool = NULL;
    struct submitter submitters[SUBMITTERS];
    pthread_t threads[SUBMITTERS];
    struct job *jobs = calloc(POOL_JOBS, sizeof(*jobs));
    assert_non_null(jobs);
    assert_int_equal(pool_create(3, 32, &pool, NULL), ST_OK);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){pool, jobs + i * EACH, EACH};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_jobs, &submitters[i]), 0);
    }
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    pool_free(pool);
    for (unsigned i = 0; i < POOL_JOBS; i++) {
        assert_int_equal(jobs[i].runs, 1);
    }
    free(jobs);
}

struct lone_job {
    struct pool_job job;
    _Atomic unsigned runs;
};

static void run_lone_job(struct pool_job *job, unsigned worker) {
    struct lone_job *self = (struct lone_job *)job; /* job is the first member */
    (void)worker;
    atomic_fetch_add(&self->runs, 1);
}

static void pool_runs_a_job_that_no_other_follows(void **state) {
    (void)state;
    struct lone_job job = {.job = {.run = run_lone_job}};
    struct pool *pool = NULL;
    unsigned seed = 3;
    assert_int_equal(pool_create(1, 4, &pool, NULL), ST_OK);
    for (unsigned turn = 1; turn <= LONE_JOBS; turn++) {
        dawdle(&seed, 8);
        assert_true(pool_submit(pool, &job.job));
        /* Not parked: the next job must come while the worker is on its way to sleep. */
        for (unsigned spins = 0; atomic_load(&job.runs) < turn; spins++) {
            if (spins > 1000) {
                sched_yield();
            }
        }
    }
    pool_free(pool);
}

static void pool_comes_and_goes_at_once(void **state) {
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct job job = {.job = {.run = run_job}};
        struct pool *pool = NULL;
        assert_int_equal(pool_create(2, 1, &pool, NULL), ST_OK);
        assert_true(pool_submit(pool, &job.job));
        pool_free(pool);
        assert_int_equal(job.runs, 1);
    }
}

struct locker {
    struct timed_mutex *lock;
    pthread_barrier_t *start;
    enum role role;
    uint64_t *guarded;
    uint64_t contended;
    uint64_t wait_ns;
};

static void *lock_often(void *argument) {
    struct locker *self = argument;
    role_set(self->role, 0);
    pthread_barrier_wait(self->start);
    for (unsigned i = 0; i < LOCKS_EACH; i++) {
        uint64_t wait_ns = 0;
        timed_mutex_lock(self->lock, &wait_ns, NULL);
        ++*self->guarded;
        if (i % 16 == 0) {
            sched_yield(); /* so that others do find it held */
        }
        timed_mutex_unlock(self->lock);
        self->contended += wait_ns > 0;
        self->wait_ns += wait_ns;
    }
    return NULL;
}

static void check_accounts(const struct lock_stats *stats, const struct locker *lockers,
                           enum role role) {
    uint64_t contended = 0;
    uint64_t wait_ns = 0;
    uint64_t waits = 0;
    uint64_t holds = 0;
    for (unsigned i = 0; i < LOCKERS; i++) {
        contended += lockers[i].role == role ? lockers[i].contended : 0;
        wait_ns += lockers[i].role == role ? lockers[i].wait_ns : 0;
    }
    for (unsigned i = 0; i < LOCK_BUCKETS; i++) {
        waits += stats->wait_buckets[i];
        holds += stats->hold_buckets[i];
    }
    assert_int_equal(stats->acquisitions, LOCKERS / 2 * LOCKS_EACH);
    assert_int_equal(holds, stats->acquisitions);
    assert_int_equal(stats->contended, contended);
    assert_int_equal(waits, contended);
    assert_true(stats->wait_ns == wait_ns);
    assert_true(stats->wait_max_ns <= stats->wait_ns && stats->hold_max_ns <= stats->hold_ns);
}

static void timed_mutex_keeps_accounts_that_add_up(void **state) {
    (void)state;
    struct timed_mutex lock;
    pthread_barrier_t start;
    pthread_t threads[LOCKERS];
    struct locker lockers[LOCKERS];
    struct lock_stats stats[ROLE_COUNT];
    uint64_t guarded = 0;
    assert_int_equal(timed_mutex_init(&lock), 0);
    pthread_barrier_init(&start, NULL, LOCKERS);
    const uint64_t begun_ns = mono_ns();
    for (unsigned i = 0; i < LOCKERS; i++) {
        lockers[i] = (struct locker){.lock = &lock, .start = &start, .guarded = &guarded,
                                     .role = i % 2 == 0 ? ROLE_LOOP : ROLE_INSTANCE};
        assert_int_equal(pthread_create(&threads[i], NULL, lock_often, &lockers[i]), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        timed_mutex_stats(&lock, stats);
        assert_true(stats[ROLE_LOOP].contended <= stats[ROLE_LOOP].acquisitions);
    }
    for (unsigned i = 0; i < LOCKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    const uint64_t lasted_ns = mono_ns() - begun_ns;
    timed_mutex_stats(&lock, stats);
    assert_int_equal(guarded, LOCKERS * LOCKS_EACH);
    check_accounts(&stats[ROLE_LOOP], lockers, ROLE_LOOP);
    check_accounts(&stats[ROLE_INSTANCE], lockers, ROLE_INSTANCE);
    assert_int_equal(stats[ROLE_OTHER].acquisitions, 0);
    assert_true(stats[ROLE_LOOP].contended + stats[ROLE_INSTANCE].contended > 0);
    /* One holder at a time, and at most LOCKERS - 1 waiters. */
    assert_true(stats[ROLE_LOOP].hold_ns + stats[ROLE_INSTANCE].hold_ns <= lasted_ns);
    assert_true(stats[ROLE_LOOP].wait_ns + stats[ROLE_INSTANCE].wait_ns <= LOCKERS * lasted_ns);
    pthread_barrier_destroy(&start);
    timed_mutex_done(&lock);
}

struct box {
    struct timed_mutex lock;
    unsigned full;
    unsigned sum;
};

static void *take_from_box(void *argument) {
    struct box *box = argument;
    timed_mutex_lock(&box->lock, NULL, NULL);
    for (unsigned taken = 0; taken < 20000; taken++) {
        while (box->full == 0) {
            timed_mutex_wait(&box->lock, UINT64_MAX);
        }
        box->full--;
        box->sum++;
    }
    timed_mutex_unlock(&box->lock);
    return NULL;
}

static void timed_mutex_signal_loses_no_wake(void **state) {
    (void)state;
    struct box box = {.full = 0};
    pthread_t thread;
    assert_int_equal(timed_mutex_init(&box.lock), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_from_box, &box), 0);
    for (unsigned i = 0; i < 20000; i++) {
        timed_mutex_lock(&box.lock, NULL, NULL);
        box.full++;
        timed_mutex_signal(&box.lock);
        timed_mutex_unlock(&box.lock);
    }
    pthread_join(thread, NULL);
    assert_int_equal(box.sum, 20000);
    timed_mutex_done(&box.lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parker_loses_no_wake_in_100000_handovers),
        cmocka_unit_test(parker_shows_the_sleeper_to_the_waker_or_the_work_to_the_sleeper),
        cmocka_unit_test(parker_wakes_the_taker_of_a_queue_with_4_producers),
        cmocka_unit_test(pool_runs_every_job_once),
        cmocka_unit_test(pool_runs_a_job_that_no_other_follows),
        cmocka_unit_test(pool_comes_and_goes_at_once),
        cmocka_unit_test(timed_mutex_keeps_accounts_that_add_up),
        cmocka_unit_test(timed_mutex_signal_loses_no_wake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

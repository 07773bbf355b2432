/* Worker threads. Threads: submit from anywhere; run_worker is each worker. Invariant: a worker
 * parks only after it was counted as a sleeper and then found the queue empty, so no job waits
 * while its submitter believed a worker awake. Read next: parker.h, mpmc.h. */
#include "sync/pool.h"

#include "sync/mpmc.h"
#include "sync/parker.h"
#include "sync/role.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pool;
struct worker {
    struct pool *pool;
    pthread_t thread;
    unsigned index;
};

struct pool {
    struct parker parker;
    _Atomic bool is_stopping; /* written by pool_free */
    struct mpmc *first; /* looked into before queue */
    struct mpmc *queue;
    unsigned worker_count; /* threads that run */
    struct worker workers[];
};

static struct pool_job *pop(struct pool *pool) {
    struct pool_job *job = mpmc_pop(pool->first);
    return job != NULL ? job : mpmc_pop(pool->queue);
}

/* The next job, waited for; NULL when the pool stops and the queue is empty. */
static struct pool_job *next_job(struct pool *pool) {
    for (;;) {
        struct pool_job *job = pop(pool);
        if (job != NULL) {
            return job;
        }
        const uint32_t key = parker_prepare(&pool->parker);
        /* A1: before the last look, so that all that was submitted before the stop is seen;
         * pairs with R1 in pool_free. */
        const bool is_stopping = atomic_load_explicit(&pool->is_stopping, memory_order_acquire);
        job = pop(pool);
        if (job != NULL || is_stopping) {
            parker_cancel(&pool->parker);
            return job;
        }
        parker_wait(&pool->parker, key, UINT64_MAX);
    }
}

static void *run_worker(void *argument) {
    struct worker *worker = argument;
    role_set(ROLE_WORKER, worker->index);
    struct pool_job *job;
    while ((job = next_job(worker->pool)) != NULL) {
        job->run(job, worker->index);
    }
    return NULL;
}

static enum status start_workers(struct pool *pool, unsigned workers, struct err *err) {
    for (unsigned i = 0; i < workers; i++) {
        struct worker *worker = &pool->workers[i];
        *worker = (struct worker){.pool = pool, .index = i};
        const int rc = pthread_create(&worker->thread, NULL, run_worker, worker);
        if (rc != 0) {
            return err_set(err, ST_NO_MEMORY,
                           "cannot start worker thread %u of %u: %s; fewer workers need less",
                           i + 1, workers, strerror(rc));
        }
        pool->worker_count++;
    }
    return ST_OK;
}

enum status pool_create(unsigned workers, size_t capacity, struct pool **out_pool,
                        struct err *err) {
    if (workers == 0 || capacity == 0) {
        return err_set(err, ST_INVALID, "a pool needs a worker and room for a job, not %u and %zu",
                       workers, capacity);
    }
    const size_t bytes = sizeof(struct pool) + workers * sizeof(struct worker);
    struct pool *pool = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (pool == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for a pool of %u workers", workers);
    }
    *pool = (struct pool){.worker_count = 0};
    parker_init(&pool->parker);
    pool->first = mpmc_create(capacity);
    pool->queue = pool->first != NULL ? mpmc_create(capacity) : NULL;
    if (pool->queue == NULL) {
        mpmc_free(pool->first);
        free(pool);
        return err_set(err, ST_NO_MEMORY, "no memory for a queue of %zu jobs", capacity);
    }
    const enum status status = start_workers(pool, workers, err);
    if (status != ST_OK) {
        pool_free(pool);
        return status;
    }
    *out_pool = pool;
    return ST_OK;
}

void pool_free(struct pool *pool) {
    if (pool == NULL) {
        return;
    }
    /* R1: after all submissions; pairs with A1 in next_job. */
    atomic_store_explicit(&pool->is_stopping, true, memory_order_release);
    parker_wake(&pool->parker, UINT32_MAX);
    for (unsigned i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    mpmc_free(pool->first);
    mpmc_free(pool->queue);
    free(pool);
}

static bool submit(struct pool *pool, struct mpmc *queue, struct pool_job *job) {
    if (!mpmc_push(queue, job)) {
        return false;
    }
    parker_wake(&pool->parker, 1);
    return true;
}

bool pool_submit(struct pool *pool, struct pool_job *job) {
    return submit(pool, pool->queue, job);
}

bool pool_submit_first(struct pool *pool, struct pool_job *job) {
    return submit(pool, pool->first, job);
}

size_t pool_waiting(struct pool *pool) {
    return mpmc_size_hint(pool->first) + mpmc_size_hint(pool->queue);
}
unsigned pool_workers(const struct pool *pool) { return pool->worker_count; }

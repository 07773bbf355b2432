/* Which free instance takes which jobs, and when. Instance threads; whoever holds the collector
 * mutex is the only reader of the queue and the only one to touch buckets and policy. A batch is
 * closed at the last moment, by an instance that is free to run it. Read next: policy.c. */
#include "batch/batcher_private.h"

#include "base/clock.h"

static void finish_early(struct batcher *batcher, struct job *list) {
    int64_t count = 0;
    for (struct job *job = list; job != NULL; job = job->next) {
        count++;
        if (job->status == ST_TIMEOUT)
            err_set(&job->err, ST_TIMEOUT, "the request waited in the queue past its deadline");
    }
    if (count == 0) return;
    counter_add(&batcher->waiting, -count);
    staging_release_list(list);
    batcher->config.on_done(list, batcher->config.ctx);
}

/* Queue to buckets. */
static void absorb(struct batcher *batcher) {
    struct job *job = queue_take_all(&batcher->queue);
    while (job != NULL) {
        struct job *following = (struct job *)job->node.next;
        if (!buckets_put(&batcher->buckets, &batcher->config, job)) {
            job->next = NULL;
            job->status = err_set(&job->err, ST_NO_MEMORY, "no memory for the queue");
            finish_early(batcher, job);
        }
        job = following;
    }
}

static void learn(struct instance *instance) {
    if (instance->learned_exec_ns == 0) return;
    policy_learn(&instance->batcher->policy, instance->learned_exec_ns, instance->learned_elements);
    instance->learned_exec_ns = 0;
}

/* Rows of the largest batch that this leader's should become. */
static uint32_t rows_limit(const struct batcher *batcher, const struct bucket *leader) {
    if (!batcher->config.is_batched) return 1;
    if (leader->first->inputs == NULL) return batcher->max_rows; /* inline: lengths not known yet */
    const uint32_t useful =
        policy_useful_rows(&batcher->config.policy, &batcher->policy, leader->longest);
    /* a request with more rows of its own still goes whole */
    return useful > leader->first->rows ? useful : leader->first->rows;
}

static struct policy_decision decide(const struct instance *instance, struct bucket *leader,
                                     uint64_t now_ns, bool is_draining) {
    struct batcher *batcher = instance->batcher;
    if (!batcher->config.is_batched)
        return (struct policy_decision){.dispatch = true,
                                        .reason = REASON_ALONE,
                                        .ready_ns = leader->first->trace->at[AT_ENQUEUED]};
    const uint32_t limit = rows_limit(batcher, leader);
    uint32_t rows = buckets_batch_rows(&batcher->buckets, leader, &batcher->policy, limit);
    if (rows >= limit) rows = batcher->max_rows; /* as full as pays */
    const struct policy_view view = {
        .now_ns = now_ns,
        .rows = rows,
        .oldest_ns = leader->first->trace->at[AT_ENQUEUED],
        .newest_ns = batcher->buckets.newest_ns,
        .free_ns = instance->free_ns,
        .deadline_ns = leader->deadline_ns,
        .is_draining = is_draining,
    };
    return policy_decide(&batcher->config.policy, &batcher->policy, &view);
}

/* Takes the batch led by leader. False when nobody waits for any of its jobs any more. */
static bool take(struct instance *instance, struct bucket *leader,
                 const struct policy_decision *decision, uint64_t now_ns, struct batch *out) {
    struct batcher *batcher = instance->batcher;
    struct job *dropped = NULL;
    const uint32_t limit = rows_limit(batcher, leader);
    *out = (struct batch){
        .limit = limit, .reason = decision->reason, .free_ns = instance->free_ns, .ready_ns = decision->ready_ns};
    out->first =
        buckets_take(&batcher->buckets, leader, &batcher->policy, limit, now_ns, &dropped);
    finish_early(batcher, dropped);
    for (const struct job *job = out->first; job != NULL; job = job->next) {
        out->jobs++;
        out->rows += job->rows;
        if (job->length > out->length) out->length = job->length;
    }
    if (out->jobs == 0) return false;
    out->waiting = (uint32_t)counter_add(&batcher->waiting, -(int64_t)out->jobs);
    out->taken_ns = now_ns;
    out->id = (uint64_t)counter_add(batcher->config.batch_ids, 1);
    return true;
}

bool collector_next(struct instance *instance, struct batch *out) {
    struct batcher *batcher = instance->batcher;
    bool found = false;
    pthread_mutex_lock(&batcher->collector);
    learn(instance);
    while (!found) {
        const int64_t seen = queue_signals(&batcher->queue);
        const bool is_stopping = flag_is_up(&batcher->is_stopping);
        absorb(batcher);
        struct bucket *leader = buckets_oldest(&batcher->buckets);
        if (leader == NULL) {
            if (is_stopping) break;
            queue_wait(&batcher->queue, UINT64_MAX, seen);
            continue;
        }
        const uint64_t now_ns = mono_ns();
        struct policy_decision decision =
            decide(instance, leader, now_ns, is_stopping || flag_is_up(&batcher->is_draining));
        if (!decision.dispatch) {
            struct bucket *full = buckets_full(&batcher->buckets, batcher->max_rows);
            if (full == NULL) {
                queue_wait(&batcher->queue, decision.wait_until_ns, seen);
                continue;
            }
            const uint64_t oldest_ns = leader->first->trace->at[AT_ENQUEUED];
            if (policy_may_pass_over(&batcher->config.policy, &batcher->policy, oldest_ns, now_ns))
                leader = full; /* the oldest bucket is held; another one need not wait for it */
            decision = (struct policy_decision){
                .reason = leader == full ? REASON_FULL : REASON_EAGER, .ready_ns = now_ns};
        }
        found = take(instance, leader, &decision, now_ns, out);
    }
    pthread_mutex_unlock(&batcher->collector);
    return found;
}

bool collector_take_full(struct instance *instance, struct batch *out) {
    struct batcher *batcher = instance->batcher;
    if (!batcher->config.is_batched || pthread_mutex_trylock(&batcher->collector) != 0)
        return false;
    learn(instance);
    absorb(batcher);
    bool found = false;
    struct bucket *leader = buckets_oldest(&batcher->buckets);
    const uint32_t limit = leader == NULL ? 0 : rows_limit(batcher, leader);
    if (leader != NULL &&
        buckets_batch_rows(&batcher->buckets, leader, &batcher->policy, limit) >= limit) {
        const uint64_t now_ns = mono_ns();
        const struct policy_decision decision = {.reason = REASON_FULL,
                                                 .ready_ns = instance->free_ns};
        batcher->policy.is_holding = false;
        found = take(instance, leader, &decision, now_ns, out);
    }
    pthread_mutex_unlock(&batcher->collector);
    return found;
}

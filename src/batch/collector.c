/* Which free instance takes which jobs, and when. Instance threads; whoever holds the collector
 * mutex is the only reader of the queue and the only one to touch buckets and policy. A batch is
 * closed at the last moment, by an instance that is free to run it. Read next: waiting.c, policy.c. */
#include "batch/batcher_private.h"

#include "base/clock.h"

static void learn(struct instance *instance) {
    if (instance->learned_exec_ns == 0) return;
    struct batcher *batcher = instance->batcher;
    policy_learn(&batcher->policy, instance->learned_exec_ns, instance->learned_elements);
    counter_set(&batcher->pace_exec_ns, (int64_t)policy_exec_least_ns(&batcher->policy));
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
    struct bucket_batch batch;
    buckets_look(&batcher->buckets, leader, &batcher->config.policy, &batcher->policy, limit, &batch);
    const struct policy_view view = {
        .now_ns = now_ns,
        .rows = batch.rows >= limit ? batcher->max_rows : batch.rows, /* as full as pays */
        .oldest_ns = batch.oldest_ns,
        .newest_ns = batcher->buckets.newest_ns,
        .free_ns = instance->free_ns,
        .deadline_ns = batch.deadline_ns,
        .expires_ns = batch.expires_ns == UINT64_MAX ? 0 : batch.expires_ns,
        .preferred_rows = batch.preferred,
        .is_draining = is_draining,
    };
    return policy_decide(&batcher->config.policy, &batcher->policy, &view);
}

/* For producers: how fast a full queue empties. Full: as many rows as the batch has room for, or
 * so many that no other request fitted in. */
static void learn_pace(struct batcher *batcher, const struct batch *batch) {
    const bool leaves_full = batcher->buckets.rows >= batch->limit;
    const bool is_full = batch->rows >= batch->limit || !batcher->config.is_batched || leaves_full;
    struct pace_facts facts;
    pace_learn(&batcher->pace, batch->taken_ns, batch->jobs, is_full, leaves_full);
    pace_tell(&batcher->pace, &facts);
    counter_set(&batcher->pace_interval_ns, (int64_t)facts.interval_ns);
    counter_set(&batcher->pace_error_ns, (int64_t)facts.error_ns);
    counter_set(&batcher->pace_taken_ns, (int64_t)facts.taken_ns);
    counter_set(&batcher->pace_jobs_x16, (int64_t)facts.jobs_x16);
}

/* Takes the batch led by leader. False when nobody waits for any of its jobs any more. */
static bool take(struct instance *instance, struct bucket *leader,
                 const struct policy_decision *decision, uint64_t now_ns, struct batch *out) {
    struct batcher *batcher = instance->batcher;
    struct job *dropped = NULL;
    const uint32_t limit = rows_limit(batcher, leader);
    const struct bucket_taking taking = {
        .max_rows = decision->rows > 0 && decision->rows < limit ? decision->rows : limit,
        .now_ns = now_ns,
        .needed_ns = policy_exec_most_ns(&batcher->policy)};
    *out = (struct batch){
        .limit = limit, .reason = decision->reason, .free_ns = instance->free_ns, .ready_ns = decision->ready_ns};
    out->first = buckets_take(&batcher->buckets, leader, &batcher->policy, &taking, &dropped);
    for (const struct job *job = out->first; job != NULL; job = job->next) {
        out->jobs++;
        out->rows += job->rows;
        if (job->length > out->length) out->length = job->length;
    }
    out->waiting = (uint32_t)waiting_taken(batcher, out->first, dropped);
    if (out->jobs == 0) return false;
    out->taken_ns = now_ns;
    out->id = (uint64_t)counter_add(batcher->config.batch_ids, 1);
    learn_pace(batcher, out);
    return true;
}

/* What has to leave before a batch is formed. False: something did, and all is to be looked at
 * anew. */
static bool is_settled(struct batcher *batcher, uint64_t now_ns) {
    if (waiting_due_ns(batcher) > now_ns) return true;
    waiting_end(batcher, waiting_leave(batcher, now_ns));
    return false;
}

bool collector_next(struct instance *instance, struct batch *out) {
    struct batcher *batcher = instance->batcher;
    bool found = false;
    pthread_mutex_lock(&batcher->collector);
    learn(instance);
    while (!found) {
        const int64_t seen = queue_signals(&batcher->queue);
        const bool is_stopping = flag_is_up(&batcher->is_stopping);
        waiting_absorb(batcher);
        struct bucket *leader = buckets_oldest(&batcher->buckets);
        if (leader == NULL) {
            if (is_stopping) break;
            queue_wait(&batcher->queue, UINT64_MAX, seen);
            continue;
        }
        const uint64_t now_ns = mono_ns();
        if (!is_settled(batcher, now_ns)) continue;
        struct policy_decision decision =
            decide(instance, leader, now_ns, is_stopping || flag_is_up(&batcher->is_draining));
        if (!decision.dispatch) {
            struct bucket *full =
                buckets_full(&batcher->buckets, leader->rank, batcher->max_rows);
            if (full == NULL) {
                const uint64_t due_ns = waiting_due_ns(batcher);
                queue_wait(&batcher->queue,
                           due_ns < decision.wait_until_ns ? due_ns : decision.wait_until_ns, seen);
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
    waiting_absorb(batcher);
    bool found = false;
    const uint64_t now_ns = mono_ns();
    (void)is_settled(batcher, now_ns);
    struct bucket *leader = buckets_oldest(&batcher->buckets);
    const uint32_t limit = leader == NULL ? 0 : rows_limit(batcher, leader);
    struct bucket_batch batch = {.rows = 0};
    if (leader != NULL)
        buckets_look(&batcher->buckets, leader, &batcher->config.policy, &batcher->policy, limit, &batch);
    if (leader != NULL && (batch.rows >= limit || batch.preferred > 0)) {
        const struct policy_decision decision = {
            .reason = batch.preferred > 0 ? REASON_PREFERRED : REASON_FULL,
            .ready_ns = instance->free_ns,
            .rows = batch.preferred};
        batcher->policy.is_holding = false;
        found = take(instance, leader, &decision, now_ns, out);
    }
    pthread_mutex_unlock(&batcher->collector);
    return found;
}

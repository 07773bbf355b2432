/* The producers' side of a batcher: into the queue, or refused at once, and given up. Any thread.
 * Nothing here takes a lock with the lock-free queue.
 *
 * Invariant: what is counted as waiting is pushed, or taken back before batcher_push returns.
 * Read next: waiting.c; pace.h for who is refused as hopeless. */
#include "batch/batcher_private.h"

#include "base/clock.h"

static struct level *level_of(struct batcher *batcher, const struct job *job) {
    return &batcher->levels[job->level - 1];
}

/* How many wait that are served before it: those of its level and above. */
static int64_t count_ahead(struct batcher *batcher, const struct job *job, int64_t waiting) {
    if (batcher->config.queue_policies.levels <= 1) return waiting - 1;
    int64_t ahead = -1;
    for (uint32_t i = 0; i < job->level; i++) ahead += counter_get(&batcher->levels[i].waiting);
    return ahead;
}

static uint64_t fact(const struct counter *counter) { return (uint64_t)counter_get(counter); }

/* Would the job wait longer than it may, or longer than leaves time to run it? */
static bool is_hopeless(struct batcher *batcher, const struct job *job, int64_t waiting) {
    if (waiting <= 1) return false;
    const struct pace_facts facts = {
        .interval_ns = fact(&batcher->pace_interval_ns), .error_ns = fact(&batcher->pace_error_ns),
        .jobs_x16 = fact(&batcher->pace_jobs_x16), .taken_ns = fact(&batcher->pace_taken_ns),
        .exec_ns = fact(&batcher->pace_exec_ns)};
    if (facts.jobs_x16 == 0) return false;
    const uint64_t now_ns = mono_ns();
    const int64_t ahead = count_ahead(batcher, job, waiting);
    const uint64_t taken_ns = now_ns + pace_wait_ns(&facts, ahead > 0 ? (uint64_t)ahead : 0, now_ns);
    if (job->deadline_ns != 0 && taken_ns + facts.exec_ns > job->deadline_ns) return true;
    return job->queue_deadline_ns != 0 && taken_ns > job->queue_deadline_ns &&
           level_of(batcher, job)->policy.action == TIMEOUT_REJECT;
}

/* Takes back what batcher_push has counted. */
static enum status refuse(struct batcher *batcher, struct job *job, bool has_room) {
    counter_add(&batcher->waiting, -1);
    if (batcher->is_counted) counter_add(&level_of(batcher, job)->waiting, -1);
    if (batcher->ordering != NULL && has_room) ordering_leave(batcher->ordering);
    counter_add(&batcher->refused, 1);
    staging_release(job);
    return job->status;
}

/* ST_OK, or why the job may not wait. */
static enum status look(struct batcher *batcher, struct job *job, int64_t waiting,
                        bool has_room) {
    const struct level *level = level_of(batcher, job);
    const int64_t beside =
        batcher->is_counted ? counter_add(&level_of(batcher, job)->waiting, 1) : 0;
    const char *name = batcher->model->name;
    if (waiting > (int64_t)batcher->config.queue_limit || !has_room)
        return err_set(&job->err, ST_OVERLOADED, "model %s: %u requests wait already (--queue-limit)",
                       name, batcher->config.queue_limit);
    if (level->policy.max_size > 0 && beside > (int64_t)level->policy.max_size)
        return err_set(&job->err, ST_UNAVAILABLE,
                       "Exceeds maximum queue size: model %s, priority level %u: %u requests wait "
                       "already (max_queue_size)", name, job->level, level->policy.max_size);
    if (job->expires_ns == 0 || !is_hopeless(batcher, job, waiting)) return ST_OK;
    counter_add(&batcher->refused_hopeless, 1);
    return err_set(&job->err, ST_OVERLOADED,
                   "model %s: %lld requests wait, and so long that this one could not be in time",
                   name, (long long)waiting - 1);
}

enum status batcher_push(struct batcher *batcher, struct job *job, bool wake) {
    const struct queue_policies *policies = &batcher->config.queue_policies;
    job->level = policies->levels > 1 ? queue_policy_level(policies, job->priority) : 1;
    const uint64_t timeout_ns =
        queue_policy_timeout_ns(&level_of(batcher, job)->policy, job->timeout_ns);
    const uint64_t now_ns = timeout_ns != 0 ? mono_ns() : 0;
    job->queue_deadline_ns =
        timeout_ns == 0 ? 0 : timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
    job->expires_ns = job->queue_deadline_ns == 0 ||
                              (job->deadline_ns != 0 && job->deadline_ns < job->queue_deadline_ns)
                          ? job->deadline_ns
                          : job->queue_deadline_ns;
    const bool has_room = batcher->ordering == NULL || ordering_enter(batcher->ordering);
    job->status = look(batcher, job, counter_add(&batcher->waiting, 1), has_room);
    if (job->status != ST_OK) return refuse(batcher, job, has_room);
    const uint64_t expires_ns = job->expires_ns; /* the job may be answered once it is pushed */
    queue_push(&batcher->queue, job, wake);
    if (expires_ns != 0) alarm_bring_forward(&batcher->alarm, expires_ns);
    return ST_OK;
}

void batcher_cancel(struct batcher *batcher, struct job *job) {
    flag_raise(&job->is_cancelled);
    if (!pending_set(&batcher->cancels)) return; /* somebody else's look will find it */
    queue_signal(&batcher->queue); /* an instance that waits for company looks, */
    alarm_ring(&batcher->alarm);   /* or else the timekeeper */
}

bool batcher_takes_timeout(const struct batcher *batcher, uint64_t priority) {
    const struct queue_policies *policies = &batcher->config.queue_policies;
    return batcher->levels[queue_policy_level(policies, priority) - 1].policy.allows_override;
}

void batcher_kick(struct batcher *batcher) { queue_kick(&batcher->queue); }

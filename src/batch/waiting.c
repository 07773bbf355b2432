/* What waits in a batcher: from the queue into the buckets, and out of them for those whose time is
 * over and those whom nobody waits for any more. Under the collector's mutex, by whoever holds it:
 * an instance that collects or, while none does, the timekeeper.
 *
 * Invariant: a job that has an instant to leave at is in the heap exactly while it is in a bucket.
 * Read next: collector.c, timekeeper.c. */
#include "batch/batcher_private.h"

#include "base/clock.h"

/* What was dropped, by why. */
static void count_dropped(struct batcher *batcher, const struct job *job) {
    if (job->status == ST_EXPIRED) counter_add(&batcher->expired, 1);
    else if (job->status == ST_TIMEOUT) counter_add(&batcher->timed_out, 1);
    else if (job->status == ST_CANCELLED) counter_add(&batcher->cancelled, 1);
}

static void explain(const struct batcher *batcher, struct job *job) {
    const char *name = batcher->model->name;
    const double waited_ms = (double)(mono_ns() - job->trace->at[AT_ENQUEUED]) / 1e6;
    if (job->status == ST_EXPIRED)
        err_set(&job->err, ST_EXPIRED,
                "Request timeout expired: it waited %.1f ms in the queue of model %s", waited_ms, name);
    if (job->status == ST_TIMEOUT)
        err_set(&job->err, ST_TIMEOUT,
                "model %s: after %.1f ms in the queue the request could not be in time any more", name,
                waited_ms);
}

/* Gives their places back. How many wait now. */
static int64_t uncount(struct batcher *batcher, const struct job *list) {
    int64_t count = 0;
    for (const struct job *job = list; job != NULL; job = job->next) {
        count++;
        if (batcher->is_counted) counter_add(&batcher->levels[job->level - 1].waiting, -1);
    }
    return counter_add(&batcher->waiting, -count);
}

void waiting_end(struct batcher *batcher, struct job *list) {
    if (list == NULL) return;
    (void)uncount(batcher, list);
    for (struct job *job = list; job != NULL; job = job->next) {
        count_dropped(batcher, job);
        explain(batcher, job);
    }
    staging_release_list(list);
    if (batcher->ordering != NULL) ordering_pass(batcher->ordering, list);
    batcher->config.on_done(list, batcher->config.ctx);
}

int64_t waiting_taken(struct batcher *batcher, struct job *list, struct job *dropped) {
    for (struct job *job = list; job != NULL; job = job->next)
        expiry_remove(&batcher->expiry, job);
    for (struct job *job = dropped; job != NULL; job = job->next)
        expiry_remove(&batcher->expiry, job);
    waiting_end(batcher, dropped);
    return uncount(batcher, list);
}

static bool put(struct batcher *batcher, struct job *job) {
    if (!buckets_put(&batcher->buckets, &batcher->config, job)) return false;
    if (job->expires_ns == 0 || expiry_put(&batcher->expiry, job)) return true;
    buckets_remove(&batcher->buckets, job);
    buckets_settle(&batcher->buckets);
    return false;
}

static void end_one(struct batcher *batcher, struct job *job) {
    job->next = NULL;
    waiting_end(batcher, job);
}

void waiting_absorb(struct batcher *batcher) {
    struct job *job = queue_take_all(&batcher->queue);
    while (job != NULL) {
        struct job *following = (struct job *)job->node.next;
        batcher->absorbed++;
        if (batcher->ordering != NULL) job->order = ordering_number(batcher->ordering);
        job->rank = 2 * job->level;
        job->expiry_at = 0;
        if (flag_is_up(&job->is_cancelled)) {
            job->status = ST_CANCELLED;
            end_one(batcher, job);
        } else if (!put(batcher, job)) {
            job->status = err_set(&job->err, ST_NO_MEMORY, "no memory for the queue");
            end_one(batcher, job);
        }
        job = following;
    }
}

/* ---- leaving ---- */

static void drop(struct batcher *batcher, struct job *job, enum status status, struct job **list) {
    expiry_remove(&batcher->expiry, job);
    buckets_remove(&batcher->buckets, job);
    job->status = status;
    job->next = *list;
    *list = job;
}

/* Behind those of its level that are in time, and with no other timeout than its answer's. */
static void delay(struct batcher *batcher, struct job *job, struct job **list) {
    expiry_remove(&batcher->expiry, job);
    buckets_remove(&batcher->buckets, job);
    job->queue_deadline_ns = 0;
    job->expires_ns = job->deadline_ns;
    job->rank = 2 * job->level + 1;
    counter_add(&batcher->delayed, 1);
    if (put(batcher, job)) return;
    job->status = err_set(&job->err, ST_NO_MEMORY, "no memory for the queue");
    job->next = *list;
    *list = job;
}

static void leave_expired(struct batcher *batcher, uint64_t now_ns, struct job **list) {
    struct job *job = expiry_first(&batcher->expiry);
    if (job == NULL || job->expires_ns > now_ns) return;
    for (; job != NULL && job->expires_ns <= now_ns; job = expiry_first(&batcher->expiry)) {
        if (job->deadline_ns != 0 && job->deadline_ns <= now_ns)
            drop(batcher, job, ST_TIMEOUT, list);
        else if (batcher->levels[job->level - 1].policy.action == TIMEOUT_DELAY)
            delay(batcher, job, list);
        else drop(batcher, job, ST_EXPIRED, list);
    }
    buckets_settle(&batcher->buckets);
}

/* Everybody is looked at, since a job that is cancelled may be gone before whoever holds the
 * collector hears of it. The time for that is bounded: a look that took long is followed by a pause
 * of ten times as much. */
enum { SWEEP_PAUSES = 10 };

static void leave_cancelled(struct batcher *batcher, uint64_t now_ns, struct job **list) {
    pending_clear(&batcher->cancels);
    for (uint32_t i = 0; i < batcher->buckets.count; i++) {
        for (struct job *job = batcher->buckets.items[i].first; job != NULL;) {
            struct job *following = job->next;
            if (flag_is_up(&job->is_cancelled)) drop(batcher, job, ST_CANCELLED, list);
            job = following;
        }
    }
    buckets_settle(&batcher->buckets);
    batcher->swept_ns = mono_ns();
    batcher->sweep_ns = batcher->swept_ns - now_ns;
}

static uint64_t sweep_due_ns(const struct batcher *batcher) {
    return pending_is_set(&batcher->cancels)
               ? batcher->swept_ns + SWEEP_PAUSES * batcher->sweep_ns
               : UINT64_MAX;
}

struct job *waiting_leave(struct batcher *batcher, uint64_t now_ns) {
    struct job *list = NULL;
    if (sweep_due_ns(batcher) <= now_ns) leave_cancelled(batcher, now_ns, &list);
    leave_expired(batcher, now_ns, &list);
    return list;
}

uint64_t waiting_due_ns(const struct batcher *batcher) {
    const struct job *first = expiry_first(&batcher->expiry);
    const uint64_t sweep_ns = sweep_due_ns(batcher);
    return first != NULL && first->expires_ns < sweep_ns ? first->expires_ns : sweep_ns;
}

/* See queue.h. Read next: collector.c, the only reader. */
#include "batch/queue.h"

#include "base/clock.h"

_Static_assert(offsetof(struct job, node) == 0, "a job is found by its queue node");

enum status queue_init(struct queue *queue, enum queue_kind kind, struct err *err) {
    *queue = (struct queue){.kind = kind};
    mpsc_init(&queue->ring);
    parker_init(&queue->parker);
    if (kind == QUEUE_MUTEX && timed_mutex_init(&queue->lock) != 0)
        return err_set(err, ST_NO_MEMORY, "cannot create the queue's mutex");
    return ST_OK;
}

void queue_done(struct queue *queue) {
    if (queue->kind == QUEUE_MUTEX) timed_mutex_done(&queue->lock);
}

static void push_mutex(struct queue *queue, struct job *job) {
    uint64_t wait_ns = 0;
    enum role holder = ROLE_OTHER;
    timed_mutex_lock(&queue->lock, &wait_ns, &holder);
    job->trace->lock_wait_ns = wait_ns;
    job->trace->lock_holder = (uint8_t)holder;
    job->trace->at[AT_ENQUEUED] = mono_ns();
    job->node.next = NULL;
    if (queue->last != NULL) queue->last->next = &job->node;
    else queue->first = &job->node;
    queue->last = &job->node;
    timed_mutex_signal(&queue->lock);
    timed_mutex_unlock(&queue->lock);
}

void queue_push(struct queue *queue, struct job *job, bool wake) {
    if (queue->kind == QUEUE_MUTEX) {
        push_mutex(queue, job);
        return;
    }
    /* Stamped before the job is visible: afterwards it is the collector's. */
    job->trace->at[AT_ENQUEUED] = mono_ns();
    mpsc_push(&queue->ring, &job->node);
    if (wake) parker_wake(&queue->parker, 1);
}

struct job *queue_take_all(struct queue *queue) {
    if (queue->kind == QUEUE_RING) return (struct job *)mpsc_take_all(&queue->ring);
    timed_mutex_lock(&queue->lock, NULL, NULL);
    struct mpsc_node *first = queue->first;
    queue->first = queue->last = NULL;
    timed_mutex_unlock(&queue->lock);
    return (struct job *)first;
}

static void wait_mutex(struct queue *queue, uint64_t deadline_ns, int64_t seen) {
    timed_mutex_lock(&queue->lock, NULL, NULL);
    while (queue->first == NULL && counter_get(&queue->signals) == seen)
        if (!timed_mutex_wait(&queue->lock, deadline_ns)) break;
    timed_mutex_unlock(&queue->lock);
}

void queue_wait(struct queue *queue, uint64_t deadline_ns, int64_t seen) {
    if (queue->kind == QUEUE_MUTEX) {
        wait_mutex(queue, deadline_ns, seen);
        return;
    }
    /* The parker's prepare and wake are each a full fence, so that either this sees the push or
     * signal, or the pusher sees the sleeper. */
    const uint32_t key = parker_prepare(&queue->parker);
    if (mpsc_is_empty(&queue->ring) && counter_get(&queue->signals) == seen)
        parker_wait(&queue->parker, key, deadline_ns);
    else parker_cancel(&queue->parker);
}

int64_t queue_signals(const struct queue *queue) { return counter_get(&queue->signals); }

void queue_kick(struct queue *queue) {
    if (queue->kind == QUEUE_RING) parker_wake(&queue->parker, 1);
    /* mutex: each push has signalled already */
}

void queue_signal(struct queue *queue) {
    if (queue->kind == QUEUE_RING) {
        counter_add(&queue->signals, 1);
        parker_wake(&queue->parker, 1);
        return;
    }
    timed_mutex_lock(&queue->lock, NULL, NULL);
    counter_add(&queue->signals, 1);
    timed_mutex_signal(&queue->lock);
    timed_mutex_unlock(&queue->lock);
}

/* The hand-over from producers to the collecting instance, in two forms behind one face.
 *
 * ring: the lock-free queue of sync/mpsc.h with an event count: a preempted producer stops nobody,
 *   and no producer makes a system call while the collector is awake.
 * mutex: a list under a mutex with a condition variable signalled at each push, as most batchers
 *   have it: the control. Its waits and holds are recorded by holder.
 *
 * Callers: push and kick from any thread; take_all and wait from one thread at a time. */
#ifndef TELLTALE_BATCH_QUEUE_H
#define TELLTALE_BATCH_QUEUE_H

#include "batch/batcher.h"
#include "sync/parker.h"

struct queue {
    enum queue_kind kind;
    struct mpsc ring;
    struct parker parker;
    struct timed_mutex lock;
    struct mpsc_node *first, *last; /* under lock */
    struct counter signals;         /* forced kicks so far: the waiter must look again */
};

MUST_CHECK enum status queue_init(struct queue *queue, enum queue_kind kind, struct err *err);
void queue_done(struct queue *queue);
/* Stamps job->trace's AT_ENQUEUED and lock wait before the job becomes visible. */
void queue_push(struct queue *queue, struct job *job, bool wake);
/* Oldest first, linked by node.next; NULL when empty. */
struct job *queue_take_all(struct queue *queue);
/* Until something was pushed, signalled since `seen`, or deadline_ns. */
void queue_wait(struct queue *queue, uint64_t deadline_ns, int64_t seen);
/* Signals so far: read it before looking at what a signal announces, then give it to queue_wait. */
int64_t queue_signals(const struct queue *queue);
/* Wakes the waiter for what was pushed without a wake. */
void queue_kick(struct queue *queue);
/* Makes the waiter look again though nothing was pushed (drain, stop). */
void queue_signal(struct queue *queue);

#endif

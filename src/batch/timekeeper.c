/* Looks at what waits while no instance does: timeouts end at their instant and cancelled jobs leave
 * at once also when every instance is busy for seconds. One thread a batcher.
 *
 * It sleeps until the next thing is due and is woken only for what is due earlier; while jobs with
 * a timeout keep coming it looks at least every TICK_NS, so that those whose timeout is longer than
 * that, which is the usual case, need never wake it. While an instance collects, that instance does
 * all this itself, and the timekeeper waits for the mutex.
 *
 * Invariant: no job is pushed that expires while the timekeeper sleeps, unless an instance holds
 * the collector's mutex or has taken it since. Read next: waiting.c, sync/alarm.h. */
#include "batch/batcher_private.h"

#include "base/clock.h"
#include "sync/role.h"

#include <sys/prctl.h>

enum { TICK_NS = 100000000 };

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void *timekeeper_main(void *argument) {
    struct batcher *batcher = argument;
    uint64_t seen = 0;
    role_set(ROLE_TIMEKEEPER, 0);
    (void)prctl(PR_SET_TIMERSLACK, 1); /* otherwise the kernel wakes it up to 50 us late */
    while (!flag_is_up(&batcher->is_over)) {
        pthread_mutex_lock(&batcher->collector);
        waiting_absorb(batcher);
        const uint64_t now_ns = mono_ns();
        const bool is_active = batcher->absorbed != seen || expiry_first(&batcher->expiry) != NULL;
        const uint64_t latest_ns = is_active ? now_ns + TICK_NS : UINT64_MAX;
        const uint32_t key = alarm_prepare(&batcher->alarm, latest_ns);
        waiting_absorb(batcher); /* what was pushed before those who push knew of this sleep */
        seen = batcher->absorbed;
        struct job *dropped = waiting_leave(batcher, now_ns);
        const uint64_t due_ns = earlier(waiting_due_ns(batcher), latest_ns);
        pthread_mutex_unlock(&batcher->collector);
        waiting_end(batcher, dropped);
        if (flag_is_up(&batcher->is_over)) parker_cancel(&batcher->alarm.parker);
        else alarm_wait(&batcher->alarm, key, due_ns);
    }
    return NULL;
}

enum status timekeeper_start(struct batcher *batcher, struct err *err) {
    if (pthread_create(&batcher->timekeeper, NULL, timekeeper_main, batcher) != 0)
        return err_set(err, ST_NO_MEMORY, "model %s: cannot start the timekeeper",
                       batcher->model->name);
    batcher->is_timed = true;
    return ST_OK;
}

void timekeeper_stop(struct batcher *batcher) {
    if (!batcher->is_timed) return;
    flag_raise(&batcher->is_over);
    alarm_ring(&batcher->alarm);
    pthread_join(batcher->timekeeper, NULL);
    batcher->is_timed = false;
}

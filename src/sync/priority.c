/* See priority.h. Linux: the scheduler's batch policy at the nicest level, the disk's idle class.
 * Not SCHED_IDLE: a thread preempted there while it holds a lock of the memory map or of the
 * allocator keeps others from it for as long as the processors are busy. */
#include "sync/priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NICEST = 19, IOPRIO_WHO_PROCESS = 1, IOPRIO_IDLE = 3 << 13 };

bool priority_lower(void) {
    const id_t thread = (id_t)syscall(SYS_gettid);
    const struct sched_param none = {0};
    (void)sched_setscheduler((pid_t)thread, SCHED_BATCH, &none);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, (int)thread, IOPRIO_IDLE);
    return setpriority(PRIO_PROCESS, thread, NICEST) == 0; /* Linux: of this thread alone */
}

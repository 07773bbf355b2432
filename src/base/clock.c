/* Clocks, read through the kernel's vDSO where it has them. Any thread. Invariant: mono_ns
 * never goes backwards, on one thread or between threads. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock) {
    struct timespec now;
    /* Cannot fail: the clocks below exist on every Linux that can start this program. */
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t mono_ns(void) { return read_ns(CLOCK_MONOTONIC); }
uint64_t wall_ns(void) { return read_ns(CLOCK_REALTIME); }
uint64_t process_cpu_ns(void) { return read_ns(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t thread_cpu_ns(void) { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

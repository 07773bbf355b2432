/* The only clock that durations are taken from: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef TELLTALE_BASE_CLOCK_H
#define TELLTALE_BASE_CLOCK_H

#include <stdint.h>

/* Names say what they hold: now_ns, deadline_ns are mono_ns instants. 0 means "not stamped". */
uint64_t mono_ns(void);
/* Wall clock, for log lines and file names only, never for durations. */
uint64_t wall_ns(void);
/* CPU time used so far by this process, user and system together. */
uint64_t process_cpu_ns(void);
/* CPU time used so far by the calling thread (a real system call, about 0.8 us). */
uint64_t thread_cpu_ns(void);

#endif

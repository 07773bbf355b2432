/* A sleeper that wakes by itself at a known instant, which others may find too late: they wake it
 * only then, and otherwise pay no system call.
 *
 * Sleeper:                                        Others:
 *     uint32_t key = alarm_prepare(a, latest_ns);     publish what is due at due_ns;
 *     look at all that is published;                  alarm_bring_forward(a, due_ns);
 *     alarm_wait(a, key, earliest due, at most latest_ns);
 *
 * Whatever is published is either looked at before the sleep or was compared with the instant at
 * which it ends: nothing that is due earlier is slept through. Callers: prepare and wait from one
 * thread, the others from any. bring_forward and ring are lock-free. */
#ifndef TELLTALE_SYNC_ALARM_H
#define TELLTALE_SYNC_ALARM_H

#include "sync/parker.h"

struct alarm {
    struct parker parker;
    _Atomic uint64_t at_ns; /* the sleep's end, past while awake; written by the sleeper */
};

void alarm_init(struct alarm *alarm);
uint32_t alarm_prepare(struct alarm *alarm, uint64_t latest_ns); /* UINT64_MAX: never */
void alarm_wait(struct alarm *alarm, uint32_t key, uint64_t until_ns);
void alarm_bring_forward(struct alarm *alarm, uint64_t due_ns);
void alarm_ring(struct alarm *alarm); /* wakes it now */

#endif

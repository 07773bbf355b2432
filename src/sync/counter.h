/* Plain atomics for the folders that do not include <stdatomic.h>: counts and flags that order
 * nothing by themselves (relaxed) unless the function's name says so. */
#ifndef TELLTALE_SYNC_COUNTER_H
#define TELLTALE_SYNC_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counter { _Atomic int64_t value; };
int64_t counter_add(struct counter *counter, int64_t delta); /* value after */
void counter_set(struct counter *counter, int64_t value); /* where one thread alone writes */
int64_t counter_get(const struct counter *counter);
/* The same as release and acquire: who reads a value sees what was written before it was made. */
int64_t counter_add_release(struct counter *counter, int64_t delta);
int64_t counter_get_acquire(const struct counter *counter);

struct flag { _Atomic bool value; };
void flag_raise(struct flag *flag);          /* release: publishes what was written before */
bool flag_is_up(const struct flag *flag);    /* acquire */
void flag_lower(struct flag *flag);

#endif

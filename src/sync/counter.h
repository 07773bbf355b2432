/* Plain atomics for the folders that do not include <stdatomic.h>: counts and flags that order
 * nothing by themselves (relaxed) unless the function's name says so. */
#ifndef TELLTALE_SYNC_COUNTER_H
#define TELLTALE_SYNC_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counter { _Atomic int64_t value; };
int64_t counter_add(struct counter *counter, int64_t delta); /* value after */
int64_t counter_get(const struct counter *counter);

struct flag { _Atomic bool value; };
void flag_raise(struct flag *flag);          /* release: publishes what was written before */
bool flag_is_up(const struct flag *flag);    /* acquire */
void flag_lower(struct flag *flag);

#endif

/* The clients of a step and when each wants to send next: a heap by instant. Pure. */
#ifndef TELLTALE_LOAD_USERS_H
#define TELLTALE_LOAD_USERS_H

#include "load/plan.h"
#include <stdbool.h>

struct user {
    struct user_plan plan;  /* paced only */
    uint64_t next_ns;       /* planned instant of its next request (mono_ns) */
    uint64_t wake_ns;       /* when to look at it: next_ns, or later after a failed connection */
    uint64_t free_ns;       /* since when it waits for nothing */
};

struct users {
    struct user *items;
    uint32_t count;
    uint32_t *heap;     /* users who wait for their instant, smallest wake_ns first */
    uint32_t heap_size;
};
MUST_CHECK enum status users_create(uint32_t count, struct users *out, struct err *err);
void users_done(struct users *users);
void users_push(struct users *users, uint32_t user); /* by its wake_ns; not in the heap yet */
/* Who is due next; false when nobody waits. */
bool users_first(const struct users *users, uint32_t *out_user);
void users_pop(struct users *users);

#endif

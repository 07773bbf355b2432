/* What kind of thread this is. Thread-bound functions begin with assert_role. */
#ifndef TELLTALE_SYNC_ROLE_H
#define TELLTALE_SYNC_ROLE_H

#include <assert.h>

enum role {
    ROLE_OTHER,
    ROLE_LOOP,
    ROLE_WORKER,
    ROLE_INSTANCE,
    ROLE_SAMPLER,
    ROLE_LOADER,
    ROLE_TIMEKEEPER,
    ROLE_COUNT
};

const char *role_name(enum role role); /* "loop" */
/* Also names the thread for ps and debuggers, e.g. "tt-loop-0". */
void role_set(enum role role, unsigned index);
enum role role_get(void);
#define assert_role(role) assert(role_get() == (role))

#endif

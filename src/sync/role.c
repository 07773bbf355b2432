/* Thread roles: one thread-local word. Any thread, each for itself. */
#include "sync/role.h"

#include <pthread.h>
#include <stdio.h>

static _Thread_local enum role role_now = ROLE_OTHER;

const char *role_name(enum role role) {
    static const char *const NAMES[ROLE_COUNT] = {
        [ROLE_OTHER] = "other",       [ROLE_LOOP] = "loop",       [ROLE_WORKER] = "worker",
        [ROLE_INSTANCE] = "instance", [ROLE_SAMPLER] = "sampler", [ROLE_LOADER] = "loader",
        [ROLE_TIMEKEEPER] = "timekeeper",
    };
    return (unsigned)role < ROLE_COUNT ? NAMES[role] : "unknown";
}

void role_set(enum role role, unsigned index) {
    char name[16]; /* the kernel's limit, terminator included */
    role_now = role;
    snprintf(name, sizeof(name), "tt-%.8s-%u", role_name(role), index % 1000);
    /* Only people read it, so a failure changes nothing. */
    (void)pthread_setname_np(pthread_self(), name);
}

enum role role_get(void) { return role_now; }

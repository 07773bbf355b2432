/* Names of the stages and of the reasons to dispatch a batch, from the tables in stage.h.
 *
 * Thread: any; only constants. */
#include "measure/stage.h"

static const char *const stage_names[STAGE_COUNT] = {
#define X(name, text, help) [STAGE_##name] = text,
    STAGE_TABLE(X)
#undef X
};

static const char *const stage_helps[STAGE_COUNT] = {
#define X(name, text, help) [STAGE_##name] = help,
    STAGE_TABLE(X)
#undef X
};

static const char *const reason_names[REASON_COUNT] = {
#define X(name, text, help) [REASON_##name] = text,
    REASON_TABLE(X)
#undef X
};

const char *stage_name(enum stage stage) {
    return (unsigned)stage < STAGE_COUNT ? stage_names[stage] : "unknown";
}

const char *stage_help(enum stage stage) {
    return (unsigned)stage < STAGE_COUNT ? stage_helps[stage] : "";
}

bool stage_is_queue(enum stage stage) {
    return stage == STAGE_BATCH_ENQUEUE || stage == STAGE_BATCH_HOLD ||
           stage == STAGE_INSTANCE_WAIT || stage == STAGE_DISPATCH;
}

const char *reason_name(enum reason reason) {
    return (unsigned)reason < REASON_COUNT ? reason_names[reason] : "unknown";
}

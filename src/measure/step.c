/* Names of a pipeline's steps, from the table in step.h. Thread: any; only constants. */
#include "measure/step.h"

static const struct {
    const char *name, *help;
    enum stage stage;
} steps[STEP_COUNT] = {
#define X(name, text, stage, help) [STEP_##name] = {text, help, STAGE_##stage},
    STEP_TABLE(X)
#undef X
};

const char *step_name(enum step step) { return steps[step].name; }
const char *step_help(enum step step) { return steps[step].help; }
enum stage step_stage(enum step step) { return steps[step].stage; }

/* Trace records as lines of JSON: objects of which every field is always there (and flat but for
 * "steps"), integers in ns where the name says so. docs/trace.md is the description of what is written here; change both. */
#ifndef TELLTALE_MEASURE_TRACE_JSON_H
#define TELLTALE_MEASURE_TRACE_JSON_H

#include "base/buf.h"
#include "measure/trace.h"

#define SAMPLED_TABLE(X)                                                                       \
    X(NONE,    "none")    /* not written */                                                   \
    X(BATCH,   "batch")   /* shared a batch with a written request */                         \
    X(UNIFORM, "uniform") /* in the uniform sample */                                         \
    X(SLOW,    "slow")    /* among the slowest of its window (and perhaps in the sample too) */ \
    X(ALL,     "all")     /* every request is written */

enum sampled {
#define X(name, text) SAMPLED_##name,
    SAMPLED_TABLE(X)
#undef X
    SAMPLED_COUNT
};

/* Why a request is written. */
struct sampling {
    enum sampled why;
    bool is_uniform;  /* in the uniform sample, whatever why says */
    double share;     /* the uniform sample's share in force: weight such requests by 1/share */
};

/* model_json: the model's name as a JSON string, quotes included. Appends one line with its
 * newline, or nothing at all when memory is out (out->failed). */
void trace_json_request(struct buf *out, const struct trace_record *record,
                        struct view model_json, struct sampling sampling);
void trace_json_batch(struct buf *out, const struct batch_record *record,
                      struct view model_json);
/* "ok", "invalid", ...: the name of a status as the files have it. */
const char *trace_json_status(unsigned status);

#endif

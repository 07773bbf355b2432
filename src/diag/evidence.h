/* What a run's traces say, in means: the slow requests beside the middle of the distribution,
 * the batches, the cost of an execution. Pure; no judgement here (causes.h). */
#ifndef TELLTALE_DIAG_EVIDENCE_H
#define TELLTALE_DIAG_EVIDENCE_H

#include "diag/overlap.h"
#include "diag/run.h"

/* Means over the requests of a group, weighted. */
struct group {
    uint64_t requests;
    double weight;
    double whole_ns, total_ns;         /* with the client's side; the server's */
    double part_ns[PART_COUNT];
    double step_ns[STEP_COUNT];        /* of preprocess and postprocess */
    double queue_ns;                   /* enqueued to taken */
    double wake_ns;                    /* of it: batch ready, instance free, not yet taken */
    double lock_wait_ns, lock_waited;  /* the latter: share of requests that waited for it */
    double holder_ns[HOLDER_COUNT];
    double activity_ns[ACTIVITY_COUNT]; /* of the instances, during the queue wait */
    double ahead_ns;                   /* length of the batch in front, where it is known */
    double ahead_known;                /* share of requests for which it is */
    double tokens, padded, bytes_in, bytes_out, batch_size;
    double pictures, scalable_jpegs;   /* the latter: that jpeg_scaling, which is off, would help */
    double batch_rows, elements;       /* of the request's batch, where written */
    double cpu_ns, run_delay_ns;       /* likewise, over its execution */
    double reason_share[REASON_COUNT];
    uint64_t from_ns, to_ns;           /* range of whole_ns */
};

struct batch_evidence {
    uint64_t written;
    double count;                      /* estimated, of the whole run */
    double size, fill, waiting;        /* means; fill: of max_batch */
    uint32_t size_p50, size_p99, max_batch;
    double reason_share[REASON_COUNT];
    double padding_waste;              /* 0: none, or nothing is padded */
    double busy_ns, inline_ns, execute_ns, cpu_ns, run_delay_ns; /* means a batch */
};

/* execute = a + b * x, least squares over the written batches. */
struct cost_fit {
    bool is_known;
    bool is_by_elements;               /* x: padded elements; else rows */
    uint64_t batches;
    double a_ns, b_ns, r2, residual_ns; /* residual: standard deviation */
};

enum slow_rule {
    SLOW_OF_ALL,      /* the slowest of every request */
    SLOW_BY_WINDOW,   /* as the tracer chose them: the slowest of each window */
    SLOW_OF_UNIFORM   /* the slowest of the uniform sample */
};

enum { SLOW_MEMBER = 1, MIDDLE_MEMBER = 2, SLOWEST_SHOWN = 3 };

struct evidence {
    const struct run *run;
    uint8_t *members;                  /* one a request: SLOW_MEMBER | MIDDLE_MEMBER */
    struct group slow, middle, all;    /* all: the uniform sample */
    double slow_share;
    enum slow_rule slow_rule;
    uint32_t slowest[SLOWEST_SHOWN];   /* requests, slowest first */
    uint32_t slowest_count;
    uint64_t p50_ns, p99_ns;           /* of the uniform sample */
    struct batch_evidence batches;
    struct cost_fit fit;
    uint32_t instances;
    uint64_t from_ns, to_ns;           /* from the first request's beginning to the last's end */
    double span_ns, rate;              /* requests a second */
    double in_flight;                  /* Little's law */
    double utilisation;                /* of the instances, 0..1; < 0: not known */
    double dispersion;                 /* of arrivals, variance by mean; 0: not known */
    bool is_simulated, is_inline, is_timer;
};

/* ST_UNAVAILABLE when there is too little to compare; err names the remedy. The run's requests
 * get their tokenizing_wait_ns. */
MUST_CHECK enum status evidence_create(struct run *run, double slow_share, struct evidence *out,
                                       struct err *err);
void evidence_done(struct evidence *evidence); /* zeroed allowed */

/* The request's batch; NULL: none, or not written. */
const struct run_batch *evidence_batch(const struct evidence *evidence,
                                       const struct run_request *request);
/* Batch ready and instance free, but its thread had not taken it yet. */
double evidence_wake_ns(const struct run_request *request);
/* Difference of the means, slow less middle. */
double evidence_excess_ns(const struct evidence *evidence);

#endif

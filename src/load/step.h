/* One step of load: warm-up, then the measured window, then the wait for what is still out.
 * Loop thread. Latency counts from the planned send wherever there is a plan. */
#ifndef TELLTALE_LOAD_STEP_H
#define TELLTALE_LOAD_STEP_H

#include "load/plan.h"
#include "load/target.h"
#include "measure/histogram.h"

enum load_mode {
    LOAD_CLOSED, /* concurrency clients, each sends again when its answer is there */
    LOAD_OPEN,   /* arrivals at a rate, whatever is still out */
    LOAD_PACED   /* concurrency users with a schedule each, who wait for their answers */
};
const char *load_mode_name(enum load_mode mode); /* "closed" */

struct step_config {
    uint32_t number;        /* 1, 2, ... */
    enum load_mode mode;
    uint32_t concurrency;   /* closed, paced */
    double rate;            /* open, paced: requests a second */
    enum arrivals arrivals;
    uint64_t seed;
    uint64_t duration_ns;
    uint64_t request_limit; /* measured requests; 0: duration only */
    uint64_t warmup;        /* requests; 0: none */
    uint64_t timeout_ns;    /* from the actual send */
    uint64_t max_in_flight; /* open */
    bool spin;              /* spin through the last 100 us before a planned send */
};

struct step_error {
    enum outcome outcome;
    int http;
    uint64_t count;
    char detail[CALL_DETAIL_SIZE]; /* of the first of its kind */
};
enum { STEP_MAX_ERRORS = 16 };

struct step_result {
    struct step_config config;
    struct sample_list samples; /* warm-up and measured, in order of completion */
    struct step_error errors[STEP_MAX_ERRORS]; /* measured requests, by kind */
    uint32_t error_kinds;
    uint64_t start_ns, end_ns; /* of the measured window */
    uint64_t drained_ns;       /* last answer, or end_ns */
    struct histogram lateness_ns; /* actual - planned send while the client was free; 2 digits */
    uint64_t process_cpu_ns, thread_cpu_ns; /* from start_ns to drained_ns */
    uint64_t unsent;           /* planned but given up before they could be sent */
    bool is_interrupted;
    bool is_hopeless;          /* the first STEP_HOPELESS requests all failed */
};
enum { STEP_HOPELESS = 50 };
void step_result_done(struct step_result *result); /* zeroed allowed */

/* What a progress line shows. */
struct step_progress {
    const struct step_config *config;
    enum phase phase;
    uint64_t elapsed_ns, answered, failed, in_flight;
};

struct runner;
/* Sets the target's on_done. Installs handlers for SIGINT and SIGTERM while it lives. */
MUST_CHECK enum status runner_create(struct loop *loop, struct target *target,
                                     struct runner **out, struct err *err);
void runner_free(struct runner *runner); /* NULL allowed */
/* Called about once a second while a step runs; NULL: never. */
void runner_on_progress(struct runner *runner, void (*fn)(void *ctx, const struct step_progress *),
                        void *ctx);
/* Warm-up alone, then the measured part: between the two the caller reads the server's counters.
 * Both return when nothing is in flight. out is initialised by the warm-up. */
MUST_CHECK enum status runner_warm_up(struct runner *runner, const struct step_config *config,
                                      struct step_result *out, struct err *err);
MUST_CHECK enum status runner_measure(struct runner *runner, struct step_result *result,
                                      struct err *err);

#endif

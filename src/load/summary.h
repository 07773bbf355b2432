/* What a step's samples add up to: the figures of result.json and of the tables. */
#ifndef TELLTALE_LOAD_SUMMARY_H
#define TELLTALE_LOAD_SUMMARY_H

#include "load/scrape.h"
#include "load/step.h"

struct stage_summary {
    bool is_seen;        /* some request spent time there, or the server named it */
    double mean_ns;
    uint64_t p99_ns;
    double share;        /* of the summed latency */
    double tail_share;   /* of the summed latency of the slowest 1 % */
};

struct step_summary {
    struct step_config config;
    uint64_t requests;   /* measured, interrupted ones left out */
    uint64_t ok, timeouts, failed; /* failed: answered with an error status, or no connection */
    uint64_t unsent;     /* of the timeouts: never sent */
    uint64_t cancelled;
    double window_s;     /* measured window */
    double qps;          /* successful answers within the window, a second */
    double offered;      /* planned sends within it, a second; closed loop: sends */
    struct distribution latency, service; /* successes and timeouts */
    struct distribution failed_latency;
    double in_flight;    /* Little: qps * mean latency */
    double in_flight_sent; /* qps * mean service time: what the server had at once */
    /* The server's own account, joined request by request. */
    uint64_t with_server;
    struct distribution server_total;
    struct stage_summary stages[STAGE_COUNT];
    struct stage_summary outside; /* waiting to be sent, network, kernel, client */
    uint64_t tail_count;          /* requests in the slowest 1 %, with the server's account */
    struct distribution bytes_out, bytes_in, tokens;
    /* Processor and device, over the step. */
    double client_cpu;   /* processors used by this process */
    double generator_cpu; /* by the loop thread alone: at most 1 */
    bool has_server_cpu;
    double server_cpu;   /* processors */
    bool has_device;
    double device_busy;  /* share, 0..1, of the instances' time */
    double instances;
    struct distribution lateness; /* from the histogram; count 0 in a closed loop */
    bool is_valid;
    char reason[320];    /* why it is not; "" */
    bool is_interrupted, is_hopeless;
    uint32_t error_kinds;
    struct step_error errors[STEP_MAX_ERRORS];
};

/* before, after: the server's counters around the step, elapsed_s apart; NULL: not known. */
MUST_CHECK enum status summary_of(const struct step_result *result, struct step_summary *out,
                                  struct err *err);
void summary_add_server(struct step_summary *summary, const struct scrape *before,
                        const struct scrape *after, double elapsed_s);

#endif

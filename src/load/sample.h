/* What is kept of one request: instants, outcome, sizes, the server's stages. A step's samples
 * are one growing array, so that quantiles are exact and every request can be written out. */
#ifndef TELLTALE_LOAD_SAMPLE_H
#define TELLTALE_LOAD_SAMPLE_H

#include "measure/stage.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTCOME_TABLE(X)                                                                       \
    X(OK,         "ok",         "answered with success")                                      \
    X(REFUSED,    "status",     "answered with an error status")                              \
    X(TIMEOUT,    "timeout",    "no answer within --timeout")                                 \
    X(CONNECTION, "connection", "the connection failed before the answer was complete")       \
    X(CANCELLED,  "cancelled",  "given up because the run was interrupted; not counted")

enum outcome {
#define X(name, text, help) OUTCOME_##name,
    OUTCOME_TABLE(X)
#undef X
    OUTCOME_COUNT
};
const char *outcome_name(enum outcome outcome);

enum phase { PHASE_WARMUP, PHASE_MEASURE };
const char *phase_name(enum phase phase);

struct sample {
    uint64_t planned_ns;    /* when it was due; the actual send where there is no plan */
    uint64_t sent_ns;       /* handed to the kernel or the engine; 0: never sent */
    uint64_t first_byte_ns; /* of the answer; 0: none came */
    uint64_t done_ns;       /* answer complete, or given up */
    uint64_t server_total_ns; /* as the server says; 0: it does not */
    float stage_us[STAGE_COUNT];
    uint32_t number;        /* within its phase, in order of sending, from 0 */
    uint32_t input;         /* which text or tensors */
    uint32_t bytes_out, bytes_in; /* bodies */
    uint32_t tokens;        /* 0: not known */
    uint16_t http;          /* status code; 0: no answer */
    uint8_t outcome;        /* enum outcome */
    uint8_t phase;          /* enum phase */
    bool has_stages;
};

/* Latency counts from the plan, service time from the send. */
uint64_t sample_latency_ns(const struct sample *sample);
uint64_t sample_service_ns(const struct sample *sample); /* 0 when it was never sent */
/* In the latency figures: answered, or timed out (a timeout is the slowest answer of all).
 * Other errors are quick and would make the server look fast. */
bool sample_has_latency(const struct sample *sample);

struct sample_list {
    struct sample *items;
    size_t count, capacity;
    bool failed; /* memory was out: the list is not complete */
};
void sample_list_add(struct sample_list *list, const struct sample *sample);
void sample_list_done(struct sample_list *list);

#endif

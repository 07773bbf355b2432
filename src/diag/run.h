/* A run as explain sees it: the written requests and batches of one model, and what the summary
 * and the configuration say beside them. Plain arrays; everything else in this folder is pure
 * functions over them. run_read.c fills it from files, tests fill it by hand. */
#ifndef TELLTALE_DIAG_RUN_H
#define TELLTALE_DIAG_RUN_H

#include "base/buf.h"
#include "base/status.h"
#include "measure/step.h"
#include "measure/trace_json.h"
#include <stdbool.h>
#include <stdint.h>

/* Where a request's time goes: the server's stages, and outside the server what the client that
 * was joined by id saw on top. */
enum part {
    PART_NETWORK = STAGE_COUNT, /* sent to answered, less the server's total */
    PART_GENERATOR,             /* planned to sent */
    PART_COUNT
};
const char *part_name(enum part part);

enum holder {
    HOLDER_NONE, HOLDER_LOOP, HOLDER_WORKER, HOLDER_INSTANCE, HOLDER_OTHER, HOLDER_COUNT
};
const char *holder_name(enum holder holder);

enum { NO_BATCH = -1 };

/* Parts are floats: the sums and the residual are taken of the integers while reading, and a
 * million requests fit into some hundred megabytes. */
struct run_request {
    uint64_t start_ns, total_ns; /* the server's total */
    uint64_t enqueued_ns, free_ns, ready_ns, taken_ns;
    uint64_t batch;          /* 0: none */
    double whole_ns;         /* of all parts */
    float part_ns[PART_COUNT];
    float step_ns[STEP_COUNT]; /* inside preprocess and postprocess */
    float lock_wait_ns;
    float tokenizing_wait_ns; /* of instance_wait: instances were tokenizing (overlap.h) */
    float weight;            /* in the uniform sample: requests it stands for; 0: not in it */
    uint32_t id;             /* place in run.ids */
    uint32_t batch_size, rows, tokens, padded, bytes_in, bytes_out;
    uint32_t pictures, scalable_jpegs; /* the latter: jpeg_scaling would help them, and is off */
    int32_t batch_index;     /* in run.batches; NO_BATCH: none, or not written */
    uint16_t model, step;    /* step: of the client that was joined; 0: none was */
    uint8_t sampled, holder, reason, instance;
    bool is_ok;
};

struct run_batch {
    uint64_t batch;
    uint64_t free_ns, ready_ns, taken_ns, inputs_ready_ns, executed_ns, outputs_ready_ns;
    uint64_t inline_ns;      /* tokenizing in the instance's thread, from taken_ns on */
    uint64_t real_elements, padded_elements, cpu_ns, run_delay_ns;
    uint32_t requests, rows, max_batch, waiting;
    float weight;            /* batches it stands for, from its uniform requests */
    uint16_t model;
    uint8_t instance, reason;
    bool failed, simulated;
};

enum { RUN_MODELS_MAX = 256, RUN_TEXT = 96 };

struct run_config { /* "" and 0: not known */
    bool is_known;
    char queue[16], policy[16], preprocess[16], backend[RUN_TEXT], simulate[RUN_TEXT];
    char sha256[72];
    uint64_t max_batch, max_delay_us, instances, intra_op_threads, workers, processors;
};

struct run_summary {
    bool is_known, is_complete;
    bool is_all;             /* every request was written */
    double slow_share;       /* of a window: those were chosen as slow; 0: not known */
    uint64_t requests, ok, dropped;
    uint64_t out_of_order;
};

struct run {
    struct run_request *requests;
    size_t count, capacity;
    struct run_batch *batches; /* by number */
    size_t batch_count, batch_capacity;
    struct buf ids;            /* texts, terminated */
    char model[RUN_TEXT];      /* the one explained */
    char models[RUN_MODELS_MAX][RUN_TEXT];
    uint64_t model_requests[RUN_MODELS_MAX]; /* lines */
    uint32_t model_count;
    struct run_config config;
    struct run_summary summary;
    uint64_t lines_cut;        /* last lines that were not whole */
    uint64_t lines;            /* of requests.jsonl */
    uint64_t warm_up;          /* left out: `telltale bench` marks its warm-up by the id, "w1-17" */
    uint64_t not_ok;           /* left out: they did not end in success */
    double residual_max_ns;    /* largest |total - sum of stages| */
    uint64_t client_lines;     /* of client.jsonl; 0: there was none */
    uint64_t joined;           /* requests that remain have all been found there when not 0 */
    uint64_t not_joined;       /* left out: warm-up, other steps, other clients */
    uint32_t steps, step;      /* of the client's file: the highest, and the one looked at */
    uint64_t step_ok;          /* measured requests of that step that the client saw succeed */
};

/* Zeroes too. */
void run_init(struct run *run);
void run_done(struct run *run);
/* Appends one; false when memory is out. */
bool run_add_request(struct run *run, const struct run_request *request);
bool run_add_batch(struct run *run, const struct run_batch *batch);
/* to - from as a duration; 0 where it would be negative. */
double run_span_ns(uint64_t from_ns, uint64_t to_ns);
const char *run_id(const struct run *run, const struct run_request *request);
/* After everything was added: keeps the model named (NULL: the one with most requests), drops
 * what did not succeed, orders batches, links requests with them, weighs them. */
MUST_CHECK enum status run_finish(struct run *run, const char *model, struct err *err);
/* What the client saw of the request: parts and whole follow. */
void run_join(struct run_request *request, uint64_t latency_ns, uint64_t service_ns,
              uint32_t step);
/* Keeps the joined requests of run->step (0: the last one) where any was joined. */
void run_keep_step(struct run *run);

#endif

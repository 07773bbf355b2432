/* One record a request and one a batch, always written, into per-thread rings; a writer thread
 * drains them into histograms and, where a directory was named, into JSON Lines.
 *
 * Instants are stamped on the way (mono_ns; 0 = that step did not happen) and turned into stage
 * durations in one place, trace_durations(). */
#ifndef TELLTALE_MEASURE_TRACE_H
#define TELLTALE_MEASURE_TRACE_H

#include "base/status.h"
#include "base/view.h"
#include "measure/step.h"
#include <stdbool.h>
#include <stdint.h>

/* Instants in the order in which they happen. AT_X is the END of the interval whose stage
 * stands beside it; an instant that is 0 gives its stage no time, and the next stamped one
 * starts at the last stamped one. Stamps never go back; one that does gives its stage no time,
 * and the request is counted in stamps_out_of_order, which tests hold at 0.
 * AT_ENQUEUED .. AT_DISPATCHED are the queue: the time from enqueued to taken is split between
 * hold, instance wait and dispatch by the batcher, which stamps all three. */
#define AT_TABLE(X)                                                                            \
    X(START,            OTHER)            /* first byte readable; begins the total */           \
    X(RECEIVED,         RECEIVE)                                                                \
    X(DECODE_START,     PREPROCESS_WAIT)  /* large bodies only: a worker took it */             \
    X(DECODED,          DECODE)                                                                 \
    X(PREPROCESS_START, PREPROCESS_WAIT)                                                        \
    X(PREPROCESS_END,   PREPROCESS)                                                             \
    X(ENQUEUED,         BATCH_ENQUEUE)    /* now visible to the instances */                    \
    X(INSTANCE_FREE,    INSTANCE_WAIT)    /* an instance became free (= ENQUEUED if one was) */ \
    X(BATCH_READY,      BATCH_HOLD)       /* the policy's condition to dispatch became true */  \
    X(TAKEN,            DISPATCH)         /* the instance thread has taken the batch */         \
    X(INLINE_START,     PREPROCESS_WAIT)  /* --preprocess inline only: its turn came, */        \
    X(INLINE_END,       PREPROCESS)       /* its own tokenizing ended; its neighbours' is */    \
    X(INPUTS_START,     PREPROCESS_WAIT)  /* preprocess_wait: they share the thread */          \
    X(INPUTS_READY,     INPUT_COPY)                                                             \
    X(EXECUTED,         EXECUTE)                                                                \
    X(OUTPUTS_READY,    OUTPUT_COPY)                                                            \
    X(POSTPROCESS_START, POSTPROCESS_WAIT)                                                      \
    X(POSTPROCESS_END,  POSTPROCESS)                                                            \
    X(ENCODE_START,     OTHER)            /* hand-over back to the loop */                      \
    X(ENCODED,          ENCODE)                                                                 \
    X(SENT,             SEND)             /* ends the total */

enum at {
#define X(name, stage) AT_##name,
    AT_TABLE(X)
#undef X
    AT_COUNT
};

enum { TRACE_ID_SIZE = 48, TRACE_MODEL_MAX = 65535 };

struct trace_record {
    uint64_t at[AT_COUNT];
    char id[TRACE_ID_SIZE]; /* terminated; the client's id, or ours "r-<n>"; cut when longer */
    uint64_t batch;         /* batch_record.batch; 0: never batched */
    uint64_t lock_wait_ns;  /* part of BATCH_ENQUEUE spent waiting for the queue's lock */
    uint32_t batch_size;    /* requests in the batch */
    uint32_t rows;          /* this request's own rows */
    uint32_t tokens;        /* real length on the padded axis; 0: none */
    uint32_t padded;        /* length it was padded to */
    uint32_t bytes_in, bytes_out;
    uint32_t step_ns[STEP_COUNT]; /* inside PREPROCESS and POSTPROCESS; 0: did not happen */
    uint16_t pictures;      /* decoded */
    uint16_t scalable_jpegs; /* of them those that jpeg_scaling, were it on, would decode smaller */
    uint16_t model;         /* index given by trace_model() */
    uint16_t status_http;
    uint8_t status;         /* enum status */
    uint8_t reason;         /* enum reason */
    uint8_t lock_holder;    /* enum role of the holder waited for */
    uint8_t instance;
};

struct batch_record {
    uint64_t batch; /* 1, 2, ... over the whole process */
    uint64_t free_ns;    /* the instance became free */
    uint64_t ready_ns;   /* the condition to dispatch became true */
    uint64_t taken_ns, inputs_ready_ns, executed_ns, outputs_ready_ns;
    uint64_t inline_preprocess_ns; /* spent tokenizing in the instance thread */
    uint64_t real_elements, padded_elements; /* over the padded axis: tokens; 0: none */
    uint64_t cpu_ns;     /* of the instance thread, over the execution */
    uint64_t run_delay_ns; /* waiting for a processor over the execution (schedstat); 0: unknown */
    uint32_t requests, rows, max_batch;
    uint32_t waiting;    /* requests left in the queue when it was taken */
    uint16_t model;
    uint8_t instance, reason, failed, simulated;
};

/* Durations of all stages in ns, sum = at[SENT] - at[START] exactly (or the last stamped
 * instant). out has STAGE_COUNT entries. Returns the total. */
uint64_t trace_durations(const struct trace_record *record, uint64_t *out);
/* The same, and whether no stamp lies before an earlier one. */
uint64_t trace_durations_checked(const struct trace_record *record, uint64_t *out,
                                 bool *out_ordered);
/* The latest stamp; 0 when there is none. */
uint64_t trace_end(const struct trace_record *record);

struct tracer;
struct trace_ring; /* one a writing thread */

struct tracer_config {
    const char *directory;   /* NULL: histograms only */
    bool all;                /* write every request */
    double uniform_share;    /* of requests, 0.01: a uniform sample of whole batches; 0: none */
    double slow_share;       /* 0.01: slowest share of each window; 0: none */
    uint64_t window_ns;      /* over which "slowest" is decided; 0: 1 s */
    uint64_t max_bytes;      /* of requests.jsonl and batches.jsonl together; 0: no limit */
    uint32_t ring_records;   /* of each kind, in each writing thread's ring; 0: 16384 */
    bool is_off;             /* for the overhead benchmark only: records are dropped at once */
    void (*on_record)(void *ctx, const struct trace_record *record); /* writer thread; may be NULL */
    void *ctx;
};

/* Creates DIR and the directories above it (fails when it holds a run already, naming the
 * remedy), starts the writer thread (ROLE_SAMPLER). Files: requests.jsonl, batches.jsonl, and
 * on tracer_free summary.json; docs/trace.md describes them. On failure *out_tracer is
 * untouched and there is nothing to free. config's strings are copied. */
MUST_CHECK enum status tracer_create(const struct tracer_config *config, struct tracer **out_tracer,
                                     struct err *err);
/* Drains, writes, joins; the threads that write records must have stopped. NULL allowed. */
void tracer_free(struct tracer *tracer);
/* Instead of tracer_free where the run never came to be (its start failed): takes the files that
 * tracer_create made away again, so that the directory can be used. NULL allowed. */
void tracer_discard(struct tracer *tracer);
/* Registers a model; the index goes into the records. name is copied; the same name gives the
 * same index. TRACE_MODEL_MAX: no memory; records with it are counted as dropped. Any thread. */
uint16_t tracer_model(struct tracer *tracer, const char *name);
/* Adds a ring for the calling thread to write (never freed before the tracer); NULL: no memory.
 * Any thread. */
struct trace_ring *tracer_ring(struct tracer *tracer);
/* The thread that wrote it has ended: the ring may be another's. NULL allowed. */
void tracer_ring_give_back(struct tracer *tracer, struct trace_ring *ring);
/* The hot path: copies the record; never blocks, drops and counts when the ring is full. One
 * thread a ring. Wait-free; a system call once in half a ring of records, to wake the writer
 * thread early. ring NULL: does nothing. */
void trace_request(struct trace_ring *ring, const struct trace_record *record);
void trace_batch(struct trace_ring *ring, const struct batch_record *record);
/* Writes DIR/<file> once, e.g. "config.json", with text. No directory: does nothing, ST_OK. */
MUST_CHECK enum status tracer_attach(struct tracer *tracer, const char *file, struct view text,
                                     struct err *err);
/* Histograms of the I/O loop's turns and of its processor time in them, in ns, for summary.json:
 * read by tracer_free, when whoever records into them must have stopped. */
struct histogram;
void tracer_set_loop_turns(struct tracer *tracer, const struct histogram *turn_ns,
                           const struct histogram *cpu_ns);
/* Returns when all that the calling thread (and whoever it has heard from) recorded before is
 * in the statistics. Not for the request path: it waits for the writer thread. */
void tracer_sync(struct tracer *tracer);
/* A model's statistics so far, under the tracer's own lock (writer thread and scrapers only; not
 * from on_record). NULL: no such model, and the lock is NOT held. */
struct trace_stats;
const struct trace_stats *tracer_stats_lock(struct tracer *tracer, uint16_t model);
void tracer_stats_unlock(struct tracer *tracer);
/* Records that never reached the statistics: a ring was full, or the model was unknown. */
uint64_t tracer_dropped(const struct tracer *tracer);
/* What goes into the files from now on (the statistics always have all): whether anything does,
 * and the uniform sample's share. Takes effect within the writer's next pass. Any thread. */
struct trace_sampling {
    bool is_on;
    double uniform_share;
};
void tracer_set_sampling(struct tracer *tracer, struct trace_sampling sampling);
struct trace_sampling tracer_sampling(struct tracer *tracer);
/* The directory written to; NULL: none. Valid as long as the tracer. */
const char *tracer_directory(const struct tracer *tracer);
/* ST_OK while the files are being written (or no directory was named); else why writing
 * stopped: serving and statistics go on without. */
enum status tracer_write_status(struct tracer *tracer, struct err *err);

#endif

/* Dynamic batching for one model: a queue, its instances (one thread each), the policy.
 *
 * Journey of a job: batcher_push (any thread) -> queue -> collected by a free instance into
 * buckets of like shape -> taken as a batch when the policy says so -> gathered and padded ->
 * executed -> scattered -> on_done, once a batch, on the instance's thread.
 *
 * A job belongs to the batcher from a successful push until on_done. Batches are closed late:
 * only a free instance forms one. */
#ifndef TELLTALE_BATCH_BATCHER_H
#define TELLTALE_BATCH_BATCHER_H

#include "base/arena.h"
#include "batch/policy.h"
#include "batch/queue_policy.h"
#include "infer/model.h"
#include "measure/trace.h"
#include "sync/counter.h"
#include "sync/mpsc.h"
#include "sync/timed_mutex.h"

struct job {
    struct mpsc_node node;       /* the queue's */
    struct job *next;            /* the batch's list, in on_done */
    const struct tensor *inputs; /* signature's order and count; the first dimension is rows */
    struct tensor *outputs;      /* set before on_done: signature's order, in arena */
    struct arena *arena;         /* the owner's; used by the instance between push and on_done */
    struct trace_record *trace;  /* stamped here from AT_ENQUEUED to AT_OUTPUTS_READY */
    uint32_t rows;               /* >= 1; 0 when the model is not batched */
    uint32_t length;             /* of the padded axis; 0: none (or not known before prepare) */
    uint64_t deadline_ns;        /* of the answer, mono_ns; 0: none */
    uint64_t priority;           /* 1: highest; 0, or more than there are levels: the default level */
    uint64_t timeout_ns;         /* its own, in the queue (struct queue_policy); 0: none */
    struct staging *staging;     /* where rows are reserved for it (staging.h); NULL: nowhere */
    uint64_t staged_at;          /* staging's */
    uint32_t staged_rows;        /* staging's */
    struct flag is_cancelled;    /* raised by batcher_cancel */
    enum status status;          /* result; ST_CANCELLED, ST_EXPIRED, ST_TIMEOUT when dropped */
    struct err err;

    /* the batcher's */
    struct job *previous;        /* in its bucket, as next */
    uint64_t shape_hash;         /* its bucket's */
    uint32_t rank;               /* its bucket's: a lower one is served first */
    uint32_t level;              /* 1: highest */
    uint64_t queue_deadline_ns;  /* end of its timeout in the queue; 0: none */
    uint64_t expires_ns;         /* when the queue is to do something about it; 0: never */
    uint32_t expiry_at;          /* expiry's */
    uint64_t order;              /* of arrival, where answers have to keep it */
};

enum queue_kind { QUEUE_RING, QUEUE_MUTEX, QUEUE_KIND_COUNT };
#define QUEUE_CHOICES "ring|mutex"

struct batcher_config {
    enum queue_kind queue;
    struct policy_config policy;  /* max_batch 0 becomes "not batched" */
    bool is_batched;              /* the model can batch and the user wants it */
    uint32_t input_count;         /* the model's */
    uint32_t instances;
    uint32_t queue_limit;         /* jobs waiting; more are refused with ST_OVERLOADED */
    /* Priorities (queue_policy.h). Zeroed: one level, no timeout, no limit but queue_limit. */
    struct queue_policies queue_policies; /* its levels are copied by batcher_create */
    bool preserve_ordering;       /* answers in the order of arrival */
    /* Padded axis of each input: -1 none. Where one is set, jobs of different length may share a
     * batch and shorter ones are filled with pad_value (not 0: INT64 and INT32 inputs), behind
     * their own elements or, where pads_left, before them. */
    int32_t pad_axis[MODEL_MAX_IO];
    int64_t pad_value[MODEL_MAX_IO];
    bool pads_left;
    /* The same axis in an output: cut back to the job's own length. -1: none. */
    int32_t output_pad_axis[MODEL_MAX_IO];
    /* Bytes of a row where all rows of an input are of one size and prepared here, so that they
     * can be written where the batch will run them (staging.h); 0: not this input. */
    size_t staged_row_bytes[MODEL_MAX_IO];
    uint32_t staged_rows;       /* room for them; 0: a few of the largest batches */
    /* --preprocess inline: called on the instance's thread for each job of a batch before the
     * inputs are gathered; sets inputs and length. NULL: inputs are ready at push. */
    enum status (*prepare)(struct job *job, void *ctx);
    /* A finished batch: list through job->next, in order. */
    void (*on_done)(struct job *list, void *ctx);
    void *ctx;
    struct tracer *tracer;      /* NULL: no trace */
    uint16_t trace_model;
    struct counter *batch_ids;  /* shared by all batchers of the process */
};

struct batcher;
MUST_CHECK enum status batcher_create(const struct model *model, const struct batcher_config *config,
                                      struct batcher **out, struct err *err);
/* Runs what was pushed, then stops and joins the instances. A thread that has pushed may be on its
 * way out of batcher_push even when its job has been answered: who cannot tell stops the batcher,
 * joins its own threads, and frees the batcher then. NULL allowed. */
void batcher_stop(struct batcher *batcher);
void batcher_free(struct batcher *batcher); /* stops it first where it is not stopped yet */
/* Stamps AT_ENQUEUED and lock waits. ST_OVERLOADED when queue_limit jobs wait: the job stays the
 * caller's, its staged rows are released. Does not wake a sleeping instance where wake is false: batcher_kick does, later, once
 * for all (the loop pushes many in a turn). */
MUST_CHECK enum status batcher_push(struct batcher *batcher, struct job *job, bool wake);
void batcher_kick(struct batcher *batcher);
/* Nobody waits for the job any more: where it waits, it leaves the queue at once, also while every
 * instance is busy, and ends with ST_CANCELLED. To be called by its owner between the push (or
 * before) and on_done's being acted on, any thread; on_done comes later, on another thread. */
void batcher_cancel(struct batcher *batcher, struct job *job);
/* Does a request's own timeout (job.timeout_ns) count in the queue of its priority? Where it does
 * not, whoever has one may want to end the whole request by it instead (job.deadline_ns). */
bool batcher_takes_timeout(const struct batcher *batcher, uint64_t priority);
/* No more holding: what waits is dispatched at once (shutdown). */
void batcher_drain(struct batcher *batcher);
/* Where rows of inputs with staged_row_bytes are to be written; NULL: there are none such, or a
 * single one is too large. The batcher's. batcher NULL: NULL. */
struct staging;
struct staging *batcher_staging(struct batcher *batcher);

struct batcher_stats {
    uint64_t waiting;            /* jobs in the queue now */
    uint64_t refused;            /* not let into the queue, the next included */
    uint64_t refused_hopeless;   /* of these: the wait would have been longer than the deadline */
    uint64_t expired;            /* ST_EXPIRED: their timeout in the queue was over */
    uint64_t delayed;            /* put behind the others for the same reason */
    uint64_t timed_out;          /* ST_TIMEOUT: dropped from the queue as they could not be in time */
    uint64_t cancelled;          /* dropped from the queue as nobody waited any more */
    uint64_t executing_since_ns; /* mono_ns at which the longest running execution began; 0: none */
    uint64_t instances, busy_instances;
    uint64_t wake_calls;         /* system calls made by producers to wake an instance */
    uint64_t device_busy_ns;     /* the back end's, 0: cannot tell */
    uint64_t batches_in_place;   /* run where their rows lay */
    uint64_t batches_copied;     /* some input was copied together first */
    uint64_t copied_bytes;       /* by those */
    uint64_t staging_refused;    /* jobs that found no room to write straight into a batch */
    uint64_t staging_bytes;      /* reserved for that; used only as far as needed */
    uint64_t staging_rows;       /* of it in use now */
    bool has_lock;               /* queue=mutex */
    struct lock_stats lock[ROLE_COUNT];
};
void batcher_stats(struct batcher *batcher, struct batcher_stats *out);

#endif

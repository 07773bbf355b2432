/* What tracer.c and tracer_writer.c share; nobody else includes this. */
#ifndef TELLTALE_MEASURE_TRACER_IMPL_H
#define TELLTALE_MEASURE_TRACER_IMPL_H

#include "measure/trace_sample.h"
#include "measure/trace_summary.h"
#include "sync/parker.h"
#include "sync/spsc.h"
#include <pthread.h>
#include <stdatomic.h>

enum { TRACER_BLOCK = 64 }; /* records between two takings of the lock: a scraper waits ~20 us */

struct trace_ring {
    struct trace_ring *next;    /* set before the ring is in the list, then constant */
    struct parker *parker;      /* of the writer thread */
    struct spsc *requests, *batches; /* NULL: the tracer is off */
    uint32_t wake_after;
    uint32_t since_wake;        /* the ring's own thread only */
    bool is_spare;              /* given back; under the tracer's lock */
};

struct tracer {
    struct tracer_config config; /* defaults filled in; constant */
    uint64_t start_ns, start_unix_ns;
    const struct histogram *loop_turn_ns, *loop_turn_cpu_ns; /* the loop's owner's; NULL: none */
    pthread_t thread;
    bool has_thread;
    struct parker parker;       /* the writer thread sleeps here */
    atomic_bool is_stopping;    /* written by tracer_free */

    pthread_mutex_t lock;       /* protects what follows, to the next remark */
    pthread_cond_t synced;
    struct trace_ring *rings;   /* newest first */
    struct trace_stats **models; /* [TRACE_MODEL_MAX]; an entry below model_count is constant, */
    struct buf *model_json;      /* as is its name: the writer reads these without the lock */
    unsigned model_count;
    uint64_t unknown_model;     /* records of models that were never registered */
    uint64_t sync_asked, sync_done;
    struct trace_sampling sampling; /* as asked for */
    bool is_write_stopped;
    struct err write_error;

    bool has_dir;               /* constant */
    struct trace_dir dir;       /* the writer thread's, but for trace_dir_attach */
    struct trace_sample *sample; /* the writer thread's from here on; NULL: no directory */
    bool is_paused;             /* sampling.is_on, as the writer last saw it */
    uint64_t window_end_ns;
    struct trace_record block[TRACER_BLOCK];
    uint64_t totals[TRACER_BLOCK];
};

void *tracer_writer_main(void *tracer);
/* For the sampler: lines into the files. ctx is the tracer. */
void tracer_write_request(void *ctx, const struct trace_record *record, struct sampling sampling);
void tracer_write_batch(void *ctx, const struct batch_record *record);

#endif

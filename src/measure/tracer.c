/* The tracer: rings that the serving threads write, models, and who may read the statistics.
 * Its writer thread is in tracer_writer.c.
 *
 * Threads: trace_request and trace_batch on the serving threads, one a ring; the rest on any.
 * Invariant: a serving thread takes no lock and makes no system call here, but for one wake-up
 * in half a ring of records.
 * Next: tracer_impl.h (what is shared), trace_durations.c, docs/trace.md. */
#include "measure/tracer_impl.h"

#include "base/clock.h"
#include <errno.h>
#include <stdlib.h>

/* Batch records of a window (1 s) that are all written: some 300 KB a second at the most. */
enum { TRACER_EVERY_BATCH_MAX = 1000 };

enum { RING_RECORDS = 16384, RING_RECORDS_MAX = 1 << 20 };
static const uint64_t default_window_ns = 1000ull * 1000 * 1000;

static void destroy(struct tracer *tracer, void (*end_dir)(struct trace_dir *dir)) {
    for (struct trace_ring *ring = tracer->rings; ring != NULL;) {
        struct trace_ring *next = ring->next;
        spsc_free(ring->requests);
        spsc_free(ring->batches);
        free(ring);
        ring = next;
    }
    for (unsigned i = 0; i < tracer->model_count; i++) {
        trace_stats_done(tracer->models[i]);
        free((char *)tracer->models[i]->model);
        free(tracer->models[i]);
        buf_done(&tracer->model_json[i]);
    }
    free(tracer->models);
    free(tracer->model_json);
    trace_sample_free(tracer->sample);
    if (tracer->has_dir) end_dir(&tracer->dir);
    pthread_cond_destroy(&tracer->synced);
    pthread_mutex_destroy(&tracer->lock);
    free(tracer);
}

static struct tracer *allocate(const struct tracer_config *config) {
    /* The parker inside wants cache-line alignment. */
    const size_t align = _Alignof(struct tracer);
    const size_t size = (sizeof(struct tracer) + align - 1) / align * align;
    struct tracer *tracer = aligned_alloc(align, size);
    if (tracer == NULL) return NULL;
    *tracer = (struct tracer){.config = *config, .start_ns = mono_ns(), .start_unix_ns = wall_ns()};
    tracer->config.directory = NULL; /* the caller's; dir.path is ours */
    if (config->window_ns == 0) tracer->config.window_ns = default_window_ns;
    tracer->config.ring_records = 2;
    const uint32_t wanted = config->ring_records == 0 ? RING_RECORDS : config->ring_records;
    while (tracer->config.ring_records < wanted && tracer->config.ring_records < RING_RECORDS_MAX) {
        tracer->config.ring_records *= 2; /* as the ring would round it */
    }
    tracer->sampling =
        (struct trace_sampling){.is_on = true, .uniform_share = config->uniform_share};
    pthread_mutex_init(&tracer->lock, NULL);
    pthread_cond_init(&tracer->synced, NULL);
    parker_init(&tracer->parker);
    atomic_init(&tracer->is_stopping, false);
    /* Never moved, so that the writer thread may look up a model without the lock. Pages that
     * are not used are not there. */
    tracer->models = calloc(TRACE_MODEL_MAX, sizeof *tracer->models);
    tracer->model_json = calloc(TRACE_MODEL_MAX, sizeof *tracer->model_json);
    if (tracer->models == NULL || tracer->model_json == NULL) {
        destroy(tracer, trace_dir_close);
        return NULL;
    }
    return tracer;
}

static enum status open_directory(struct tracer *tracer, const char *path, struct err *err) {
    const enum status status = trace_dir_open(&tracer->dir, path, tracer->config.max_bytes, err);
    if (status != ST_OK) return status;
    tracer->has_dir = true;
    const struct trace_sample_config sampling = {
        .all = tracer->config.all,
        .uniform_share = tracer->config.uniform_share,
        .slow_share = tracer->config.slow_share,
        .seed = 0x7e117a1e, /* fixed: the same batches are chosen when a run is repeated */
        .every_batch_max = TRACER_EVERY_BATCH_MAX,
        .write_request = tracer_write_request,
        .write_batch = tracer_write_batch,
        .ctx = tracer,
    };
    tracer->sample = trace_sample_create(&sampling);
    if (tracer->sample != NULL) return ST_OK;
    return err_set(err, ST_NO_MEMORY, "starting the trace: out of memory");
}

enum status tracer_create(const struct tracer_config *config, struct tracer **out_tracer,
                          struct err *err) {
    struct tracer *tracer = allocate(config);
    if (tracer == NULL) return err_set(err, ST_NO_MEMORY, "starting the trace: out of memory");
    if (config->directory != NULL && !config->is_off) {
        const enum status status = open_directory(tracer, config->directory, err);
        if (status != ST_OK) {
            destroy(tracer, trace_dir_discard);
            return status;
        }
    }
    if (!config->is_off) {
        const int error = pthread_create(&tracer->thread, NULL, tracer_writer_main, tracer);
        if (error != 0) {
            destroy(tracer, trace_dir_discard);
            return err_set(err, ST_NO_MEMORY, "starting the trace's writer thread: %s",
                           strerror(error));
        }
        tracer->has_thread = true;
    }
    *out_tracer = tracer;
    return ST_OK;
}

static void write_summary(struct tracer *tracer) {
    for (unsigned i = 0; i < tracer->model_count; i++) trace_stats_settle(tracer->models[i]);
    const struct trace_summary summary = {
        .config = &tracer->config,
        .dir = &tracer->dir,
        .start_ns = tracer->start_ns,
        .end_ns = mono_ns(),
        .start_unix_ns = tracer->start_unix_ns,
        .dropped = tracer_dropped(tracer),
        .dropped_unknown_model = tracer->unknown_model,
        .loop_turn_ns = tracer->loop_turn_ns,
        .loop_turn_cpu_ns = tracer->loop_turn_cpu_ns,
        .models = tracer->models,
        .model_count = tracer->model_count,
    };
    struct buf text;
    buf_init(&text);
    trace_summary_write(&text, &summary);
    /* On a full disk there is nobody left to tell: tracer_write_status has said so before. */
    const enum status written =
        text.failed ? ST_NO_MEMORY
                    : trace_dir_attach(&tracer->dir, "summary.json", buf_view(&text), NULL);
    (void)written;
    buf_done(&text);
}

static void stop_writer(struct tracer *tracer) {
    if (!tracer->has_thread) return;
    /* R1: publishes every record the stopped threads wrote; pairs with A1 in the writer. */
    atomic_store_explicit(&tracer->is_stopping, true, memory_order_release);
    parker_wake(&tracer->parker, 1);
    pthread_join(tracer->thread, NULL);
}

void tracer_set_sampling(struct tracer *tracer, struct trace_sampling sampling) {
    pthread_mutex_lock(&tracer->lock);
    tracer->sampling = sampling;
    pthread_mutex_unlock(&tracer->lock);
}

struct trace_sampling tracer_sampling(struct tracer *tracer) {
    pthread_mutex_lock(&tracer->lock);
    const struct trace_sampling sampling = tracer->sampling;
    pthread_mutex_unlock(&tracer->lock);
    return sampling;
}

const char *tracer_directory(const struct tracer *tracer) {
    return tracer->has_dir ? tracer->dir.path : NULL;
}

void tracer_set_loop_turns(struct tracer *tracer, const struct histogram *turn_ns,
                           const struct histogram *cpu_ns) {
    tracer->loop_turn_ns = turn_ns;
    tracer->loop_turn_cpu_ns = cpu_ns;
}

void tracer_free(struct tracer *tracer) {
    if (tracer == NULL) return;
    stop_writer(tracer);
    if (tracer->has_dir) write_summary(tracer);
    destroy(tracer, trace_dir_close);
}

void tracer_discard(struct tracer *tracer) {
    if (tracer == NULL) return;
    stop_writer(tracer);
    destroy(tracer, trace_dir_discard);
}

/* Under the lock. */
static uint16_t add_model(struct tracer *tracer, const char *name) {
    struct trace_stats *stats = malloc(sizeof *stats);
    char *copy = strdup(name);
    struct buf json;
    buf_init(&json);
    buf_json_string(&json, view_of(name));
    if (stats == NULL || copy == NULL || json.failed || trace_stats_init(stats, copy) != ST_OK) {
        free(stats);
        free(copy);
        buf_done(&json);
        return TRACE_MODEL_MAX;
    }
    tracer->models[tracer->model_count] = stats;
    tracer->model_json[tracer->model_count] = json;
    return (uint16_t)tracer->model_count++;
}

uint16_t tracer_model(struct tracer *tracer, const char *name) {
    uint16_t index = TRACE_MODEL_MAX;
    pthread_mutex_lock(&tracer->lock);
    for (unsigned i = 0; i < tracer->model_count; i++) {
        if (strcmp(tracer->models[i]->model, name) == 0) index = (uint16_t)i;
    }
    if (index == TRACE_MODEL_MAX && tracer->model_count < TRACE_MODEL_MAX) {
        index = add_model(tracer, name);
    }
    pthread_mutex_unlock(&tracer->lock);
    return index;
}

/* One that was given back; NULL: none. */
static struct trace_ring *spare_ring(struct tracer *tracer) {
    pthread_mutex_lock(&tracer->lock);
    struct trace_ring *ring = tracer->rings;
    while (ring != NULL && !ring->is_spare) ring = ring->next;
    if (ring != NULL) ring->is_spare = false;
    pthread_mutex_unlock(&tracer->lock);
    return ring;
}

void tracer_ring_give_back(struct tracer *tracer, struct trace_ring *ring) {
    if (ring == NULL) return;
    pthread_mutex_lock(&tracer->lock); /* the next writer sees what this one has written */
    ring->is_spare = true;
    pthread_mutex_unlock(&tracer->lock);
}

struct trace_ring *tracer_ring(struct tracer *tracer) {
    struct trace_ring *ring = spare_ring(tracer);
    if (ring != NULL) return ring;
    ring = calloc(1, sizeof *ring);
    if (ring == NULL) return NULL;
    if (!tracer->config.is_off) {
        const size_t capacity = tracer->config.ring_records;
        ring->parker = &tracer->parker;
        ring->wake_after = capacity >= 2 ? (uint32_t)(capacity / 2) : 1;
        ring->requests = spsc_create(capacity, sizeof(struct trace_record));
        ring->batches = spsc_create(capacity, sizeof(struct batch_record));
        if (ring->requests == NULL || ring->batches == NULL) {
            spsc_free(ring->requests);
            spsc_free(ring->batches);
            free(ring);
            return NULL;
        }
    }
    pthread_mutex_lock(&tracer->lock);
    ring->next = tracer->rings;
    tracer->rings = ring;
    pthread_mutex_unlock(&tracer->lock);
    return ring;
}

/* The writer thread comes by itself every so often. Waking it after each half ring of records
 * means that a ring is at most half full when it wakes, whatever the rate. */
static void count_record(struct trace_ring *ring) {
    if (++ring->since_wake < ring->wake_after) return;
    ring->since_wake = 0;
    parker_wake(ring->parker, 1);
}

/* A ring is larger than the caches near the processor, so the next slot's lines are not there:
 * fetching them for writing now hides that behind the next request. Past the ring's end this
 * touches nothing. */
static void prefetch_next(const struct trace_record *slot) {
    const char *next = (const char *)slot + sizeof *slot;
    for (size_t i = 0; i < sizeof *slot; i += 64) __builtin_prefetch(next + i, 1);
}

void trace_request(struct trace_ring *ring, const struct trace_record *record) {
    if (ring == NULL || ring->requests == NULL) return;
    struct trace_record *slot = spsc_reserve(ring->requests);
    if (slot != NULL) {
        *slot = *record;
        spsc_commit(ring->requests);
        prefetch_next(slot);
    }
    count_record(ring);
}

void trace_batch(struct trace_ring *ring, const struct batch_record *record) {
    if (ring == NULL || ring->batches == NULL) return;
    struct batch_record *slot = spsc_reserve(ring->batches);
    if (slot != NULL) {
        *slot = *record;
        spsc_commit(ring->batches);
    }
    count_record(ring);
}

enum status tracer_attach(struct tracer *tracer, const char *file, struct view text,
                          struct err *err) {
    if (!tracer->has_dir) return ST_OK;
    return trace_dir_attach(&tracer->dir, file, text, err);
}

void tracer_sync(struct tracer *tracer) {
    if (!tracer->has_thread) return;
    pthread_mutex_lock(&tracer->lock);
    const uint64_t wanted = ++tracer->sync_asked;
    pthread_mutex_unlock(&tracer->lock);
    parker_wake(&tracer->parker, 1);
    pthread_mutex_lock(&tracer->lock);
    while (tracer->sync_done < wanted) pthread_cond_wait(&tracer->synced, &tracer->lock);
    pthread_mutex_unlock(&tracer->lock);
}

const struct trace_stats *tracer_stats_lock(struct tracer *tracer, uint16_t model) {
    pthread_mutex_lock(&tracer->lock);
    if (model >= tracer->model_count) {
        pthread_mutex_unlock(&tracer->lock);
        return NULL;
    }
    trace_stats_settle(tracer->models[model]);
    return tracer->models[model];
}

void tracer_stats_unlock(struct tracer *tracer) { pthread_mutex_unlock(&tracer->lock); }

uint64_t tracer_dropped(const struct tracer *tracer) {
    /* The lock is the one thing that reading changes. */
    pthread_mutex_t *lock = &((struct tracer *)tracer)->lock;
    pthread_mutex_lock(lock);
    uint64_t dropped = tracer->unknown_model;
    for (const struct trace_ring *ring = tracer->rings; ring != NULL; ring = ring->next) {
        if (ring->requests == NULL) continue;
        dropped += spsc_dropped(ring->requests) + spsc_dropped(ring->batches);
    }
    pthread_mutex_unlock(lock);
    return dropped;
}

enum status tracer_write_status(struct tracer *tracer, struct err *err) {
    enum status status = ST_OK;
    pthread_mutex_lock(&tracer->lock);
    if (tracer->is_write_stopped) status = err_set(err, ST_IO, "%s", tracer->write_error.text);
    pthread_mutex_unlock(&tracer->lock);
    return status;
}

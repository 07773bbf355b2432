/* The tracer's writer thread: empties the rings into the statistics, hands the records to the
 * sampler, and writes what that has chosen.
 *
 * Thread: this is it (ROLE_SAMPLER). It shares a processor with serving where there are few:
 * nanoseconds a record count.
 * Invariant: no file is written and nobody is called back under the lock.
 * Next: trace_sample.h (what is chosen), trace_dir.h (how it is written). */
#include "measure/tracer_impl.h"

#include "base/clock.h"
#include "sync/role.h"

/* How long a record may lie in a ring; 50 ms is far below a scrape interval. */
static const uint64_t drain_interval_ns = 50ull * 1000 * 1000;

static struct view model_json(const struct tracer *tracer, uint16_t model) {
    return buf_view(&tracer->model_json[model]);
}

void tracer_write_request(void *ctx, const struct trace_record *record, struct sampling sampling) {
    struct tracer *tracer = ctx;
    if (tracer->dir.is_stopped) return;
    trace_json_request(&tracer->dir.requests.pending, record, model_json(tracer, record->model),
                       sampling);
    trace_dir_line(&tracer->dir, &tracer->dir.requests);
}

void tracer_write_batch(void *ctx, const struct batch_record *record) {
    struct tracer *tracer = ctx;
    if (tracer->dir.is_stopped) return;
    trace_json_batch(&tracer->dir.batches.pending, record, model_json(tracer, record->model));
    trace_dir_line(&tracer->dir, &tracer->dir.batches);
}

/* Takes records of models that were never registered out of the block's first n. */
static size_t drop_unknown(struct tracer *tracer, size_t n) {
    size_t kept = 0;
    pthread_mutex_lock(&tracer->lock);
    for (size_t i = 0; i < n; i++) {
        if (tracer->block[i].model >= tracer->model_count) {
            tracer->unknown_model++;
            continue;
        }
        if (kept < i) tracer->block[kept] = tracer->block[i];
        kept++;
    }
    pthread_mutex_unlock(&tracer->lock);
    return kept;
}

/* Adds the first n of the block to the statistics; drops those of unknown models from it.
 * Returns how many are left. */
static size_t add_block(struct tracer *tracer, size_t n) {
    uint64_t durations[TRACER_BLOCK][STAGE_COUNT];
    bool are_ordered[TRACER_BLOCK];
    const size_t kept = drop_unknown(tracer, n);
    for (size_t i = 0; i < kept; i++)
        tracer->totals[i] =
            trace_durations_checked(&tracer->block[i], durations[i], &are_ordered[i]);
    pthread_mutex_lock(&tracer->lock);
    for (size_t first = 0, end = 0; first < kept; first = end) {
        const uint16_t model = tracer->block[first].model;
        while (end < kept && tracer->block[end].model == model) end++;
        trace_stats_requests(tracer->models[model], &tracer->block[first], durations[first],
                             &tracer->totals[first], &are_ordered[first], (unsigned)(end - first));
    }
    pthread_mutex_unlock(&tracer->lock);
    return kept;
}

static bool is_sampling(const struct tracer *tracer) {
    return tracer->sample != NULL && !tracer->is_paused;
}

/* Returns how many were taken: less than a block means that the ring was empty. */
static size_t drain_requests(struct tracer *tracer, struct trace_ring *ring) {
    size_t n = 0;
    while (n < TRACER_BLOCK) {
        const struct trace_record *record = spsc_peek(ring->requests);
        if (record == NULL) break;
        /* The writing thread's processor has these lines: ask for them a few records ahead. */
        const char *ahead = (const char *)record + 4 * sizeof *record;
        for (size_t i = 0; i < sizeof *record; i += 64) __builtin_prefetch(ahead + i);
        tracer->block[n++] = *record;
        spsc_release(ring->requests);
    }
    if (n == 0) return 0;
    const size_t kept = add_block(tracer, n);
    for (size_t i = 0; i < kept; i++) {
        const struct trace_record *record = &tracer->block[i];
        if (tracer->config.on_record != NULL) tracer->config.on_record(tracer->config.ctx, record);
        if (is_sampling(tracer)) trace_sample_request(tracer->sample, record, tracer->totals[i]);
    }
    return n;
}

static size_t drain_batches(struct tracer *tracer, struct trace_ring *ring) {
    struct batch_record block[TRACER_BLOCK];
    size_t taken = 0;
    size_t kept = 0;
    pthread_mutex_lock(&tracer->lock);
    for (; taken < TRACER_BLOCK; taken++) {
        const struct batch_record *record = spsc_peek(ring->batches);
        if (record == NULL) break;
        if (record->model < tracer->model_count) {
            block[kept++] = *record;
            trace_stats_batch(tracer->models[record->model], record);
        } else {
            tracer->unknown_model++;
        }
        spsc_release(ring->batches);
    }
    pthread_mutex_unlock(&tracer->lock);
    for (size_t i = 0; i < kept && is_sampling(tracer); i++) {
        trace_sample_batch(tracer->sample, &block[i]);
    }
    return taken;
}

/* Takes what is there, but no more than a ring holds: a thread that writes as fast as this
 * reads must not keep the others' rings from being emptied. */
static void drain_ring(struct tracer *tracer, struct trace_ring *ring) {
    const size_t most = tracer->config.ring_records;
    for (size_t taken = 0; taken <= most;) {
        const size_t n = drain_batches(tracer, ring);
        taken += n;
        if (n < TRACER_BLOCK) break;
    }
    for (size_t taken = 0; taken <= most;) {
        const size_t n = drain_requests(tracer, ring);
        taken += n;
        if (n < TRACER_BLOCK) break;
    }
}

static void end_window(struct tracer *tracer) {
    if (tracer->sample == NULL) return;
    trace_sample_close(tracer->sample);
    trace_dir_flush(&tracer->dir);
    if (!tracer->dir.is_stopped) return;
    pthread_mutex_lock(&tracer->lock);
    tracer->is_write_stopped = true;
    tracer->write_error = tracer->dir.error;
    pthread_mutex_unlock(&tracer->lock);
}

static void pass(struct tracer *tracer) {
    pthread_mutex_lock(&tracer->lock);
    struct trace_ring *rings = tracer->rings;
    const uint64_t asked = tracer->sync_asked;
    tracer->is_paused = !tracer->sampling.is_on;
    if (tracer->sample != NULL)
        trace_sample_set_uniform(tracer->sample, tracer->sampling.uniform_share);
    pthread_mutex_unlock(&tracer->lock);
    for (struct trace_ring *ring = rings; ring != NULL; ring = ring->next) {
        drain_ring(tracer, ring);
    }
    const uint64_t now_ns = mono_ns();
    if (now_ns >= tracer->window_end_ns) {
        end_window(tracer);
        tracer->window_end_ns = now_ns + tracer->config.window_ns;
    }
    pthread_mutex_lock(&tracer->lock);
    if (tracer->sync_done < asked) {
        tracer->sync_done = asked;
        pthread_cond_broadcast(&tracer->synced);
    }
    pthread_mutex_unlock(&tracer->lock);
}

static bool has_work(struct tracer *tracer) {
    /* A1: sees every record written before tracer_free; pairs with R1 there. */
    if (atomic_load_explicit(&tracer->is_stopping, memory_order_acquire)) return true;
    pthread_mutex_lock(&tracer->lock);
    const bool is_asked = tracer->sync_done < tracer->sync_asked;
    pthread_mutex_unlock(&tracer->lock);
    return is_asked;
}

void *tracer_writer_main(void *argument) {
    struct tracer *tracer = argument;
    role_set(ROLE_SAMPLER, 0);
    tracer->window_end_ns = mono_ns() + tracer->config.window_ns;
    for (;;) {
        const uint32_t key = parker_prepare(&tracer->parker);
        if (has_work(tracer)) parker_cancel(&tracer->parker);
        else parker_wait(&tracer->parker, key, mono_ns() + drain_interval_ns);
        /* A1, as in has_work: read before the pass, so that the last pass comes after it. */
        const bool is_last = atomic_load_explicit(&tracer->is_stopping, memory_order_acquire);
        pass(tracer);
        if (is_last) break;
    }
    end_window(tracer);
    return NULL;
}

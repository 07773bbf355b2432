/* Choosing what is written: see trace_sample.h for the rule.
 *
 * Two windows are kept, the present one and the one before: the requests of a batch end within
 * moments of each other, but a window's end may fall between them.
 *
 * Thread: the tracer's writer thread.
 * Invariant: a record is written at most once, and every record of the present window is kept
 * until that window ends.
 * Next: tracer.c (who calls), trace_json.c (what a written record looks like). */
#include "measure/trace_sample.h"

#include <math.h>
#include <stdlib.h>

/* What the choice needs to know of a request, apart from the record itself: the passes over a
 * window then read 32 bytes a request and not 256. */
struct key {
    uint64_t batch;
    uint64_t total_ns;
    float share;
    uint16_t model;
    uint8_t why; /* enum sampled */
    bool is_uniform;
    uint32_t batch_size;
};

/* Batches with a chosen request: open addressing, 0 = empty. */
struct batch_set {
    uint64_t *slots; /* 2 * SAMPLE_WINDOW_MAX of them; mask says how many are in use */
    uint64_t mask;
    size_t count;
};

struct window {
    struct trace_record *requests;
    struct key *keys;
    size_t request_count;
    struct batch_record *batches;
    bool *is_batch_written;
    size_t batch_count;
    struct batch_set chosen;
};

struct by_time {
    uint64_t total_ns;
    uint32_t index;
};

struct trace_sample {
    struct trace_sample_config config;
    struct window windows[2];
    unsigned now; /* index of the present window; the other is the one before */
    struct by_time *order;    /* scratch: the present window's requests, model by model */
    uint32_t *model_begin;    /* scratch: model_count + 2 entries, at least 3 */
    size_t model_capacity;
    uint64_t serial;          /* of requests without a batch */
    uint64_t random;          /* pivots only */
};

/* splitmix64's finalizer: neighbouring batch numbers must not be alike. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void set_prepare(struct batch_set *set, size_t expected) {
    size_t size = 16;
    while (size < expected * 2 && size < (size_t)SAMPLE_WINDOW_MAX * 2) size *= 2;
    memset(set->slots, 0, size * sizeof *set->slots);
    set->mask = size - 1;
    set->count = 0;
}

static bool set_has(const struct batch_set *set, uint64_t batch) {
    if (batch == 0 || set->count == 0) return false;
    for (uint64_t i = mix(batch) & set->mask;; i = (i + 1) & set->mask) {
        if (set->slots[i] == batch) return true;
        if (set->slots[i] == 0) return false;
    }
}

static void set_add(struct batch_set *set, uint64_t batch) {
    if (batch == 0) return;
    uint64_t i = mix(batch) & set->mask;
    while (set->slots[i] != 0 && set->slots[i] != batch) i = (i + 1) & set->mask;
    set->count += set->slots[i] == 0;
    set->slots[i] = batch;
}

static bool window_init(struct window *window) {
    /* Pages that are not used are not there: a quiet server pays for little of this. */
    const size_t n = SAMPLE_WINDOW_MAX;
    window->requests = malloc(n * sizeof *window->requests);
    window->keys = malloc(n * sizeof *window->keys);
    window->batches = malloc(n * sizeof *window->batches);
    window->is_batch_written = malloc(n * sizeof *window->is_batch_written);
    window->chosen.slots = malloc(2 * n * sizeof *window->chosen.slots);
    return window->requests != NULL && window->keys != NULL && window->batches != NULL &&
           window->is_batch_written != NULL && window->chosen.slots != NULL;
}

static void window_done(struct window *window) {
    free(window->requests);
    free(window->keys);
    free(window->batches);
    free(window->is_batch_written);
    free(window->chosen.slots);
}

struct trace_sample *trace_sample_create(const struct trace_sample_config *config) {
    struct trace_sample *sample = calloc(1, sizeof *sample);
    if (sample == NULL) return NULL;
    sample->config = *config;
    if (config->all) return sample;
    sample->order = malloc(SAMPLE_WINDOW_MAX * sizeof *sample->order);
    sample->model_capacity = 3;
    sample->model_begin = malloc(sample->model_capacity * sizeof *sample->model_begin);
    if (!window_init(&sample->windows[0]) || !window_init(&sample->windows[1]) ||
        sample->order == NULL || sample->model_begin == NULL) {
        trace_sample_free(sample);
        return NULL;
    }
    return sample;
}

void trace_sample_free(struct trace_sample *sample) {
    if (sample == NULL) return;
    window_done(&sample->windows[0]);
    window_done(&sample->windows[1]);
    free(sample->order);
    free(sample->model_begin);
    free(sample);
}

void trace_sample_request(struct trace_sample *sample, const struct trace_record *record,
                          uint64_t total_ns) {
    if (sample->config.all) {
        sample->config.write_request(
            sample->config.ctx, record,
            (struct sampling){.why = SAMPLED_ALL, .is_uniform = true, .share = 1});
        return;
    }
    struct window *window = &sample->windows[sample->now];
    window->requests[window->request_count] = *record;
    window->keys[window->request_count] = (struct key){.batch = record->batch,
                                                       .total_ns = total_ns,
                                                       .model = record->model,
                                                       .batch_size = record->batch_size};
    if (++window->request_count == SAMPLE_WINDOW_MAX) trace_sample_close(sample);
}

void trace_sample_batch(struct trace_sample *sample, const struct batch_record *record) {
    if (sample->config.all) {
        sample->config.write_batch(sample->config.ctx, record);
        return;
    }
    struct window *window = &sample->windows[sample->now];
    window->batches[window->batch_count] = *record;
    window->is_batch_written[window->batch_count] = false;
    if (++window->batch_count == SAMPLE_WINDOW_MAX) trace_sample_close(sample);
}

/* Sorts the window's requests by model into order; returns how many models. Where there is no
 * memory to tell the models apart they count as one: a coarser choice, but no window is lost. */
static size_t group_by_model(struct trace_sample *sample, const struct window *window) {
    size_t models = 0;
    for (size_t i = 0; i < window->request_count; i++) {
        if (window->keys[i].model >= models) models = (size_t)window->keys[i].model + 1;
    }
    if (models + 2 > sample->model_capacity) {
        uint32_t *grown = realloc(sample->model_begin, (models + 2) * sizeof *grown);
        if (grown != NULL) {
            sample->model_begin = grown;
            sample->model_capacity = models + 2;
        } else {
            models = 1;
        }
    }
    const size_t last = models > 0 ? models - 1 : 0;
    /* begin[m + 1] is where the next request of model m goes; in the end, where m ends. */
    uint32_t *begin = sample->model_begin;
    memset(begin, 0, (models + 2) * sizeof *begin);
    for (size_t i = 0; i < window->request_count; i++) {
        const size_t model = window->keys[i].model < last ? window->keys[i].model : last;
        begin[model + 2]++;
    }
    for (size_t m = 0; m < models; m++) begin[m + 2] += begin[m + 1];
    for (size_t i = 0; i < window->request_count; i++) {
        const struct key *key = &window->keys[i];
        const size_t model = key->model < last ? key->model : last;
        sample->order[begin[model + 1]++] =
            (struct by_time){.total_ns = key->total_ns, .index = (uint32_t)i};
    }
    return models;
}

/* A total order, so that exactly as many are chosen as were asked for. */
static bool is_slower(const struct by_time *a, const struct by_time *b) {
    return a->total_ns != b->total_ns ? a->total_ns > b->total_ns : a->index < b->index;
}

/* Brings the `wanted` slowest of order[0..count) to its front (Hoare's quickselect, random
 * pivots; linear on average). */
static void select_slowest(struct trace_sample *sample, struct by_time *order, size_t count,
                           size_t wanted) {
    size_t low = 0;
    size_t high = count; /* the boundary `wanted` lies in order[low..high) */
    while (high - low > 1 && wanted > low) {
        sample->random = sample->random * 6364136223846793005u + 1442695040888963407u;
        const struct by_time pivot = order[low + (sample->random >> 33) % (high - low)];
        size_t i = low;
        size_t j = high - 1;
        for (;;) {
            while (is_slower(&order[i], &pivot)) i++;
            while (is_slower(&pivot, &order[j])) j--;
            if (i >= j) break;
            const struct by_time swapped = order[i];
            order[i++] = order[j];
            order[j--] = swapped;
        }
        /* order[low..i) is not faster than the pivot, order[i..high) not slower. */
        const size_t cut = i > low ? i : low + 1;
        if (wanted < cut) high = cut;
        else low = cut;
    }
}

void trace_sample_set_uniform(struct trace_sample *sample, double uniform_share) {
    sample->config.uniform_share = uniform_share;
}

static void choose_slow(struct trace_sample *sample, struct window *window,
                        struct by_time *order, size_t count) {
    if (!(sample->config.slow_share > 0) || count == 0) return;
    size_t wanted = (size_t)ceil(sample->config.slow_share * (double)count - 1e-9);
    if (wanted < 1) wanted = 1;
    if (wanted < count) select_slowest(sample, order, count, wanted);
    for (size_t i = 0; i < count && i < wanted; i++) {
        window->keys[order[i].index].why = SAMPLED_SLOW;
    }
}

static void choose_uniform(struct trace_sample *sample, struct window *window,
                           const struct by_time *order, size_t count) {
    double share = sample->config.uniform_share;
    if (!(share > 0)) return;
    double units = 0; /* batches, each counted by its requests */
    for (size_t i = 0; i < count; i++) {
        const struct key *key = &window->keys[order[i].index];
        units += key->batch != 0 && key->batch_size > 1 ? 1.0 / key->batch_size : 1.0;
    }
    if (share * units < SAMPLE_UNITS_MIN) share = units > 0 ? SAMPLE_UNITS_MIN / units : 1;
    if (share > 1) share = 1;
    const double threshold = share * 0x1p64;
    for (size_t i = 0; i < count; i++) {
        struct key *key = &window->keys[order[i].index];
        const uint64_t unit = key->batch != 0 ? key->batch : ++sample->serial | (uint64_t)1 << 63;
        key->share = (float)share;
        key->is_uniform = (double)mix(unit ^ sample->config.seed) < threshold || share >= 1;
        if (key->is_uniform && key->why == SAMPLED_NONE) key->why = SAMPLED_UNIFORM;
    }
}

static void write_request(struct trace_sample *sample, struct window *window, size_t i) {
    struct key *key = &window->keys[i];
    sample->config.write_request(sample->config.ctx, &window->requests[i],
                                 (struct sampling){.why = key->why,
                                                   .is_uniform = key->is_uniform,
                                                   .share = (double)key->share});
}

/* Writes what is in the sets and was not written yet. */
static void write_companions(struct trace_sample *sample, struct window *window,
                             const struct batch_set *chosen, const struct batch_set *before) {
    if (chosen->count == 0 && before->count == 0) return;
    uint64_t last = 0; /* a batch's requests mostly follow each other: look once */
    bool is_last_in = false;
    for (size_t i = 0; i < window->request_count; i++) {
        struct key *key = &window->keys[i];
        if (key->why != SAMPLED_NONE) continue;
        if (key->batch != last) {
            last = key->batch;
            is_last_in = set_has(chosen, last) || set_has(before, last);
        }
        if (!is_last_in) continue;
        key->why = SAMPLED_BATCH;
        write_request(sample, window, i);
    }
    for (size_t i = 0; i < window->batch_count; i++) {
        const struct batch_record *batch = &window->batches[i];
        if (window->is_batch_written[i]) continue;
        if (!set_has(chosen, batch->batch) && !set_has(before, batch->batch)) continue;
        window->is_batch_written[i] = true;
        sample->config.write_batch(sample->config.ctx, batch);
    }
}

static void write_every_batch(struct trace_sample *sample, struct window *window) {
    if (window->batch_count > sample->config.every_batch_max) return;
    for (size_t i = 0; i < window->batch_count; i++) {
        if (window->is_batch_written[i]) continue;
        window->is_batch_written[i] = true;
        sample->config.write_batch(sample->config.ctx, &window->batches[i]);
    }
}

void trace_sample_close(struct trace_sample *sample) {
    if (sample->config.all) return;
    struct window *window = &sample->windows[sample->now];
    struct window *before = &sample->windows[sample->now ^ 1];
    const size_t models = group_by_model(sample, window);
    for (size_t m = 0; m < models; m++) {
        struct by_time *order = sample->order + sample->model_begin[m];
        const size_t count = sample->model_begin[m + 1] - sample->model_begin[m];
        choose_slow(sample, window, order, count);
        choose_uniform(sample, window, order, count);
    }
    size_t chosen = 0;
    for (size_t i = 0; i < window->request_count; i++) {
        chosen += window->keys[i].why != SAMPLED_NONE;
    }
    set_prepare(&window->chosen, chosen);
    for (size_t i = 0; i < window->request_count; i++) {
        if (window->keys[i].why == SAMPLED_NONE) continue;
        set_add(&window->chosen, window->keys[i].batch);
        write_request(sample, window, i);
    }
    write_companions(sample, before, &window->chosen, &window->chosen);
    write_companions(sample, window, &window->chosen, &before->chosen);
    write_every_batch(sample, window);

    /* The one before is done with; its place becomes the next present window. */
    before->request_count = 0;
    before->batch_count = 0;
    before->chosen.count = 0;
    sample->now ^= 1;
}

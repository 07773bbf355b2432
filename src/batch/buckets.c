/* See buckets.h. Invariant: no bucket is empty between two calls, buckets_remove apart.
 * Read next: collector.c. */
#include "batch/buckets.h"

#include <stdlib.h>

void buckets_init(struct buckets *buckets) { *buckets = (struct buckets){0}; }

void buckets_done(struct buckets *buckets) {
    free(buckets->items);
    *buckets = (struct buckets){0};
}

uint32_t buckets_length_class(uint32_t length) {
    if (length == 0) return 0;
    uint32_t class = 1;
    for (uint32_t bound = 8; bound < length; class++)
        bound = class % 2 == 1 ? bound + bound / 2 : bound / 3 * 4; /* 8, 12, 16, 24, 32, 48 ... */
    return class;
}

static uint64_t hash_mix(uint64_t hash, uint64_t value) {
    hash ^= value;
    hash *= 0x100000001b3u; /* FNV-1a's prime */
    return hash ^ (hash >> 29);
}

/* Everything that must be equal for two jobs to share a batch: all dimensions but the first and
 * the padded one. */
static uint64_t shape_hash(const struct batcher_config *config, const struct job *job,
                           uint32_t input_count) {
    uint64_t hash = 0xcbf29ce484222325u;
    if (job->inputs == NULL) return hash; /* not prepared yet: --preprocess inline */
    for (uint32_t i = 0; i < input_count; i++) {
        const struct tensor *tensor = &job->inputs[i];
        hash = hash_mix(hash, tensor->rank);
        for (uint32_t d = 1; d < tensor->rank; d++)
            hash = hash_mix(hash, (int32_t)d == config->pad_axis[i] ? UINT64_MAX
                                                                    : (uint64_t)tensor->shape[d]);
    }
    return hash;
}

static struct bucket *bucket_find(struct buckets *buckets, uint64_t hash, uint32_t class,
                                  uint32_t rank) {
    for (uint32_t i = 0; i < buckets->count; i++) {
        struct bucket *bucket = &buckets->items[i];
        if (bucket->shape_hash == hash && bucket->length_class == class && bucket->rank == rank)
            return bucket;
    }
    return NULL;
}

static struct bucket *bucket_for(struct buckets *buckets, uint64_t hash, uint32_t class,
                                 uint32_t rank) {
    struct bucket *found = bucket_find(buckets, hash, class, rank);
    if (found != NULL) return found;
    if (buckets->count == buckets->capacity) {
        const uint32_t capacity = buckets->capacity == 0 ? 16 : buckets->capacity * 2;
        struct bucket *items = realloc(buckets->items, capacity * sizeof *items);
        if (items == NULL) return NULL;
        buckets->items = items;
        buckets->capacity = capacity;
    }
    uint32_t at = buckets->count++;
    for (; at > 0 && buckets->items[at - 1].rank > rank; at--)
        buckets->items[at] = buckets->items[at - 1];
    buckets->items[at] = (struct bucket){.shape_hash = hash,
                                         .length_class = class,
                                         .rank = rank,
                                         .deadline_ns = UINT64_MAX,
                                         .expires_ns = UINT64_MAX};
    return &buckets->items[at];
}

static uint32_t class_of(const struct job *job) {
    return job->inputs == NULL ? 0 : buckets_length_class(job->length);
}

static uint32_t rows_of(const struct job *job) { return job->rows > 0 ? job->rows : 1; }

/* What the bucket says of the longest and the earliest. */
static void note(struct bucket *bucket, const struct job *job) {
    if (job->length > bucket->longest) bucket->longest = job->length;
    if (job->deadline_ns != 0 && job->deadline_ns < bucket->deadline_ns)
        bucket->deadline_ns = job->deadline_ns;
    if (job->queue_deadline_ns != 0 && job->queue_deadline_ns < bucket->expires_ns)
        bucket->expires_ns = job->queue_deadline_ns;
}

bool buckets_put(struct buckets *buckets, const struct batcher_config *config, struct job *job) {
    job->shape_hash = shape_hash(config, job, config->input_count);
    struct bucket *bucket = bucket_for(buckets, job->shape_hash, class_of(job), job->rank);
    if (bucket == NULL) return false;
    job->next = NULL;
    job->previous = bucket->last;
    if (bucket->last != NULL) bucket->last->next = job;
    else bucket->first = job;
    bucket->last = job;
    bucket->jobs++;
    bucket->rows += job->rows;
    note(bucket, job);
    buckets->jobs++;
    buckets->rows += rows_of(job);
    const uint64_t at = job->trace->at[AT_ENQUEUED];
    if (at > buckets->newest_ns) buckets->newest_ns = at;
    return true;
}

static void unlink_job(struct buckets *buckets, struct bucket *bucket, struct job *job) {
    if (job->previous != NULL) job->previous->next = job->next;
    else bucket->first = job->next;
    if (job->next != NULL) job->next->previous = job->previous;
    else bucket->last = job->previous;
    bucket->jobs--;
    bucket->rows -= job->rows;
    bucket->is_stale = true;
    buckets->jobs--;
    buckets->rows -= rows_of(job);
}

void buckets_remove(struct buckets *buckets, struct job *job) {
    unlink_job(buckets, bucket_find(buckets, job->shape_hash, class_of(job), job->rank), job);
}

/* Only as far as the next batches go: a long queue is not walked for each of them. */
enum { NOTED_JOBS = 256 };

static void renew(struct bucket *bucket) {
    bucket->is_stale = false;
    bucket->longest = 0;
    bucket->deadline_ns = bucket->expires_ns = UINT64_MAX;
    uint32_t left = NOTED_JOBS;
    for (const struct job *job = bucket->first; job != NULL && left > 0; job = job->next, left--)
        note(bucket, job);
}

void buckets_settle(struct buckets *buckets) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < buckets->count; i++) {
        if (buckets->items[i].first == NULL) continue;
        if (kept != i) buckets->items[kept] = buckets->items[i];
        if (buckets->items[kept].is_stale) renew(&buckets->items[kept]);
        kept++;
    }
    buckets->count = kept;
}

struct bucket *buckets_oldest(struct buckets *buckets) {
    struct bucket *oldest = NULL;
    for (uint32_t i = 0; i < buckets->count; i++) {
        struct bucket *bucket = &buckets->items[i];
        if (bucket->rank > buckets->items[0].rank) break;
        if (oldest == NULL ||
            bucket->first->trace->at[AT_ENQUEUED] < oldest->first->trace->at[AT_ENQUEUED])
            oldest = bucket;
    }
    return oldest;
}

struct bucket *buckets_full(struct buckets *buckets, uint32_t rank, uint32_t max_rows) {
    for (uint32_t i = 0; i < buckets->count; i++)
        if (buckets->items[i].rank == rank && buckets->items[i].rows >= max_rows)
            return &buckets->items[i];
    return NULL;
}

/* May bucket join a batch of so many rows and such a length? */
static bool may_merge(const struct bucket *leader, const struct bucket *bucket,
                      const struct policy_state *state, uint32_t rows, uint32_t longest) {
    if (bucket == leader || bucket->jobs == 0 || bucket->shape_hash != leader->shape_hash)
        return false;
    return bucket->length_class == leader->length_class || /* of another rank only */
           policy_should_merge(state, rows, longest, bucket->rows, bucket->longest);
}

/* Jobs as they would be taken, looked at for the sizes on the way. */
static uint32_t count_preferred(const struct bucket *bucket, const struct policy_config *config,
                                uint32_t max_rows, uint32_t *rows, uint32_t best) {
    for (const struct job *job = bucket->first; job != NULL; job = job->next) {
        if (*rows + job->rows > max_rows) break;
        *rows += job->rows;
        if (policy_is_preferred(config, *rows)) best = *rows;
    }
    return best;
}

void buckets_look(const struct buckets *buckets, const struct bucket *leader,
                  const struct policy_config *config, const struct policy_state *state,
                  uint32_t max_rows, struct bucket_batch *out) {
    uint32_t rows = leader->rows, longest = leader->longest, taken = 0;
    *out = (struct bucket_batch){.oldest_ns = leader->first->trace->at[AT_ENQUEUED],
                                 .deadline_ns = leader->deadline_ns,
                                 .expires_ns = leader->expires_ns};
    const bool has_sizes = config->preferred_count > 0;
    if (has_sizes) out->preferred = count_preferred(leader, config, max_rows, &taken, 0);
    for (uint32_t i = 0; i < buckets->count && rows < max_rows; i++) {
        const struct bucket *bucket = &buckets->items[i];
        if (!may_merge(leader, bucket, state, rows, longest)) continue;
        rows += bucket->rows;
        if (bucket->longest > longest) longest = bucket->longest;
        const uint64_t oldest_ns = bucket->first->trace->at[AT_ENQUEUED];
        if (oldest_ns < out->oldest_ns) out->oldest_ns = oldest_ns;
        if (has_sizes)
            out->preferred = count_preferred(bucket, config, max_rows, &taken, out->preferred);
    }
    out->rows = rows < max_rows ? rows : max_rows;
}

/* What buckets_take builds. */
struct taking {
    const struct bucket_taking *wanted;
    struct job *list, **tail;       /* the batch */
    struct job *dropped, **dropped_tail;
};

/* While others wait for the place, who would be late all the same gives it to them; when nobody
 * does there is nothing to save, and what is known of executions may be wrong. */
static bool is_dropped(const struct buckets *buckets, struct job *job, uint32_t room,
                       const struct bucket_taking *wanted) {
    const uint64_t needed_ns = buckets->rows > room ? wanted->needed_ns : 0;
    if (flag_is_up(&job->is_cancelled)) job->status = ST_CANCELLED;
    else if (job->deadline_ns != 0 && job->deadline_ns <= wanted->now_ns + needed_ns)
        job->status = ST_TIMEOUT;
    else return false;
    return true;
}

/* Moves jobs from the head of bucket to the batch while rows allow; those nobody waits for any
 * more go aside. Returns rows taken. */
static uint32_t move_head(struct buckets *buckets, struct bucket *bucket, uint32_t room,
                          struct taking *taking) {
    uint32_t taken = 0;
    while (bucket->first != NULL && taken + bucket->first->rows <= room) {
        struct job *job = bucket->first;
        const bool is_lost = is_dropped(buckets, job, room - taken, taking->wanted);
        unlink_job(buckets, bucket, job);
        if (is_lost) {
            *taking->dropped_tail = job;
            taking->dropped_tail = &job->next;
            continue;
        }
        taken += job->rows;
        *taking->tail = job;
        taking->tail = &job->next;
        if (job->rows == 0) break; /* not batched: one at a time */
    }
    return taken;
}

struct job *buckets_take(struct buckets *buckets, struct bucket *leader,
                         const struct policy_state *state, const struct bucket_taking *wanted,
                         struct job **out_dropped) {
    struct taking taking = {.wanted = wanted};
    taking.tail = &taking.list;
    taking.dropped_tail = &taking.dropped;
    const uint32_t max_rows = wanted->max_rows;
    uint32_t longest = leader->longest;
    const bool is_batched = leader->first->rows > 0;
    uint32_t rows = move_head(buckets, leader, max_rows, &taking);
    for (uint32_t i = 0; is_batched && i < buckets->count && rows < max_rows; i++) {
        struct bucket *bucket = &buckets->items[i];
        if (!may_merge(leader, bucket, state, rows, longest)) continue;
        if (bucket->longest > longest) longest = bucket->longest;
        rows += move_head(buckets, bucket, max_rows - rows, &taking);
    }
    *taking.tail = NULL;
    *taking.dropped_tail = NULL;
    buckets_settle(buckets);
    *out_dropped = taking.dropped;
    return taking.list;
}

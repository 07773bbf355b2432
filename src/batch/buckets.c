/* See buckets.h. Read next: collector.c. */
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

static struct bucket *bucket_for(struct buckets *buckets, uint64_t hash, uint32_t class) {
    for (uint32_t i = 0; i < buckets->count; i++)
        if (buckets->items[i].shape_hash == hash && buckets->items[i].length_class == class)
            return &buckets->items[i];
    if (buckets->count == buckets->capacity) {
        const uint32_t capacity = buckets->capacity == 0 ? 16 : buckets->capacity * 2;
        struct bucket *items = realloc(buckets->items, capacity * sizeof *items);
        if (items == NULL) return NULL;
        buckets->items = items;
        buckets->capacity = capacity;
    }
    struct bucket *bucket = &buckets->items[buckets->count++];
    *bucket = (struct bucket){
        .shape_hash = hash, .length_class = class, .deadline_ns = UINT64_MAX};
    return bucket;
}

bool buckets_put(struct buckets *buckets, const struct batcher_config *config, struct job *job) {
    const uint32_t class = job->inputs == NULL ? 0 : buckets_length_class(job->length);
    struct bucket *bucket = bucket_for(buckets, shape_hash(config, job, config->input_count), class);
    if (bucket == NULL) return false;
    job->next = NULL;
    if (bucket->last != NULL) bucket->last->next = job;
    else bucket->first = job;
    bucket->last = job;
    bucket->jobs++;
    bucket->rows += job->rows;
    if (job->length > bucket->longest) bucket->longest = job->length;
    if (job->deadline_ns != 0 && job->deadline_ns < bucket->deadline_ns)
        bucket->deadline_ns = job->deadline_ns;
    buckets->jobs++;
    const uint64_t at = job->trace->at[AT_ENQUEUED];
    if (at > buckets->newest_ns) buckets->newest_ns = at;
    return true;
}

struct bucket *buckets_oldest(struct buckets *buckets) {
    struct bucket *oldest = NULL;
    for (uint32_t i = 0; i < buckets->count; i++) {
        struct bucket *bucket = &buckets->items[i];
        if (oldest == NULL ||
            bucket->first->trace->at[AT_ENQUEUED] < oldest->first->trace->at[AT_ENQUEUED])
            oldest = bucket;
    }
    return oldest;
}

struct bucket *buckets_full(struct buckets *buckets, uint32_t max_rows) {
    for (uint32_t i = 0; i < buckets->count; i++)
        if (buckets->items[i].rows >= max_rows) return &buckets->items[i];
    return NULL;
}

/* May bucket join a batch of so many rows and such a length? */
static bool may_merge(const struct bucket *leader, const struct bucket *bucket,
                      const struct policy_state *state, uint32_t rows, uint32_t longest) {
    return bucket != leader && bucket->jobs > 0 && bucket->shape_hash == leader->shape_hash &&
           policy_should_merge(state, rows, longest, bucket->rows, bucket->longest);
}

uint32_t buckets_batch_rows(const struct buckets *buckets, const struct bucket *leader,
                            const struct policy_state *state, uint32_t max_rows) {
    uint32_t rows = leader->rows, longest = leader->longest;
    for (uint32_t i = 0; i < buckets->count && rows < max_rows; i++) {
        const struct bucket *bucket = &buckets->items[i];
        if (!may_merge(leader, bucket, state, rows, longest)) continue;
        rows += bucket->rows;
        if (bucket->longest > longest) longest = bucket->longest;
    }
    return rows < max_rows ? rows : max_rows;
}

static void recount(struct bucket *bucket) {
    bucket->jobs = bucket->rows = bucket->longest = 0;
    bucket->deadline_ns = UINT64_MAX;
    for (const struct job *job = bucket->first; job != NULL; job = job->next) {
        bucket->jobs++;
        bucket->rows += job->rows;
        if (job->length > bucket->longest) bucket->longest = job->length;
        if (job->deadline_ns != 0 && job->deadline_ns < bucket->deadline_ns)
            bucket->deadline_ns = job->deadline_ns;
    }
}

/* What buckets_take builds. */
struct taking {
    struct job *list, **tail;       /* the batch */
    struct job *dropped, **dropped_tail;
    uint64_t now_ns;
};

static bool is_dropped(struct job *job, uint64_t now_ns) {
    if (flag_is_up(&job->is_cancelled)) job->status = ST_CANCELLED;
    else if (job->deadline_ns != 0 && job->deadline_ns <= now_ns) job->status = ST_TIMEOUT;
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
        bucket->first = job->next;
        buckets->jobs--;
        if (is_dropped(job, taking->now_ns)) {
            *taking->dropped_tail = job;
            taking->dropped_tail = &job->next;
            continue;
        }
        taken += job->rows;
        *taking->tail = job;
        taking->tail = &job->next;
        if (job->rows == 0) break; /* not batched: one at a time */
    }
    if (bucket->first == NULL) bucket->last = NULL;
    recount(bucket);
    return taken;
}

static void remove_empty(struct buckets *buckets) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < buckets->count; i++)
        if (buckets->items[i].first != NULL) buckets->items[kept++] = buckets->items[i];
    buckets->count = kept;
}

struct job *buckets_take(struct buckets *buckets, struct bucket *leader,
                         const struct policy_state *state, uint32_t max_rows, uint64_t now_ns,
                         struct job **out_dropped) {
    struct taking taking = {.now_ns = now_ns};
    taking.tail = &taking.list;
    taking.dropped_tail = &taking.dropped;
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
    remove_empty(buckets);
    *out_dropped = taking.dropped;
    return taking.list;
}

/* Jobs that wait, sorted into buckets of like shape, each in arrival order: requests of different
 * shape never close each other's batches, and a long text does not make short ones pay. Touched
 * by the collecting instance only. */
#ifndef TELLTALE_BATCH_BUCKETS_H
#define TELLTALE_BATCH_BUCKETS_H

#include "batch/batcher.h"

struct bucket {
    uint64_t shape_hash;
    uint32_t length_class;
    struct job *first, *last;
    uint32_t jobs, rows;
    uint32_t longest;
    uint64_t deadline_ns; /* earliest ever put in; UINT64_MAX none */
};

struct buckets {
    struct bucket *items; /* those in use; order of creation */
    uint32_t count, capacity;
    uint32_t jobs;
    uint64_t newest_ns;   /* newest enqueue instant ever put in */
};

void buckets_init(struct buckets *buckets);
void buckets_done(struct buckets *buckets);
/* Length class of a padded axis: two classes an octave from 8 up, so that padding inside a class
 * wastes at most a third. */
uint32_t buckets_length_class(uint32_t length);
/* False when memory is out: the job stays the caller's. */
MUST_CHECK bool buckets_put(struct buckets *buckets, const struct batcher_config *config,
                            struct job *job);
/* The bucket whose head is oldest; NULL when empty. */
struct bucket *buckets_oldest(struct buckets *buckets);
/* A bucket holding rows >= max_rows; NULL when there is none. */
struct bucket *buckets_full(struct buckets *buckets, uint32_t max_rows);
/* Rows that a batch led by bucket would have, merging others of the same shape where the policy
 * says that it pays, up to max_rows. */
uint32_t buckets_batch_rows(const struct buckets *buckets, const struct bucket *leader,
                            const struct policy_state *state, uint32_t max_rows);
/* Takes that batch out: a list through job->next, oldest of the leader first (NULL when nobody
 * waits for any of them any more). Jobs met on the way that are cancelled or past their deadline
 * go to *out_dropped with their status set. The leader may be gone afterwards. */
struct job *buckets_take(struct buckets *buckets, struct bucket *leader,
                         const struct policy_state *state, uint32_t max_rows, uint64_t now_ns,
                         struct job **out_dropped);

#endif

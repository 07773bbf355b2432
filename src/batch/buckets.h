/* Jobs that wait, sorted into buckets of like shape and rank, each in arrival order: requests of
 * different shape never close each other's batches, a long text does not make short ones pay, and
 * what has a lower rank is served first. A level of priority has two ranks, the second for those
 * that were late. Under the collector's mutex. */
#ifndef TELLTALE_BATCH_BUCKETS_H
#define TELLTALE_BATCH_BUCKETS_H

#include "batch/batcher.h"

struct bucket {
    uint64_t shape_hash;
    uint32_t length_class;
    uint32_t rank;
    struct job *first, *last;
    uint32_t jobs, rows;
    uint32_t longest;
    uint64_t deadline_ns; /* earliest of an answer; UINT64_MAX none */
    uint64_t expires_ns;  /* earliest end of a timeout in the queue; UINT64_MAX none */
    bool is_stale;        /* the three above count somebody who has left */
};

struct buckets {
    struct bucket *items; /* those in use, by rank, else in order of creation */
    uint32_t count, capacity;
    uint32_t jobs;
    uint64_t rows;        /* a job of a model that is not batched counts as one */
    uint64_t newest_ns;   /* newest enqueue instant ever put in */
};

void buckets_init(struct buckets *buckets);
void buckets_done(struct buckets *buckets);
/* Length class of a padded axis: two classes an octave from 8 up, so that padding inside a class
 * wastes at most a third. */
uint32_t buckets_length_class(uint32_t length);
/* By job->rank. False when memory is out: the job stays the caller's. */
MUST_CHECK bool buckets_put(struct buckets *buckets, const struct batcher_config *config,
                            struct job *job);
/* Takes a job out. Afterwards, when no more are to be taken out: buckets_settle. */
void buckets_remove(struct buckets *buckets, struct job *job);
void buckets_settle(struct buckets *buckets);
/* Of the lowest rank the bucket whose head is oldest; NULL when empty. */
struct bucket *buckets_oldest(struct buckets *buckets);
/* A bucket of the rank holding rows >= max_rows; NULL when there is none. */
struct bucket *buckets_full(struct buckets *buckets, uint32_t rank, uint32_t max_rows);

/* The batch that a leader would have: its own jobs first, then those of others of the same shape,
 * by rank, that are of its length class or that the policy says it pays to merge. */
struct bucket_batch {
    uint32_t rows;        /* up to max_rows */
    uint32_t preferred;   /* the most rows of a preferred size that whole jobs make up; 0: none */
    uint64_t oldest_ns;   /* earliest arrival among those buckets */
    uint64_t deadline_ns; /* as struct bucket's, of the leader */
    uint64_t expires_ns;
};
void buckets_look(const struct buckets *buckets, const struct bucket *leader,
                  const struct policy_config *config, const struct policy_state *state,
                  uint32_t max_rows, struct bucket_batch *out);

/* Takes that batch out: a list through job->next, oldest of the leader first (NULL when nobody
 * waits for any of them any more). Jobs met on the way that are cancelled or past their deadline
 * go to *out_dropped with their status set; while more wait than the batch has room for, also those
 * that have less than needed_ns left. The leader may be gone afterwards. */
struct bucket_taking {
    uint32_t max_rows;
    uint64_t now_ns;
    uint64_t needed_ns;
};
struct job *buckets_take(struct buckets *buckets, struct bucket *leader,
                         const struct policy_state *state, const struct bucket_taking *taking,
                         struct job **out_dropped);

#endif

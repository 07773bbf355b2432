/* See staging.h. One ring of tickets for all slabs: a job's rows have the same place in each.
 * Invariant: a job's staging is set exactly while it has rows reserved. Read next: gather.c. */
#include "batch/staging.h"

#include "sync/tickets.h"

#include <stdlib.h>

struct staging {
    struct tickets *tickets;
    uint32_t input_count, rows;
    size_t row_bytes[MODEL_MAX_IO];
    char *slabs[MODEL_MAX_IO]; /* NULL where row_bytes is 0 */
    struct counter refused;
};

/* Large slabs come straight from the kernel, which gives pages when they are first written. */
static char *slab_alloc(size_t row_bytes, uint32_t rows) {
    size_t size;
    if (__builtin_mul_overflow(row_bytes, (size_t)rows, &size) || size > PTRDIFF_MAX - 64)
        return NULL;
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

enum status staging_create(const size_t *row_bytes, uint32_t input_count, uint32_t rows,
                           struct staging **out, struct err *err) {
    struct staging *staging = calloc(1, sizeof *staging);
    if (staging == NULL) return err_set(err, ST_NO_MEMORY, "no memory for staged inputs");
    staging->input_count = input_count;
    staging->rows = rows;
    staging->tickets = tickets_create(rows);
    bool is_whole = staging->tickets != NULL;
    for (uint32_t i = 0; i < input_count && is_whole; i++) {
        staging->row_bytes[i] = row_bytes[i];
        if (row_bytes[i] == 0) continue;
        staging->slabs[i] = slab_alloc(row_bytes[i], rows);
        is_whole = staging->slabs[i] != NULL;
    }
    if (!is_whole) {
        staging_free(staging);
        return err_set(err, ST_NO_MEMORY, "no memory for %u rows of staged inputs", rows);
    }
    *out = staging;
    return ST_OK;
}

void staging_free(struct staging *staging) {
    if (staging == NULL) return;
    for (uint32_t i = 0; i < staging->input_count; i++) free(staging->slabs[i]);
    tickets_free(staging->tickets);
    free(staging);
}

bool staging_reserve(struct staging *staging, struct job *job) {
    if (job->staging != NULL) return true;
    const uint32_t rows = job->rows > 0 ? job->rows : 1;
    if (!tickets_reserve(staging->tickets, rows, &job->staged_at)) {
        counter_add(&staging->refused, 1);
        return false;
    }
    job->staged_rows = rows;
    job->staging = staging;
    return true;
}

char *staging_rows(const struct job *job, uint32_t input) {
    const struct staging *staging = job->staging;
    return staging->slabs[input] +
           tickets_place(staging->tickets, job->staged_at) * staging->row_bytes[input];
}

void staging_release(struct job *job) {
    if (job->staging == NULL) return;
    struct staging *staging = job->staging;
    job->staging = NULL;
    tickets_release(staging->tickets, job->staged_at, job->staged_rows);
}

void staging_release_list(struct job *list) {
    for (struct job *job = list; job != NULL; job = job->next) staging_release(job);
}

/* Two sorted lists to one. */
static struct job *merge(struct job *a, struct job *b) {
    struct job *list = NULL, **tail = &list;
    while (a != NULL && b != NULL) {
        struct job **first = a->staged_at <= b->staged_at ? &a : &b;
        *tail = *first;
        tail = &(*first)->next;
        *first = (*first)->next;
    }
    *tail = a != NULL ? a : b;
    return list;
}

/* Halves as deep as log2 of a batch's largest size. */
static struct job *sort(struct job *list) {
    if (list == NULL || list->next == NULL) return list;
    struct job *middle = list;
    for (struct job *end = list->next; end != NULL && end->next != NULL; end = end->next->next)
        middle = middle->next;
    struct job *second = middle->next;
    middle->next = NULL;
    return merge(sort(list), sort(second));
}

struct job *staging_sort(struct job *list) {
    bool is_sorted = true;
    for (const struct job *job = list; job != NULL; job = job->next) {
        if (job->staging == NULL) return list;
        is_sorted = is_sorted && (job->next == NULL || job->staged_at < job->next->staged_at);
    }
    return is_sorted ? list : sort(list);
}

uint64_t staging_refused(const struct staging *staging) {
    return (uint64_t)counter_get(&staging->refused);
}

uint64_t staging_bytes(const struct staging *staging) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < staging->input_count; i++)
        bytes += (uint64_t)staging->row_bytes[i] * staging->rows;
    return bytes;
}

uint64_t staging_taken(const struct staging *staging) {
    return tickets_taken_hint(staging->tickets);
}

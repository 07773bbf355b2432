/* See expiry.h. Invariant: items[i]->expiry_at is i + 1, and 0 for every job that is not in it. */
#include "batch/expiry.h"

#include <stdlib.h>

void expiry_done(struct expiry *expiry) {
    free(expiry->items);
    *expiry = (struct expiry){0};
}

static void place(struct expiry *expiry, uint32_t at, struct job *job) {
    expiry->items[at] = job;
    job->expiry_at = at + 1;
}

static void sift_up(struct expiry *expiry, uint32_t at, struct job *job) {
    for (; at > 0; at = (at - 1) / 2) {
        struct job *parent = expiry->items[(at - 1) / 2];
        if (parent->expires_ns <= job->expires_ns) break;
        place(expiry, at, parent);
    }
    place(expiry, at, job);
}

static void sift_down(struct expiry *expiry, uint32_t at, struct job *job) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= expiry->count) break;
        if (child + 1 < expiry->count &&
            expiry->items[child + 1]->expires_ns < expiry->items[child]->expires_ns)
            child++;
        if (job->expires_ns <= expiry->items[child]->expires_ns) break;
        place(expiry, at, expiry->items[child]);
        at = child;
    }
    place(expiry, at, job);
}

bool expiry_put(struct expiry *expiry, struct job *job) {
    if (expiry->count == expiry->capacity) {
        const uint32_t capacity = expiry->capacity == 0 ? 64 : expiry->capacity * 2;
        struct job **items = realloc(expiry->items, capacity * sizeof *items);
        if (items == NULL) return false;
        expiry->items = items;
        expiry->capacity = capacity;
    }
    sift_up(expiry, expiry->count++, job);
    return true;
}

void expiry_remove(struct expiry *expiry, struct job *job) {
    if (job->expiry_at == 0) return;
    const uint32_t at = job->expiry_at - 1;
    struct job *last = expiry->items[--expiry->count];
    job->expiry_at = 0;
    if (last == job) return;
    if (at > 0 && last->expires_ns < expiry->items[(at - 1) / 2]->expires_ns)
        sift_up(expiry, at, last);
    else sift_down(expiry, at, last);
}

struct job *expiry_first(const struct expiry *expiry) {
    return expiry->count > 0 ? expiry->items[0] : NULL;
}

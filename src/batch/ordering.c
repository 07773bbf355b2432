/* See ordering.h. Invariant: slots of numbers from `next` on, as many as there are slots, are
 * theirs alone: nobody has entered who could be numbered further. Read next: waiting.c. */
#include "batch/ordering.h"

#include <stdlib.h>

struct place {
    struct job *job;  /* NULL where it was passed over */
    bool is_through;
};

struct ordering {
    void (*on_done)(struct job *list, void *ctx);
    void *ctx;
    struct counter entered; /* and not yet answered or passed over */
    uint32_t jobs;          /* most of them */
    uint64_t numbered;      /* under the collector's mutex */
    pthread_mutex_t lock;   /* for what follows */
    struct place *places;   /* of number n: places[n & mask] */
    uint64_t mask;
    uint64_t next;          /* to be answered */
    bool is_delivering;     /* somebody gives answers out */
};

enum status ordering_create(uint32_t jobs, void (*on_done)(struct job *list, void *ctx), void *ctx,
                            struct ordering **out, struct err *err) {
    struct ordering *ordering = calloc(1, sizeof *ordering);
    if (ordering == NULL) return err_set(err, ST_NO_MEMORY, "no memory for the order of answers");
    uint64_t places = 64;
    while (places < jobs) places *= 2;
    ordering->on_done = on_done;
    ordering->ctx = ctx;
    ordering->jobs = jobs;
    ordering->mask = places - 1;
    ordering->places = calloc(places, sizeof *ordering->places);
    if (ordering->places == NULL) {
        free(ordering);
        return err_set(err, ST_NO_MEMORY, "no memory for the order of %u answers", jobs);
    }
    pthread_mutex_init(&ordering->lock, NULL);
    *out = ordering;
    return ST_OK;
}

void ordering_free(struct ordering *ordering) {
    if (ordering == NULL) return;
    pthread_mutex_destroy(&ordering->lock);
    free(ordering->places);
    free(ordering);
}

bool ordering_enter(struct ordering *ordering) {
    if (counter_add(&ordering->entered, 1) <= (int64_t)ordering->jobs) return true;
    ordering_leave(ordering);
    return false;
}

void ordering_leave(struct ordering *ordering) { counter_add(&ordering->entered, -1); }

uint64_t ordering_number(struct ordering *ordering) { return ordering->numbered++; }

/* Those that are through from the next on, as a list; *count: with those passed over. */
static struct job *take_ready(struct ordering *ordering, int64_t *count) {
    struct job *list = NULL, **tail = &list;
    for (*count = 0; ordering->places[ordering->next & ordering->mask].is_through; ++*count) {
        struct place *place = &ordering->places[ordering->next++ & ordering->mask];
        if (place->job != NULL) {
            *tail = place->job;
            tail = &place->job->next;
        }
        *place = (struct place){.job = NULL};
    }
    *tail = NULL;
    return list;
}

/* Under the lock, which it gives back meanwhile. Who comes while somebody delivers leaves it to
 * that thread, so that answers never overtake each other. */
static void deliver(struct ordering *ordering) {
    if (ordering->is_delivering) return;
    ordering->is_delivering = true;
    int64_t count;
    for (struct job *list = take_ready(ordering, &count); count > 0;
         list = take_ready(ordering, &count)) {
        pthread_mutex_unlock(&ordering->lock);
        if (list != NULL) ordering->on_done(list, ordering->ctx);
        counter_add(&ordering->entered, -count);
        pthread_mutex_lock(&ordering->lock);
    }
    ordering->is_delivering = false;
}

void ordering_complete(struct ordering *ordering, struct job *list) {
    pthread_mutex_lock(&ordering->lock);
    for (struct job *job = list; job != NULL; job = job->next)
        ordering->places[job->order & ordering->mask] =
            (struct place){.job = job, .is_through = true};
    deliver(ordering);
    pthread_mutex_unlock(&ordering->lock);
}

void ordering_pass(struct ordering *ordering, const struct job *list) {
    pthread_mutex_lock(&ordering->lock);
    for (const struct job *job = list; job != NULL; job = job->next)
        ordering->places[job->order & ordering->mask] = (struct place){.is_through = true};
    deliver(ordering);
    pthread_mutex_unlock(&ordering->lock);
}

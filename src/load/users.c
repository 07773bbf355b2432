/* Clients and their next instants. Loop thread. Invariant: heap[i]'s instant is not before that
 * of heap[(i - 1) / 2]. Used by step.c. */
#include "load/users.h"

#include <stdlib.h>

enum status users_create(uint32_t count, struct users *out, struct err *err) {
    struct users users = {
        .items = calloc(count, sizeof *users.items),
        .count = count,
        .heap = calloc(count, sizeof *users.heap),
    };
    if (users.items == NULL || users.heap == NULL) {
        users_done(&users);
        return err_set(err, ST_NO_MEMORY, "out of memory for %u clients", count);
    }
    *out = users;
    return ST_OK;
}

void users_done(struct users *users) {
    free(users->items);
    free(users->heap);
    *users = (struct users){0};
}

static uint64_t wake_of(const struct users *users, uint32_t place) {
    return users->items[users->heap[place]].wake_ns;
}

static void swap(struct users *users, uint32_t a, uint32_t b) {
    uint32_t kept = users->heap[a];
    users->heap[a] = users->heap[b];
    users->heap[b] = kept;
}

void users_push(struct users *users, uint32_t user) {
    uint32_t place = users->heap_size++;
    users->heap[place] = user;
    while (place > 0 && wake_of(users, place) < wake_of(users, (place - 1) / 2)) {
        swap(users, place, (place - 1) / 2);
        place = (place - 1) / 2;
    }
}

bool users_first(const struct users *users, uint32_t *out_user) {
    if (users->heap_size == 0) return false;
    *out_user = users->heap[0];
    return true;
}

void users_pop(struct users *users) {
    users->heap[0] = users->heap[--users->heap_size];
    uint32_t place = 0;
    for (;;) {
        uint32_t least = place, left = 2 * place + 1;
        if (left < users->heap_size && wake_of(users, left) < wake_of(users, least)) least = left;
        if (left + 1 < users->heap_size && wake_of(users, left + 1) < wake_of(users, least))
            least = left + 1;
        if (least == place) return;
        swap(users, place, least);
        place = least;
    }
}

/* A list that only grows: one thread (at a time) puts nodes in front, any walks it meanwhile.
 * Intrusive; a node stays until the list's owner, alone again, frees all.
 *
 * Callers: growing_add by one thread at a time, growing_first from any. Progress: wait-free. */
#ifndef TELLTALE_SYNC_GROWING_H
#define TELLTALE_SYNC_GROWING_H

#include <stdatomic.h>

struct growing_node {
    struct growing_node *next; /* older; constant once the node is in */
};

struct growing { /* zeroed: empty */
    _Atomic(struct growing_node *) first; /* newest; written by who adds */
};

void growing_add(struct growing *list, struct growing_node *node);
struct growing_node *growing_first(const struct growing *list); /* NULL: empty */

#endif

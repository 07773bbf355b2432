/* Merging many symbols: a heap of the pairs that can be merged, so that a line of text without
 * spaces costs n log n. Any thread. Invariant: what is on the heap may be out of date and is
 * looked at again when it comes up; by which rule is what Hugging Face's library does, so that
 * odd files end alike. See bpe.c. */
#include "prep/bpe.h"

struct node { /* a symbol in a list; size 0: merged into its left neighbour */
    uint32_t id, size;
    uint32_t previous, next; /* TRIE_NONE: none */
};

/* Entries are rank << 32 | place: the smallest is the best pair, the leftmost of equals. Each
 * merge takes one and adds at most two, so twice the symbols is room enough. */
struct heap {
    uint64_t *entries;
    size_t count;
};

static void heap_push(struct heap *heap, uint64_t entry) {
    size_t at = heap->count++;
    while (at > 0 && heap->entries[(at - 1) / 2] > entry) {
        heap->entries[at] = heap->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->entries[at] = entry;
}

static uint64_t heap_pop(struct heap *heap) {
    uint64_t top = heap->entries[0];
    uint64_t moved = heap->entries[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count) {
            break;
        }
        child += child + 1 < heap->count && heap->entries[child + 1] < heap->entries[child];
        if (heap->entries[child] >= moved) {
            break;
        }
        heap->entries[at] = heap->entries[child];
        at = child;
    }
    heap->entries[at] = moved;
    return top;
}

static void push_pair(const struct bpe *model, const struct node *nodes, struct heap *heap,
                      uint32_t left) {
    struct bpe_merge merge = bpe_find_pair(model, nodes[left].id, nodes[nodes[left].next].id);
    if (merge.rank != TRIE_NONE) {
        heap_push(heap, (uint64_t)merge.rank << 32 | left);
    }
}

/* Merges the pair of an entry, unless it is out of date. */
static void take(const struct bpe *model, struct node *nodes, struct heap *heap, uint64_t entry) {
    uint32_t place = (uint32_t)entry;
    struct node *left = &nodes[place];
    if (left->size == 0 || left->next == TRIE_NONE) {
        return;
    }
    struct node *right = &nodes[left->next];
    uint32_t merged = model->merged_by_rank[entry >> 32];
    struct bpe_merge now = bpe_find_pair(model, left->id, right->id);
    if (now.rank == TRIE_NONE || now.merged != merged) {
        return;
    }
    left->id = merged;
    left->size += right->size;
    left->next = right->next;
    right->size = 0;
    if (left->next != TRIE_NONE) {
        nodes[left->next].previous = place;
    }
    if (left->previous != TRIE_NONE) {
        push_pair(model, nodes, heap, left->previous);
    }
    if (left->next != TRIE_NONE) {
        push_pair(model, nodes, heap, place);
    }
}

bool bpe_merge_heap(const struct bpe *model, struct bpe_symbols *symbols, struct arena *arena) {
    size_t count = symbols->count;
    struct node *nodes = arena_alloc(arena, count * sizeof *nodes);
    struct heap heap = {.entries = arena_alloc(arena, 2 * count * sizeof *heap.entries)};
    if (nodes == NULL || heap.entries == NULL || count >= TRIE_NONE) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        nodes[i] = (struct node){
            .id = symbols->ids[i],
            .size = symbols->sizes[i],
            .previous = i == 0 ? TRIE_NONE : (uint32_t)i - 1,
            .next = i + 1 == count ? TRIE_NONE : (uint32_t)i + 1,
        };
    }
    for (size_t i = 0; i + 1 < count; i++) {
        push_pair(model, nodes, &heap, (uint32_t)i);
    }
    while (heap.count > 0) {
        take(model, nodes, &heap, heap_pop(&heap));
    }
    symbols->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].size > 0) {
            symbols->ids[symbols->count] = nodes[i].id;
            symbols->sizes[symbols->count++] = nodes[i].size;
        }
    }
    return true;
}

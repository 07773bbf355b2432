/* The lists of token_stages.h: they grow in an arena, at least doubling, so that what is left
 * behind is less than what is there. Any thread, each with its own. Invariant: count <= capacity.
 * Read tokenizer.c next. */
#include "prep/token_stages.h"

/* Room for need items of size bytes in place of used ones; NULL: no memory. */
static void *grow(struct arena *arena, const void *items, size_t used, size_t size,
                  size_t *capacity, size_t need) {
    if (need > SIZE_MAX / 4 / size || *capacity > SIZE_MAX / 4 / size) {
        return NULL;
    }
    const size_t room = 2 * *capacity > need ? 2 * *capacity : need;
    void *larger = arena_alloc(arena, room * size);
    if (larger != NULL) {
        if (used > 0) memcpy(larger, items, used * size);
        *capacity = room;
    }
    return larger;
}

bool span_text_reserve(struct span_text *buf, size_t extra) {
    if (buf->capacity - buf->size >= extra) return true;
    if (extra > UINT32_MAX - buf->size) return false; /* pieces count in 32 bits */
    size_t capacity = buf->capacity;
    unsigned char *data =
        grow(buf->arena, buf->data, buf->size, 1, &capacity, buf->size + extra);
    if (data == NULL) return false;
    if (buf->has_sources) {
        size_t same = buf->capacity;
        struct source *sources = grow(buf->arena, buf->sources, buf->size, sizeof *sources, &same,
                                      buf->size + extra);
        if (sources == NULL) return false;
        buf->sources = sources;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool span_text_copy(struct span_text *out, const struct span_text *in, size_t start, size_t end) {
    if (start >= end) return true;
    if (!span_text_reserve(out, end - start)) return false;
    memcpy(out->data + out->size, in->data + start, end - start);
    if (out->has_sources) {
        memcpy(out->sources + out->size, in->sources + start, (end - start) * sizeof *in->sources);
    }
    out->size += end - start;
    return true;
}

bool piece_list_push(struct piece_list *list, uint32_t start, uint32_t end) {
    if (list->count == list->capacity) {
        struct piece *items = grow(list->arena, list->items, list->count, sizeof *items,
                                   &list->capacity, list->count + 64);
        if (items == NULL) return false;
        list->items = items;
    }
    list->items[list->count++] = (struct piece){start, end};
    return true;
}

bool token_list_push(struct token_list *list, uint32_t id, uint32_t start, uint32_t end) {
    if (list->count == list->capacity) {
        struct token *items = grow(list->arena, list->items, list->count, sizeof *items,
                                   &list->capacity, list->count + 64);
        if (items == NULL) return false;
        list->items = items;
    }
    list->items[list->count++] = (struct token){id, start, end};
    return true;
}

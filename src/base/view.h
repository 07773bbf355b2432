/* A run of bytes owned by somebody else. Not terminated. */
#ifndef TELLTALE_BASE_VIEW_H
#define TELLTALE_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct view {
    const char *data;
    size_t size;
};

static inline struct view view_of(const char *text) {
    return (struct view){.data = text, .size = strlen(text)};
}
static inline bool view_eq(struct view a, struct view b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool view_is(struct view a, const char *text) { return view_eq(a, view_of(text)); }

/* For printf's "%.*s". */
#define VIEW_ARGS(v) (int)(v).size, (v).data

#endif

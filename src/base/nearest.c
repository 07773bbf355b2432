/* See nearest.h. Any thread; no state but the caller's. */
#include "base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64, UNREACHABLE = 1000 };

/* Edit distance in which two neighbours swapped count as one (optimal string alignment). */
static unsigned distance(const char *a, const char *b) {
    const size_t a_size = strlen(a);
    const size_t b_size = strlen(b);
    if (a_size >= NAME_MAX_BYTES || b_size >= NAME_MAX_BYTES) {
        return UNREACHABLE;
    }
    unsigned rows[3][NAME_MAX_BYTES + 1]; /* rows i, i - 1, i - 2, in turn */
    for (size_t j = 0; j <= b_size; j++) {
        rows[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            unsigned best = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                const unsigned swapped = rows[(i - 2) % 3][j - 2] + 1;
                best = swapped < best ? swapped : best;
            }
            row[j] = best;
        }
    }
    return rows[a_size % 3][b_size];
}

void nearest_begin(struct nearest *search, const char *typed) {
    const size_t size = strlen(typed);
    *search = (struct nearest){.typed = typed,
                               .least = size < 3 ? 1 : size < 6 ? 2 : (unsigned)size / 3};
}

void nearest_try(struct nearest *search, const char *name) {
    const size_t size = strlen(search->typed);
    const bool is_begun = size >= 3 && strncmp(name, search->typed, size) == 0;
    const unsigned away = is_begun ? 1 : distance(search->typed, name);
    if (away < search->least || (away == search->least && search->best == NULL)) {
        search->best = name;
        search->least = away;
    }
}

/* Regions by runs: each row's runs are joined with those of the row above that they touch
 * (union-find with path halving), then sorted by region in one counting pass. Any thread. Invariant:
 * a region's root is its first run, so regions come in order of their first pixel. */
#include "prep/regions.h"

static uint32_t root_of(struct run *runs, uint32_t at) {
    while (runs[at].region != at) {
        runs[at].region = runs[runs[at].region].region;
        at = runs[at].region;
    }
    return at;
}

static void join(struct run *runs, uint32_t a, uint32_t b) {
    a = root_of(runs, a);
    b = root_of(runs, b);
    if (a < b) runs[b].region = a;
    else runs[a].region = b;
}

/* The runs of a row, appended where runs is not NULL. Returns how many there are. */
static uint32_t row_runs(const float *row, uint32_t width, uint32_t y, float threshold,
                         struct run *runs, uint32_t count) {
    const uint32_t before = count;
    for (uint32_t x = 0; x < width; x++) {
        if (!(row[x] > threshold)) continue;
        const uint32_t first = x;
        while (x + 1 < width && row[x + 1] > threshold) x++;
        if (runs != NULL)
            runs[count] = (struct run){.row = y, .first = first, .last = x, .region = count};
        count++;
    }
    return count - before;
}

/* Joins the runs [from, to) of a row with [above, from) of the row before. */
static void join_rows(struct run *runs, uint32_t above, uint32_t from, uint32_t to) {
    uint32_t up = above;
    for (uint32_t at = from; at < to; at++) {
        while (up < from && runs[up].last + 1 < runs[at].first) up++;
        for (uint32_t i = up; i < from && runs[i].first <= runs[at].last + 1; i++)
            join(runs, i, at);
    }
}

/* Runs sorted by region; starts and the regions' number. numbers and starts: total + 1 each. */
static void sort_runs(struct run *runs, uint32_t total, uint32_t *numbers, struct run *sorted,
                      uint32_t *starts, struct regions *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < total; i++) {
        const uint32_t root = root_of(runs, i);
        if (root == i) {
            starts[count] = 0;
            numbers[i] = count++;
        }
        numbers[i] = numbers[root];
        starts[numbers[i]]++;
    }
    uint32_t at = 0;
    for (uint32_t r = 0; r < count; r++) {
        const uint32_t size = starts[r];
        starts[r] = at;
        at += size;
    }
    for (uint32_t i = 0; i < total; i++) sorted[starts[numbers[i]]++] = runs[i];
    for (uint32_t r = count; r > 0; r--) starts[r] = starts[r - 1];
    starts[0] = 0;
    *out = (struct regions){.runs = sorted, .starts = starts, .count = count};
}

bool regions_find(const float *map, uint32_t width, uint32_t height, float threshold,
                  struct scratch *scratch, struct regions *out) {
    uint32_t total = 0;
    for (uint32_t y = 0; y < height; y++)
        total += row_runs(map + (size_t)y * width, width, y, threshold, NULL, total);
    const size_t bytes = ((size_t)total + 1) * (2 * sizeof(struct run) + 2 * sizeof(uint32_t));
    struct run *runs = scratch_get(scratch, SCRATCH_ANSWER, bytes);
    if (runs == NULL) return false;
    uint32_t above = 0, from = 0;
    for (uint32_t y = 0; y < height; y++) {
        const uint32_t to =
            from + row_runs(map + (size_t)y * width, width, y, threshold, runs, from);
        join_rows(runs, above, from, to);
        above = from;
        from = to;
    }
    struct run *sorted = runs + total + 1;
    uint32_t *numbers = (uint32_t *)(sorted + total + 1);
    sort_runs(runs, total, numbers, sorted, numbers + total + 1, out);
    return true;
}

/* Server-Timing, on every inference answer: no printf, it is on the hot path. Any thread.
 *
 * Invariant: total is what was known when the header was written, so `send` is never in it.
 * Read next: infer_route.c. */
#include "serve/server_timing.h"

/* ", NAME;dur=" */
static const struct view PREFIXES[STAGE_COUNT] = {
#define X(name, text, help)                                                                    \
    [STAGE_##name] = {.data = ", " text ";dur=", .size = sizeof(", " text ";dur=") - 1},
    STAGE_TABLE(X)
#undef X
};

void server_timing_write(struct buf *out, const uint64_t *durations_ns, uint64_t total_ns) {
    buf_text(out, "Server-Timing: total;dur=");
    buf_ms(out, total_ns);
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        if (durations_ns[stage] == 0)
            continue;
        buf_append(out, PREFIXES[stage].data, PREFIXES[stage].size);
        buf_ms(out, durations_ns[stage]);
    }
    buf_append(out, "\r\n", 2);
}

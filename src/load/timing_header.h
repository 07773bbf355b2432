/* The Server-Timing header of an answer: what the server says each stage took. Pure: bytes to
 * durations. */
#ifndef TELLTALE_LOAD_TIMING_HEADER_H
#define TELLTALE_LOAD_TIMING_HEADER_H

#include "base/view.h"
#include "measure/stage.h"
#include <stdbool.h>
#include <stdint.h>

struct timing_header {
    bool has_total;
    uint64_t total_ns;
    uint32_t seen; /* bit a stage */
    uint64_t stage_ns[STAGE_COUNT];
};

/* "total;dur=1.234, decode;dur=0.02": milliseconds. Entries with other names or without dur are
 * passed over. False when the text breaks the header's grammar or a duration is not a number
 * from 0 to 10^12 ms; out then holds what came before. */
bool timing_header_parse(struct view text, struct timing_header *out);

#endif

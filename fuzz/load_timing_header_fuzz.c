/* The server's Server-Timing header: whatever it is, no read outside it, and what is taken is
 * within the limits that the header promises. */
#include "load/timing_header.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct timing_header out;
    (void)timing_header_parse((struct view){(const char *)data, size}, &out);
    for (int i = 0; i < STAGE_COUNT; i++) {
        bool is_seen = (out.seen >> i & 1) != 0;
        if (out.stage_ns[i] > 1000001000000000000u || (!is_seen && out.stage_ns[i] != 0)) abort();
    }
    return 0;
}

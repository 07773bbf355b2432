/* The Server-Timing header of an answer: where the server spent the time, in milliseconds. */
#ifndef TELLTALE_SERVE_SERVER_TIMING_H
#define TELLTALE_SERVE_SERVER_TIMING_H

#include "base/buf.h"
#include "measure/stage.h"

/* "Server-Timing: total;dur=1.234, receive;dur=0.012, ...\r\n". durations_ns: STAGE_COUNT
 * entries; stages that took no time are left out. */
void server_timing_write(struct buf *out, const uint64_t *durations_ns, uint64_t total_ns);

#endif

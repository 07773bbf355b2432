/* The machine that a result holds for. What it does not tell is empty or 0. */
#ifndef TELLTALE_LOAD_HOST_H
#define TELLTALE_LOAD_HOST_H

#include <stdint.h>

struct host {
    char cpu[128];    /* "model name" */
    char kernel[128]; /* "Linux 6.1.0 x86_64" */
    unsigned processors;     /* online */
    unsigned processors_usable; /* after affinity and quota */
    uint64_t memory_bytes;
};
void host_read(struct host *out);

#endif

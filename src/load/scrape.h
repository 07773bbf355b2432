/* The server's counters, as its metrics page (Prometheus text) has them. What a server does not
 * offer is absent, not zero. */
#ifndef TELLTALE_LOAD_SCRAPE_H
#define TELLTALE_LOAD_SCRAPE_H

#include "base/view.h"
#include <stdbool.h>

struct scrape {
    bool has_cpu, has_device, has_instances;
    double cpu_s;         /* process_cpu_seconds_total */
    double device_busy_s; /* telltale_device_busy_seconds_total of the model */
    double instances;     /* telltale_instances of the model */
};

/* Lines with a label model of another name than `model` are passed over. */
void scrape_parse(struct view text, const char *model, struct scrape *out);

#endif

/* The simulated accelerator's parameters, as `--simulate` gives them. Pure: also for validating
 * the option early and for whoever predicts what the device will do. */
#ifndef TELLTALE_INFER_SIM_SPEC_H
#define TELLTALE_INFER_SIM_SPEC_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_spec {
    double batch_ns; /* a: once a batch */
    double row_ns;   /* b: for each row */
    double in_ns;    /* copy to the device, once a batch; 0: none */
    double out_ns;   /* copy from the device, once a batch; 0: none */
    bool fails_on_nan;
    bool fails_on_id; /* text form: a batch that holds fail_id among its real ids fails */
    int64_t fail_id;
};

/* "a=4ms,b=0.05ms[,in=0.1ms][,out=0.1ms][,fail=nan|fail=id:N]"; units us, ms, s; each time at
 * most 60 s. ST_INVALID and a sentence that names the field; out_spec is untouched then. */
MUST_CHECK enum status sim_spec_parse(const char *text, struct sim_spec *out_spec,
                                      struct err *err);
/* "a=4ms b=50us in=100us": what describe() and manifests show. Returns out. */
char *sim_spec_text(const struct sim_spec *spec, char *out, size_t out_size);
/* Device time of one batch, copies included. */
uint64_t sim_spec_batch_ns(const struct sim_spec *spec, uint32_t rows);

#endif

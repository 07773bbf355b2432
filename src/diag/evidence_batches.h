/* The parts of the evidence that are about batches and about the load as a whole. */
#ifndef TELLTALE_DIAG_EVIDENCE_BATCHES_H
#define TELLTALE_DIAG_EVIDENCE_BATCHES_H

#include "diag/evidence.h"

/* Fills batches, fit, is_simulated, is_inline, is_timer. */
MUST_CHECK enum status evidence_of_batches(struct evidence *evidence, struct err *err);
/* Fills span, rate, requests in flight, utilisation, dispersion. After the batches. */
void evidence_of_load(struct evidence *evidence);

#endif

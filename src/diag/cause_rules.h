/* The rules behind the table in causes.c, and what they are written with. Private to causes. */
#ifndef TELLTALE_DIAG_CAUSE_RULES_H
#define TELLTALE_DIAG_CAUSE_RULES_H

#include "diag/causes.h"

#define MS(ns) ((ns) / 1e6)
#define PERCENT(share) ((share) * 100)
#define LONGER 1.2    /* slow ones' tokens or bytes against the middle's */
#define LATE_NS 0.2e6 /* a wake-up, or a wait for a processor, that is felt */

/* key, label and unit must be static texts. */
void finding_figure(struct finding *finding, const char *key, const char *label, const char *unit,
                    double value);
/* Sets why_not; returns false, so that a rule can end with it. */
bool finding_unless(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_advise(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What the slow ones would take on average if the cause's part were left_ns. */
void finding_expect(const struct evidence *evidence, struct finding *finding, double left_ns);

/* How much of a request's time is the cause's: struct cause, part_ns. */
#define CAUSE_PART(name)                                                                       \
    double cause_part_##name(const struct evidence *evidence, const struct run_request *request)
/* Whether the discriminators hold: struct cause, holds. */
#define CAUSE_HOLDS(name)                                                                      \
    bool cause_holds_##name(const struct evidence *evidence, struct finding *finding)

CAUSE_PART(batch_size);
CAUSE_PART(body);
CAUSE_PART(encode);
CAUSE_PART(gap);
CAUSE_PART(generator);
CAUSE_PART(hand_over);
CAUSE_PART(inline);
CAUSE_PART(length);
CAUSE_PART(lock);
CAUSE_PART(network);
CAUSE_PART(pictures);
CAUSE_PART(processor);
CAUSE_PART(send);
CAUSE_PART(starved_workers);
CAUSE_PART(timer);
CAUSE_PART(tokenizing);
CAUSE_PART(variation);
CAUSE_PART(wait);
CAUSE_PART(workers);

CAUSE_HOLDS(batch_size);
CAUSE_HOLDS(body);
CAUSE_HOLDS(bursts);
CAUSE_HOLDS(busy);
CAUSE_HOLDS(encode);
CAUSE_HOLDS(gap);
CAUSE_HOLDS(generator);
CAUSE_HOLDS(hand_over);
CAUSE_HOLDS(head_of_line);
CAUSE_HOLDS(inline);
CAUSE_HOLDS(lock);
CAUSE_HOLDS(long_inputs);
CAUSE_HOLDS(network);
CAUSE_HOLDS(padding);
CAUSE_HOLDS(pictures);
CAUSE_HOLDS(processor);
CAUSE_HOLDS(queueing);
CAUSE_HOLDS(saturated);
CAUSE_HOLDS(send);
CAUSE_HOLDS(starved_workers);
CAUSE_HOLDS(timer);
CAUSE_HOLDS(tokenizing);
CAUSE_HOLDS(variation);
CAUSE_HOLDS(workers);

#endif

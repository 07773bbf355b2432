/* The table of causes. Any thread. Invariant: parts of different causes never claim the same
 * nanosecond of a request, except rules that exclude each other by their discriminators
 * (saturated, busy_instance, head_of_line, queueing, bursts; long_inputs and padding; tokenizing
 * and pictures, and starved workers). Thresholds and their reasons: docs/explain.md. Read next:
 * cause_rules_queue.c, cause_rules_prepare.c, cause_rules_work.c, findings.c. */
#include "diag/cause_rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void finding_figure(struct finding *finding, const char *key, const char *label, const char *unit,
                    double value) {
    if (finding->figure_count < FIGURES_MAX)
        finding->figures[finding->figure_count++] = (struct figure){key, label, unit, value};
}

bool finding_unless(struct finding *finding, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(finding->why_not, sizeof finding->why_not, format, args);
    va_end(args);
    return false;
}

void finding_advise(struct finding *finding, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, args);
    va_end(args);
}

void finding_expect(const struct evidence *evidence, struct finding *finding, double left_ns) {
    finding->expected_ns = fmax(evidence->slow.whole_ns - finding->slow_ns + left_ns, 0);
}

const struct cause CAUSES[] = {
    {.name = "timer_too_long",
     .title = "the batch timer is too long: requests were held while an instance was free",
     .option = "--policy, --max-delay-us",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_timer, .holds = cause_holds_timer},
    {.name = "holding",
     .title = "batches were held for company",
     .option = "--policy",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_gap, .holds = cause_holds_gap},
    {.name = "tokenizer_inline",
     .title = "the tokenizer runs inside the instance's thread",
     .option = "--preprocess",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_inline, .holds = cause_holds_inline},
    {.name = "lock_contention",
     .title = "the queue's lock is contended",
     .option = "--queue",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_lock, .holds = cause_holds_lock},
    {.name = "instances_saturated",
     .title = "the instances are saturated: full batches and all of them busy",
     .option = "--instances",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_wait, .holds = cause_holds_saturated},
    {.name = "head_of_line",
     .title = "long batches in front of short ones",
     .option = "--max-batch, --max-tokens",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_wait, .holds = cause_holds_head_of_line},
    {.name = "arrival_bursts",
     .title = "requests arrive in bursts",
     .option = "",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_wait, .holds = cause_holds_bursts},
    {.name = "busy_instance",
     .title = "they waited for the batch in front",
     .option = "--policy",
     .kind = CAUSE_ORDINARY,
     .part_ns = cause_part_wait, .holds = cause_holds_busy},
    {.name = "queueing",
     .title = "they came while the instances were busy",
     .option = "--instances",
     .kind = CAUSE_ORDINARY,
     .part_ns = cause_part_wait, .holds = cause_holds_queueing},
    {.name = "workers_saturated",
     .title = "the workers are saturated",
     .option = "--workers",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_workers, .holds = cause_holds_workers},
    {.name = "tokenizing",
     .title = "tokenizing takes longer for the slow ones",
     .option = "--max-tokens",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_tokenizing, .holds = cause_holds_tokenizing},
    {.name = "pictures",
     .title = "decoding and resizing pictures takes longer for the slow ones",
     .option = "jpeg_scaling, --workers",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_pictures, .holds = cause_holds_pictures},
    {.name = "workers_starved",
     .title = "the workers did not get a processor in time",
     .option = "--workers",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_starved_workers, .holds = cause_holds_starved_workers},
    {.name = "long_inputs",
     .title = "the slow ones are longer inputs",
     .option = "--max-tokens",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_length, .holds = cause_holds_long_inputs},
    {.name = "padding",
     .title = "short inputs are padded to long ones",
     .option = "--max-batch",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_length, .holds = cause_holds_padding},
    {.name = "large_batches",
     .title = "the slow ones ran in larger batches",
     .option = "--max-batch",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_batch_size, .holds = cause_holds_batch_size},
    {.name = "processor_wait",
     .title = "the instances' threads did not get a processor in time",
     .option = "--instances, --intra-op-threads",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_processor, .holds = cause_holds_processor},
    {.name = "hand_over",
     .title = "hand-overs between threads take long",
     .option = "",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_hand_over, .holds = cause_holds_hand_over},
    {.name = "execution_varies",
     .title = "the same execution took longer",
     .option = "",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_variation, .holds = cause_holds_variation},
    {.name = "request_body",
     .title = "receiving and decoding the body",
     .option = "",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_body, .holds = cause_holds_body},
    {.name = "encoding",
     .title = "encoding the answer",
     .option = "",
     .kind = CAUSE_FAULT, .is_work = true,
     .part_ns = cause_part_encode, .holds = cause_holds_encode},
    {.name = "slow_readers",
     .title = "answers are read slowly",
     .option = "",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_send, .holds = cause_holds_send},
    {.name = "network",
     .title = "network and client",
     .option = "",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_network, .holds = cause_holds_network},
    {.name = "generator",
     .title = "waiting in the client to be sent",
     .option = "",
     .kind = CAUSE_FAULT,
     .part_ns = cause_part_generator, .holds = cause_holds_generator},
};

size_t cause_count(void) { return sizeof CAUSES / sizeof CAUSES[0]; }

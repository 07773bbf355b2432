/* Rules about work: execution, getting a processor, bodies and clients. Any thread; pure. Invariant: of an execution's time, the parts for length, batch size, waiting for a
 * processor and variation do not overlap. Read next:
 * cause_rules_prepare.c, causes.c (the table). */
#include "diag/cause_rules.h"

#include <math.h>

#define FIT_MIN_R2 0.3

/* ---- execution ---- */

static double run_delay_of(const struct run_batch *batch, const struct run_request *request) {
    return fmin((double)batch->run_delay_ns, request->part_ns[STAGE_EXECUTE]);
}

/* b times the elements that the batch has beyond the middle's, for its length or its rows. */
static double extra_ns(const struct evidence *evidence, const struct run_request *request,
                       bool for_length) {
    const struct run_batch *batch = evidence_batch(evidence, request);
    const struct cost_fit *fit = &evidence->fit;
    const struct group *middle = &evidence->middle;
    if (batch == NULL || batch->rows == 0 || !fit->is_known || fit->r2 < FIT_MIN_R2)
        return 0;
    const double rows = batch->rows;
    double extra;
    if (fit->is_by_elements) {
        const double middle_length =
            middle->batch_rows > 0 ? middle->elements / middle->batch_rows : 0;
        const double length = (double)batch->padded_elements / rows;
        extra = for_length ? rows * (length - middle_length)
                           : (rows - middle->batch_rows) * middle_length;
    } else {
        extra = for_length ? 0 : rows - middle->batch_rows;
    }
    const double most = request->part_ns[STAGE_EXECUTE] - run_delay_of(batch, request);
    return fmax(fmin(fit->b_ns * extra, most), -most);
}

double cause_part_length(const struct evidence *evidence, const struct run_request *request) {
    return fmax(extra_ns(evidence, request, true), 0);
}

static void length_figures(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "tokens_slow", "tokens, slow", "", evidence->slow.tokens);
    finding_figure(finding, "tokens_middle", "middle", "", evidence->middle.tokens);
    finding_figure(finding, "padded_slow", "padded to, slow", "", evidence->slow.padded);
    finding_figure(finding, "padded_middle", "middle", "", evidence->middle.padded);
    finding_figure(finding, "execute_slow_ms", "execution, slow", "ms",
                   MS(evidence->slow.part_ns[STAGE_EXECUTE]));
    finding_figure(finding, "execute_middle_ms", "middle", "ms",
                   MS(evidence->middle.part_ns[STAGE_EXECUTE]));
    finding_figure(finding, "fit_us_per_element", "an element costs", "us",
                   evidence->fit.b_ns / 1e3);
    finding_figure(finding, "fit_r2", "fit's R2", "", evidence->fit.r2);
}

bool cause_holds_long_inputs(const struct evidence *evidence, struct finding *finding) {
    length_figures(evidence, finding);
    if (evidence->slow.tokens < LONGER * evidence->middle.tokens)
        return finding_unless(finding, "the slow ones are not longer: %.0f tokens against %.0f",
                              evidence->slow.tokens, evidence->middle.tokens);
    finding_advise(finding,
                   "the slow ones are the long ones; matched on length they are no slower. "
                   "--max-tokens bounds what a text may cost");
    return true;
}

bool cause_holds_padding(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow, *middle = &evidence->middle;
    length_figures(evidence, finding);
    if (slow->tokens >= LONGER * middle->tokens)
        return finding_unless(finding, "the slow ones are longer themselves");
    if (slow->padded < LONGER * slow->tokens || slow->padded < LONGER * middle->padded)
        return finding_unless(finding, "the slow ones are hardly padded: %.0f tokens to %.0f",
                              slow->tokens, slow->padded);
    finding_advise(finding,
                   "short texts ran beside a long one and were padded to its length; a smaller "
                   "--max-batch or --max-tokens makes that rarer");
    return true;
}

double cause_part_batch_size(const struct evidence *evidence, const struct run_request *request) {
    return fmax(extra_ns(evidence, request, false), 0);
}

bool cause_holds_batch_size(const struct evidence *evidence, struct finding *finding) {
    if (evidence->is_timer)
        return finding_unless(finding, "the timer gathers the batches: see how long it holds them");
    finding_figure(finding, "batch_slow", "requests in the batch, slow", "",
                   evidence->slow.batch_size);
    finding_figure(finding, "batch_middle", "middle", "", evidence->middle.batch_size);
    finding_figure(finding, "execute_slow_ms", "execution, slow", "ms",
                   MS(evidence->slow.part_ns[STAGE_EXECUTE]));
    finding_figure(finding, "execute_middle_ms", "middle", "ms",
                   MS(evidence->middle.part_ns[STAGE_EXECUTE]));
    if (evidence->slow.batch_size < LONGER * evidence->middle.batch_size)
        return finding_unless(finding, "the slow ones' batches are not larger");
    finding_advise(finding, "a smaller --max-batch trades throughput for a shorter tail");
    return true;
}

double cause_part_processor(const struct evidence *evidence, const struct run_request *request) {
    const struct run_batch *batch = evidence_batch(evidence, request);
    return evidence_wake_ns(request) + (batch == NULL ? 0 : run_delay_of(batch, request));
}

bool cause_holds_processor(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const struct run_config *config = &evidence->run->config;
    finding_figure(finding, "wake_slow_ms", "batch ready, thread not yet running, slow", "ms",
                   MS(slow->wake_ns));
    finding_figure(finding, "wake_middle_ms", "middle", "ms", MS(evidence->middle.wake_ns));
    finding_figure(finding, "run_delay_ms", "waiting for a processor during the execution, slow",
                   "ms", MS(slow->run_delay_ns));
    finding_figure(finding, "cpu_ms", "running meanwhile", "ms", MS(slow->cpu_ns));
    if (config->processors > 0) {
        finding_figure(finding, "processors", "processors", "", (double)config->processors);
        finding_figure(finding, "instance_threads", "instances x intra-op threads", "",
                       (double)(config->instances * config->intra_op_threads));
    }
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "the threads ran within %.3f ms", MS(finding->slow_ns));
    finding_advise(finding,
                   "more threads want to run than there are processors: fewer --instances, "
                   "--intra-op-threads or --workers, or take other work (a load generator too) "
                   "off this machine");
    finding_expect(evidence, finding, 0);
    return true;
}

double cause_part_hand_over(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return (double)request->part_ns[STAGE_OTHER] +
           fmax(request->part_ns[STAGE_BATCH_ENQUEUE] - request->lock_wait_ns, 0);
}

bool cause_holds_hand_over(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "hand_over_slow_ms", "between threads, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "hand_over_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "requests_per_s", "requests a second", "", evidence->rate);
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "hand-overs between threads take %.3f ms",
                              MS(finding->slow_ns));
    finding_advise(finding,
                   "answers waited for the loop thread, which was busy or did not get a "
                   "processor: fewer threads, or other work (a load generator too) off this "
                   "machine");
    finding_expect(evidence, finding, 0);
    return true;
}

/* Execution beyond what its size and waiting for a processor explain; negative where faster. */
double cause_part_variation(const struct evidence *evidence, const struct run_request *request) {
    const struct run_batch *batch = evidence_batch(evidence, request);
    const struct cost_fit *fit = &evidence->fit;
    if (batch == NULL || !fit->is_known || batch->failed)
        return 0;
    const double x = fit->is_by_elements ? (double)batch->padded_elements : (double)batch->rows;
    return request->part_ns[STAGE_EXECUTE] - run_delay_of(batch, request) - fit->a_ns -
           fit->b_ns * x;
}

bool cause_holds_variation(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    finding_figure(finding, "beyond_slow_ms", "execution beyond what its size costs, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "beyond_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "fit_residual_ms", "spread around the fit, a batch", "ms",
                   MS(evidence->fit.residual_ns));
    finding_figure(finding, "cpu_ms", "processor time over the execution, slow", "ms",
                   MS(slow->cpu_ns));
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "executions take what their size costs");
    finding_advise(finding,
                   "the same work took longer: other work on the processors or the memory, a "
                   "lower clock, or (first runs of a shape) memory being set up; compare "
                   "with a run on a quiet machine");
    return true;
}

/* ---- outside the engine ---- */

/* Base64 is of the wire, though a worker undoes it. */
double cause_part_body(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return (double)request->part_ns[STAGE_RECEIVE] + (double)request->part_ns[STAGE_DECODE] +
           (double)request->step_ns[STEP_BASE64];
}

bool cause_holds_body(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow, *middle = &evidence->middle;
    const double text_ns = slow->part_ns[STAGE_DECODE] + slow->step_ns[STEP_BASE64];
    finding_figure(finding, "receive_slow_ms", "receiving the body, slow", "ms",
                   MS(slow->part_ns[STAGE_RECEIVE]));
    finding_figure(finding, "decode_slow_ms", "decoding it", "ms", MS(slow->part_ns[STAGE_DECODE]));
    if (slow->step_ns[STEP_BASE64] > 0)
        finding_figure(finding, "base64_slow_ms", "base64 in it", "ms",
                       MS(slow->step_ns[STEP_BASE64]));
    finding_figure(finding, "body_middle_ms", "together, middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "bytes_slow", "body, slow", "bytes", slow->bytes_in);
    finding_figure(finding, "bytes_middle", "middle", "bytes", middle->bytes_in);
    if (slow->bytes_in <= LONGER * middle->bytes_in)
        finding_advise(finding,
                       "bodies are no larger than others: a client or network that sends slowly, "
                       "or a loop thread busy with other connections");
    else if (text_ns > slow->part_ns[STAGE_RECEIVE])
        finding_advise(finding,
                       "the slow ones' bodies are larger, and JSON and base64 are what they cost: "
                       "send tensors in binary, and a picture or text as the raw body");
    else
        finding_advise(finding,
                       "the slow ones' bodies are larger: send tensors in binary, or less");
    return true;
}

double cause_part_encode(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[STAGE_ENCODE];
}

bool cause_holds_encode(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "encode_slow_ms", "encoding, slow", "ms", MS(finding->slow_ns));
    finding_figure(finding, "bytes_slow", "answer, slow", "bytes", evidence->slow.bytes_out);
    finding_figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_out);
    finding_advise(finding, "ask for outputs in binary, or for fewer of them");
    return true;
}

double cause_part_send(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[STAGE_SEND];
}

bool cause_holds_send(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "send_slow_ms", "until the last byte was with the kernel, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "send_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "bytes_slow", "answer, slow", "bytes", evidence->slow.bytes_out);
    finding_figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_out);
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "sending takes %.3f ms", MS(finding->slow_ns));
    finding_advise(finding,
                   "the clients read slowly, or answers are large; no server option changes that");
    return true;
}

double cause_part_network(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[PART_NETWORK];
}

double cause_part_generator(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[PART_GENERATOR];
}

bool cause_holds_network(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "network_slow_ms", "sent to answered, less the server's total, slow",
                   "ms", MS(finding->slow_ns));
    finding_figure(finding, "network_middle_ms", "middle", "ms", MS(finding->middle_ns));
    finding_figure(finding, "server_slow_ms", "the server's own total, slow", "ms",
                   MS(evidence->slow.total_ns));
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "network and client take %.3f ms", MS(finding->slow_ns));
    finding_advise(finding,
                   "the server did not spend it: connecting, the kernel's queues, or a client that "
                   "did not get a processor; load from another machine to tell");
    return true;
}

bool cause_holds_generator(const struct evidence *evidence, struct finding *finding) {
    finding_figure(finding, "generator_slow_ms", "planned to sent, slow", "ms",
                   MS(finding->slow_ns));
    finding_figure(finding, "generator_middle_ms", "middle", "ms", MS(finding->middle_ns));
    if (finding->slow_ns < LATE_NS)
        return finding_unless(finding, "requests were sent within %.3f ms of the plan",
                              MS(finding->slow_ns));
    (void)evidence;
    finding_advise(finding,
                   "requests waited in the client for an earlier answer (users who wait), or the "
                   "generator was late: see its lateness in result.json");
    return true;
}

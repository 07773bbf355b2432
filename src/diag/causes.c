/* The table of causes and the rules behind it. Any thread. Invariant: parts of different causes
 * never claim the same nanosecond of a request, except rules that exclude each other by their
 * discriminators (saturated, busy_instance, head_of_line, queueing, bursts; long_inputs and
 * padding; tokenizing and starved workers). Thresholds and their reasons: docs/explain.md. Read next: findings.c. */
#include "diag/causes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS(ns) ((ns) / 1e6)
#define PERCENT(share) ((share) * 100)
#define UTILISATION_HIGH 0.7
#define FILL_HIGH 0.7         /* of max_batch: "full or near" */
#define LONGER 1.2            /* slow ones' tokens against the middle's */
#define LATE_NS 0.2e6         /* a wake-up, or a wait for a processor, that is felt */
#define AHEAD_LONGER 1.5      /* batch in front against the mean batch */
#define DISPERSION_BURST 2.0
#define FIT_MIN_R2 0.3

static void figure(struct finding *finding, const char *key, const char *label, const char *unit,
                   double value) {
    if (finding->figure_count < FIGURES_MAX)
        finding->figures[finding->figure_count++] = (struct figure){key, label, unit, value};
}

__attribute__((format(printf, 2, 3)))
static bool unless(struct finding *finding, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(finding->why_not, sizeof finding->why_not, format, args);
    va_end(args);
    return false;
}

__attribute__((format(printf, 2, 3)))
static void advise(struct finding *finding, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, args);
    va_end(args);
}

/* What the slow ones would take on average if the cause's part were `left_ns`. */
static void expect(const struct evidence *evidence, struct finding *finding, double left_ns) {
    finding->expected_ns = fmax(evidence->slow.whole_ns - finding->slow_ns + left_ns, 0);
}

/* ---- holding ---- */

static double part_timer(const struct evidence *evidence, const struct run_request *request) {
    const bool is_timed = request->reason == REASON_TIMER ||
                          (request->reason == REASON_FULL && evidence->is_timer);
    return is_timed ? request->part_ns[STAGE_BATCH_HOLD] : 0;
}

static bool holds_timer(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const uint64_t delay_us = evidence->run->config.max_delay_us;
    const double idle =
        slow->queue_ns > 0 ? slow->activity_ns[ACTIVITY_IDLE] / slow->queue_ns : 0;
    figure(finding, "hold_slow_ms", "held while an instance was free, slow", "ms",
           MS(finding->slow_ns));
    figure(finding, "hold_middle_ms", "middle", "ms", MS(finding->middle_ns));
    if (delay_us > 0) figure(finding, "max_delay_ms", "--max-delay-us is", "ms", (double)delay_us / 1e3);
    figure(finding, "timer_slow_percent", "slow ones whose batch the timer released", "%",
           PERCENT(slow->reason_share[REASON_TIMER]));
    figure(finding, "idle_percent", "instances idle while they waited", "%", PERCENT(idle));
    figure(finding, "batch_size", "requests in the slow ones' batches", "", slow->batch_size);
    figure(finding, "max_batch", "of at most", "", evidence->batches.max_batch);
    if (slow->reason_share[REASON_TIMER] < 0.5)
        return unless(finding, "the timer released the batches of only %.0f %% of the slow requests",
                      PERCENT(slow->reason_share[REASON_TIMER]));
    advise(finding, "use --policy adaptive, which has no delay to choose, or a much shorter "
                    "--max-delay-us: an instance was free, and the batches left with %.1f of %u "
                    "requests all the same", slow->batch_size, evidence->batches.max_batch);
    expect(evidence, finding, 0);
    return true;
}

static double part_gap(const struct evidence *evidence, const struct run_request *request) {
    return request->part_ns[STAGE_BATCH_HOLD] - part_timer(evidence, request);
}

static bool holds_gap(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "hold_slow_ms", "held for company, slow", "ms", MS(finding->slow_ns));
    figure(finding, "hold_middle_ms", "middle", "ms", MS(finding->middle_ns));
    advise(finding, "--policy eager never holds");
    expect(evidence, finding, 0);
    return true;
}

/* ---- tokenizing ---- */

/* Its own tokenizing, its neighbours' in the same batch (stamped as dispatch before its turn and
 * as preprocess_wait after it), and that of earlier batches while it waited for the instance. */
static double part_inline(const struct evidence *evidence, const struct run_request *request) {
    if (!evidence->is_inline) return 0;
    return (double)request->part_ns[STAGE_PREPROCESS] +
           (double)request->part_ns[STAGE_PREPROCESS_WAIT] +
           fmax(request->part_ns[STAGE_DISPATCH] - evidence_wake_ns(request), 0) +
           (double)request->tokenizing_wait_ns;
}

static bool holds_inline(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const double own = slow->part_ns[STAGE_PREPROCESS];
    const double neighbours = slow->part_ns[STAGE_PREPROCESS_WAIT] +
                              fmax(slow->part_ns[STAGE_DISPATCH] - slow->wake_ns, 0);
    if (!evidence->is_inline) return unless(finding, "no instance tokenizes in this run");
    figure(finding, "own_ms", "its own tokenizing", "ms", MS(own));
    figure(finding, "neighbours_ms", "waiting for its batch's other texts", "ms", MS(neighbours));
    figure(finding, "earlier_ms", "waiting while earlier batches were tokenized", "ms",
           MS(fmax(finding->slow_ns - own - neighbours, 0)));
    figure(finding, "inline_batch_ms", "tokenizing in the instance's thread, a batch", "ms",
           MS(evidence->batches.inline_ns));
    figure(finding, "execute_batch_ms", "against the model", "ms", MS(evidence->batches.execute_ns));
    advise(finding, "use --preprocess pool: the instance then runs the model and nothing else");
    expect(evidence, finding, own);
    return true;
}

static double part_workers(const struct evidence *evidence, const struct run_request *request) {
    const double before =
        evidence->is_inline ? 0 : (double)request->part_ns[STAGE_PREPROCESS_WAIT];
    return before + (double)request->part_ns[STAGE_POSTPROCESS_WAIT];
}

static bool holds_workers(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "wait_slow_ms", "waiting for a worker, slow", "ms", MS(finding->slow_ns));
    figure(finding, "wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "preprocess_ms", "tokenizing itself, slow", "ms",
           MS(evidence->slow.part_ns[STAGE_PREPROCESS]));
    if (evidence->run->config.workers > 0)
        figure(finding, "workers", "workers", "", (double)evidence->run->config.workers);
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "the wait for a worker is %.3f ms", MS(finding->slow_ns));
    advise(finding, "more --workers while processors are free, or shorter texts (--max-tokens)");
    expect(evidence, finding, 0);
    return true;
}

static double part_tokenizing(const struct evidence *evidence, const struct run_request *request) {
    return evidence->is_inline ? 0 : (double)request->part_ns[STAGE_PREPROCESS];
}

static bool is_text_longer(const struct evidence *evidence) {
    return evidence->slow.bytes_in > LONGER * evidence->middle.bytes_in ||
           evidence->slow.tokens > LONGER * evidence->middle.tokens;
}

static void tokenizing_figures(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "preprocess_slow_ms", "tokenizing, slow", "ms", MS(finding->slow_ns));
    figure(finding, "preprocess_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "bytes_slow", "body, slow", "bytes", evidence->slow.bytes_in);
    figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_in);
}

static bool holds_tokenizing(const struct evidence *evidence, struct finding *finding) {
    tokenizing_figures(evidence, finding);
    if (!is_text_longer(evidence)) return unless(finding, "the slow ones' texts are not longer");
    advise(finding, "the slow ones' texts are longer: --max-tokens cuts them earlier");
    return true;
}

static bool holds_starved_workers(const struct evidence *evidence, struct finding *finding) {
    tokenizing_figures(evidence, finding);
    if (is_text_longer(evidence)) return unless(finding, "the slow ones' texts are longer");
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "tokenizing takes %.3f ms", MS(finding->slow_ns));
    advise(finding, "the same texts took longer: the workers were preempted. Fewer --workers or "
                    "--instances, or take other work (a load generator too) off this machine");
    return true;
}

/* ---- lock ---- */

static double part_lock(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->lock_wait_ns;
}

static bool holds_lock(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    unsigned holder = HOLDER_LOOP;
    for (unsigned i = HOLDER_LOOP; i < HOLDER_COUNT; i++)
        if (slow->holder_ns[i] > slow->holder_ns[holder]) holder = i;
    if (finding->slow_ns <= 0) return unless(finding, "nobody waited for a lock");
    figure(finding, "lock_wait_slow_ms", "waiting for the queue's lock, slow", "ms",
           MS(finding->slow_ns));
    figure(finding, "lock_wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "waited_percent", "slow ones that waited for it", "%",
           PERCENT(slow->lock_waited));
    figure(finding, "holder_percent", "of that wait under the holder named below", "%",
           PERCENT(slow->holder_ns[holder] / finding->slow_ns));
    advise(finding, "use --queue ring, which has no lock; it was held by the %s threads",
           holder_name((enum holder)holder));
    expect(evidence, finding, 0);
    return true;
}

/* ---- waiting for an instance ---- */

static double part_wait(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return fmax(request->part_ns[STAGE_INSTANCE_WAIT] - request->tokenizing_wait_ns, 0);
}

static void wait_figures(const struct evidence *evidence, struct finding *finding) {
    const struct batch_evidence *batches = &evidence->batches;
    figure(finding, "wait_slow_ms", "waiting for a free instance, slow", "ms", MS(finding->slow_ns));
    figure(finding, "wait_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "busy_percent", "instances busy, whole run", "%", PERCENT(evidence->utilisation));
    figure(finding, "batch_size", "requests a batch", "", batches->size);
    figure(finding, "max_batch", "of at most", "", batches->max_batch);
    figure(finding, "waiting_behind", "left waiting when a batch was taken", "", batches->waiting);
    figure(finding, "batch_ms", "a batch takes", "ms", MS(batches->busy_ns));
}

static bool is_busy(const struct evidence *evidence) {
    return evidence->utilisation >= UTILISATION_HIGH;
}

static bool is_full(const struct evidence *evidence) {
    const struct batch_evidence *batches = &evidence->batches;
    return batches->fill >= FILL_HIGH || batches->waiting >= FILL_HIGH * (batches->max_batch > 1 ? batches->max_batch : 1);
}

static bool holds_saturated(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (!is_busy(evidence))
        return unless(finding, "the instances were busy %.0f %% of the time, below %.0f %%",
                      PERCENT(evidence->utilisation), PERCENT(UTILISATION_HIGH));
    if (!is_full(evidence))
        return unless(finding, "batches have room: %.1f of %u requests", evidence->batches.size,
                      evidence->batches.max_batch);
    advise(finding, "this load needs more capacity: more --instances where processors or devices "
                    "are free, a faster model (int8, a shorter --max-tokens), or fewer requests a "
                    "server");
    return true;
}

static bool holds_busy(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (!is_busy(evidence) || is_full(evidence))
        return unless(finding, "the instances are not busy, or the batches are full");
    advise(finding, "capacity is not what is missing: batches have room. What is waited for is the "
                    "batch in front; a faster model, or --policy adaptive so that those who come "
                    "together run together, shortens it");
    return true;
}

static bool is_ahead_long(const struct evidence *evidence) {
    const struct group *slow = &evidence->slow;
    return slow->ahead_known >= 0.5 && slow->ahead_ns >= AHEAD_LONGER * evidence->batches.busy_ns;
}

static bool holds_head_of_line(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    wait_figures(evidence, finding);
    figure(finding, "ahead_ms", "the batch in front of the slow ones took", "ms", MS(slow->ahead_ns));
    figure(finding, "ahead_known_percent", "known for", "%", PERCENT(slow->ahead_known));
    if (is_busy(evidence)) return unless(finding, "the instances are busy most of the time");
    if (!is_ahead_long(evidence))
        return unless(finding, "the batches in front were not longer than others (%.3f against %.3f "
                               "ms, known for %.0f %%)", MS(slow->ahead_ns),
                      MS(evidence->batches.busy_ns), PERCENT(slow->ahead_known));
    advise(finding, "long batches stand in the way of others: a smaller --max-batch or "
                    "--max-tokens bounds them, more --instances let others pass");
    return true;
}

static bool holds_bursts(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    figure(finding, "dispersion", "arrivals' index of dispersion (1: Poisson)", "",
           evidence->dispersion);
    if (is_busy(evidence) || is_ahead_long(evidence))
        return unless(finding, "the wait has another reason");
    if (evidence->dispersion < DISPERSION_BURST)
        return unless(finding, evidence->dispersion > 0
                                   ? "arrivals are not bursty (index of dispersion %.2f)"
                                   : "arrivals cannot be judged from a sample (%.0f)",
                      evidence->dispersion);
    advise(finding, "requests come in bursts: smooth them at the client, or keep --instances for "
                    "the peak");
    return true;
}

static bool holds_queueing(const struct evidence *evidence, struct finding *finding) {
    wait_figures(evidence, finding);
    if (is_busy(evidence) || is_ahead_long(evidence) || evidence->dispersion >= DISPERSION_BURST)
        return unless(finding, "the wait has another reason");
    advise(finding, "ordinary queueing at this use: they came while the instances ran others. "
                    "More --instances or less load shortens it");
    return true;
}

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
    if (batch == NULL || batch->rows == 0 || !fit->is_known || fit->r2 < FIT_MIN_R2) return 0;
    const double rows = batch->rows;
    double extra;
    if (fit->is_by_elements) {
        const double middle_length = middle->batch_rows > 0 ? middle->elements / middle->batch_rows : 0;
        const double length = (double)batch->padded_elements / rows;
        extra = for_length ? rows * (length - middle_length)
                           : (rows - middle->batch_rows) * middle_length;
    } else {
        extra = for_length ? 0 : rows - middle->batch_rows;
    }
    const double most = request->part_ns[STAGE_EXECUTE] - run_delay_of(batch, request);
    return fmax(fmin(fit->b_ns * extra, most), -most);
}

static double part_length(const struct evidence *evidence, const struct run_request *request) {
    return fmax(extra_ns(evidence, request, true), 0);
}

static void length_figures(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "tokens_slow", "tokens, slow", "", evidence->slow.tokens);
    figure(finding, "tokens_middle", "middle", "", evidence->middle.tokens);
    figure(finding, "padded_slow", "padded to, slow", "", evidence->slow.padded);
    figure(finding, "padded_middle", "middle", "", evidence->middle.padded);
    figure(finding, "execute_slow_ms", "execution, slow", "ms", MS(evidence->slow.part_ns[STAGE_EXECUTE]));
    figure(finding, "execute_middle_ms", "middle", "ms", MS(evidence->middle.part_ns[STAGE_EXECUTE]));
    figure(finding, "fit_us_per_element", "an element costs", "us", evidence->fit.b_ns / 1e3);
    figure(finding, "fit_r2", "fit's R2", "", evidence->fit.r2);
}

static bool holds_long_inputs(const struct evidence *evidence, struct finding *finding) {
    length_figures(evidence, finding);
    if (evidence->slow.tokens < LONGER * evidence->middle.tokens)
        return unless(finding, "the slow ones are not longer: %.0f tokens against %.0f",
                      evidence->slow.tokens, evidence->middle.tokens);
    advise(finding, "the slow ones are the long ones; matched on length they are no slower. "
                    "--max-tokens bounds what a text may cost");
    return true;
}

static bool holds_padding(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow, *middle = &evidence->middle;
    length_figures(evidence, finding);
    if (slow->tokens >= LONGER * middle->tokens)
        return unless(finding, "the slow ones are longer themselves");
    if (slow->padded < LONGER * slow->tokens || slow->padded < LONGER * middle->padded)
        return unless(finding, "the slow ones are hardly padded: %.0f tokens to %.0f", slow->tokens,
                      slow->padded);
    advise(finding, "short texts ran beside a long one and were padded to its length; a smaller "
                    "--max-batch or --max-tokens makes that rarer");
    return true;
}

static double part_batch_size(const struct evidence *evidence, const struct run_request *request) {
    return fmax(extra_ns(evidence, request, false), 0);
}

static bool holds_batch_size(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "batch_slow", "requests in the batch, slow", "", evidence->slow.batch_size);
    figure(finding, "batch_middle", "middle", "", evidence->middle.batch_size);
    figure(finding, "execute_slow_ms", "execution, slow", "ms", MS(evidence->slow.part_ns[STAGE_EXECUTE]));
    figure(finding, "execute_middle_ms", "middle", "ms", MS(evidence->middle.part_ns[STAGE_EXECUTE]));
    if (evidence->slow.batch_size < LONGER * evidence->middle.batch_size)
        return unless(finding, "the slow ones' batches are not larger");
    advise(finding, "a smaller --max-batch trades throughput for a shorter tail");
    return true;
}

static double part_processor(const struct evidence *evidence, const struct run_request *request) {
    const struct run_batch *batch = evidence_batch(evidence, request);
    return evidence_wake_ns(request) + (batch == NULL ? 0 : run_delay_of(batch, request));
}

static bool holds_processor(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    const struct run_config *config = &evidence->run->config;
    figure(finding, "wake_slow_ms", "batch ready, thread not yet running, slow", "ms", MS(slow->wake_ns));
    figure(finding, "wake_middle_ms", "middle", "ms", MS(evidence->middle.wake_ns));
    figure(finding, "run_delay_ms", "waiting for a processor during the execution, slow", "ms",
           MS(slow->run_delay_ns));
    figure(finding, "cpu_ms", "running meanwhile", "ms", MS(slow->cpu_ns));
    if (config->processors > 0) {
        figure(finding, "processors", "processors", "", (double)config->processors);
        figure(finding, "instance_threads", "instances x intra-op threads", "",
               (double)(config->instances * config->intra_op_threads));
    }
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "the threads ran within %.3f ms", MS(finding->slow_ns));
    advise(finding, "more threads want to run than there are processors: fewer --instances, "
                    "--intra-op-threads or --workers, or take other work (a load generator too) "
                    "off this machine");
    expect(evidence, finding, 0);
    return true;
}

static double part_hand_over(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return (double)request->part_ns[STAGE_OTHER] +
           fmax(request->part_ns[STAGE_BATCH_ENQUEUE] - request->lock_wait_ns, 0);
}

static bool holds_hand_over(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "hand_over_slow_ms", "between threads, slow", "ms", MS(finding->slow_ns));
    figure(finding, "hand_over_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "requests_per_s", "requests a second", "", evidence->rate);
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "hand-overs between threads take %.3f ms", MS(finding->slow_ns));
    advise(finding, "answers waited for the loop thread, which was busy or did not get a "
                    "processor: fewer threads, or other work (a load generator too) off this "
                    "machine");
    expect(evidence, finding, 0);
    return true;
}

/* Execution beyond what its size and waiting for a processor explain; negative where faster. */
static double part_variation(const struct evidence *evidence, const struct run_request *request) {
    const struct run_batch *batch = evidence_batch(evidence, request);
    const struct cost_fit *fit = &evidence->fit;
    if (batch == NULL || !fit->is_known || batch->failed) return 0;
    const double x = fit->is_by_elements ? (double)batch->padded_elements : (double)batch->rows;
    return request->part_ns[STAGE_EXECUTE] - run_delay_of(batch, request) - fit->a_ns - fit->b_ns * x;
}

static bool holds_variation(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow;
    figure(finding, "beyond_slow_ms", "execution beyond what its size costs, slow", "ms",
           MS(finding->slow_ns));
    figure(finding, "beyond_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "fit_residual_ms", "spread around the fit, a batch", "ms", MS(evidence->fit.residual_ns));
    figure(finding, "cpu_ms", "processor time over the execution, slow", "ms", MS(slow->cpu_ns));
    if (finding->slow_ns < LATE_NS) return unless(finding, "executions take what their size costs");
    advise(finding, "the same work took longer: other work on the processors or the memory, a "
                    "lower clock, or (first runs of a shape) memory being set up; compare "
                    "with a run on a quiet machine");
    return true;
}

/* ---- outside the engine ---- */

static double part_body(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return (double)request->part_ns[STAGE_RECEIVE] + (double)request->part_ns[STAGE_DECODE];
}

static bool holds_body(const struct evidence *evidence, struct finding *finding) {
    const struct group *slow = &evidence->slow, *middle = &evidence->middle;
    figure(finding, "receive_slow_ms", "receiving the body, slow", "ms", MS(slow->part_ns[STAGE_RECEIVE]));
    figure(finding, "decode_slow_ms", "decoding it", "ms", MS(slow->part_ns[STAGE_DECODE]));
    figure(finding, "body_middle_ms", "both, middle", "ms", MS(finding->middle_ns));
    figure(finding, "bytes_slow", "body, slow", "bytes", slow->bytes_in);
    figure(finding, "bytes_middle", "middle", "bytes", middle->bytes_in);
    if (slow->bytes_in > LONGER * middle->bytes_in)
        advise(finding, "the slow ones' bodies are larger: send tensors in binary, or less");
    else
        advise(finding, "bodies are no larger than others: a client or network that sends slowly, "
                        "or a loop thread busy with other connections");
    return true;
}

static double part_encode(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[STAGE_ENCODE];
}

static bool holds_encode(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "encode_slow_ms", "encoding, slow", "ms", MS(finding->slow_ns));
    figure(finding, "bytes_slow", "answer, slow", "bytes", evidence->slow.bytes_out);
    figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_out);
    advise(finding, "ask for outputs in binary, or for fewer of them");
    return true;
}

static double part_send(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[STAGE_SEND];
}

static bool holds_send(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "send_slow_ms", "until the last byte was with the kernel, slow", "ms",
           MS(finding->slow_ns));
    figure(finding, "send_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "bytes_slow", "answer, slow", "bytes", evidence->slow.bytes_out);
    figure(finding, "bytes_middle", "middle", "bytes", evidence->middle.bytes_out);
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "sending takes %.3f ms", MS(finding->slow_ns));
    advise(finding, "the clients read slowly, or answers are large; no server option changes that");
    return true;
}

static double part_network(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[PART_NETWORK];
}

static double part_generator(const struct evidence *evidence, const struct run_request *request) {
    (void)evidence;
    return request->part_ns[PART_GENERATOR];
}

static bool holds_network(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "network_slow_ms", "sent to answered, less the server's total, slow", "ms",
           MS(finding->slow_ns));
    figure(finding, "network_middle_ms", "middle", "ms", MS(finding->middle_ns));
    figure(finding, "server_slow_ms", "the server's own total, slow", "ms", MS(evidence->slow.total_ns));
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "network and client take %.3f ms", MS(finding->slow_ns));
    advise(finding, "the server did not spend it: connecting, the kernel's queues, or a client that "
                    "did not get a processor; load from another machine to tell");
    return true;
}

static bool holds_generator(const struct evidence *evidence, struct finding *finding) {
    figure(finding, "generator_slow_ms", "planned to sent, slow", "ms", MS(finding->slow_ns));
    figure(finding, "generator_middle_ms", "middle", "ms", MS(finding->middle_ns));
    if (finding->slow_ns < LATE_NS)
        return unless(finding, "requests were sent within %.3f ms of the plan", MS(finding->slow_ns));
    (void)evidence;
    advise(finding, "requests waited in the client for an earlier answer (users who wait), or the "
                    "generator was late: see its lateness in result.json");
    return true;
}

/* ---- the table ---- */

const struct cause CAUSES[] = {
    {"timer_too_long", "the batch timer is too long: requests were held while an instance was free",
     "--policy, --max-delay-us", CAUSE_FAULT, false, part_timer, holds_timer},
    {"holding", "batches were held for company", "--policy", CAUSE_FAULT, false, part_gap, holds_gap},
    {"tokenizer_inline", "the tokenizer runs inside the instance's thread", "--preprocess",
     CAUSE_FAULT, false, part_inline, holds_inline},
    {"lock_contention", "the queue's lock is contended", "--queue", CAUSE_FAULT, false, part_lock,
     holds_lock},
    {"instances_saturated", "the instances are saturated: full batches and all of them busy",
     "--instances", CAUSE_FAULT, false, part_wait, holds_saturated},
    {"head_of_line", "long batches in front of short ones", "--max-batch, --max-tokens",
     CAUSE_FAULT, false, part_wait, holds_head_of_line},
    {"arrival_bursts", "requests arrive in bursts", "", CAUSE_FAULT, false, part_wait, holds_bursts},
    {"busy_instance", "they waited for the batch in front", "--policy", CAUSE_ORDINARY, false,
     part_wait, holds_busy},
    {"queueing", "they came while the instances were busy", "--instances", CAUSE_ORDINARY, false,
     part_wait, holds_queueing},
    {"workers_saturated", "the workers are saturated", "--workers", CAUSE_FAULT, false,
     part_workers, holds_workers},
    {"tokenizing", "tokenizing takes longer for the slow ones", "--max-tokens", CAUSE_FAULT, true,
     part_tokenizing, holds_tokenizing},
    {"workers_starved", "the workers did not get a processor in time", "--workers", CAUSE_FAULT, true,
     part_tokenizing, holds_starved_workers},
    {"long_inputs", "the slow ones are longer inputs", "--max-tokens", CAUSE_FAULT, true,
     part_length, holds_long_inputs},
    {"padding", "short inputs are padded to long ones", "--max-batch", CAUSE_FAULT, true,
     part_length, holds_padding},
    {"large_batches", "the slow ones ran in larger batches", "--max-batch", CAUSE_FAULT, true,
     part_batch_size, holds_batch_size},
    {"processor_wait", "the instances' threads did not get a processor in time",
     "--instances, --intra-op-threads", CAUSE_FAULT, false, part_processor, holds_processor},
    {"hand_over", "hand-overs between threads take long", "", CAUSE_FAULT, false, part_hand_over,
     holds_hand_over},
    {"execution_varies", "the same execution took longer", "", CAUSE_FAULT, true, part_variation,
     holds_variation},
    {"request_body", "receiving and decoding the body", "", CAUSE_FAULT, true, part_body, holds_body},
    {"encoding", "encoding the answer", "", CAUSE_FAULT, true, part_encode, holds_encode},
    {"slow_readers", "answers are read slowly", "", CAUSE_FAULT, false, part_send, holds_send},
    {"network", "network and client", "", CAUSE_FAULT, false, part_network, holds_network},
    {"generator", "waiting in the client to be sent", "", CAUSE_FAULT, false, part_generator,
     holds_generator},
};

size_t cause_count(void) { return sizeof CAUSES / sizeof CAUSES[0]; }

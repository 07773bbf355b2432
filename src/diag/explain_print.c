/* The report as text: the verdict first, then what it rests on. Any thread. Invariant: a figure
 * is printed with its unit, and a share says of what. Read next: explain_json.c. */
#include "diag/explain_print.h"

#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS(ns) ((ns) / 1e6)
#define PERCENT(share) ((share) * 100)

enum { WIDTH = 98, INDENT = 13 };

/* Milliseconds as a reader wants them, for printf; each call needs a buffer of its own. */
struct ms_text {
    char text[24];
};
static const char *ms(double ns, struct ms_text *buffer) {
    return table_ms(MS(ns), buffer->text, sizeof buffer->text);
}

/* "%.3g", but no exponent and no noise: 31 %, 4.2 %, 0.07 %. */
static void cell_percent(struct table *table, double share) {
    const double percent = PERCENT(share);
    table_cell(table,
               fabs(percent) < 0.05 ? "0 %%"
               : fabs(percent) < 10 ? "%.1f %%"
                                    : "%.0f %%",
               percent);
}

/* ---- what was read ---- */

static void print_head(const char *directory, const struct evidence *evidence, struct buf *out) {
    const struct run *run = evidence->run;
    const struct run_config *config = &run->config;
    if (evidence->is_simulated)
        buf_text(out, "SIMULATED accelerator: no real model was run.\n\n");
    buf_printf(out, "Run      %s: model %s, %zu requests and %llu batches read", directory,
               run->model, run->count, (unsigned long long)evidence->batches.written);
    if (run->summary.is_known)
        buf_printf(out, " of %llu requests", (unsigned long long)run->summary.requests);
    buf_text(out, "\n");
    if (run->model_count > 1)
        buf_printf(out, "         %u models are in the trace; --model NAME chooses\n",
                   run->model_count);
    if (config->is_known) {
        buf_printf(out, "Config   queue %s, policy %s, preprocess %s, max batch %llu",
                   config->queue, config->policy, config->preprocess,
                   (unsigned long long)config->max_batch);
        if (config->max_delay_us > 0)
            buf_printf(out, ", max delay %g ms", (double)config->max_delay_us / 1e3);
        buf_printf(out, ", %llu instances, %llu workers, %llu processors; back end %s\n",
                   (unsigned long long)config->instances, (unsigned long long)config->workers,
                   (unsigned long long)config->processors, config->backend);
    }
    if (run->client_lines > 0 && run->joined > 0)
        buf_printf(out,
                   "Client   %llu requests joined by id (step %u of %u; %llu others left out)\n",
                   (unsigned long long)run->joined, run->step, run->steps,
                   (unsigned long long)run->not_joined);
    if (run->warm_up > 0)
        buf_printf(out, "Warm-up  %llu requests of a bench's warm-up left out\n",
                   (unsigned long long)run->warm_up);
    struct ms_text p50, p99;
    buf_printf(out, "Load     %.1f requests a second over %.1f s, %.1f in flight (Little's law)",
               evidence->rate, evidence->span_ns / 1e9, evidence->in_flight);
    if (evidence->utilisation >= 0)
        buf_printf(out, ", instances busy %.0f %%", PERCENT(evidence->utilisation));
    buf_printf(out, "; P50 %s, P99 %s ms in the sample\n", ms((double)evidence->p50_ns, &p50),
               ms((double)evidence->p99_ns, &p99));
}

/* ---- verdict and findings ---- */

static const char *basis_text(const struct finding *finding) {
    return finding->is_by_excess ? "of what they take beyond the middle"
                                 : "of the slow requests' time";
}

static void print_verdict(const struct evidence *evidence, const struct findings *findings,
                          struct buf *out) {
    const struct finding *first = &findings->items[0];
    struct ms_text slow, middle;
    buf_text(out, "\nVerdict  ");
    if (findings->verdict == VERDICT_NONE) {
        buf_text(out, "no cause stands out");
        if (findings->standing > 0) buf_printf(out, "; %s", first->cause->title);
    } else {
        const double share = first->is_by_excess ? first->share_of_excess : first->share_of_total;
        buf_printf(out, "%s: %.0f %% %s", first->cause->title, PERCENT(share), basis_text(first));
        if (findings->is_close)
            buf_printf(out, "\n         inconclusive which is larger, this or: %s",
                       findings->items[1].cause->title);
    }
    buf_printf(out, ".\n         The slowest %g %% take %s ms on average, the middle %s ms.\n",
               PERCENT(evidence->slow_share), ms(evidence->slow.whole_ns, &slow),
               ms(evidence->middle.whole_ns, &middle));
}

/* A paragraph after its heading, in lines of at most WIDTH columns. */
static void print_wrapped(const char *heading, const struct buf *text, struct buf *out) {
    size_t column = strlen(heading);
    const char *at = text->data, *end = at + text->size;
    buf_text(out, heading);
    for (bool is_first = true; at < end; is_first = false) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const size_t size = blank != NULL ? (size_t)(blank - at) : (size_t)(end - at);
        if (!is_first && column + 1 + size > WIDTH) {
            buf_text(out, "\n             ");
            column = INDENT;
        } else if (!is_first) {
            buf_char(out, ' ');
            column++;
        }
        buf_append(out, at, size);
        column += size;
        at += size + (blank != NULL);
    }
    buf_char(out, '\n');
}

static void print_figures(const struct finding *finding, struct buf *out) {
    struct buf line;
    buf_init(&line);
    for (size_t i = 0; i < finding->figure_count; i++) {
        const struct figure *figure = &finding->figures[i];
        struct ms_text text;
        buf_printf(&line, "%s%s ", i == 0 ? "" : ", ", figure->label);
        if (strcmp(figure->unit, "ms") == 0)
            buf_printf(&line, "%s ms", ms(figure->value * 1e6, &text));
        else if (strcmp(figure->unit, "%") == 0) buf_printf(&line, "%.0f %%", figure->value);
        else
            buf_printf(&line, "%.4g%s%s", figure->value, *figure->unit != 0 ? " " : "",
                       figure->unit);
    }
    if (finding->figure_count > 0) print_wrapped("   evidence: ", &line, out);
    out->failed |= line.failed;
    buf_done(&line);
}

static void print_text(const char *heading, const char *option, const char *text, struct buf *out) {
    struct buf line;
    buf_init(&line);
    if (*option != 0) buf_printf(&line, "[%s] ", option);
    buf_text(&line, text);
    print_wrapped(heading, &line, out);
    out->failed |= line.failed;
    buf_done(&line);
}

static void print_finding(const struct evidence *evidence, size_t number,
                          const struct finding *finding, struct buf *out) {
    struct ms_text part, whole, excess, without;
    const struct interval *total = &finding->total_interval, *beyond = &finding->excess_interval;
    buf_printf(out, "%zu. %s%s\n", number, finding->cause->title,
               finding->cause->kind == CAUSE_ORDINARY ? " (ordinary, no fault)" : "");
    buf_printf(
        out,
        "   explains: %s of %s ms, %.0f %% of the slow requests' time (95 %%: %.0f to %.0f %%)",
        ms(finding->slow_ns, &part), ms(evidence->slow.whole_ns, &whole),
        PERCENT(finding->share_of_total), PERCENT(total->low), PERCENT(total->high));
    if (evidence_excess_ns(evidence) > 0)
        buf_printf(out,
                   ";\n             %.0f %% of the %s ms they take beyond the middle (95 %%: %.0f "
                   "to %.0f %%)",
                   PERCENT(finding->share_of_excess), ms(evidence_excess_ns(evidence), &excess),
                   PERCENT(beyond->low), PERCENT(beyond->high));
    buf_printf(out, "; ranked by the %s\n", finding->is_by_excess ? "latter" : "former");
    print_figures(finding, out);
    if (finding->advice[0] != 0)
        print_text("   change:   ", finding->cause->option, finding->advice, out);
    if (finding->expected_ns > 0)
        buf_printf(
            out, "   expected: the slow ones at about %s ms instead of %s, all else being equal\n",
            ms(finding->expected_ns, &without), ms(evidence->slow.whole_ns, &whole));
}

static void print_findings(const struct evidence *evidence, const struct findings *findings,
                           struct buf *out) {
    if (findings->standing > 0) buf_text(out, "\nFindings\n");
    for (size_t i = 0; i < findings->standing; i++)
        print_finding(evidence, i + 1, &findings->items[i], out);
    buf_text(out, "\nNotes\n");
    for (size_t i = 0; i < findings->note_count; i++)
        print_text("   - ", "", findings->notes[i], out);
    struct buf line;
    buf_init(&line);
    const char *between = "";
    for (size_t i = findings->standing; i < findings->count; i++) {
        buf_printf(&line, "%s%s", between, findings->items[i].cause->name);
        between = ", ";
    }
    print_wrapped("   - looked at and not blamed: ", &line, out);
    out->failed |= line.failed;
    buf_done(&line);
}

/* ---- evidence ---- */

static bool print_stages(const struct evidence *evidence, struct buf *out) {
    static const char *const RULES[] = {
        "the slowest of all", "the slowest of each second, as the tracer chose them",
        "the slowest of the uniform sample"};
    const double excess_ns = evidence_excess_ns(evidence);
    struct table *table = table_create();
    buf_printf(out,
               "\nWhere the time goes, means: %llu slow requests (%s; from %.3f ms on) against\n"
               "%llu of the middle (P40 to P60 of the uniform sample, %.3f to %.3f ms)\n",
               (unsigned long long)evidence->slow.requests, RULES[evidence->slow_rule],
               MS((double)evidence->slow.from_ns), (unsigned long long)evidence->middle.requests,
               MS((double)evidence->middle.from_ns), MS((double)evidence->middle.to_ns));
    table_column(table, "stage", TABLE_LEFT);
    table_column(table, "slow ms", TABLE_RIGHT);
    table_column(table, "share", TABLE_RIGHT);
    table_column(table, "middle ms", TABLE_RIGHT);
    table_column(table, "excess ms", TABLE_RIGHT);
    table_column(table, "of excess", TABLE_RIGHT);
    for (unsigned i = 0; i <= PART_COUNT; i++) {
        const double slow = i < PART_COUNT ? evidence->slow.part_ns[i] : evidence->slow.whole_ns;
        const double middle =
            i < PART_COUNT ? evidence->middle.part_ns[i] : evidence->middle.whole_ns;
        struct ms_text a, b, c;
        if (slow < 50 && middle < 50) continue; /* it did not happen */
        table_row(table);
        table_cell(table, "%s", i < PART_COUNT ? part_name((enum part)i) : "total");
        table_cell(table, "%s", ms(slow, &a));
        cell_percent(table, slow / evidence->slow.whole_ns);
        table_cell(table, "%s", ms(middle, &b));
        table_cell(table, "%s", ms(slow - middle, &c));
        if (excess_ns > 0) cell_percent(table, (slow - middle) / excess_ns);
    }
    const bool ok = table_write(table, "  ", out);
    table_free(table);
    buf_printf(out, "  stages add up to the total within %.0f ns\n",
               evidence->run->residual_max_ns);
    return ok;
}

/* "41.2 ms: image_decode 71 %, resize 18 %": of one stage, the largest first. */
static void print_steps_of(const struct group *group, enum stage stage, struct buf *out) {
    bool is_shown[STEP_COUNT] = {false};
    struct ms_text text;
    const char *between = ": ";
    buf_printf(out, "%s ms", ms(group->part_ns[stage], &text));
    for (unsigned n = 0; n < STEP_COUNT; n++) {
        unsigned largest = STEP_COUNT;
        for (unsigned i = 0; i < STEP_COUNT; i++)
            if (!is_shown[i] && step_stage((enum step)i) == stage &&
                (largest == STEP_COUNT || group->step_ns[i] > group->step_ns[largest]))
                largest = i;
        if (largest == STEP_COUNT || group->step_ns[largest] < 0.005 * group->part_ns[stage])
            return;
        is_shown[largest] = true;
        buf_printf(out, "%s%s %.0f %%", between, step_name((enum step)largest),
                   PERCENT(group->step_ns[largest] / group->part_ns[stage]));
        between = ", ";
    }
}

static void print_steps(const struct evidence *evidence, struct buf *out) {
    static const enum stage STAGES[] = {STAGE_PREPROCESS, STAGE_POSTPROCESS};
    const char *heading = "\nSteps    ";
    for (unsigned s = 0; s < 2; s++) {
        double sum_ns = 0;
        for (unsigned i = 0; i < STEP_COUNT; i++)
            if (step_stage((enum step)i) == STAGES[s]) sum_ns += evidence->slow.step_ns[i];
        if (sum_ns < 50) continue; /* none happened, or it is an older trace */
        buf_printf(out, "%s%s, slow ", heading, stage_name(STAGES[s]));
        print_steps_of(&evidence->slow, STAGES[s], out);
        buf_text(out, "\n         middle ");
        print_steps_of(&evidence->middle, STAGES[s], out);
        buf_char(out, '\n');
        heading = "         ";
    }
}

static void print_queue(const struct evidence *evidence, struct buf *out) {
    const struct group *slow = &evidence->slow;
    struct ms_text a, b, c, d, e;
    if (slow->queue_ns <= 0) return;
    const double total = slow->queue_ns + slow->part_ns[STAGE_BATCH_ENQUEUE];
    buf_printf(
        out,
        "\nQueue    the slow ones waited %s ms: held by the policy %s, every instance busy %s, "
        "wake-up %s, entering %s\n",
        ms(total, &a), ms(slow->part_ns[STAGE_BATCH_HOLD], &b),
        ms(slow->part_ns[STAGE_INSTANCE_WAIT], &c), ms(slow->wake_ns, &d),
        ms(slow->part_ns[STAGE_BATCH_ENQUEUE], &e));
    buf_printf(out, "         of entering, %.1f us waiting for the lock", slow->lock_wait_ns / 1e3);
    if (slow->lock_wait_ns > 0) buf_text(out, ", held by");
    for (unsigned i = HOLDER_LOOP; i < HOLDER_COUNT; i++)
        if (slow->holder_ns[i] > 0)
            buf_printf(out, " %s (%.1f us)", holder_name((enum holder)i), slow->holder_ns[i] / 1e3);
    buf_text(out, "\n         meanwhile the instances were");
    const char *between = " ";
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) {
        const double share = slow->activity_ns[i] / slow->queue_ns;
        if (share < 0.005) continue;
        buf_printf(out, "%s%s %.0f %%", between,
                   i == ACTIVITY_UNKNOWN ? "doing what the trace does not hold"
                                         : activity_name((enum activity)i), PERCENT(share));
        between = ", ";
    }
    buf_text(out, "\n");
}

static void print_batches(const struct evidence *evidence, struct buf *out) {
    const struct batch_evidence *batches = &evidence->batches;
    const struct cost_fit *fit = &evidence->fit;
    if (batches->count <= 0) return;
    buf_printf(
        out, "\nBatches  size %.1f on average, P50 %u, P99 %u, of at most %u; left waiting %.1f;",
        batches->size, batches->size_p50, batches->size_p99, batches->max_batch, batches->waiting);
    for (unsigned i = 0; i < REASON_COUNT; i++)
        if (batches->reason_share[i] >= 0.005)
            buf_printf(out, " %s %.0f %%", reason_name((enum reason)i),
                       PERCENT(batches->reason_share[i]));
    struct ms_text a, b, c;
    buf_printf(out, "\n         on the instance %s ms, of which model %s", ms(batches->busy_ns, &a),
               ms(batches->execute_ns, &b));
    if (batches->inline_ns > 0) buf_printf(out, ", tokenizing %s", ms(batches->inline_ns, &c));
    if (evidence->slow.padded > 0)
        buf_printf(out,
                   "\n         tokens: slow %.0f (padded to %.0f), middle %.0f (%.0f); padding "
                   "wastes %.0f %%",
                   evidence->slow.tokens, evidence->slow.padded, evidence->middle.tokens,
                   evidence->middle.padded, PERCENT(batches->padding_waste));
    if (fit->is_known && fit->r2 < 0.1)
        buf_text(out, "\n         execution does not follow the batch's size in this run");
    else if (fit->is_known)
        buf_printf(
            out,
            "\n         execution = %s%.3f ms + %.3f us a%s (R2 %.2f, spread %.3f ms, %llu batches)",
            fit->a_ns < 0 ? "no clear fixed part, " : "", MS(fmax(fit->a_ns, 0)), fit->b_ns / 1e3, fit->is_by_elements ? "n element" : " row", fit->r2,
            MS(fit->residual_ns), (unsigned long long)fit->batches);
    buf_text(out, "\n");
}

static void print_slowest(const struct evidence *evidence, struct buf *out) {
    const struct run *run = evidence->run;
    buf_text(out, "Slowest ");
    for (uint32_t i = 0; i < evidence->slowest_count; i++) {
        const struct run_request *request = &run->requests[evidence->slowest[i]];
        struct ms_text text;
        buf_printf(out, "%s %s (%s ms)", i == 0 ? "" : ",", run_id(run, request),
                   ms(request->whole_ns, &text));
    }
    buf_text(out, "\n");
}

bool explain_print(const char *directory, const struct evidence *evidence,
                   const struct findings *findings, struct buf *out) {
    print_head(directory, evidence, out);
    print_slowest(evidence, out);
    print_verdict(evidence, findings, out);
    print_findings(evidence, findings, out);
    const bool ok = print_stages(evidence, out);
    print_steps(evidence, out);
    print_queue(evidence, out);
    print_batches(evidence, out);
    return ok && !out->failed;
}
